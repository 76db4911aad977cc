#include "denoising_mixture/results.hpp"
#include "denoising_mixture/tails.hpp"

#include "experiment/checkpoints.hpp"
#include "experiment/console.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/launch.hpp"
#include "experiment/recorder.hpp"
#include "experiment/runs.hpp"
#include "experiment/warnings.hpp"
#include "implicit_diffusion/denoising/checkpoint.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/optimizer/any.hpp"
#include "implicit_diffusion/population_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

namespace program {
namespace {

using namespace implicit_diffusion;
using Batch = PathBatch<float>;
namespace fs = std::filesystem;

// One run: its loop, what is measured along it, and its checkpoints.
class Run {
 public:
  Run(const DenoisingConfiguration& c, const RunContext& context) : c_(c), context_(context) {
    context.say_if_fewer(workers_.threads());
    empty_.points = Population<float>(static_cast<std::size_t>(c.batch), c.base.dimension(), context.processes);
    if (c.base.dimension() <= MixtureDivergence::largest_dimension) divergence_.emplace(tilted_);
  }

  DenoisingRow run() {
    QueueState<Batch, AnyOptimizer> s{
        0, model_.parameters_of(c_.base), {}, AnyOptimizer::make(c_.optimizer, {c_.learning_rate})};
    const QueueOptions options{.steps = c_.steps, .slots = c_.slots, .warm_start = c_.loop != LoopKind::queue_cold};
    const auto observe_state = [&](const auto& state) { observe(state); };
    if (c_.loop == LoopKind::nested) {
      State<Batch, AnyOptimizer> one{0, s.theta, empty_, s.optimizer};
      resume(one);
      const NestedOptions cold{.steps = c_.steps, .inner_steps = 1, .warm_start = false};
      outcome_ = nested_loop(engine_, engine_, start_, one, cold, observe_state, checkpoints_.stop());
      return finish(one);
    }
    if (c_.loop == LoopKind::double_queue) {
      DoubleQueueState<Batch, BackwardBatch<float>, AnyOptimizer> both{0, s.theta, {}, {}, s.optimizer};
      both.back.resize(static_cast<std::size_t>(c_.slots) + 1);
      if (!resume(both)) {
        start_queue(engine_, start_, s, options, empty_);
        both.slots = std::move(s.slots);
      }
      backward_.emplace(chain_, reward_, objective_);
      outcome_ = double_queue_loop(engine_, *backward_, start_, both, c_.steps, observe_state, checkpoints_.stop());
      return finish(both);
    }
    if (!resume(s)) start_queue(engine_, start_, s, options, empty_);
    outcome_ = queue_loop(engine_, engine_, start_, s, options, observe_state, checkpoints_.stop());
    return finish(s);
  }

 private:
  void observe(const auto& s) {
    if (s.step > counted_) step_cost_ = cost() - counted_cost_;
    counted_ = s.step;
    counted_cost_ = cost();
    if (rows_.is_due(s.step)) {
      rows_.add(s.step, measure(s), s.theta);
      memory_ = std::max(memory_, memory_of(s));
    }
    checkpoints_.write_if_due(s.step, [&](io::CheckpointWriter& c) { return save_run(c, s); });
    progress_(s.step, {.reward = rows_.last_row()[3]});
  }

  // The batches of a state: of a queue, or the one of the nested loop.
  static auto batches(auto& s) {
    if constexpr (requires { s.slots; })
      return std::span(s.slots);
    else
      return std::span(&s.population, 1);
  }
  // The newest batch that has come to its end, or null.
  const Batch* finished(const auto& s) const {
    const auto all = batches(s);
    return !all.empty() && all.back().step == chain_.steps() ? &all.back() : nullptr;
  }

  std::vector<double> measure(const auto& s) const {
    const GaussianMixture law = model_.law(s.theta);
    const LawDistance d = distance(law, tilted_);
    BatchObjective o{Figures::none, Figures::none, Figures::none};
    if (const Batch* b = finished(s)) o = objective_of<float>(*b, reward_, objective_);
    const double kl = divergence_ ? (*divergence_)(law).value_or(Figures::none) : Figures::none;
    const auto step = static_cast<double>(s.step), evaluations = static_cast<double>(cost().evaluations);
    return {step,      evaluations, rows_.seconds(), o.reward, c_.mean_reward(law), kl, Figures::none,
            o.path_kl, o.value,     d.weights,       d.means};
  }

