// Optimising a law that Langevin dynamics sample: the problem, the options, and the single loop in one call.
//
//     minimise F(pi*(theta)),    pi*(theta) ~ exp(-V(., theta)),    F a sum of
//
//     LangevinProblem(V, R, lambda), .maximise(R, lambda)    -lambda E[R]                R need not be differentiable
//     .fit(points, beta)                                     beta KL(points || pi*)      trains an energy-based model
//     .stay_close(theta_0, beta)                             beta KL(pi* || pi*(theta_0))
//     .fit_marginal(beta)                                    -beta log of the integral of exp(-V(x, theta)) over x
//
// The last one is maximum marginal likelihood: where V(x, theta) = -log p(x, y | theta) with the data y inside, a
// sample x is a set of latent variables, and the integral is p(y | theta).
//
// A problem is a value: each of these returns a new one, which can be copied, kept and optimised again with another
// seed.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimise.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// T: float or double, or an engine (langevin/energy.hpp).
template <class T = float>
class LangevinProblem {
 public:
  using E = EnergyOf<T>;
  using Samples = typename E::Samples;
  using Theta = typename E::Theta;
  using Reward = typename E::Reward;

  explicit LangevinProblem(E energy) : energy_(std::move(energy)) {}
  LangevinProblem(E energy, Reward reward, double lambda = 1.0)
      : LangevinProblem(LangevinProblem(std::move(energy)).maximise(std::move(reward), lambda)) {}

  // The problem with one more term each.
  [[nodiscard]] LangevinProblem maximise(Reward reward, double lambda = 1.0) const {
    if constexpr (requires { reward.require_dimension(energy_.dimension()); })
      reward.require_dimension(energy_.dimension());
    LangevinProblem more = with([=] { return std::make_unique<RewardTerm<T>>(reward, lambda); });
    more.rewards_.push_back({std::move(reward), lambda});
    more.has_covariance_ = true;
    return more;
  }
  [[nodiscard]] LangevinProblem fit(Samples points, double beta = 1.0) const {
    require_fit(energy_, points);
    return with([points = std::make_shared<const Samples>(std::move(points)), beta] {
      return std::make_unique<ReferenceTerm<T>>(std::make_unique<FixedReference<T>>(*points), beta);
    });
  }
  [[nodiscard]] LangevinProblem stay_close(const Theta& theta_0, double beta = 1.0) const {
    require_admissible(theta_0);
    E base = energy_;
    base.prepare(theta_0);
    LangevinProblem more = with([=] { return std::make_unique<BaseTerm<T>>(base, beta); });
    more.has_covariance_ = true;
    return more;
  }
  [[nodiscard]] LangevinProblem fit_marginal(double beta = 1.0) const {
    return with([=] { return std::make_unique<MarginalLikelihoodTerm<T>>(beta); });
  }
  // A term of your own: make() returns a new one for each run.
  [[nodiscard]] LangevinProblem with(std::function<std::unique_ptr<Term<T>>()> make) const {
    LangevinProblem more = *this;
    more.makers_.push_back(std::move(make));
    return more;
  }

  // Throws a usage Error unless theta has the right size, is finite and inside the potential's domain.
  void require_admissible(const Theta& theta) const {
    require_fit(energy_, theta);
    std::optional<std::size_t> bad = first_nonfinite(theta);
    if (!bad) bad = energy_.find_inadmissible(theta);
    if (bad)
      throw Error(ErrorKind::usage, "theta",
                  "number " + std::to_string(*bad + 1) + " is not finite or outside the domain of the potential");
  }
  // Whether the gradient has a covariance, which one particle does not have.
  bool has_covariance() const { return has_covariance_; }

  const E& energy() const { return energy_; }
  typename GradientEstimator<T>::Terms terms() const {
    typename GradientEstimator<T>::Terms all;
    for (const auto& make : makers_) all.push_back(make());
    return all;
  }
  struct Rewarded {
    Reward reward;
    double lambda;
  };
  const std::vector<Rewarded>& rewards() const { return rewards_; }
  // Whether rewards are all there is to the objective.
  bool only_rewards() const { return !rewards_.empty() && rewards_.size() == makers_.size(); }

  // The largest stable step at theta, where the potential knows it.
  std::optional<double> largest_stable_step(const Theta& theta) const {
    if constexpr (requires { energy_.largest_stable_step(); }) {
      E energy = energy_;
      energy.prepare(theta);
      return energy.largest_stable_step();
    }
    return std::nullopt;
  }
  // What keeps a run from its full speed.
  void add_speed_notes(RunReport& report) const {
    if constexpr (requires { energy_.speed_note(); }) {
      add_speed_note("the potential", energy_.speed_note(), report);
      for (const Rewarded& r : rewards_) add_speed_note("the reward", r.reward.speed_note(), report);
    }
  }

