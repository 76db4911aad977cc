// The single loop (Algorithm 2): one sampling step and one step of theta at a time, on a population that never
// restarts.
//
//     paper's order      p_{k+1} = Sigma(p_k, theta_k),   theta_{k+1} = theta_k - eta Gamma(p_k, theta_k)
//     authors' order     p_{k+1} = Sigma(p_k, theta_k),   theta_{k+1} = theta_k - eta Gamma(p_{k+1}, theta_k)
//
// In the paper's order both lines read p_k and theta_k: an engine that is sampler and estimator in one may do them in a
// single pass. The authors' program uses the new population; results do not differ visibly.
#pragma once

#include "implicit_diffusion/loop/state.hpp"

namespace implicit_diffusion {

enum class Order { paper, authors };

struct SingleOptions {
  std::int64_t steps = 1000;  // runs until state.step == steps
  Order order = Order::paper;
};

template <class Population, class Theta, OptimizerOf<Theta> Opt, SamplerOf<Population, Theta> Sigma,
          GradientEstimatorOf<Population, Theta> Gamma, class Observer = const decltype(ignore)&>
Outcome single_loop(Sigma& sigma, Gamma& gamma, State<Population, Opt, Theta>& s, const SingleOptions& options,
                    Observer&& observe = ignore, std::stop_token stop = {}) {
  Theta gradient = zeros_like(s.theta), next = gradient;
  return detail::repeat(s, options.steps, observe, stop, [&]() -> Outcome {
    if (options.order == Order::paper) {
      detail::advance_and_estimate(sigma, gamma, s.population, s.theta, s.step, gradient);
    } else {
      sigma.advance(s.population, s.theta, {.round = s.step});
      gamma.estimate(s.population, s.theta, s.step, gradient);
    }
    if (const auto d = detail::find_divergence(sigma, s.population, s.step + 1)) return {Status::diverged, d};
    return detail::update(s, gamma, gradient, next);
  });
}

}  // namespace implicit_diffusion
