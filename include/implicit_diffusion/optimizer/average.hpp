// A moving average of theta along a run:
//
//     average <- d average + (1 - d) theta_{k+1},     d = min(decay, (1 + k) / (10 + k))
//
// It begins at theta_0, and forgets that soon: until k = 10 / (1 - decay) it is over the last tenth of the steps or so.
//
// Where theta swings widely around where it is going, as that of a network does in the single loop of Langevin
// sampling, the average is the better model.
#pragma once

#include "implicit_diffusion/parameters.hpp"

#include <algorithm>
#include <cstdint>

namespace implicit_diffusion {

// Takes in theta after step k, counted from 0.
template <class Theta>
void update_average(Theta& average, const Theta& theta, std::int64_t step, double decay) {
  const auto k = static_cast<double>(step);
  const double d = std::min(decay, (1 + k) / (10 + k));
  for_each_element([d](auto& a, const auto& t) { set_element(a, d * a + (1 - d) * t); }, average, theta);
}

}  // namespace implicit_diffusion
