// One run of `denoising-mixture`: its loop, what is measured along it, and its checkpoints. One text for both models of
// the score, each a subject:
//
//     Subject::Engine                   float, or an engine (denoising/steps.hpp); gives Theta and Samples
//     start()                           theta before the first step
//     samples()                         a batch
//     chain(workers), reward()          what the loops are given
//     figures(theta)                    what is known of the law of theta along the run; figures_at_end(theta)
//     figures_when_stopped(theta)       the same where a signal waits: what takes no time
//     columns(theta)                    its row of theta.npy, or none
//     write(context, theta, samples)    the files of a run that did not diverge; samples may be null
//     warnings(theta)                   what is seen at the end
#pragma once

#include "denoising_mixture/results.hpp"
#include "experiment/checkpoints.hpp"
#include "experiment/recorder.hpp"
#include "experiment/runs.hpp"
#include "experiment/warnings.hpp"
#include "implicit_diffusion/denoising/checkpoint.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/optimizer/any.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace program {

// A law, and how far it is from the best one.
struct LawFigures {
  GaussianMixture law;
  LawDistance off;
  double exact_reward = Figures::none, exact_kl = Figures::none;
};

template <class Subject>
class LoopRun {
 public:
  using Engine = typename Subject::Engine;
  using Steps = implicit_diffusion::StepsOf<Engine>;
  using Theta = typename Steps::Theta;
  using Batch = implicit_diffusion::PathBatch<Engine>;
  using Back = implicit_diffusion::BackwardBatch<Engine>;
  using Optimizer = implicit_diffusion::BasicAnyOptimizer<Theta>;

  LoopRun(const DenoisingConfiguration& c, const RunContext& context, Subject& subject, implicit_diffusion::Workers& w)
      : c_(c), context_(context), subject_(subject), chain_(subject.chain(&w)) {
    context.say_if_fewer(w.threads());
  }

