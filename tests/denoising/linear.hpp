// A reward whose expectation is known wherever the mean is.
#pragma once

namespace implicit_diffusion {

struct Linear {
  static constexpr bool any_number = true;
  template <class N>
  N operator()(const N* y) const {
    return y[0] + 2 * y[1];
  }
};

}  // namespace implicit_diffusion
