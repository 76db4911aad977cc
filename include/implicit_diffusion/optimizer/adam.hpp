// Adam (Kingma and Ba, 2015), with its bias corrections:
//
//     m <- b1 m + (1 - b1) g          v <- b2 v + (1 - b2) g^2
//     theta <- theta - eta_k (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps),     t = 1, 2, ...
//
// Its first step is eta_0 sign(g) whatever the size of g. The moments belong to the state of a run.
#pragma once

#include "implicit_diffusion/optimizer/memory.hpp"
#include "implicit_diffusion/optimizer/schedule.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace implicit_diffusion {

struct AdamOptions {
  static constexpr const char* name = "adam";

  Schedule rate = 1e-3;
  double first_decay = 0.9;     // b1
  double second_decay = 0.999;  // b2
  double epsilon = 1e-8;        // keeps a coordinate whose gradient vanishes from dividing by zero

  // b1^t and b2^t; m and v.
  template <class Theta>
  static OptimizerMemory<Theta> begin() {
    return {{1.0, 1.0}, 2};
  }

  template <class Theta>
  void update(Theta& theta, const Theta& gradient, std::int64_t step, OptimizerMemory<Theta>& memory) const {
    const double b1 = first_decay, b2 = second_decay, eps = epsilon, eta = rate(step);
    const double first_power = memory.numbers[0] *= b1, second_power = memory.numbers[1] *= b2;
    for_each_element(
        [=](auto& t, const auto& g, auto& m, auto& v) {
          set_element(m, b1 * m + (1.0 - b1) * g);
          set_element(v, b2 * v + (1.0 - b2) * g * g);
          const double mean = m / (1.0 - first_power);
          const double scale = std::sqrt(v / (1.0 - second_power)) + eps;
          set_element(t, t - eta * mean / scale);
        },
        theta, gradient, memory.moments[0], memory.moments[1]);
  }
};

template <class Theta>
using BasicAdam = RememberingOptimizer<AdamOptions, Theta>;
using Adam = BasicAdam<std::vector<double>>;

}  // namespace implicit_diffusion
