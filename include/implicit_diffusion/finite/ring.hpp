// A ring of n states x_i = 2 pi i / n whose chain is tuned to a reward: a problem of any size with few parameters and a
// known optimum.
//
//     V(x) = sum_m a_m cos(m x) + b_m sin(m x),  m = 1, ..., M          theta = (c, a_1, b_1, ..., a_M, b_M)
//     P(i, i + s) = 1 / (2 w) sigmoid(V_i - V_{i+s} + c h s),           s = +-1, ..., +-w,   h = 2 pi / n
//
// and the rest of the time the state is kept. c drives the chain around the ring. With c = 0 its law is the Gibbs law
// of V (the heat bath of gibbs.hpp); with c != 0 there is a current, no detailed balance, and only the linear system
// knows the law. As n grows it is the diffusion dX = (c - V'(X)) dt + sqrt(2) dB seen at small steps of time.
//
// The objective is -E[R] + beta KL(p || uniform) with R(x) a sum of the same harmonics: its optimum over all laws is
// exp(R / beta) / Z, which the chain reaches at c = 0, V = -R / beta. So the optimum is known for every n.
#pragma once

#include "implicit_diffusion/finite/objective.hpp"
#include "implicit_diffusion/finite/transition_matrix.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace implicit_diffusion {

// V above, parameters (a_1, b_1, ..., a_M, b_M).
class RingPotential {
 public:
  // Throws a usage Error unless n > 2 harmonics >= 2.
  RingPotential(std::size_t n, std::size_t harmonics);

  std::size_t states() const { return cosines_.size(); }
  std::size_t parameters() const { return 2 * harmonics_; }
  void prepare(std::span<const double> theta);
  double value(std::size_t i) const { return values_[i]; }
  void add_gradient(std::size_t i, double weight, std::span<double> gradient) const {
    std::size_t at = 0;
    for (std::size_t m = 0; m < harmonics_; ++m) {
      at += i;  // m x_i, by steps of h
      if (at >= cosines_.size()) at -= cosines_.size();
      gradient[2 * m] += weight * cosines_[at];
      gradient[2 * m + 1] += weight * sines_[at];
    }
  }

 private:
  std::size_t harmonics_;
  std::vector<double> cosines_, sines_;  // of x_i
  std::vector<double> values_;
};

struct RingOptions {
  std::size_t states = 100;
  std::size_t harmonics = 2;
  std::size_t width = 1;  // w
};

class RingChain {
 public:
  // Throws a usage Error unless states > 2 harmonics >= 2 and states > 2 width >= 2.
  explicit RingChain(RingOptions options);

  std::size_t states() const { return potential_.states(); }
  std::size_t parameters() const { return 1 + potential_.parameters(); }
  void prepare(std::span<const double> theta);
  const TransitionMatrix& matrix() const { return matrix_; }
  void row_derivatives(std::size_t i, std::span<double> out) const;

 private:
  // The s of entry (i, k), between -width and width.
  double shift(std::size_t i, std::size_t k) const;

  RingOptions options_;
  double spacing_;  // h
  double drift_ = 0;
  RingPotential potential_;
  TransitionMatrix matrix_;
};

// R(x_i) from the coefficients (a_1, b_1, ...).
std::vector<double> ring_reward(std::size_t n, std::span<const double> coefficients);

struct RingProblem {
  RingChain chain;
  RewardObjective objective;
  std::vector<double> start;    // theta_0 = 0: the uniform law
  std::vector<double> optimum;  // theta
  std::vector<double> best_law;
};

// `reward` has the coefficients of R, at most two for each harmonic.
RingProblem ring_problem(const RingOptions& options, std::span<const double> reward, double beta);

}  // namespace implicit_diffusion
