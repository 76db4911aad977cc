// The kernels of the built-in score models over one number type.
#pragma once

#include "implicit_diffusion/denoising/mixture_score.hpp"

#include <tuple>

namespace implicit_diffusion {

struct ScoreKernelSet {
  std::tuple<ScoreKernels<float, MixtureScore<Spread::isotropic>::NoiseLevel>,
             ScoreKernels<float, MixtureScore<Spread::diagonal>::NoiseLevel>,
             ScoreKernels<float, MixtureScore<Spread::cholesky>::NoiseLevel>>
      all;
};

}  // namespace implicit_diffusion
