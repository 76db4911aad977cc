// The gradient through a chain in forward mode: every sample carries its derivatives by all parameters along, in dual
// numbers.
//
// It is exact, as the adjoint of PathGradient is, and shares nothing with it but the noise: no product with a Jacobian,
// no path. It costs as many evaluations as there are parameters, so it is a reference, or for a few parameters. The
// model is a formula,
//
//     void operator()(const N* theta, double tau, const N* y, N* s) const    s = s_theta(y, tau), for any number type N
//
// and the reward a template over the number type. Samples run anew from where the batch began, with its noise, at the
// theta asked for.
#pragma once

#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/simd/dual.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// P parameters, at most 64.
template <class Formula, class PointRewardType, std::size_t P>
class ForwardGradient {
 public:
  // `frozen`: the theta of the frozen model, which is the same formula; needed where beta is not 0.
  ForwardGradient(const ReverseChain<double>& chain, Formula formula, PointRewardType reward,
                  DenoisingObjective objective = {}, std::optional<std::vector<double>> frozen = {})
      : chain_(chain),
        formula_(std::move(formula)),
        reward_(std::move(reward)),
        objective_(objective),
        frozen_(std::move(frozen)) {
    if (objective_.beta != 0 && !frozen_)
      throw Error(ErrorKind::usage, "beta", "a path KL needs the theta of a frozen model");
  }

  void estimate(const PathBatch<double>& b, std::span<const double> theta, std::int64_t, std::span<double> gradient) {
    using N = Dual<double, P>;
    const std::size_t d = b.points.dimension();
    std::vector<N> parameters, before, y(d), s(d), other(d);
    for (std::size_t j = 0; j < P; ++j) parameters.push_back(N(theta[j], 1.0, j));
    for (std::size_t j = 0; frozen_ && j < P; ++j) before.push_back(N((*frozen_)[j]));
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t block = 0; block < b.points.blocks(); ++block) {
      const Block<const double> start = b.path.front().block(block);
      std::vector<std::vector<double>> noise(chain_.steps());
      for (std::size_t n = 0; n < chain_.steps(); ++n) {
        noise[n].resize(block_size * d);
        if (!chain_.engine().normals(chain_.step(n, b.birth), start, noise[n].data())) noise[n].clear();
      }
      for (std::size_t i = 0; i < start.size; ++i) {
        for (std::size_t j = 0; j < d; ++j) y[j] = N(start.data[j * start.stride + i]);
        N penalty(0.0);
        for (std::size_t n = 0; n < chain_.steps(); ++n) {
          const StepCoefficients& c = chain_.coefficients(n);
          formula_(parameters.data(), chain_.grid().tau[n], y.data(), s.data());
          if (objective_.beta != 0) {
            formula_(before.data(), chain_.grid().tau[n], y.data(), other.data());
            for (std::size_t j = 0; j < d; ++j)
              penalty = penalty + N(c.penalty) * (s[j] - other[j]) * (s[j] - other[j]);
          }
          for (std::size_t j = 0; j < d; ++j) {
            y[j] = N(c.growth) * y[j] + N(c.pull) * s[j];
            if (!noise[n].empty())
              y[j] =
                  y[j] + N(c.noise * noise[n][(i / lanes_per_group * d + j) * lanes_per_group + i % lanes_per_group]);
          }
        }
        const N value = N(-objective_.lambda) * reward_(y.data()) + N(objective_.beta) * penalty;
        for (std::size_t j = 0; j < P; ++j) gradient[j] += value.along(j);
      }
    }
    for (double& g : gradient) g /= static_cast<double>(b.points.size());
  }

 private:
  const ReverseChain<double>& chain_;
  Formula formula_;
  PointRewardType reward_;
  DenoisingObjective objective_;
  std::optional<std::vector<double>> frozen_;
};

}  // namespace implicit_diffusion
