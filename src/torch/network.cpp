#include "implicit_diffusion/torch/network.hpp"

#include "autograd.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/torch/tiles.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace implicit_diffusion {

std::vector<at::Tensor> weights_of(const Layout& layout, const TensorParameters& theta) {
  const std::int64_t size = elements_of(layout);
  if (static_cast<std::int64_t>(theta.size()) != size)
    throw Error(ErrorKind::usage, "theta",
                "it has " + std::to_string(theta.size()) + " numbers, the network " + std::to_string(size));
  std::vector<at::Tensor> weights;
  weights.reserve(layout.size());
  std::int64_t first = 0;
  for (const TensorShape& tensor : layout) {
    const std::int64_t count = elements_of(tensor.shape);
    weights.push_back(theta.read().narrow(0, first, count).view(tensor.shape));
    first += count;
  }
  return weights;
}

bool NetworkWeights::set(const Layout& layout, const TensorParameters& theta) {
  if (constants_.size() == layout.size() && theta_.same(theta)) return false;
  constants_ = weights_of(layout, theta);
  theta_ = theta;
  leaves_.clear();
  for (const at::Tensor& w : constants_) leaves_.push_back(w.detach().requires_grad_());
  return true;
}

namespace {

// What comes before a known ending of a name, or nothing.
std::string_view stem_of(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return {};
  name.remove_suffix(ending.size());
  return name;
}

const TensorShape* weight_beside(const Layout& layout, std::string_view stem) {
  const auto found = std::find_if(layout.begin(), layout.end(),
                                  [&](const TensorShape& t) { return stem_of(t.name, "weight") == stem; });
  return found == layout.end() ? nullptr : &*found;
}

}  // namespace

TensorParameters initial_parameters(const Layout& layout, const Noise& noise, at::ScalarType type) {
  TensorParameters theta(elements_of(layout), type);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto& [name, shape] = layout[i];
    const std::int64_t count = elements_of(shape);
    const at::Tensor part = theta.edit().narrow(0, first, count);
    first += count;
    const bool is_weight = name.ends_with("weight");
    const TensorShape* weight = is_weight ? &layout[i] : nullptr;
    if (name.ends_with("bias")) weight = weight_beside(layout, stem_of(name, "bias"));
    if (!weight) continue;
    if (weight->shape.size() < 2) {
      if (is_weight) part.fill_(1);
      continue;
    }
    const double width =
        1 / std::sqrt(static_cast<double>(elements_of(weight->shape)) / static_cast<double>(weight->shape[0]));
    const at::Tensor numbers = at::empty({count}, at::kDouble);
    for (std::int64_t j = 0; j < count; ++j)
      numbers.data_ptr<double>()[j] =
          width * (2 * noise.uniform(Stream::initial, {.round = static_cast<std::int64_t>(i)}, 1,
                                     static_cast<std::size_t>(j), 0) -
                   1);
    part.copy_(numbers);
  }
  return theta;
}

at::Tensor evaluate(const Network& network, std::span<const at::Tensor> weights, const NetworkInput& in) {
  detail::use_one_thread();
  return detail::unless_refused("network", [&] { return network.forward(weights, in); });
}

}  // namespace implicit_diffusion
