#include "langevin/experiment.hpp"

#include "experiment/checkpoints.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "langevin/diverged.hpp"
#include "langevin/match_components.hpp"
#include "langevin/recorder.hpp"
#include "langevin/warnings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

// For each component of the learnt mixture the one of the target that it stands for.
std::optional<std::vector<std::size_t>> permutation(const LangevinConfiguration& c, std::span<const double> theta) {
  if (!c.potential.describe().covariances || !c.reference || c.reference->theta.empty()) return std::nullopt;
  const Potential<float> potential = c.potential.make();
  return match_components(*potential.law(theta), *potential.law(c.reference->theta));
}

Summary summarise(const LangevinConfiguration& c, const RunResult& r, const Recorder& recorder, std::size_t threads) {
  const std::int64_t each = gradient_evaluations_per_step(c);
  Summary s = summary_of(c, threads);
  s.method = to_string(c.method);
  s.steps = r.state.step;
  s.status = to_string(r.outcome.status);
  s.theta = r.state.theta;
  s.figures = recorder.last();
  s.gradient_evaluations = r.state.step * each;
  s.seconds = recorder.rows().seconds();
  s.permutation = permutation(c, r.state.theta);
  for (const auto& [threshold, step] : recorder.crossings())
    s.reached.push_back({toml_number(threshold), step, step ? std::optional(*step * each) : std::nullopt});
  return s;
}

// Of the files that a run goes on reading after its start.
SampleHashes hashes_of(const LangevinConfiguration& c) {
  const std::size_t d = c.potential.make().dimension();
  SampleHashes hashes;
  if (c.reference && c.reference->data) hashes.add("reference.data", *c.reference->data, d);
  const bool starts_anew = has_inner_steps(c.method) && !c.warm_start;
  if (c.start.samples && starts_anew) hashes.add("start.samples", *c.start.samples, d);
  return hashes;
}

bool save_run(io::CheckpointWriter& c, const RunState& state, const Recorder& recorder, const SampleHashes& hashes) {
  if (find_nonfinite(state.population) || !all_finite(state.theta) || !all_finite(state.optimizer.memory().list()))
    return false;
  save(c, state);
  recorder.save(c);
  hashes.save(c);
  return true;
}

// The closing table of one run. Where the objective is a reference alone, the reward in the files is minus its KL.
std::string closing_table(const LangevinConfiguration& c, const Summary& s) {
  std::string text = fmt::format("{} ({}, seed {}): {}, {} steps in {:.2f} s\n", s.experiment, s.method, s.seed,
                                 s.status, s.steps, s.seconds);
  const auto row = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<29}{}\n", label, value);
  };
  for (const FigureName& f : figure_names)
    if (std::isfinite(s.figures.*f.value) && (c.reward || f.value != &Figures::reward))
      row(f.label, figure_text(s.figures.*f.value, f.digits));
  for (const Reached& r : s.reached)
    row(fmt::format("log-likelihood {} reached", r.threshold), r.step ? fmt::format("at step {}", *r.step) : "never");
  constexpr std::size_t most = 24;
  if (s.theta.size() <= most) {
    auto at = s.theta.begin();
    for (const ThetaPart& part : c.potential.theta_parts()) {
      std::vector<std::string> numbers;
      for (std::size_t j = 0; j < part.count; ++j) numbers.push_back(figure_text(*at++, 3));
      row("theta: " + part.name, fmt::format("{}", fmt::join(numbers, " ")));
    }
  }
  if (s.permutation) row("reference components, from 0", fmt::format("[{}]", fmt::join(*s.permutation, ",")));
  return text;
}

// Writes the files of a finished run but its configuration, which is there from its beginning, and the report.
void write_run(const RunContext& context, const RunResult& result, const Recorder& recorder, const Summary& summary) {
  if (context.writes()) recorder.rows().write(context.folder);
  const Population<float>& x = result.state.population;
  if (result.outcome.status != Status::diverged) context.write_samples("samples.npy", x);
  if (const std::vector<float>& kept = recorder.snapshots(); !kept.empty() && context.writes())
    context.write("snapshots.npy",
                  io::npy_bytes(kept, std::array{kept.size() / (x.total() * x.dimension()), x.total(), x.dimension()}));
  context.write("summary.json", to_json(summary));
}

}  // namespace

void check_inputs(const LangevinConfiguration& c, const RunOptions& o) {
  check_input_files(c);
  if (c.start.samples) require_kept("start.samples", c.start.samples->path(), o, c);
  if (c.reference && c.reference->data) require_kept("reference.data", c.reference->data->path(), o, c);
}

FinishedRun run_langevin(const LangevinConfiguration& c, const RunContext& context) {
  Workers workers(context.threads);
  context.say_if_fewer(workers.threads());
  Recorder recorder(c, &workers);
  Checkpoints checkpoints(c, context, c.checkpoint_every);
  context.say_if_too_few(static_cast<std::size_t>(c.particles));
  const SampleHashes hashes = hashes_of(c);
  const auto go_on = [&](RunState& state) {
    checkpoints.resume(c.steps, context.quiet, [&](const io::CheckpointReader& from) {
      hashes.compare(from);
      restore(from, state);
      recorder.restore(from, state.step, state.theta.size());
      return state.step;
    });
  };
  Progress::Loop progress(context.progress, context.weight);
  const RunResult r = run_method(
      c, &workers,
      [&](const RunState& state) {
        recorder(state);
        checkpoints.write_if_due(state.step,
                                 [&](io::CheckpointWriter& to) { return save_run(to, state, recorder, hashes); });
        progress(state.step, recorder.last());
      },
      checkpoints.stop(), context.resume ? go_on : std::function<void(RunState&)>(), context.processes);
  const bool diverged = r.outcome.status == Status::diverged;
  recorder.finish(r.state, diverged);
  FinishedRun done{summarise(c, r, recorder, context.threads), {}, {}};
  if (context.processes) done.summary.processes = context.processes->ranks();
  if (r.outcome.status == Status::completed) done.summary.warnings = langevin_warnings(c, r.state, recorder.rows());
  if (diverged) done.complaints.push_back(describe_divergence(*r.outcome.divergence, c));
  done.table = closing_table(c, done.summary);
  write_run(context, r, recorder, done.summary);
  if (!diverged)  // the last, after the files of the run
    checkpoints.write(r.state.step, [&](io::CheckpointWriter& to) { return save_run(to, r.state, recorder, hashes); });
  return done;
}

std::unique_ptr<Experiment> read_langevin(const Document& d) {
  return std::make_unique<LangevinExperiment>(read_langevin_configuration(d));
}

int LangevinExperiment::run(const RunOptions& o) const {
  check_inputs(configuration(), o);  // before anything is written: a bad file leaves no folder behind
  return run_or_repeat(configuration(), o, run_langevin, *this);
}

}  // namespace program
