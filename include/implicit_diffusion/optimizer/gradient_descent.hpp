// Gradient descent: theta <- theta - eta_k g.
#pragma once

#include "implicit_diffusion/optimizer/schedule.hpp"
#include "implicit_diffusion/parameters.hpp"

#include <cstdint>

namespace implicit_diffusion {

struct GradientDescent {
  static constexpr const char* name = "gradient-descent";

  Schedule rate = 0.1;

  template <class Theta, class Gradient>
  void update(Theta&& theta, const Gradient& gradient, std::int64_t step) {
    const double eta = rate(step);
    for_each_element([eta](auto& t, const auto& g) { set_element(t, t - eta * g); }, theta, gradient);
  }
};

// Leaves theta where it is: sampling alone.
struct Hold {
  void update(const auto&, const auto&, std::int64_t) {}
};

}  // namespace implicit_diffusion
