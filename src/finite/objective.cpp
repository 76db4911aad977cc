#include "implicit_diffusion/finite/objective.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <utility>

namespace implicit_diffusion {

RewardObjective::RewardObjective(std::vector<double> reward, double lambda, double beta)
    : reward_(std::move(reward)), lambda_(lambda), beta_(beta) {
  require_not_negative("objective.lambda", lambda);
  require_not_negative("objective.beta", beta);
  constant_ = beta * (log(static_cast<double>(reward_.size())) + 1);
}

double RewardObjective::value(std::span<const double> p) const {
  double sum = 0;
  const auto n = static_cast<double>(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    sum -= lambda_ * p[i] * reward_[i];
    if (beta_ > 0 && p[i] > 0) sum += beta_ * p[i] * log(n * p[i]);
  }
  return sum;
}

void RewardObjective::gradient(std::span<const double> p, std::span<double> f) const {
  for (std::size_t i = 0; i < p.size(); ++i) f[i] = beta_ > 0 ? slope(i, log(p[i])) : -lambda_ * reward_[i];
}

}  // namespace implicit_diffusion
