// What a denoising diffusion is finetuned to: a reward, and the path KL to a frozen model.
//
//     F(theta) = E[-lambda R(Y_T)] + beta KL(paths of theta || paths of the frozen model)
//
// The KL of two chains with the same noise is the sum over their steps of the expected squared distance of the means
// over twice the variance (Girsanov's formula, exact for the discrete chain); U of a sample is its share: sum_n
// penalty_n |s_theta - s_0|^2 (y_n). It bounds the KL of the laws of Y_T. For steps without noise U is taken as the
// penalty itself.
#pragma once

#include "implicit_diffusion/denoising/batch.hpp"
#include "implicit_diffusion/langevin/reward.hpp"
#include "implicit_diffusion/optimise.hpp"

#include <cstddef>

namespace implicit_diffusion {

struct DenoisingObjective {
  double lambda = 1;  // of either sign
  double beta = 0;
};

// The mean of -lambda R + beta U over a finished batch, and its two parts.
struct BatchObjective {
  double value, reward, path_kl;
};
template <class T>
BatchObjective objective_of(const PathBatch<T>& b, const typename StepsOf<T>::Reward& reward,
                            const DenoisingObjective& o) {
  using Steps = StepsOf<T>;
  const double rewards = sum_of_rewards<Steps>(b.points, reward);
  double penalties = 0;
  in_turn(spread_of(b.points), {&penalties, 1}, [&] {
    for (std::size_t k = 0; b.penalty.size() != 0 && k < Steps::tiles(b.points); ++k)
      Steps::add_to(penalties, Steps::numbers_of(b.penalty, k), Steps::tile(b.points, k));
  });
  const auto n = static_cast<double>(total_of(b.points));
  return {(-o.lambda * rewards + o.beta * penalties) / n, rewards / n, penalties / n};
}

}  // namespace implicit_diffusion
