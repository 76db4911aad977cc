#include "implicit_diffusion/denoising/score_model.hpp"

#include <cmath>

namespace implicit_diffusion {

GaussianScore::Level GaussianScore::level(double tau) const {
  const double decay = std::exp(-tau);
  return {theta_ * decay, decay};
}

}  // namespace implicit_diffusion
