// The queue (Algorithms 3 and 7): for a sampler of finite horizon, M populations at M stages of their way, advanced
// together.
//
//     q_{k+1}[0]     = p_0, fresh
//     q_{k+1}[m + 1] = Sigma_m(q_k[m], theta_k),   m = 0, ..., M - 1
//     theta_{k+1}    = theta_k - eta Gamma(q_k[M], theta_k)
//
// Each outer step costs M sampling steps, all independent, and yields one finished population. The one that finishes at
// step k was made with theta_{k-M}, ..., theta_{k-1}: the price of not waiting.
//
// Slot m of step k was born at round k - m. Warm start (Algorithm 3): slot m starts as m steps at theta_0 from a batch
// of its own, born at round -m. Without it (Algorithm 7) the queue starts with slot 0 alone and theta stands still
// until slot M exists, at step M.
#pragma once

#include "implicit_diffusion/loop/state.hpp"

#include <algorithm>
#include <span>

namespace implicit_diffusion {

template <class Population, class Optimizer, class Theta = std::vector<double>>
struct QueueState {
  std::int64_t step = 0;
  Theta theta;
  std::vector<Population> slots;  // q[0], ..., q[M]; fewer while a queue without warm start fills
  Optimizer optimizer;
};

struct QueueOptions {
  std::int64_t steps = 1000;  // runs until state.step == steps
  std::int64_t slots = 4;     // M, the number of sampling steps from p_0 to the end
  bool warm_start = true;
};

namespace detail {

// Every one of the first `moving` slots makes its step: all together where the sampler offers that, else one after the
// other.
template <class Sigma, class Population, class Theta>
std::optional<Divergence> advance_slots(Sigma& sigma, std::span<Population> moving, const Theta& theta,
                                        std::int64_t step) {
  if constexpr (requires { sigma.advance_all(moving, theta); }) {
    sigma.advance_all(moving, theta);
    return find_divergence(sigma, moving, step + 1);
  } else {
    for (std::size_t m = 0; m < moving.size(); ++m) {
      const auto index = static_cast<std::int64_t>(m);
      sigma.advance(moving[m], theta, {.round = step - index, .index = index});
      if (const auto d = find_divergence(sigma, moving[m], step + 1)) return d;
    }
  }
  return std::nullopt;
}

}  // namespace detail

// Fills the queue before the first step. `empty` is a population of the right shape.
template <class Population, class Opt, class Theta, SamplerOf<Population, Theta> Sigma, StartOf<Population> Start>
void start_queue(Sigma& sigma, Start& start, QueueState<Population, Opt, Theta>& s, const QueueOptions& options,
                 const Population& empty) {
  s.slots.assign(options.warm_start ? static_cast<std::size_t>(options.slots) + 1 : 1, empty);
  for (std::size_t m = 0; m < s.slots.size(); ++m) {
    const std::int64_t birth = -static_cast<std::int64_t>(m);
    start.draw(s.slots[m], birth);
    for (std::int64_t i = 0; i < -birth; ++i) sigma.advance(s.slots[m], s.theta, {.round = birth, .index = i});
  }
}

template <class Population, class Theta, OptimizerOf<Theta> Opt, SamplerOf<Population, Theta> Sigma,
          GradientEstimatorOf<Population, Theta> Gamma, StartOf<Population> Start,
          class Observer = const decltype(ignore)&>
Outcome queue_loop(Sigma& sigma, Gamma& gamma, Start& start, QueueState<Population, Opt, Theta>& s,
                   const QueueOptions& options, Observer&& observe = ignore, std::stop_token stop = {}) {
  const auto last = static_cast<std::size_t>(options.slots);
  Theta gradient = zeros_like(s.theta), next = gradient;
  return detail::repeat(s, options.steps, observe, stop, [&]() -> Outcome {
    const bool finished = s.slots.size() == last + 1;
    if (finished) gamma.estimate(s.slots[last], s.theta, s.step, gradient);

    // Every slot makes its step and moves up one place; a finished one gives its memory to the fresh one.
    const auto moving = std::span(s.slots).first(std::min(s.slots.size(), last));
    if (const auto d = detail::advance_slots(sigma, moving, s.theta, s.step)) return {Status::diverged, d};
    if (!finished) s.slots.push_back(s.slots.back());
    std::rotate(s.slots.begin(), s.slots.end() - 1, s.slots.end());
    start.draw(s.slots.front(), s.step + 1);

    return finished ? detail::update(s, gamma, gradient, next) : Outcome{};
  });
}

}  // namespace implicit_diffusion
