// RMSProp (Tieleman and Hinton, 2012): gradient descent with a step of its own for each coordinate, by the size of its recent gradients.
//
//     v <- b v + (1 - b) g^2
//     theta <- theta - eta_k g / (sqrt(v) + eps)
//
// v begins at 0, so the first steps are eta_0 / sqrt(1 - b) long whatever the size of g: ten times eta_0 for b = 0.99. v belongs to the state of
// a run.
#pragma once

#include "implicit_diffusion/optimizer/memory.hpp"
#include "implicit_diffusion/optimizer/schedule.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace implicit_diffusion {

struct RmsPropOptions {
  Schedule rate{.scale = 1e-3};
  double decay = 0.99;    // b
  double epsilon = 1e-8;  // keeps a coordinate whose gradient vanishes from dividing by zero
};

template <class Theta>
struct BasicRmsProp : RememberingOptimizer<RmsPropOptions, Theta> {
  static constexpr const char* name = "rms-prop";

  // Remembered is v.
  explicit BasicRmsProp(const RmsPropOptions& options = {})
      : RememberingOptimizer<RmsPropOptions, Theta>(options, {{}, 1}) {}

  void update(Theta& theta, const Theta& gradient, std::int64_t step) {
    this->memory_.begin(theta);  // allocates on the first call only
    const double b = this->options_.decay, epsilon = this->options_.epsilon, eta = this->options_.rate(step);
    for_each_element(
        [=](auto& t, const auto& g, auto& v) {
          set_element(v, b * v + (1.0 - b) * g * g);
          set_element(t, t - eta * g / (std::sqrt(v) + epsilon));
        },
        theta, gradient, this->memory_.moments[0]);
  }
};

using RmsProp = BasicRmsProp<std::vector<double>>;

}  // namespace implicit_diffusion
