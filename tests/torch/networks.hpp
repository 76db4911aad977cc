// Networks small enough to differentiate in every way: the toy score of problems/toy_score.hpp, a convolution that
// knows time and label, an energy; and backpropagation through a whole chain, which the adjoint must equal.
#pragma once

#include "implicit_diffusion/denoising/objective.hpp"
#include "implicit_diffusion/torch/energy.hpp"
#include "implicit_diffusion/torch/steps.hpp"

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

// R(x) = -|x - 1|^2 / 2.
inline at::Tensor near_one(const at::Tensor& x) { return -(x - 1).reshape({x.size(0), -1}).square().sum(1) / 2; }

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

// Backpropagation through a whole chain: the definition of a batch's objective, one number after the other from the
// noise's own definition, and autograd of it, with the reward near_one. All samples are evaluated together.
struct WholeGraph {
  Network network;
  Prediction prediction;
  Dynamics dynamics;
  TimeGrid grid;
  Noise noise;
  DenoisingObjective objective;
  std::optional<TensorParameters> frozen = {};
  std::optional<NetworkMeaning> frozen_means = {};  // none: what the other does

  struct Result {
    at::Tensor gradient, end;
    double objective, path_kl;
  };

  at::Tensor score(const NetworkMeaning& means, const std::vector<at::Tensor>& w, const at::Tensor& y, double tau,
                   const at::Tensor& labels) const {
    const double time = means.time ? means.time(tau) : tau;
    const at::Tensor out = network.forward(w, {y, at::full({y.size(0)}, time, y.options()), labels});
    const double a = std::exp(-tau), s = std::sqrt(1 - a * a);
    if (means.prediction == Prediction::epsilon) return -out / s;
    if (means.prediction == Prediction::v) return -(s * y + a * out) / s;
    return out;
  }

  Result operator()(const TensorParameters& theta, const TensorSamples& start, std::int64_t birth) const {
    const at::AutoGradMode graph(true);
    const auto weights = [&](const at::Tensor& flat) {
      std::vector<at::Tensor> w;
      std::int64_t first = 0;
      for (const TensorShape& t : network.layout) {
        w.push_back(flat.narrow(0, first, elements_of(t.shape)).view(t.shape));
        first += elements_of(t.shape);
      }
      return w;
    };
    const at::Tensor flat = theta.read().clone().requires_grad_();
    const std::vector<at::Tensor> w = weights(flat);
    const NetworkMeaning means{prediction}, means_0 = frozen_means.value_or(means);
    at::Tensor y = start.x().clone(), u = at::zeros({y.size(0)}, y.options());
    for (std::size_t m = 0; m < grid.steps(); ++m) {
      const StepCoefficients c = step_coefficients(dynamics, grid.tau[m], grid.step(m));
      const at::Tensor s = score(means, w, y, grid.tau[m], start.labels());
      if (frozen)
        u = u + c.penalty * (s - score(means_0, weights(frozen->read()), y, grid.tau[m], start.labels()))
                                .reshape({y.size(0), -1})
                                .square()
                                .sum(1);
      y = c.growth * y + c.pull * s;
      if (c.noise > 0) y = y + c.noise * normals(start, {.round = birth, .index = static_cast<std::int64_t>(m)});
    }
    const at::Tensor loss = (-objective.lambda * near_one(y) + objective.beta * u).mean();
    return {::torch::autograd::grad({loss}, {flat})[0], y.detach(), loss.item<double>(), u.mean().item<double>()};
  }

 private:
  at::Tensor normals(const TensorSamples& like, StepKey key) const {
    const at::Tensor z = at::empty(like.x().sizes(), at::kFloat);
    const std::size_t d = like.dimension();
    for (std::size_t i = 0; i < like.size(); ++i)
      for (std::size_t j = 0; j < d; ++j) z.data_ptr<float>()[i * d + j] = noise.normal(Stream::sampling, key, d, i, j);
    return z.to(like.x().scalar_type());
  }
};

}  // namespace implicit_diffusion::torch_tests