  DenoisingRow run() {
    using namespace implicit_diffusion;
    QueueState<Batch, Optimizer, Theta> s{0, subject_.start(), {}, Optimizer::make(c_.optimizer, {c_.learning_rate})};
    const QueueOptions options{.steps = c_.steps, .slots = c_.slots, .warm_start = c_.loop != LoopKind::queue_cold};
    const auto observe_state = [&](const auto& state) { observe(state); };
    if (c_.loop == LoopKind::nested) {
      State<Batch, Optimizer, Theta> one{0, s.theta, empty_, s.optimizer};
      resume(one);
      const NestedOptions cold{.steps = c_.steps, .inner_steps = 1, .warm_start = false};
      outcome_ = nested_loop(engine_, engine_, start_, one, cold, observe_state, checkpoints_.stop());
      return finish(one);
    }
    if (c_.loop == LoopKind::double_queue) {
      DoubleQueueState<Batch, Back, Optimizer, Theta> both{0, s.theta, {}, {}, s.optimizer};
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
      rows_.add(s.step, measure(s), subject_.columns(s.theta));
      memory_ = std::max(memory_, memory_of(s));
    }
    checkpoints_.write_if_due(s.step, [&](implicit_diffusion::io::CheckpointWriter& c) { return save_run(c, s); });
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

  std::vector<double> measure(const auto& s) { return measure(s, subject_.figures(s.theta)); }
  std::vector<double> measure(const auto& s, const LawFigures& f) const {
    implicit_diffusion::BatchObjective o{Figures::none, Figures::none, Figures::none};
    if (const Batch* b = finished(s)) o = implicit_diffusion::objective_of<Engine>(*b, reward_, objective_);
    const auto step = static_cast<double>(s.step), evaluations = static_cast<double>(cost().evaluations);
    return {step,          evaluations, rows_.seconds(), o.reward,      f.exact_reward, f.exact_kl,
            Figures::none, o.path_kl,   o.value,         f.off.weights, f.off.means};
  }

  static std::size_t memory_of(const auto& s) {
    std::size_t bytes = 0;
    for (const Batch& b : batches(s)) bytes += b.bytes();
    if constexpr (requires { s.back; })
      for (const auto& b : s.back)
        if (b)
          bytes += size_in_bytes(b->points) + whole_size(b->adjoint, b->points) + whole_size(b->gradients, b->points);
    return bytes;
  }
  // On all processes, of numbers that belong to the tiles of samples.
  template <class Numbers>
  static std::size_t whole_size(const Numbers& numbers, const typename Steps::Samples& of) {
    using implicit_diffusion::size_in_bytes;
    const std::size_t bytes = size_in_bytes(numbers);
    if constexpr (implicit_diffusion::KnowsItsSpread<Numbers>)
      return bytes;
    else
      return on_all(spread_of(of), bytes);
  }

  implicit_diffusion::DenoisingCost cost() const {
    return cost_before_ + engine_.cost() + (backward_ ? backward_->cost() : implicit_diffusion::DenoisingCost{});
  }

  bool save_run(implicit_diffusion::io::CheckpointWriter& c, const auto& s) const {
    using implicit_diffusion::first_nonfinite;
    if (first_nonfinite(s.theta) || !all_finite(s.optimizer.memory())) return false;
    for (const Batch& b : batches(s))
      if (find_nonfinite(b)) return false;
    save(c, s, chain_);
    rows_.save(c, "last_row");
    std::vector<std::uint64_t> costs;
    for (const implicit_diffusion::DenoisingCost& x : {cost(), step_cost_})
      costs.insert(costs.end(), {x.evaluations, x.products, x.frozen_evaluations, x.frozen_products});
    implicit_diffusion::io::save(c, "costs", std::move(costs));
    implicit_diffusion::io::save(c, "memory", static_cast<std::uint64_t>(memory_));
    std::vector<std::uint64_t> states;
    for (const Batch& b : batches(s)) states.push_back(b.path.size());
    implicit_diffusion::io::save(c, "path_states", std::move(states));
    return true;
  }

  // Paths have memory for more states than they have. What comes back from a checkpoint has the states only: it is
  // given as much, so that memory_bytes does not depend on where a run was stopped.
  void restore_memory(const implicit_diffusion::io::CheckpointReader& c, auto& s) const {
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
    const auto restore_run = [&](const implicit_diffusion::io::CheckpointReader& c) {
      if constexpr (requires { s.slots; })
        restore(c, s, chain_, empty_);
      else
        restore(c, s, chain_);
      rows_.restore(c, subject_.columns(s.theta).size(), "last_row");
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
    using implicit_diffusion::Status;
    std::size_t memory = memory_;
    const bool completed = outcome_.status == Status::completed;
    if (rows_.needs_last(s.step)) {
      rows_.add_last(completed ? measure(s) : measure(s, subject_.figures_when_stopped(s.theta)),
                     subject_.columns(s.theta));
      memory = std::max(memory, memory_of(s));
    }
    const std::vector<double>& last = rows_.last_row();
    const LawFigures f = completed ? subject_.figures_at_end(s.theta) : subject_.figures_when_stopped(s.theta);
    const auto theta = subject_.columns(s.theta);
    DenoisingRow row{.configuration = &c_,
                     .status = std::string(to_string(outcome_.status)),
                     .steps = s.step,
                     .law = f.law,
                     .off = f.off,
                     .theta = {theta.begin(), theta.end()},
                     .figures = {.reward = last[3], .exact_reward = last[4], .exact_kl = last[5]},
                     .path_kl = last[7],
                     .seconds = rows_.seconds(),
                     .cost = cost(),
                     .step_cost = step_cost_,
                     .memory_bytes = memory};
    if (context_.writes()) rows_.write(context_.folder);
    if (completed && s.step > 0) row.warnings = warnings(s.theta);
    if (outcome_.status == Status::diverged) return row;
    const Batch* end = finished(s);
    subject_.write(context_, s.theta, end ? &end->points : nullptr);
    checkpoints_.write(s.step, [&](implicit_diffusion::io::CheckpointWriter& c) { return save_run(c, s); });
    return row;
  }

  std::vector<Warning> warnings(const Theta& theta) const {
    std::vector<Warning> all = subject_.warnings(theta);
    if (c_.shortened) return all;
    const bool known = std::isfinite(rows_.column("exact_kl").back());
    if (auto moving = warn_if_moving(known ? "KL to the tilted law" : "objective",
                                     rows_.column(known ? "exact_kl" : "objective"), known))
      all.push_back(std::move(*moving));
    return all;
  }

  const DenoisingConfiguration& c_;
  const RunContext& context_;
  Subject& subject_;
  const implicit_diffusion::DenoisingObjective objective_{c_.lambda, c_.beta};
  const typename Steps::Reward reward_ = subject_.reward();
  implicit_diffusion::DenoisingStart<Engine> start_{implicit_diffusion::Noise(c_.seed)};
  implicit_diffusion::ReverseChain<Engine> chain_;
  implicit_diffusion::DenoisingEngine<Engine> engine_{chain_, reward_, objective_};
  std::optional<implicit_diffusion::DenoisingBackward<Engine>> backward_;
  implicit_diffusion::Outcome outcome_;
  const Batch empty_ = Batch::of(subject_.samples());
  RowRecorder rows_{{denoising_header.begin(), denoising_header.end()}, c_.log_every};
  Checkpoints checkpoints_{c_, context_, c_.checkpoint_every};
  Progress::Loop progress_{context_.progress, context_.weight};
  implicit_diffusion::DenoisingCost cost_before_, counted_cost_,
      step_cost_;  // of runs before; up to the step counted_; of that step
  std::int64_t counted_ = 0;
  std::size_t memory_ = 0;
};

}  // namespace program
