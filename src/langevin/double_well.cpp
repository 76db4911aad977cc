#include "implicit_diffusion/langevin/double_well.hpp"

#include "../require.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace implicit_diffusion {

DoubleWell::DoubleWell(std::size_t dimension, double half_distance, double variance)
    : dimension_(dimension), constants_(std::vector{1.0, 1.0 / half_distance, 1.0 / variance}) {
  require_positive("half_distance", half_distance);
  require_positive("variance", variance);
  require(dimension != 0, "dimension", "it must be positive");
}

std::optional<double> DoubleWell::largest_stable_step() const {
  const std::vector<double>& c = constants_.exact();
  const double along = (8 * c[0] + 12 * std::sqrt(2 * c[0])) * c[1] * c[1];
  return 2.0 / std::max(along, dimension_ > 1 ? c[2] : 0.0);
}

}  // namespace implicit_diffusion
