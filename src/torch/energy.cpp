#include "implicit_diffusion/torch/energy.hpp"

#include "autograd.hpp"
#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <utility>

namespace implicit_diffusion {

NetworkEnergy::NetworkEnergy(Network network, std::size_t shard, at::ScalarType type)
    : network_(std::move(network)), shard_(shard), type_(type), parameters_(elements_of(network_.layout)) {
  if (shard == 0) throw Error(ErrorKind::usage, "shard", "it must have a sample at least");
}

at::Tensor NetworkEnergy::values(const at::Tensor& x, const at::Tensor& labels, bool leaves) const {
  const at::Tensor v = evaluate(network_, leaves ? weights_.leaves() : weights_.constants(), {x, {}, labels});
  if (!v.defined() || v.numel() != x.size(0))
    throw Error(ErrorKind::usage, "network", "an energy is one number for each sample");
  return v.reshape({-1});
}

at::Tensor NetworkEnergy::weights_as_tensor(const double* w, const Tile& x) const {
  const at::Tensor all = at::zeros({static_cast<std::int64_t>(x.shard)}, at::kDouble);
  std::copy_n(w, x.size(), all.data_ptr<double>());
  return all.to(x.x.scalar_type());
}

void NetworkEnergy::move(const Tile& x, const at::Tensor& slope, const LangevinStep& step, bool& nonfinite) const {
  if (slope.defined()) x.x.sub_(slope.narrow(0, 0, x.size()), step.size);
  x.x.add_(detail::normals(step.noise, Stream::sampling, step.key, x), std::sqrt(2 * step.size));
  if (!at::isfinite(x.x).all().item<bool>()) nonfinite = true;
}

void NetworkEnergy::add_values(const Tile& x, double c, double* f) const {
  const at::NoGradGuard no_graph;
  const at::Tensor v = values(detail::fill_up(x.x, x.shard), detail::fill_up(x.labels, x.shard), false);
  detail::add_numbers(v, x.size(), c, f);
}

void NetworkEnergy::add(const Tile& x, const double* w, Sum& sum) const {
  const at::AutoGradMode graph(true);
  const at::Tensor v = values(detail::fill_up(x.x, x.shard).variable_data(), detail::fill_up(x.labels, x.shard), true);
  const at::NoGradGuard no_graph;
  detail::add_gradients(detail::pull_back(v, weights_.leaves(), weights_as_tensor(w, x)), weights_.leaves(), sum);
}

void NetworkEnergy::step(const Tile& x, const LangevinStep& step, bool& nonfinite) const {
  const at::AutoGradMode graph(true);
  const at::Tensor y = detail::leaf_of(detail::fill_up(x.x, x.shard));
  const at::Tensor v = values(y, detail::fill_up(x.labels, x.shard), false);
  const at::NoGradGuard no_graph;
  move(x, detail::pull_back(v, {y}, at::ones_like(v))[0], step, nonfinite);
}

void NetworkEnergy::step_and_add(const Tile& x, const LangevinStep& step, bool& nonfinite, const double* w,
                                 Sum& sum) const {
  const at::AutoGradMode graph(true);
  const at::Tensor y = detail::leaf_of(detail::fill_up(x.x, x.shard));
  const at::Tensor v = values(y, detail::fill_up(x.labels, x.shard), true);
  const at::NoGradGuard no_graph;
  const at::Tensor slope = detail::pull_back(v, {y}, at::ones_like(v), true)[0];
  detail::add_gradients(detail::pull_back(v, weights_.leaves(), weights_as_tensor(w, x)), weights_.leaves(), sum);
  move(x, slope, step, nonfinite);
}

void NetworkEnergy::add_mixed_derivative(const Tile& x, const Tile& u, Sum& sum) const {
  const at::AutoGradMode graph(true);
  const at::Tensor y = detail::leaf_of(detail::fill_up(x.x, x.shard));
  const at::Tensor v = values(y, detail::fill_up(x.labels, x.shard), true);
  const at::Tensor slope =
      torch::autograd::grad({v}, {y}, {at::ones_like(v)}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  const at::NoGradGuard no_graph;
  detail::add_gradients(detail::pull_back(slope, weights_.leaves(), detail::fill_up_with_zeros(u.x, x.shard)),
                        weights_.leaves(), sum);
}

}  // namespace implicit_diffusion
