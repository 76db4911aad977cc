#include "implicit_diffusion/finite/gibbs.hpp"

#include "../require.hpp"

namespace implicit_diffusion {

LinearPotential::LinearPotential(std::vector<double> offset, std::vector<double> slopes)
    : offset_(std::move(offset)), slopes_(std::move(slopes)), values_(offset_) {
  require(!offset_.empty() && !slopes_.empty() && slopes_.size() % offset_.size() == 0, "linear potential",
          "{} slopes are not a number of rows of {} states", slopes_.size(), offset_.size());
}

void LinearPotential::prepare(std::span<const double> theta) {
  for (std::size_t i = 0; i < states(); ++i) {
    values_[i] = offset_[i];
    for (std::size_t j = 0; j < theta.size(); ++j) values_[i] += slopes_[i * theta.size() + j] * theta[j];
  }
}

}  // namespace implicit_diffusion
