// What a few samples contribute to a gradient through a reverse chain.
//
// The gradient is the mean over samples of a derivative along their path, a product of as many factors as there are
// steps. Where the modes of the data are far apart, a few paths come so close to the border between them that these
// factors grow by orders of magnitude: the mean then rests on samples that most batches do not have. The gradients of
// small groups show it, through concentration() (diagnostics.hpp): light tails all but vanish in the mean of a group,
// heavy ones do not.
#pragma once

#include "implicit_diffusion/denoising/gradient.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace implicit_diffusion {

// The gradients of `groups` batches of a few fresh samples each, at theta: 16 samples cost as much as one. The chain
// has one slot. For models that are written point by point.
template <class Real>
std::vector<std::vector<double>> group_gradients(ReverseChain<Real>& chain, const Reward<Real>& reward,
                                                 const DenoisingObjective& objective, const DenoisingStart<Real>& start,
                                                 const std::vector<double>& theta, std::size_t groups,
                                                 std::size_t samples = lanes_per_group) {
  PathGradient<Real> gradient(chain, reward, objective);
  PathBatch<Real> group = PathBatch<Real>::of(Population<Real>(samples, chain.engine().score().dimension()));
  std::vector<std::vector<double>> all(groups, std::vector<double>(theta.size()));
  for (std::size_t i = 0; i < groups; ++i) {
    start.draw(group, static_cast<std::int64_t>(i));
    gradient.sample_and_estimate(group, theta, {}, all[i]);
  }
  return all;
}

}  // namespace implicit_diffusion
