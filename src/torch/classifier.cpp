#include "implicit_diffusion/torch/classifier.hpp"

#include "implicit_diffusion/error.hpp"
#include "layers.hpp"

#include <fmt/format.h>

#include <memory>

namespace implicit_diffusion {
namespace {

using at::Tensor;
using namespace layers;

// Of a side after a 3 x 3 convolution of stride 2 and padding 1.
std::int64_t halved(std::int64_t side) { return (side + 1) / 2; }

Layout layout_of(const ClassifierConfig& c) {
  const auto require_size = [](const char* field, std::int64_t value) {
    if (value < 1)
      throw Error(ErrorKind::usage, fmt::format("classifier.{}", field), fmt::format("{} is less than 1", value));
  };
  require_size("channels", c.channels);
  require_size("height", c.height);
  require_size("width", c.width);
  require_size("classes", c.classes);
  require_size("features", c.features);
  const std::int64_t pixels = halved(halved(c.height)) * halved(halved(c.width));
  return {{"conv_1.weight", {16, c.channels, 3, 3}},
          {"conv_1.bias", {16}},
          {"conv_2.weight", {32, 16, 3, 3}},
          {"conv_2.bias", {32}},
          {"conv_3.weight", {32, 32, 3, 3}},
          {"conv_3.bias", {32}},
          {"features.weight", {c.features, 32 * pixels}},
          {"features.bias", {c.features}},
          {"scores.weight", {c.classes, c.features}},
          {"scores.bias", {c.classes}}};
}

struct Classifier {
  Convolution conv1, conv2, conv3;
  Linear features, scores;

  explicit Classifier(const Places& places)
      : conv1(places, "conv_1", 2),
        conv2(places, "conv_2"),
        conv3(places, "conv_3", 2),
        features(places, "features"),
        scores(places, "scores") {}

  Tensor features_of(Weights w, const Tensor& x) const {
    const Tensor h = at::relu(conv3(w, at::relu(conv2(w, at::relu(conv1(w, x))))));
    return at::relu(features(w, h.flatten(1)));
  }
};

Network make(const ClassifierConfig& config, bool scores) {
  Layout layout = layout_of(config);
  const auto net = std::make_shared<const Classifier>(Places(layout));
  return {.layout = std::move(layout),
          .sample = {config.channels, config.height, config.width},
          .forward = [net, scores](Weights w, const NetworkInput& in) {
            const Tensor features = net->features_of(w, in.x);
            return scores ? net->scores(w, features) : features;
          }};
}

}  // namespace

Network make_classifier(const ClassifierConfig& config) { return make(config, true); }
Network make_classifier_features(const ClassifierConfig& config) { return make(config, false); }

}  // namespace implicit_diffusion
