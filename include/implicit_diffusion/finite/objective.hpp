// What a law on a finite set is judged by: F(p), to be made small, and its gradient F'(p), a number for each state.
//
// An objective is any type with value(p) and gradient(p, f). One whose F'(p)_i is a function of i and log p_i alone may offer it as
// slope(i, log_p): then samples of a Gibbs law, whose log p_i is known up to a constant, suffice.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
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
  explicit RewardObjective(std::vector<double> reward, double lambda = 1.0, double beta = 0.0);

  double value(std::span<const double> p) const;
  void gradient(std::span<const double> p, std::span<double> f) const;
  double slope(std::size_t i, double log_p) const { return beta_ * log_p - lambda_ * reward_[i] + constant_; }

  std::span<const double> reward() const { return reward_; }

 private:
  std::vector<double> reward_;
  double lambda_, beta_, constant_;
};

}  // namespace implicit_diffusion
