// What `check` compares of a network as the score of a chain. Needs LibTorch.
#pragma once

#include "experiment/check_rows.hpp"
#include "implicit_diffusion/denoising/objective.hpp"
#include "implicit_diffusion/torch/steps.hpp"

#include <functional>
#include <string>
#include <vector>

namespace program {

// Theta, the frozen theta and places in double precision; few samples and steps, as the graph of all of them is kept.
struct ChainCheck {
  std::string name;  // of the chain, where there are several
  implicit_diffusion::Network network;
  implicit_diffusion::NetworkMeaning means;
  implicit_diffusion::TensorParameters theta, frozen;
  implicit_diffusion::TensorSamples places;
  implicit_diffusion::TimeGrid grid;
  implicit_diffusion::Dynamics dynamics;
  implicit_diffusion::LastStep last_step = implicit_diffusion::LastStep::noise;
  implicit_diffusion::TensorReward reward;
  implicit_diffusion::DenoisingObjective objective;
  implicit_diffusion::Noise noise;
};

// The adjoint against backpropagation through the graph of the whole chain, and with half of beta; against differences
// of the objective along a direction, and a tenth too long; and as a run takes it, in shards of one and in single
// precision.
void check_chain(std::vector<CheckRow>& rows, const ChainCheck& c);

// The derivative of `value` at theta along a random direction by central differences, against that of the gradient; and
// against a gradient a tenth too long.
void compare_slopes(std::vector<CheckRow>& rows, const std::string& what,
                    const implicit_diffusion::TensorParameters& theta,
                    const implicit_diffusion::TensorParameters& gradient, const implicit_diffusion::Noise& noise,
                    const std::function<double(const implicit_diffusion::TensorParameters&)>& value);

}  // namespace program
