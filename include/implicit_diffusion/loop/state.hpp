// What a loop carries from step to step, and how it can end.
//
// State is all that a run needs to go on: a run continued from its state equals one that never stopped. Loops do no
// I/O; an observer, any callable, sees the state before the first step and after every step. If it returns a bool,
// false ends the run.
#pragma once

#include "implicit_diffusion/concepts.hpp"
#include "implicit_diffusion/population.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

namespace implicit_diffusion {

template <class Population, class Optimizer, class Theta = std::vector<double>>
struct State {
  std::int64_t step = 0;  // outer steps done: k
  Theta theta;            // theta_k
  Population population;  // p_k
  Optimizer optimizer;
};

enum class Status { completed, interrupted, diverged };

// The first number that was no longer finite, or the first parameter that left its domain. The step that made it was
// not taken: theta is still the last good one.
struct Divergence {
  enum class Where { sample, gradient, parameter };
  Where where;
  std::int64_t step;       // the outer step (from 1) that failed
  std::size_t sample;      // which sample, if where is Where::sample
  std::size_t coordinate;  // of the sample, or of theta
};

struct [[nodiscard]] Outcome {
  Status status = Status::completed;
  std::optional<Divergence> divergence{};
};

// An observer for those who want none.
inline constexpr auto ignore = [](const auto&) {};

namespace detail {

// Both lines of the paper's order, in one pass where one object is both and offers it.
template <class Sigma, class Gamma, class Population, class Theta>
void advance_and_estimate(Sigma& sigma, Gamma& gamma, Population& p, const Theta& theta, std::int64_t step,
                          Theta& gradient) {
  if constexpr (std::same_as<Sigma, Gamma> &&
                requires { sigma.advance_and_estimate(p, theta, StepKey{step}, gradient); }) {
    if (&sigma == &gamma) return sigma.advance_and_estimate(p, theta, {.round = step}, gradient);
  }
  gamma.estimate(p, theta, step, gradient);
  sigma.advance(p, theta, {.round = step});
}

// A sampler that has watched its own numbers saves the search.
template <class Sigma, class Population>
std::optional<Divergence> find_divergence(const Sigma& sigma, const Population& p, std::int64_t step) {
  if constexpr (requires { sigma.all_finite(); })
    if (sigma.all_finite()) return std::nullopt;
  if constexpr (requires { find_nonfinite(p); })
    if (const auto at = find_nonfinite(p))
      return Divergence{Divergence::Where::sample, step, at->sample, at->coordinate};
  return std::nullopt;
}

// The same for several batches at once: the first of them that has one.
template <class Sigma, class Population>
std::optional<Divergence> find_divergence(const Sigma& sigma, std::span<Population> batches, std::int64_t step) {
  if constexpr (requires(const Population& p) { find_nonfinite_here(p); }) {
    std::optional<InBatch> here;
    Processes* processes = nullptr;
    for (std::size_t m = 0; m < batches.size(); ++m) {
      processes = spread_of(batches[m]).processes;
      if (const auto at = here ? std::nullopt : find_nonfinite_here(batches[m])) here = InBatch{m, *at};
    }
    if (const auto found = first_of_all(processes, here))
      return Divergence{Divergence::Where::sample, step, found->at.sample, found->at.coordinate};
  } else {
    for (const Population& p : batches)
      if (const auto d = find_divergence(sigma, p, step)) return d;
  }
  return std::nullopt;
}

// theta_{k+1} = theta_k - eta Gamma, unless that is not finite or the estimator knows it to be outside the domain of
// its potential. `next` is memory: the one copy of theta that a step makes.
template <class AnyState, class Gamma, class Theta>
Outcome update(AnyState& s, const Gamma& gamma, const Theta& gradient, Theta& next) {
  const auto diverged = [&](Divergence::Where where, std::size_t j) {
    return Outcome{Status::diverged, Divergence{where, s.step + 1, 0, j}};
  };
  if (const auto j = first_nonfinite(gradient)) return diverged(Divergence::Where::gradient, *j);
  next = s.theta;
  s.optimizer.update(next, gradient, s.step);
  if (const auto j = first_nonfinite(next)) return diverged(Divergence::Where::parameter, *j);
  if constexpr (requires { gamma.find_inadmissible(next); })
    if (const auto j = gamma.find_inadmissible(next)) return diverged(Divergence::Where::parameter, *j);
  std::swap(s.theta, next);
  return {};
}

// Shows a state to an observer. False where it wants to see no more.
template <class Observer, class AnyState>
bool show(Observer& observe, const AnyState& s) {
  using Answer = decltype(observe(s));
  static_assert(std::same_as<Answer, bool> || std::same_as<Answer, void>, "an observer returns nothing, or a bool");
  if constexpr (std::same_as<Answer, bool>) return observe(s);
  observe(s);
  return true;
}

// The frame of every loop: step() is called until s.step == steps, somebody asks to stop, or an outcome is not
// completion; the observer sees the state before the first step and after every one.
template <class AnyState, class Observer, class Step>
Outcome repeat(AnyState& s, std::int64_t steps, Observer&& observe, const std::stop_token& stop, Step&& step) {
  bool wanted = show(observe, std::as_const(s));
  while (s.step < steps) {
    if (!wanted || stop.stop_requested()) return {Status::interrupted};
    if (const Outcome outcome = step(); outcome.status != Status::completed) return outcome;
    ++s.step;
    wanted = show(observe, std::as_const(s));
  }
  return {};
}

}  // namespace detail
}  // namespace implicit_diffusion
