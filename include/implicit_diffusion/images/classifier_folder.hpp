// Folders of classifiers, ours alone:
//
//     classifier.json             the sizes of the network, the names of the classes, how many test images are right
//     classifier.safetensors      its weights
#pragma once

#include "implicit_diffusion/torch/classifier.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace implicit_diffusion {

struct ClassifierModel {
  ClassifierConfig config;
  std::vector<std::string> class_names;
  std::optional<double> accuracy;  // on test images
  TensorParameters theta;
};

// Writes both files, each whole or not at all. Throws a data Error where theta is not finite.
void save_classifier(const std::filesystem::path& folder, const ClassifierModel& model);
// Throws missing or data Errors that name the file.
ClassifierModel load_classifier(const std::filesystem::path& folder);

}  // namespace implicit_diffusion
