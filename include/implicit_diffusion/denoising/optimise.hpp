// Finetuning a denoising diffusion: the problem, the options, and the loop in one call.
//
//     minimise  F(theta) = -lambda E[R(Y_T)] + beta KL(paths of theta || paths of theta_0)
//
// over the parameters of a score model, through all steps of its reverse chain. R must have a gradient: a template over
// the number type that says any_number = true, or a function of tensors. DenoisingProblem(model, R, lambda) is the
// first term, .stay_close(theta_0, beta) adds the second. The model is one that is written point by point, or an engine
// (denoising/steps.hpp) that offers samples(n), n samples at the origin, dimension() and with(noise, workers), itself
// with those.
#pragma once

#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/optimise.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// T: float or double, or an engine.
template <class T = float>
class DenoisingProblem {
 public:
  using Steps = StepsOf<T>;
  using Theta = typename Steps::Theta;
  using Reward = typename Steps::Reward;

  DenoisingProblem(Steps steps, Reward reward, double lambda = 1.0)
      : steps_(std::move(steps)), reward_(std::move(reward)), objective_{.lambda = lambda} {
    if constexpr (requires { reward_.require_dimension(steps_.dimension()); })
      reward_.require_dimension(steps_.dimension());
  }
  DenoisingProblem(ScoreModel<T> model, Reward reward, double lambda = 1.0) requires std::floating_point<T>
      : DenoisingProblem(Steps(std::move(model)), std::move(reward), lambda) {}

  // The price of leaving the model at theta_0, which is frozen.
  [[nodiscard]] DenoisingProblem stay_close(Theta theta_0, double beta = 1.0) const {
    DenoisingProblem more = *this;
    more.frozen_ = std::move(theta_0);
    more.objective_.beta = beta;
    return more;
  }

  const Steps& steps() const { return steps_; }
  const Reward& reward() const { return reward_; }
  const DenoisingObjective& objective() const { return objective_; }
  const std::optional<Theta>& frozen() const { return frozen_; }

 private:
  Steps steps_;
  Reward reward_;
  DenoisingObjective objective_;
  std::optional<Theta> frozen_;
};
template <class Real, class R>
DenoisingProblem(ScoreModel<Real>, R) -> DenoisingProblem<Real>;
template <class Real, class R>
DenoisingProblem(ScoreModel<Real>, R, double) -> DenoisingProblem<Real>;
template <PointScoreModel M, class R>
DenoisingProblem(M, R) -> DenoisingProblem<float>;
template <PointScoreModel M, class R>
DenoisingProblem(M, R, double) -> DenoisingProblem<float>;

struct DenoisingRun {
  std::size_t batch = 1000;                 // samples a step of theta
  TimeGrid grid = uniform_grid(3, 128);     // noise levels: horizon 3 in T = 128 steps
  Dynamics dynamics = Dynamics::euler_sde;  // or euler_ode, ddpm, ddim
  std::size_t slots = 1;                    // M: 1 is the nested loop, more a queue of M + 1 batches
  std::size_t keep_every = 1;               // of a queue's paths; the states between are made again
  std::int64_t steps = 1000;                // of theta
  std::uint64_t seed = 0;                   // of all noise
  std::size_t threads = 1;                  // the result does not depend on them
  std::stop_token stop = {};                // a request ends the run after the step that it is in
  Processes* processes = nullptr;           // that share each batch (processes.hpp); the same bits for any number
};

// Minimises F from theta: with one slot by the nested loop, in which a few samples at a time go all the way and back
// and no path is kept; with more by the queue. Throws a usage Error where theta does not fit the model, the reward has
// no gradient, or an option has no meaning. A run that diverges throws nothing: its outcome says so.
template <class T, class Optimizer, class Observer = const decltype(ignore)&>
Result<typename StepsOf<T>::Theta, typename StepsOf<T>::Samples, Optimizer> optimise(const DenoisingProblem<T>& problem,
                                                                                     typename StepsOf<T>::Theta theta,
                                                                                     Optimizer optimizer,
                                                                                     const DenoisingRun& run = {},
                                                                                     Observer&& observe = ignore) {
  using Steps = StepsOf<T>;
  using Theta = typename Steps::Theta;
  using Samples = typename Steps::Samples;
  using Batch = PathBatch<T>;
  if (run.steps < 0) throw Error(ErrorKind::usage, "steps", std::to_string(run.steps) + " is negative");
  require_noise_for("batch", run.batch, problem.steps().dimension());
  Workers workers(run.threads);
  std::optional<std::pair<typename Steps::Model, Theta>> frozen;
  if (problem.frozen()) frozen.emplace(problem.steps().model(), *problem.frozen());
  ReverseChain<T> chain(problem.steps().with(Noise(run.seed), &workers), run.grid,
                        {.dynamics = run.dynamics, .slots = run.slots, .keep_every = run.keep_every},
                        std::move(frozen));
  if (run.batch == 0) throw Error(ErrorKind::usage, "batch", "0 samples");
  if (const auto bad = first_nonfinite(theta))
    throw Error(ErrorKind::usage, "theta", "number " + std::to_string(*bad + 1) + " is not finite");
  chain.prepare(theta);
  DenoisingEngine<T> engine(chain, problem.reward(), problem.objective());
  const DenoisingStart<T> fresh{Noise(run.seed)};
  const Batch empty = Batch::of(samples_of(problem.steps(), run.batch, run.processes));
  const auto glimpse = [&](const auto& s, const Batch& newest) {
    return observe(Glimpse<Samples, Theta>{s.step, s.theta, newest.points});
  };

  RunReport report;
  const auto finish = [&](auto& s, Batch& newest) -> Result<Theta, Samples, Optimizer> {
    report.steps = s.step;
    if (report.outcome.status != Status::diverged && newest.step == chain.steps()) {
      const BatchObjective seen = objective_of<T>(newest, problem.reward(), problem.objective());
      report.objective = seen.value;
      report.reward = seen.reward;
      if (problem.frozen()) report.path_kl = seen.path_kl;
    }
    if (report.outcome.status == Status::diverged)
      report.notes.emplace_back("a smaller learning rate, more steps of the grid or a smaller lambda / beta may help");
    return {std::move(report), std::move(s.theta), std::move(newest.points), std::move(s.optimizer)};
  };

  if (run.slots == 1) {
    State<Batch, Optimizer, Theta> s{0, std::move(theta), empty, std::move(optimizer)};
    report.outcome = nested_loop(
        engine, engine, fresh, s, {.steps = run.steps, .inner_steps = 1, .warm_start = false},
        [&](const auto& now) { return glimpse(now, now.population); }, run.stop);
    return finish(s, s.population);
  }
  QueueState<Batch, Optimizer, Theta> s{0, std::move(theta), {}, std::move(optimizer)};
  const QueueOptions options{.steps = run.steps, .slots = static_cast<std::int64_t>(run.slots)};
  start_queue(engine, fresh, s, options, empty);
  report.outcome = queue_loop(
      engine, engine, fresh, s, options, [&](const auto& now) { return glimpse(now, now.slots.back()); }, run.stop);
  return finish(s, s.slots.back());
}

}  // namespace implicit_diffusion
