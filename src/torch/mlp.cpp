#include "implicit_diffusion/torch/mlp.hpp"

#include "implicit_diffusion/error.hpp"
#include "layers.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

namespace implicit_diffusion {
namespace {

using at::Tensor;
using namespace layers;

void require_size(const char* field, std::int64_t value, std::int64_t least = 1) {
  if (value < least)
    throw Error(ErrorKind::usage, fmt::format("network.{}", field), fmt::format("{} is less than {}", value, least));
}

void require_valid(const MlpConfig& c) {
  require_size("inputs", c.inputs);
  require_size("outputs", c.outputs);
  if (c.widths.empty()) throw Error(ErrorKind::usage, "network.widths", "is empty");
  for (const std::int64_t width : c.widths) require_size("widths", width);
  require_size("time_features", c.time_features, 0);
  if (c.time_features % 2 != 0)
    throw Error(ErrorKind::usage, "network.time_features", fmt::format("{} is odd", c.time_features));
  require_size("classes", c.classes, 0);
}

Layout layout_of(const MlpConfig& c) {
  Layout layout;
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    layout.push_back({name + ".weight", {out, in}});
    layout.push_back({name + ".bias", {out}});
  };
  const std::int64_t first = c.widths.front();
  linear("input", c.inputs, first);
  if (c.time_features > 0) {
    linear("time_embedding.linear_1", c.time_features, first);
    linear("time_embedding.linear_2", first, first);
  }
  if (c.classes > 0) layout.push_back({"class_embedding.weight", {c.classes, first}});
  for (std::size_t i = 1; i < c.widths.size(); ++i) linear(fmt::format("hidden.{}", i), c.widths[i - 1], c.widths[i]);
  linear("output", c.widths.back(), c.outputs);
  return layout;
}

class Mlp {
 public:
  Mlp(const MlpConfig& c, const Places& places)
      : input_(places, "input"), output_(places, "output"), features_(c.time_features) {
    if (c.time_features > 0) {
      time1_.emplace(places, "time_embedding.linear_1");
      time2_.emplace(places, "time_embedding.linear_2");
      frequencies_ = embedding_frequencies(c.time_features / 2, 0);
    }
    if (c.classes > 0) classes_ = places["class_embedding.weight"];
    for (std::size_t i = 1; i < c.widths.size(); ++i) hidden_.emplace_back(places, fmt::format("hidden.{}", i));
  }

  Tensor operator()(Weights w, const NetworkInput& in) const {
    Tensor h = input_(w, in.x);
    if (time1_) {
      const Tensor e = embed_time(in.t, frequencies_, features_, true, in.x.scalar_type());
      h = h + (*time2_)(w, at::silu((*time1_)(w, e)));
    }
    if (classes_) h = h + at::embedding(w[*classes_], in.labels);
    for (const Linear& layer : hidden_) h = layer(w, at::silu(h));
    return output_(w, at::silu(h));
  }

 private:
  Linear input_, output_;
  std::vector<Linear> hidden_;
  std::optional<Linear> time1_, time2_;
  std::optional<std::size_t> classes_;
  std::int64_t features_;
  Tensor frequencies_;
};

}  // namespace

Network make_mlp(const MlpConfig& config) {
  require_valid(config);
  Layout layout = layout_of(config);
  const auto net = std::make_shared<const Mlp>(config, Places(layout));
  return {.layout = std::move(layout), .sample = {config.inputs}, .forward = [net](Weights w, const NetworkInput& in) {
            return (*net)(w, in);
          }};
}

Network make_mlp_energy(const MlpEnergyConfig& config) {
  require_positive("network.confinement", config.confinement);
  Network network =
      make_mlp({.inputs = config.inputs, .outputs = 1, .widths = config.widths, .time_features = 0, .classes = 0});
  network.forward = [f = std::move(network.forward), c = config.confinement](Weights w, const NetworkInput& in) {
    return (c / 2) * in.x.square().sum(1) + f(w, in).squeeze(1);
  };
  return network;
}

}  // namespace implicit_diffusion