  static std::size_t memory_of(const auto& s) {
    std::size_t bytes = 0;
    for (const Batch& b : batches(s)) bytes += b.bytes();
    if constexpr (requires { s.back; })
      for (const auto& b : s.back)
        if (b)
          bytes += size_in_bytes(b->points) + on_all(b->points.tiles(), size_in_bytes(b->adjoint)) +
                   on_all(b->points.tiles(), size_in_bytes(b->gradients));
    return bytes;
  }

  DenoisingCost cost() const {
    return cost_before_ + engine_.cost() + (backward_ ? backward_->cost() : DenoisingCost{});
  }

  bool save_run(io::CheckpointWriter& c, const auto& s) const {
    if (!all_finite(s.theta) || !all_finite(s.optimizer.memory().list()) ||
        std::ranges::any_of(batches(s), [](const Batch& b) { return find_nonfinite(b).has_value(); }))
      return false;
    save(c, s, chain_);
    rows_.save(c, "last_row");
    std::vector<std::uint64_t> costs;
    for (const DenoisingCost& x : {cost(), step_cost_})
      costs.insert(costs.end(), {x.evaluations, x.products, x.frozen_evaluations, x.frozen_products});
    io::save(c, "costs", std::move(costs));
    io::save(c, "memory", static_cast<std::uint64_t>(memory_));
    std::vector<std::uint64_t> states;
    for (const Batch& b : batches(s)) states.push_back(b.path.size());
    io::save(c, "path_states", std::move(states));
    return true;
  }

  // Paths have memory for more states than they have. What comes back from a checkpoint has the states only: it is
  // given as much, so that memory_bytes does not depend on where a run was stopped.
  void restore_memory(const io::CheckpointReader& c, auto& s) const {
    if (!c.contains("path_states")) return;
    const auto states = c.numbers<std::uint64_t>("path_states");
    const std::span<Batch> all = batches(s);
    if (states.size() != all.size()) c.refuse("path_states", "has another size");
    for (std::size_t m = 0; m < all.size(); ++m) {
      if (states[m] < all[m].path.size() || states[m] > chain_.steps()) c.refuse("path_states", "has a wrong number");
      all[m].path.resize(states[m], all[m].points);
    }
  }

  // Puts the newest whole checkpoint in the place of the start; false where there is none, or the run does not go on.
  bool resume(auto& s) {
    const auto restore_run = [&](const io::CheckpointReader& c) {
      if constexpr (requires { s.slots; })
        restore(c, s, chain_, empty_);
      else
        restore(c, s, chain_);
      rows_.restore(c, s.theta.size(), "last_row");
      const auto costs = c.numbers<std::uint64_t>("costs");
      if (costs.size() != 8) c.refuse("costs", "has another size");
      cost_before_ = {costs[0], costs[1], costs[2], costs[3]};
      step_cost_ = {costs[4], costs[5], costs[6], costs[7]};
      counted_ = s.step;
      memory_ = static_cast<std::size_t>(c.number<std::uint64_t>("memory"));
      restore_memory(c, s);
      return s.step;
    };
    const bool found = context_.resume && checkpoints_.resume(c_.steps, context_.quiet, restore_run);
    rows_.start_clock();
    return found;
  }

  DenoisingRow finish(const auto& s) {
    std::size_t memory = memory_;
    if (rows_.needs_last(s.step)) {
      rows_.add_last(measure(s), s.theta);
      memory = std::max(memory, memory_of(s));
    }
    const std::vector<double>& last = rows_.last_row();
    DenoisingRow row{.configuration = &c_,
                     .status = std::string(to_string(outcome_.status)),
                     .steps = s.step,
                     .law = model_.law(s.theta),
                     .theta = s.theta,
                     .figures = {.reward = last[3], .exact_reward = last[4], .exact_kl = last[5]},
                     .path_kl = last[7],
                     .seconds = rows_.seconds(),
                     .cost = cost(),
                     .step_cost = step_cost_,
                     .memory_bytes = memory};
    if (context_.writes()) rows_.write(context_.folder);
    if (outcome_.status == Status::completed && s.step > 0) row.warnings = warnings(s.theta);
    if (outcome_.status == Status::diverged) return row;
    if (const Batch* b = finished(s)) context_.write_samples("samples.npy", b->points);
    checkpoints_.write(s.step, [&](io::CheckpointWriter& c) { return save_run(c, s); });
    return row;
  }

