// A training of a network as a run: its loop, its rows, its checkpoints. Needs LibTorch.
#pragma once

#include "experiment/checkpoints.hpp"
#include "experiment/recorder.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "implicit_diffusion/torch/training.hpp"
#include "networks/training_keys.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace program {

inline implicit_diffusion::AveragedAdam optimizer_of(const TrainingKeys& k) {
  return implicit_diffusion::AveragedAdam({{.adam = {.rate = k.learning_rate,
                                                     .first_decay = k.first_decay,
                                                     .second_decay = k.second_decay,
                                                     .epsilon = k.epsilon},
                                            .warm_up = k.warm_up,
                                            .decay = decay_of(k),
                                            .clip = k.clip},
                                           k.average});
}

// Throws a usage Error where the rate of the run in a checkpoint falls over another number of steps.
inline void require_same_decay(const implicit_diffusion::io::CheckpointReader& reader, const TrainingKeys& k) {
  if (const auto before = reader.number<std::int64_t>("decay"); before != decay_of(k))
    throw implicit_diffusion::Error(
        implicit_diffusion::ErrorKind::usage, "steps",
        fmt::format("{}: the learning rate of this run falls over {} steps, so it cannot be made longer", k.steps,
                    before));
}

// What a run begins with beside its configuration, by a text that tells it from any other, such as a hash.
struct StartedWith {
  std::string key, what, hash;  // the key that names it, and what it is

  void save(implicit_diffusion::io::CheckpointWriter& to) const { to.put("hash-" + key, hash); }
  // Throws a usage Error where it is another one than it was.
  void compare(const implicit_diffusion::io::CheckpointReader& from) const {
    if (const std::string section = "hash-" + key; from.contains(section) && from.text(section) != hash)
      throw implicit_diffusion::Error(
          implicit_diffusion::ErrorKind::usage, key,
          fmt::format("{} has changed since this run began: --resume needs it as it was", what));
  }
};

// How often a training writes, and what it trains on, as its column has it.
struct TrainingRows {
  std::int64_t log_every, checkpoint_every;
  const char* things = "images";
};

// `Source` draws batches: torch/training.hpp.
template <class Source>
struct TrainingRun {
  using State = implicit_diffusion::TrainingState;

  const Common& c;
  const RunContext& context;
  const TrainingKeys& keys;
  TrainingRows written;
  implicit_diffusion::LossGradient& gradient;
  Source& source;
  State state;
  std::function<void(const State&)> every;  // what else is done after a step; its time is not the training's
  std::vector<StartedWith> started_with = {};

  RowRecorder rows{with_common_columns({"loss", fmt::format("{}_per_second", written.things)}), written.log_every};
  Checkpoints checkpoints{c, context, written.checkpoint_every, std::chrono::minutes(5)};
  Progress::Loop progress{context.progress, context.weight};
  double losses = 0;  // since the last row
  std::int64_t batches = 0, last_step = -1;
  double aside = 0, trained_for = 0;  // seconds: of `every`, and of all else, up to the last step
  implicit_diffusion::Outcome outcome{};

  void run() {
    using implicit_diffusion::Status;
    context.say_if_too_few_shards(state.population.tiles().total);
    if (context.resume) checkpoints.resume(keys.steps, context.quiet, [&](const auto& r) { return restore(r); });
    rows.start_clock();
    outcome = train(
        gradient, source, state, keys.steps, [&](const State& s) { observe(s); }, checkpoints.stop());
    if (rows.needs_last(state.step)) rows.add_last(row(state), {});
    if (context.writes()) rows.write(context.folder);
    if (outcome.status != Status::diverged)
      checkpoints.write(state.step, [&](implicit_diffusion::io::CheckpointWriter& w) { return save(w, state); });
  }

  double speed() const {
    return trained_for > 0 ? static_cast<double>(state.step * keys.batch) / trained_for : Figures::none;
  }
  double mean_loss() const { return batches > 0 ? losses / static_cast<double>(batches) : Figures::none; }
  // The loss in the last row.
  double last_loss() const {
    const std::vector<double> all = rows.column("loss");
    return all.empty() ? Figures::none : all.back();
  }
  const implicit_diffusion::TensorParameters& trained() const { return average_of(state.optimizer, state.theta); }

 private:
  std::vector<double> row(const State& s) const {
    const auto k = static_cast<double>(s.step);
    return {k, k, rows.seconds(), Figures::none, Figures::none, Figures::none, Figures::none, mean_loss(), speed()};
  }
  void observe(const State& s) {
    if (s.step > last_step && last_step >= 0) {
      losses += gradient.loss();
      ++batches;
    }
    last_step = s.step;
    trained_for = rows.seconds() - aside;
    const double shown = mean_loss();
    if (rows.is_due(s.step)) {
      rows.add(s.step, row(s), {});
      losses = 0;
      batches = 0;
    }
    if (every) {
      const double before = rows.seconds();
      every(s);
      aside += rows.seconds() - before;
    }
    checkpoints.write_if_due(s.step, [&](implicit_diffusion::io::CheckpointWriter& w) { return save(w, s); });
    progress(s.step, {},
             std::isfinite(shown) ? fmt::format("loss {:.4f}  {:.3g} {}/s", shown, speed(), written.things) : "");
  }
  bool save(implicit_diffusion::io::CheckpointWriter& w, const State& s) const {
    if (first_nonfinite(s.theta) || !all_finite(s.optimizer.memory())) return false;
    save_parameters(w, s);
    rows.save(w, "last_row");
    for (const StartedWith& with : started_with) with.save(w);
    implicit_diffusion::io::save(w, "aside", aside);
    implicit_diffusion::io::save(w, "losses", std::vector<double>{losses, static_cast<double>(batches)});
    implicit_diffusion::io::save(w, "decay", decay_of(keys));
    return true;
  }
  std::int64_t restore(const implicit_diffusion::io::CheckpointReader& r) {
    for (const StartedWith& with : started_with) with.compare(r);
    restore_parameters(r, state);
    rows.restore(r, 0, "last_row");
    if (r.contains("aside")) aside = r.number<double>("aside");
    const auto kept = r.numbers<double>("losses");
    if (kept.size() != 2) r.refuse("losses", "has another size");
    losses = kept[0];
    batches = static_cast<std::int64_t>(kept[1]);
    last_step = state.step;
    require_same_decay(r, keys);
    return state.step;
  }
};

// What summary.json says of any training.
template <class Source>
Summary summary_of(const TrainingRun<Source>& run, std::string method) {
  Summary s = summary_of(run.c, run.context.threads);
  s.method = std::move(method);
  if (run.context.processes) s.processes = run.context.processes->ranks();
  s.steps = run.state.step;
  s.status = to_string(run.outcome.status);
  s.gradient_evaluations = run.state.step;
  s.seconds = run.rows.seconds();
  s.more = {{"parameters", run.state.theta.size()},
            {"loss", json_number(run.last_loss())},
            {fmt::format("{}_per_second", run.written.things), json_number(run.speed())}};
  return s;
}

}  // namespace program
