#include "implicit_diffusion/finite/ring.hpp"

#include "../require.hpp"
#include "implicit_diffusion/finite/chain.hpp"
#include "implicit_diffusion/finite/gibbs.hpp"
#include "implicit_diffusion/finite/graph.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace implicit_diffusion {

RingPotential::RingPotential(std::size_t n, std::size_t harmonics)
    : harmonics_(harmonics), cosines_(n), sines_(n), values_(n) {
  require(harmonics > 0 && n > 2 * harmonics, "ring", "{} states are too few for {} harmonics", n, harmonics);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    cosines_[i] = std::cos(x);
    sines_[i] = std::sin(x);
  }
}

void RingPotential::prepare(std::span<const double> theta) {
  const std::size_t n = states();
  std::ranges::fill(values_, 0.0);
  for (std::size_t m = 0; m < harmonics_; ++m)
    for (std::size_t i = 0, at = 0; i < n; ++i, at = at + m + 1 < n ? at + m + 1 : at + m + 1 - n)
      values_[i] += theta[2 * m] * cosines_[at] + theta[2 * m + 1] * sines_[at];
}

RingChain::RingChain(RingOptions options)
    : options_(options),
      spacing_(2 * std::numbers::pi / static_cast<double>(options.states)),
      potential_(options.states, options.harmonics),
      matrix_(move_pattern(Graph::ring(options.states, options.width))) {}

double RingChain::shift(std::size_t i, std::size_t k) const {
  const auto n = static_cast<double>(options_.states), w = static_cast<double>(options_.width);
  const double s = static_cast<double>(k) - static_cast<double>(i);
  return s > w ? s - n : s < -w ? s + n : s;
}

void RingChain::prepare(std::span<const double> theta) {
  drift_ = theta[0];
  potential_.prepare(theta.subspan(1));
  const double choice = 0.5 / static_cast<double>(options_.width);
  for (std::size_t i = 0; i < states(); ++i)
    fill_moves(matrix_, i, [&](std::size_t, std::size_t k) {
      return choice * sigmoid(potential_.value(i) - potential_.value(k) + drift_ * spacing_ * shift(i, k));
    });
}

void RingChain::row_derivatives(std::size_t i, std::span<double> out) const {
  const TransitionRow row = matrix_.row(i);
  const double choice = 0.5 / static_cast<double>(options_.width);
  fill_move_derivatives(row, i, parameters(), out, [&](std::size_t e, std::size_t k, std::span<double> derivatives) {
    const double taken = row.values[e] / choice, slope = choice * taken * (1 - taken);
    derivatives[0] = slope * spacing_ * shift(i, k);
    potential_.add_gradient(i, slope, derivatives.subspan(1));
    potential_.add_gradient(k, -slope, derivatives.subspan(1));
  });
}

std::vector<double> ring_reward(std::size_t n, std::span<const double> coefficients) {
  std::vector<double> theta(coefficients.begin(), coefficients.end());
  theta.resize((theta.size() + 1) / 2 * 2, 0.0);
  RingPotential r(n, theta.size() / 2);
  r.prepare(theta);
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = r.value(i);
  return out;
}

RingProblem ring_problem(const RingOptions& options, std::span<const double> reward, double beta) {
  require_positive("ring.beta", beta);
  require(!reward.empty() && reward.size() <= 2 * options.harmonics, "ring.reward", "{} coefficients for {} harmonics",
          reward.size(), options.harmonics);
  RewardObjective objective(ring_reward(options.states, reward), 1.0, beta);
  std::vector<double> optimum(1 + 2 * options.harmonics, 0.0);
  for (std::size_t j = 0; j < reward.size(); ++j) optimum[1 + j] = -reward[j] / beta;
  RingPotential potential(options.states, options.harmonics);
  potential.prepare(std::span<const double>(optimum).subspan(1));
  std::vector<double> best_law(options.states);
  gibbs_law(potential, best_law);
  return {RingChain(options), std::move(objective), std::vector<double>(optimum.size(), 0.0), std::move(optimum),
          std::move(best_law)};
}

}  // namespace implicit_diffusion
