// A small convolutional classifier of images, a judge of samples: is it recognised, and how far are the features of two
// sets of images apart.
//
//     3 x 3 convolutions C -> 16, 16 -> 32, 32 -> 32, the first and the last of stride 2, with ReLU;
//     64 features, linear with ReLU; a score for each class, linear
#pragma once

#include "implicit_diffusion/torch/network.hpp"

#include <cstdint>

namespace implicit_diffusion {

struct ClassifierConfig {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
  std::int64_t features = 64;
};

// Two functions of the same weights: the scores, (n, classes), whose softmax is the probability of each class, and the
// features that they are made of, (n, features). Throw a usage Error that names the field unless sizes are positive.
// initial_parameters makes weights to begin with.
Network make_classifier(const ClassifierConfig& config = {});
Network make_classifier_features(const ClassifierConfig& config = {});

}  // namespace implicit_diffusion
