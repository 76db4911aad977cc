// The folder of a network that no other program knows: config.json, model.safetensors. Needs LibTorch.
#pragma once

#include "experiment/summary.hpp"
#include "implicit_diffusion/torch/network.hpp"

#include <filesystem>

namespace program {

void save_network(const std::filesystem::path& folder, const Json& config, const implicit_diffusion::Layout& layout,
                  const implicit_diffusion::TensorParameters& theta);
// Throws a data Error where a tensor of the layout is missing, has another shape, or is not finite.
implicit_diffusion::TensorParameters load_network(const std::filesystem::path& folder,
                                                  const implicit_diffusion::Layout& layout);

}  // namespace program
