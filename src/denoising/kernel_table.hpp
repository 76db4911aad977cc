// The kernels of the built-in score models over one number type.
#pragma once

#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "implicit_diffusion/denoising/score_model.hpp"

namespace implicit_diffusion {

struct ScoreKernelSet {
  ScoreKernels<float, MixtureScore<Spread::isotropic>::Level> isotropic;
  ScoreKernels<float, MixtureScore<Spread::diagonal>::Level> diagonal;
  ScoreKernels<float, MixtureScore<Spread::cholesky>::Level> cholesky;
};

}  // namespace implicit_diffusion