  std::vector<Warning> warnings(const std::vector<double>& theta) const {
    std::vector<Warning> all;
    if (auto tails = warn_of_tails(theta)) all.push_back(std::move(*tails));
    if (context_.shortened) return all;
    const bool known = std::isfinite(rows_.column("exact_kl").back());
    if (auto moving = warn_if_moving(known ? "KL to the tilted law" : "objective",
                                     rows_.column(known ? "exact_kl" : "objective"), known))
      all.push_back(std::move(*moving));
    return all;
  }

  // One if the gradient at the end rests on a few of the samples, which are drawn for this alone.
  std::optional<Warning> warn_of_tails(const std::vector<double>& theta) const {
    // It takes a tenth of the time of the run at most.
    constexpr std::int64_t most = 1000, fewest = 200, samples = 16, share = 10, longest = 100'000;
    const std::int64_t groups = std::min(most, c_.steps * c_.batch / (samples * share));
    if (groups < fewest || c_.steps_per_sample * static_cast<std::int64_t>(c_.base.dimension()) > longest)
      return std::nullopt;
    const Concentration found = gradient_concentration(c_, theta, static_cast<std::size_t>(c_.steps_per_sample),
                                                       static_cast<std::size_t>(groups));
    if (found.tail_share <= largest_tail_share) return std::nullopt;
    return Warning{
        warning_kind::heavy_tails,
        fmt::format(
            "the gradient rests on a few samples: among {} groups of {} the largest 1 % have {:.0f} % of its "
            "variance (8 % would be normal), so most batches of {} contain none of the samples that matter, and theta "
            "may have stopped short or gone astray. The modes of the base are too far apart for gradients along "
            "paths: bring them closer together; a larger batch helps little",
            groups, samples, 100 * found.tail_share, c_.batch)};
  }

  const DenoisingConfiguration& c_;
  const RunContext& context_;
  Workers workers_{context_.threads};
  const MixtureModel model_ = c_.model();
  const GaussianMixture tilted_ = c_.tilted();
  std::optional<MixtureDivergence> divergence_;
  const DenoisingObjective objective_{c_.lambda, c_.beta};
  const Reward<float> reward_ = LinearReward{c_.direction};
  DenoisingStart<float> start_{Noise(c_.seed)};
  ReverseChain<float> chain_{model_.score<float>(),
                             c_.grid(static_cast<std::size_t>(c_.steps_per_sample)),
                             {.dynamics = c_.dynamics,
                              .slots = static_cast<std::size_t>(c_.slots),
                              .keep_every = static_cast<std::size_t>(c_.keep_every),
                              .normals = normals_of<float>(Noise(c_.seed)),
                              .workers = &workers_},
                             std::pair{model_.score<float>(), model_.parameters_of(c_.base)}};
  DenoisingEngine<float> engine_{chain_, reward_, objective_};
  std::optional<DenoisingBackward<float>> backward_;
  Outcome outcome_;
  Batch empty_;
  RowRecorder rows_{{denoising_header.begin(), denoising_header.end()}, c_.log_every};
  Checkpoints checkpoints_{c_, context_, c_.checkpoint_every};
  Progress::Loop progress_{context_.progress, context_.weight};
  DenoisingCost cost_before_, counted_cost_, step_cost_;  // of runs before; up to the step counted_; of that step
  std::int64_t counted_ = 0;
  std::size_t memory_ = 0;
};

// The most memory that this process has had so far, where the system counts it.
void add_peak_memory(Json& more) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::uint64_t kilobytes = 0; word == "VmHWM:" && status >> kilobytes)
      more["peak_memory_bytes"] = 1024 * kilobytes;
}

FinishedRun run_single(const DenoisingConfiguration& c, const RunContext& context) {
  const DenoisingRows rows{Run(c, context).run()};
  const DenoisingRow& row = *rows.front();
  FinishedRun done{summary_of(c, rows, context.threads), {}, {}};
  add_peak_memory(done.summary.more);
  if (context.processes) done.summary.processes = context.processes->ranks();
  context.write("summary.json", to_json(done.summary));
  const DenoisingComparison::Setting alone{"the run", c};
  done.table = closing_table(c, {&alone, 1}, rows, row.status, row.seconds);
  if (row.status == "diverged") done.complaints.push_back(describe_divergence(row));
  return done;
}

