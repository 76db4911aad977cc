// Gradient descent: theta <- theta - eta_k g.
#pragma once

#include "implicit_diffusion/optimizer/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace implicit_diffusion {

struct GradientDescent {
  Schedule rate{.scale = 0.1};

  void update(std::span<double> theta, std::span<const double> gradient, std::int64_t step) {
    const double eta = rate(step);
    for (std::size_t j = 0; j < theta.size(); ++j) theta[j] -= eta * gradient[j];
  }
};

// Leaves theta where it is: sampling alone.
struct Hold {
  void update(std::span<double>, std::span<const double>, std::int64_t) {}
};

}  // namespace implicit_diffusion
