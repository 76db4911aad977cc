// The nested loop (Algorithm 1): T sampling steps at a fixed theta, then one step of theta.
//
//     p     <- p_0 (cold start) or the population left by the step before (warm start)
//     p     <- Sigma_s(p, theta_k),   s = 0, ..., T - 1
//     theta_{k+1} = theta_k - eta Gamma(p, theta_k)
//
// With a warm start and T = 1 this is the single loop in the authors' order, bit for bit. A cold start samples pi*(theta) only after T
// steps have mixed: too few, and theta converges to the wrong place. With a sampler whose one step is a whole chain (denoising/sampler.hpp,
// M = 1), T = 1 and a cold start it is the nested loop of finite horizons; an engine that is sampler and estimator in one may then do both lines
// in one go.
#pragma once

#include "implicit_diffusion/loop/state.hpp"

#include <stop_token>
#include <utility>

namespace implicit_diffusion {

struct NestedOptions {
  std::int64_t steps = 1000;      // outer steps: runs until state.step == steps
  std::int64_t inner_steps = 10;  // T
  bool warm_start = true;
};

namespace detail {

// Whether one object is both and takes sampling and gradient of a fresh population in one go.
template <class Population, class Theta, class Sigma, class Gamma>
constexpr bool offers_both = std::same_as<Sigma, Gamma>&& requires(Sigma& sigma, Population& p, const Theta& theta,
                                                                   Theta& gradient) {
  sigma.sample_and_estimate(p, theta, Moment{}, gradient);
};
template <class Population, class Theta, class Sigma, class Gamma>
bool takes_both([[maybe_unused]] const Sigma& sigma, [[maybe_unused]] const Gamma& gamma) {
  if constexpr (offers_both<Population, Theta, Sigma, Gamma>) return &sigma == &gamma;
  return false;
}
template <class Sigma, class Gamma, class Population, class Theta>
void sample_and_estimate(Sigma& sigma, Gamma&, Population& p, const Theta& theta, std::int64_t step, Theta& gradient) {
  if constexpr (offers_both<Population, Theta, Sigma, Gamma>)
    sigma.sample_and_estimate(p, theta, {.round = step}, gradient);
}

}  // namespace detail

template <class Population, class Theta, OptimizerOf<Theta> Opt, SamplerOf<Population, Theta> Sigma,
          GradientEstimatorOf<Population, Theta> Gamma, StartOf<Population> Start,
          class Observer = const decltype(ignore)&>
Outcome nested_loop(Sigma& sigma, Gamma& gamma, Start& start, State<Population, Opt, Theta>& s,
                    const NestedOptions& options, Observer&& observe = ignore, std::stop_token stop = {}) {
  Theta gradient = zeros_like(s.theta), next = gradient;
  const bool at_once =
      !options.warm_start && options.inner_steps == 1 && detail::takes_both<Population, Theta>(sigma, gamma);
  Population before = s.population;
  observe(std::as_const(s));
  while (s.step < options.steps) {
    if (stop.stop_requested()) return {Status::interrupted};

    // Many inner steps may take long: a stop does not wait for them, and undoes those that were made.
    if (options.inner_steps > 1) before = s.population;
    if (!options.warm_start) start.draw(s.population, s.step);
    for (std::int64_t i = 0; i < options.inner_steps; ++i) {
      if (i > 0 && stop.stop_requested()) {
        s.population = std::move(before);
        return {Status::interrupted};
      }
      if (!at_once) sigma.advance(s.population, s.theta, {.round = s.step, .index = i});
    }
    if (at_once) detail::sample_and_estimate(sigma, gamma, s.population, s.theta, s.step, gradient);

    if (const auto d = detail::find_divergence(sigma, s.population, s.step + 1)) return {Status::diverged, d};
    if (!at_once) gamma.estimate(s.population, s.theta, s.step, gradient);
    if (const auto d = detail::update(s.optimizer, gamma, s.theta, next, gradient, s.step))
      return {Status::diverged, d};
    ++s.step;
    observe(std::as_const(s));
  }
  return {};
}

}  // namespace implicit_diffusion
