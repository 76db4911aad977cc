// Models in folders (models/model_folder.hpp) as networks with their weights, and whether one means the same here as in
// the program it comes from.
#pragma once

#include "implicit_diffusion/models/model_folder.hpp"
#include "implicit_diffusion/torch/unet.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace implicit_diffusion {

struct NetworkModel {
  ModelFolder folder;  // what the folder says beside the weights
  Network network;
  TensorParameters theta;
};

// Throws what read_model_folder, ModelWeights::load and make_unet throw: a data Error where weights are missing, of
// another shape or not finite.
NetworkModel load_model(const std::filesystem::path& folder, UNetOptions options = {});

// Writes a folder that diffusers opens, in single precision. Throws a data Error where theta is not finite.
void save_model(const std::filesystem::path& folder, const ModelFolder& model, const TensorParameters& theta);

// The largest difference of a tensor from what it should be; relative to the largest value that it should have, where
// that is above 1. Infinite where the values are not finite.
struct TensorDifference {
  std::string name;
  double difference;
};

// Runs the network of a folder as another program did, and compares. The file has
//
//     sample, timestep, class_labels             what the network was given; class_labels where it has labels
//     output                                     what it answered
//     cotangent, vjp_sample, vjp_X, ...          a vector c of the shape of output, and the products c' d output / d X
//                                                by the sample and by parameters X, whose names have underscores for
//                                                dots (vjp_time_linear_1_weight is time_embedding.linear_1.weight)
//
// and may have other tensors. With patches, samples are images or, as diffusers sees them, patches. Returns a row for
// output and each vjp. Throws a data Error that names file and tensor where one is missing or of another shape.
std::vector<TensorDifference> verify_model(const std::filesystem::path& folder, const std::filesystem::path& file);

// Differences up to here are rounding: convolutions of single precision in another order.
inline constexpr double model_tolerance = 2e-5;

}  // namespace implicit_diffusion