 private:
  E energy_;
  bool has_covariance_ = false;
  std::vector<Rewarded> rewards_;
  std::vector<std::function<std::unique_ptr<Term<T>>()>> makers_;
};

// A potential and a reward as they come are a problem in single precision, which runs on 16 lanes.
template <class Real>
LangevinProblem(Potential<Real>) -> LangevinProblem<Real>;
template <class Real, class R>
LangevinProblem(Potential<Real>, R) -> LangevinProblem<Real>;
template <class Real, class R>
LangevinProblem(Potential<Real>, R, double) -> LangevinProblem<Real>;
template <PointPotential V>
LangevinProblem(V) -> LangevinProblem<float>;
template <PointPotential V, class R>
LangevinProblem(V, R) -> LangevinProblem<float>;
template <PointPotential V, class R>
LangevinProblem(V, R, double) -> LangevinProblem<float>;

template <class T = float>
struct LangevinRun {
  std::size_t particles = 1000;  // samples that are moved; they begin at N(0, I)
  Schedule step_size = 1e-2;     // g, of a sampling step; Potential::largest_stable_step() is its limit
  std::int64_t steps = 1000;     // of the loop: each is one sampling step and one step of theta
  std::uint64_t seed = 0;        // of all noise
  std::size_t threads = 1;       // the result does not depend on them
  // Samples to begin with, in place of `particles` from N(0, I).
  std::optional<typename EnergyOf<T>::Samples> start = {};
  std::stop_token stop = {};  // a request ends the run after the step that it is in
  // Processes that make the run together, each with a part of the samples (processes.hpp). The result does not depend
  // on them either. `start`, if given, is all samples, on each of them.
  Processes* processes = nullptr;
};

// Minimises the objective of a problem from theta, with the single loop in one pass a step. Throws a usage Error where
// theta or the samples do not fit the potential, or an option has no meaning. A run that diverges throws nothing: its
// outcome says so.
template <class T, class Optimizer, class Observer = const decltype(ignore)&>
Result<typename EnergyOf<T>::Theta, typename EnergyOf<T>::Samples, Optimizer> optimise(
    const LangevinProblem<T>& problem, typename EnergyOf<T>::Theta theta, Optimizer optimizer,
    const LangevinRun<T>& run = {}, Observer&& observe = ignore) {
  using E = EnergyOf<T>;
  using Theta = typename E::Theta;
  using Samples = typename E::Samples;
  require_positive("step_size", run.step_size(0));
  if (run.steps < 0) throw Error(ErrorKind::usage, "steps", std::to_string(run.steps) + " is negative");
  problem.require_admissible(theta);
  if constexpr (requires { problem.energy().dimension(); })
    require_noise_for("particles", run.particles, problem.energy().dimension());
  const std::optional<double> limit = problem.largest_stable_step(theta);  // later thetas may have run away
  const std::size_t particles = run.start ? run.start->size() : run.particles;
  State<Samples, Optimizer, Theta> s{0, std::move(theta), samples_of(problem.energy(), particles, run.processes),
                                     std::move(optimizer)};
  if (run.start) {
    require_fit(problem.energy(), *run.start);
    if constexpr (requires { s.population.take_from(*run.start); })
      s.population.take_from(*run.start);
    else
      s.population = *run.start;
  }
  require_fit(problem.energy(), s.population);
  if (problem.has_covariance() && particles == 1)
    throw Error(ErrorKind::usage, "particles", "1 particle has no covariance, of which the gradient is made");
  if (!run.start) StandardNormalStart<T>{Noise(run.seed)}.draw(s.population, 0);

  Workers workers(run.threads);
  LangevinEngine<T> engine(problem.energy(), problem.terms(),
                           {.step_size = run.step_size, .noise = Noise(run.seed), .workers = &workers});
  RunReport report;
  report.outcome = single_loop(
      engine, engine, s, {.steps = run.steps},
      [&](const auto& now) {
        return observe(Glimpse<Samples, Theta>{now.step, now.theta, now.population});
      },
      run.stop);
  report.steps = s.step;
  if (report.outcome.status != Status::diverged && problem.only_rewards()) {
    report.objective = 0;
    for (const auto& [r, lambda] : problem.rewards()) *report.objective -= lambda * mean_reward<E>(s.population, r);
  }
  if (report.outcome.status != Status::diverged && problem.rewards().size() == 1)
    report.reward = mean_reward<E>(s.population, problem.rewards()[0].reward);
  if (report.outcome.status == Status::diverged) report.notes.push_back(divergence_note(run.step_size(0), limit));
  problem.add_speed_notes(report);
  return {std::move(report), std::move(s.theta), std::move(s.population), std::move(s.optimizer)};
}

}  // namespace implicit_diffusion
