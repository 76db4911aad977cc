// What networks are made of: layers that know the places of their weights in a layout, and are pure functions of them.
//
// A layer is made from the layout and its own name, as diffusers and PyTorch name it: Linear(places, "time.linear_1")
// has time.linear_1.weight and time.linear_1.bias. Images are (n, channels, height, width).
#pragma once

#include "implicit_diffusion/layout.hpp"

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

namespace implicit_diffusion::layers {

using Weights = std::span<const at::Tensor>;

// Where the tensors of a layout are, by name.
class Places {
 public:
  explicit Places(const Layout& layout) {
    for (std::size_t i = 0; i < layout.size(); ++i) places_[layout[i].name] = i;
  }
  bool has(const std::string& name) const { return places_.contains(name); }
  std::size_t operator[](const std::string& name) const { return places_.at(name); }

 private:
  std::unordered_map<std::string, std::size_t> places_;
};

// A weight and the bias beside it.
struct Pair {
  std::size_t weight, bias;

  Pair(const Places& places, const std::string& name)
      : weight(places[name + ".weight"]), bias(places[name + ".bias"]) {}
};

struct Linear : Pair {
  using Pair::Pair;

  at::Tensor operator()(Weights w, const at::Tensor& x) const { return at::linear(x, w[weight], w[bias]); }
  // On the channels of images.
  at::Tensor on_channels(Weights w, const at::Tensor& x) const {
    return at::conv2d(x, w[weight].unsqueeze(-1).unsqueeze(-1), w[bias]);
  }
};

struct Convolution : Pair {
  std::int64_t stride, padding;

  Convolution(const Places& places, const std::string& name, std::int64_t s = 1, std::int64_t p = 1)
      : Pair(places, name), stride(s), padding(p) {}

  at::Tensor operator()(Weights w, const at::Tensor& x) const {
    return at::conv2d(x, w[weight], w[bias], stride, padding);
  }
};

struct GroupNorm : Pair {
  std::int64_t groups;
  double epsilon;

  GroupNorm(const Places& places, const std::string& name, std::int64_t g, double e)
      : Pair(places, name), groups(g), epsilon(e) {}

  at::Tensor operator()(Weights w, const at::Tensor& x) const {
    return at::group_norm(x, groups, w[weight], w[bias], epsilon, /*cudnn_enabled=*/false);
  }
};

// The frequencies exp(-ln 10000 k / (half - shift)), k < half, of a time embedding, in single precision.
inline at::Tensor embedding_frequencies(std::int64_t half, std::int64_t shift) {
  return at::exp(at::arange(half, at::kFloat) * -9.210340371976184 / static_cast<double>(half - shift));
}

// [sin a, cos a] of a = t frequencies, or [cos a, sin a]; with a zero more where the features are odd in number. In
// single precision as in diffusers, then in the type of the network.
inline at::Tensor embed_time(const at::Tensor& t, const at::Tensor& frequencies, std::int64_t features,
                             bool cosine_first, at::ScalarType type) {
  const at::Tensor a = t.to(at::kFloat).unsqueeze(1) * frequencies;
  at::Tensor e = cosine_first ? at::cat({a.cos(), a.sin()}, 1) : at::cat({a.sin(), a.cos()}, 1);
  if (e.size(1) < features) e = at::constant_pad_nd(e, {0, features - e.size(1)});
  return e.to(type);
}

}  // namespace implicit_diffusion::layers
