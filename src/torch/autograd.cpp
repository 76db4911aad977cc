#include "autograd.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace implicit_diffusion::detail {

at::Tensor leaf_of(const at::Tensor& x) { return x.variable_data().requires_grad_(); }

std::vector<at::Tensor> pull_back(const at::Tensor& out, const std::vector<at::Tensor>& x, const at::Tensor& c,
                                  bool keep) {
  if (!out.requires_grad() || x.empty()) return std::vector<at::Tensor>(x.size());
  return unless_refused("network", [&] {
    return torch::autograd::grad({out}, x, {c}, /*retain_graph=*/keep, /*create_graph=*/false, /*allow_unused=*/true);
  });
}

void add_gradients(std::span<const at::Tensor> gradients, std::span<const at::Tensor> weights, TensorParameters& sum) {
  const at::Tensor& flat = sum.edit();
  std::int64_t first = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int64_t count = weights[i].numel();
    if (gradients[i].defined()) flat.narrow(0, first, count).add_(gradients[i].reshape({count}));
    first += count;
  }
}

}  // namespace implicit_diffusion::detail
