#include "implicit_diffusion/optimizer/schedule.hpp"

#include "implicit_diffusion/simd/elementary.hpp"

#include <cmath>

namespace implicit_diffusion {

double Schedule::operator()(std::int64_t k) const {
  if (exponent == 0.0) return scale;
  const double n = static_cast<double>(k) + 1.0;
  if (exponent == 0.5) return scale / std::sqrt(n);
  return scale * exp(-exponent * log(n));
}

SchedulePair cube_root_pair(double c) { return cube_root_pair(c, c); }
SchedulePair cube_root_pair(double sampler, double optimizer) { return {{sampler, 1.0 / 3.0}, {optimizer, 2.0 / 3.0}}; }

}  // namespace implicit_diffusion
