// The score model of a diffusion as files have it: a mixture, with weights, means, and covariances or deviations.
#pragma once

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/denoising/mixture_model.hpp"

namespace program {

using implicit_diffusion::GaussianMixture;

struct MixtureModelSpec {
  static constexpr const char* name = "mixture";
  implicit_diffusion::Spread spread = implicit_diffusion::Spread::isotropic;
  GaussianMixture law;  // of the base

  void read(TableReader& t);
  implicit_diffusion::MixtureModel make() const { return {spread, law.weights.size(), law.dimension()}; }
};

}  // namespace program
