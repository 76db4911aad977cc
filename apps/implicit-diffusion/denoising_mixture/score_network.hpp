// The network of a `denoising-mixture`, as its run and its check have it. Needs LibTorch.
#pragma once

#include "denoising_mixture/experiment.hpp"
#include "implicit_diffusion/torch/mlp.hpp"
#include "implicit_diffusion/torch/steps.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace program {

// It predicts eps, and is told the angle of (a, s) on a scale of 0 to 1000, which suits its sines.
inline implicit_diffusion::NetworkSteps score_network_steps(const DenoisingConfiguration& c,
                                                            at::ScalarType type = at::ScalarType::Float) {
  const auto d = static_cast<std::int64_t>(c.base.dimension());
  return implicit_diffusion::NetworkSteps(
      implicit_diffusion::make_mlp(
          {.inputs = d, .outputs = d, .widths = c.network->widths, .time_features = c.network->time_features}),
      {.prediction = implicit_diffusion::Prediction::epsilon,
       .time = [](double tau) { return 2000 / std::numbers::pi * std::acos(std::exp(-tau)); },
       .shard = static_cast<std::size_t>(c.network->shard),
       .type = type});
}

// R(x) = direction . x
inline implicit_diffusion::TensorReward linear_reward(const std::vector<double>& direction) {
  return implicit_diffusion::TensorReward(
      [direction](const at::Tensor& x) { return at::mv(x, at::tensor(direction, at::kDouble).to(x.scalar_type())); });
}

}  // namespace program
