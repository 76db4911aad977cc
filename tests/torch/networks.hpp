// Networks small enough to differentiate in every way: the toy score of problems/toy_score.hpp, a convolution that
// knows time and label, an energy; and backpropagation through a whole chain, which the adjoint must equal.
#pragma once

#include "implicit_diffusion/torch/energy.hpp"
#include "implicit_diffusion/torch/steps.hpp"
#include "problems/whole_graph.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion::torch_tests {

using Weights = std::span<const at::Tensor>;

// s(y, tau) = -y + e^-tau b + W tanh(y), theta = (b, W).
inline Network toy_score() {
  return {.layout = {{"b", {2}}, {"w", {2, 2}}}, .sample = {2}, .forward = [](Weights w, const NetworkInput& in) {
            return at::exp(-in.t).unsqueeze(1) * w[0] - in.x + at::linear(at::tanh(in.x), w[1]);
          }};
}

// Images of 6 x 6. The last weight is for labels, and unused where there are none.
inline Network small_images(std::int64_t width = 4) {
  return {.layout = {{"in.weight", {width, 1, 3, 3}},
                     {"in.bias", {width}},
                     {"time.weight", {width, 2}},
                     {"norm.weight", {width}},
                     {"norm.bias", {width}},
                     {"out.weight", {1, width, 3, 3}},
                     {"out.bias", {1}},
                     {"label.weight", {3, width}}},
          .sample = {1, 6, 6},
          .forward = [](Weights w, const NetworkInput& in) {
            const at::Tensor t = at::stack({at::cos(in.t), at::sin(3 * in.t)}, 1);
            at::Tensor h = at::conv2d(in.x, w[0], w[1], 1, 1) + at::linear(t, w[2]).unsqueeze(-1).unsqueeze(-1);
            if (in.labels.defined()) h = h + at::embedding(w[7], in.labels).unsqueeze(-1).unsqueeze(-1);
            h = at::silu(at::group_norm(h, 2, w[3], w[4], 1e-5, false));
            return at::conv2d(h, w[5], w[6], 1, 1);
          }};
}

// V(x) = |x - theta|^2 / 2 in d dimensions.
inline Network quadratic_energy(std::int64_t d) {
  return {.layout = {{"mean", {d}}}, .sample = {d}, .forward = [](Weights w, const NetworkInput& in) {
            return (in.x - w[0]).square().sum(1) / 2;
          }};
}

// A bowl and a layer of 8 tanh units.
inline Network small_energy() {
  return {.layout = {{"in.weight", {8, 2}}, {"in.bias", {8}}, {"out.weight", {1, 8}}},
          .sample = {2},
          .forward = [](Weights w, const NetworkInput& in) {
            return at::linear(at::tanh(at::linear(in.x, w[0], w[1])), w[2]) + in.x.square().sum(1, true) / 2;
          }};
}

using problems::near_one;
using problems::WholeGraph;

inline std::vector<double> host(const at::Tensor& t) {
  const at::Tensor flat = t.detach().to(at::kDouble).contiguous().flatten();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}
inline std::vector<double> host(const TensorParameters& theta) { return host(theta.read()); }

// |a - b| / |b|
inline double relative(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor c = b.detach().to(at::kDouble);
  return ((a.detach().to(at::kDouble) - c).norm() / c.norm()).item<double>();
}
inline double relative(const TensorParameters& a, const TensorParameters& b) { return relative(a.read(), b.read()); }

}  // namespace implicit_diffusion::torch_tests
