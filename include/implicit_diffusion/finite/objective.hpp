// What a law on a finite set is judged by: F(p), to be made small, and its gradient F'(p), a number for each state.
//
// An objective is any type with value(p) and gradient(p, f). One whose F'(p)_i is a function of i and log p_i alone may
// offer it as slope(i, log_p): then samples of a Gibbs law, whose log p_i is known up to a constant, suffice.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

template <class F>
concept FiniteObjective = requires(const F& f, std::span<const double> p, std::span<double> out) {
  { f.value(p) } -> std::convertible_to<double>;
  f.gradient(p, out);
};

//     F(p) = -lambda sum_i p_i R_i + beta KL(p || uniform),        F'_i = -lambda R_i + beta (log(n p_i) + 1)
//
// The law that minimises it is proportional to exp(lambda R / beta). With beta > 0 it asks for p_i > 0.
class RewardObjective {
 public:
  explicit RewardObjective(std::vector<double> reward, double lambda = 1.0, double beta = 0.0)
      : reward_(std::move(reward)),
        lambda_(lambda),
        beta_(beta),
        constant_(beta * (log(static_cast<double>(reward_.size())) + 1)) {
    require_not_negative("objective.lambda", lambda);
    require_not_negative("objective.beta", beta);
  }

  double value(std::span<const double> p) const {
    double sum = 0;
    const auto n = static_cast<double>(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      sum -= lambda_ * p[i] * reward_[i];
      if (beta_ > 0 && p[i] > 0) sum += beta_ * p[i] * log(n * p[i]);
    }
    return sum;
  }
  void gradient(std::span<const double> p, std::span<double> f) const {
    for (std::size_t i = 0; i < p.size(); ++i) f[i] = beta_ > 0 ? slope(i, log(p[i])) : -lambda_ * reward_[i];
  }
  double slope(std::size_t i, double log_p) const { return beta_ * log_p - lambda_ * reward_[i] + constant_; }

  std::span<const double> reward() const { return reward_; }

 private:
  std::vector<double> reward_;
  double lambda_, beta_, constant_;
};

}  // namespace implicit_diffusion
