// The double queue (Algorithm 5), for chains without noise: a second queue takes finished samples back, a step of their
// adjoint at a time, so that an outer step is one model evaluation deep in both directions.
//
// From the old queues and theta_k, with T slots each way:
//
//     Y'[0] = fresh,     Y'[m + 1] = Sigma_m(Y[m], theta_k)
//     B'[0] = begun from Y[T],     B'[s + 1] = one step back of B[s] at theta_k
//     theta_{k+1} = theta_k - eta G(B[T]),  once B[T] is there
//
// What is on its way back carries its place, its adjoint and its gradient so far. The gradient that moves theta_k comes
// from the samples that were finished at step k - T - 1.
#pragma once

#include "implicit_diffusion/loop/queue.hpp"

namespace implicit_diffusion {

// begin(finished, theta) makes what goes back, step(back, s, theta) takes it back through step T - 1 - s of the chain,
// and gradient(back, g) writes what it came to. theta gives begin() the shape of a gradient.
template <class A, class Population, class Back, class Theta>
concept BackwardOf = requires(A& a, const Population& p, Back& b, std::size_t s, const Theta& theta, Theta& gradient) {
  { a.begin(p, theta) } -> std::convertible_to<Back>;
  a.step(b, s, theta);
  a.gradient(b, gradient);
};

template <class Population, class Back, class Optimizer, class Theta = std::vector<double>>
struct DoubleQueueState {
  std::int64_t step = 0;
  Theta theta;
  std::vector<Population> slots;          // Y[0], ..., Y[T]
  std::vector<std::optional<Back>> back;  // B[0], ..., B[T]
  Optimizer optimizer;
};

template <class Population, class Back, class Theta, OptimizerOf<Theta> Opt, SamplerOf<Population, Theta> Sigma,
          BackwardOf<Population, Back, Theta> Adjoint, StartOf<Population> Start,
          class Observer = const decltype(ignore)&>
Outcome double_queue_loop(Sigma& sigma, Adjoint& adjoint, Start& start,
                          DoubleQueueState<Population, Back, Opt, Theta>& s, std::int64_t steps,
                          Observer&& observe = ignore, std::stop_token stop = {}) {
  const std::size_t last = s.slots.size() - 1;
  s.back.resize(last + 1);
  Theta gradient = zeros_like(s.theta), next = gradient;
  return detail::repeat(s, steps, observe, stop, [&]() -> Outcome {
    std::optional<Back> finished = std::move(s.back[last]);
    for (std::size_t m = last; m > 0; --m) {
      s.back[m] = std::move(s.back[m - 1]);
      if (s.back[m]) adjoint.step(*s.back[m], m - 1, s.theta);
    }
    s.back[0] = adjoint.begin(s.slots[last], s.theta);

    if (const auto d = detail::advance_slots(sigma, std::span(s.slots).first(last), s.theta, s.step))
      return {Status::diverged, d};
    std::rotate(s.slots.begin(), s.slots.end() - 1, s.slots.end());
    start.draw(s.slots.front(), s.step + 1);

    if (!finished) return {};
    adjoint.gradient(*finished, gradient);
    return detail::update(s, adjoint, gradient, next);
  });
}

}  // namespace implicit_diffusion
