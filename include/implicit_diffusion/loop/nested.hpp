// The nested loop (Algorithm 1): T sampling steps at a fixed theta, then one step of theta.
//
//     p     <- p_0 (cold start) or the population left by the step before (warm start)
//     p     <- Sigma_s(p, theta_k),   s = 0, ..., T - 1
//     theta_{k+1} = theta_k - eta Gamma(p, theta_k)
//
// With a warm start and T = 1 this is the single loop in the authors' order, bit for bit. A cold start samples
// pi*(theta) only after T steps have mixed: too few, and theta converges to the wrong place. With a sampler whose one
// step is a whole chain (denoising/sampler.hpp, M = 1), T = 1 and a cold start it is the nested loop of finite
// horizons; an engine that is sampler and estimator in one may then do both lines in one go.
#pragma once

#include "implicit_diffusion/loop/state.hpp"

namespace implicit_diffusion {

struct NestedOptions {
  std::int64_t steps = 1000;      // outer steps: runs until state.step == steps
  std::int64_t inner_steps = 10;  // T
  bool warm_start = true;
};

namespace detail {

// Sampling and gradient of a fresh population in one go, where one object is both and offers that. Whether it was done.
template <class Sigma, class Gamma, class Population, class Theta>
bool sample_and_estimate(Sigma& sigma, Gamma& gamma, Population& p, const Theta& theta, std::int64_t step,
                         Theta& gradient) {
  if constexpr (std::same_as<Sigma, Gamma> &&
                requires { sigma.sample_and_estimate(p, theta, StepKey{step}, gradient); }) {
    if (&sigma == &gamma) {
      sigma.sample_and_estimate(p, theta, {.round = step}, gradient);
      return true;
    }
  }
  return false;
}

}  // namespace detail

template <class Population, class Theta, OptimizerOf<Theta> Opt, SamplerOf<Population, Theta> Sigma,
          GradientEstimatorOf<Population, Theta> Gamma, StartOf<Population> Start,
          class Observer = const decltype(ignore)&>
Outcome nested_loop(Sigma& sigma, Gamma& gamma, Start& start, State<Population, Opt, Theta>& s,
                    const NestedOptions& options, Observer&& observe = ignore, std::stop_token stop = {}) {
  Theta gradient = zeros_like(s.theta), next = gradient;
  Population before = s.population;
  return detail::repeat(s, options.steps, observe, stop, [&]() -> Outcome {
    // Many inner steps may take long: a stop does not wait for them, and undoes those that were made.
    if (options.inner_steps > 1) before = s.population;
    if (!options.warm_start) start.draw(s.population, s.step);
    const bool at_once = !options.warm_start && options.inner_steps == 1 &&
                         detail::sample_and_estimate(sigma, gamma, s.population, s.theta, s.step, gradient);
    for (std::int64_t i = 0; !at_once && i < options.inner_steps; ++i) {
      if (i > 0 && stop.stop_requested()) {
        s.population = std::move(before);
        return {Status::interrupted};
      }
      sigma.advance(s.population, s.theta, {.round = s.step, .index = i});
    }
    if (const auto d = detail::find_divergence(sigma, s.population, s.step + 1)) return {Status::diverged, d};
    if (!at_once) gamma.estimate(s.population, s.theta, s.step, gradient);
    return detail::update(s, gamma, gradient, next);
  });
}

}  // namespace implicit_diffusion
