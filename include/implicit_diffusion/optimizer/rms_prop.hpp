// RMSProp (Tieleman and Hinton, 2012): gradient descent with a step of its own for each coordinate, by the size of its
// recent gradients.
//
//     v <- b v + (1 - b) g^2
//     theta <- theta - eta_k g / (sqrt(v) + eps)
//
// v begins at 0, so the first steps are eta_0 / sqrt(1 - b) long whatever the size of g: ten times eta_0 for b = 0.99.
// v belongs to the state of a run.
#pragma once

#include "implicit_diffusion/optimizer/memory.hpp"
#include "implicit_diffusion/optimizer/schedule.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace implicit_diffusion {

struct RmsPropOptions {
  static constexpr const char* name = "rms-prop";

  Schedule rate = 1e-3;
  double decay = 0.99;    // b
  double epsilon = 1e-8;  // keeps a coordinate whose gradient vanishes from dividing by zero

  // v.
  template <class Theta>
  static OptimizerMemory<Theta> begin() {
    return {{}, 1};
  }

  template <class Theta>
  void update(Theta& theta, const Theta& gradient, std::int64_t step, OptimizerMemory<Theta>& memory) const {
    const double b = decay, eps = epsilon, eta = rate(step);
    for_each_element(
        [=](auto& t, const auto& g, auto& v) {
          set_element(v, b * v + (1.0 - b) * g * g);
          set_element(t, t - eta * g / (std::sqrt(v) + eps));
        },
        theta, gradient, memory.moments[0]);
  }
};

template <class Theta>
using BasicRmsProp = RememberingOptimizer<RmsPropOptions, Theta>;
using RmsProp = BasicRmsProp<std::vector<double>>;

}  // namespace implicit_diffusion
