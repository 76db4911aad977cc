// R(x) = direction . x
#pragma once

#include "implicit_diffusion/simd/number.hpp"

#include <cstddef>
#include <vector>

namespace implicit_diffusion {

struct LinearReward {
  static constexpr bool any_number = true;
  std::vector<double> direction;

  template <class N>
  N operator()(const N* x) const {
    using Real = Scalar<N>;
    N sum = x[0] * static_cast<Real>(direction[0]);
    for (std::size_t j = 1; j < direction.size(); ++j) sum = sum + x[j] * static_cast<Real>(direction[j]);
    return sum;
  }
};

}  // namespace implicit_diffusion