int run_settings(const DenoisingMixtureExperiment& experiment, const RunOptions& o) {
  const DenoisingComparison& e = experiment.configuration();
  const std::size_t threads = thread_count(o);
  const Interrupt interrupt;
  const OpenFolder folder(o, e);
  const auto begin = std::chrono::steady_clock::now();
  const double before = o.resume ? seconds_so_far(folder.path) : 0;

  const auto step_work = [&](std::size_t i) {
    const DenoisingConfiguration& c = e.settings[i].configuration;
    return static_cast<double>(c.steps_per_sample * c.batch * (c.keep_every > 1 ? 3 : 2));
  };
  const auto work_of = [&](std::size_t i) {
    return step_work(i) * static_cast<double>(e.settings[i].configuration.steps);
  };
  const std::vector<std::size_t> order = longest_first(e.settings.size(), work_of);
  std::vector<FolderRun> folders;
  double work = 0;
  for (const std::size_t i : order) {
    const auto& s = e.settings[i];
    folders.push_back({&s.configuration, folder.path / "settings" / s.folder, step_work(i), o.quick});
    work += work_of(i);
  }
  Progress progress(e.experiment, e.settings.size(), work, o.quiet);
  if (o.resume) {
    std::error_code none;
    const auto begun =
        std::ranges::count_if(folders, [&](const FolderRun& f) { return fs::exists(f.folder / "checkpoints", none); });
    progress.say(fmt::format("{} of {} runs have a checkpoint and continue from it", begun, e.settings.size()));
  }
  DenoisingRows rows(e.settings.size());
  run_in_folders(folders, threads, o.resume, interrupt.token(), &progress,
                 [&](std::size_t k, const RunContext& context) {
                   const auto& setting = e.settings[order[k]];
                   const DenoisingRow& r = rows[order[k]].emplace(Run(setting.configuration, context).run());
                   io::write_file(context.folder / "summary.json",
                                  to_json(summary_of(setting.configuration, {r}, context.threads)));
                   progress.say(fmt::format("{} {} after {} steps", setting.folder,
                                            r.status == "completed" ? "done" : r.status, r.steps));
                 },
                 {[&](std::size_t k) { return pack(*rows[order[k]]); },
                  [&](std::size_t k, const std::string& message) {
                    rows[order[k]] = unpack_row(e.settings[order[k]].configuration, message);
                  }});
  progress.finish();
  if (!is_first()) return 0;
  if (o.resume) write_configuration(folder.path, e);

  Summary s = summary_of(e.single, rows, threads);
  if (processes()) s.processes = processes()->ranks();
  s.status = "completed";
  s.seconds = before + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const DenoisingRow* diverged = nullptr;
  for (const auto& r : rows) {
    if (!r || (r->status != "completed" && s.status != "diverged")) s.status = r ? r->status : "interrupted";
    if (r && r->status == "diverged" && !diverged) diverged = &*r;
  }
  add_peak_memory(s.more);
  io::write_file(folder.path / "summary.json", to_json(s));

  const int code = exit_code(s.status, interrupt.signal());
  if (s.more["results"].empty()) {
    print(fmt::format("{}: interrupted before a run had started; continue with --resume\n", e.experiment));
    return code;
  }
  close_run(folder.path, closing_table(e.single, e.settings, rows, s.status, s.seconds), o, experiment);
  print_warnings(s.warnings);
  if (code == exit_diverged && diverged) complain(fmt::format("{}: {}", e.experiment, describe_divergence(*diverged)));
  return code;
}

}  // namespace

std::unique_ptr<Experiment> read_denoising_mixture(const Document& d) {
  return std::make_unique<DenoisingMixtureExperiment>(read_denoising_configuration(d));
}

int DenoisingMixtureExperiment::run(const RunOptions& o) const {
  return configuration().settings.empty() ? run_or_repeat(configuration().single, o, run_single, *this)
                                          : run_settings(*this, o);
}

Experiment::Repeats DenoisingMixtureExperiment::repeats() const {
  if (configuration().settings.empty()) return {};
  return {"", "a comparison runs each setting once; use --set comparison.settings=[] to repeat a single run"};
}

}  // namespace program
