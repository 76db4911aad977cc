// Backpropagation through a whole chain of a network: the definition of a batch's objective, one step after the other,
// and autograd of it. The adjoint must equal it. All samples are evaluated together, and the graph of every step stays
// in memory until the end.
#pragma once

#include "implicit_diffusion/denoising/objective.hpp"
#include "implicit_diffusion/torch/steps.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace implicit_diffusion::problems {

// R(x) = -|x - 1|^2 / 2.
inline at::Tensor near_one(const at::Tensor& x) { return -(x - 1).reshape({x.size(0), -1}).square().sum(1) / 2; }

struct WholeGraph {
  Network network;
  Prediction prediction;
  Dynamics dynamics;
  TimeGrid grid;
  Noise noise;
  DenoisingObjective objective;
  std::optional<TensorParameters> frozen = {};
  std::function<at::Tensor(const at::Tensor& x)> reward = near_one;
  std::function<double(double tau)> time = {};  // what the network is told; none: tau
  LastStep last_step = LastStep::noise;
  std::optional<NetworkMeaning> frozen_means = {};  // none: what the other does

  struct Result {
    at::Tensor gradient, end;
    double objective, path_kl;
  };

  at::Tensor score(const NetworkMeaning& means, const std::vector<at::Tensor>& w, const at::Tensor& y, double tau,
                   const at::Tensor& labels) const {
    const double told = means.time ? means.time(tau) : tau;
    const at::Tensor out = network.forward(w, {y, at::full({y.size(0)}, told, y.options()), labels});
    const double a = std::exp(-tau), s = std::sqrt(1 - a * a);
    if (means.prediction == Prediction::epsilon) return -out / s;
    if (means.prediction == Prediction::v) return -(s * y + a * out) / s;
    return out;
  }

  Result operator()(const TensorParameters& theta, const TensorSamples& start, std::int64_t birth) const {
    const at::AutoGradMode graph(true);
    const NetworkMeaning means{prediction, time}, means_0 = frozen_means.value_or(means);
    NetworkWeights model, base;
    model.set(network.layout, theta);
    if (frozen) base.set(network.layout, *frozen);
    at::Tensor y = start.x().clone(), u = at::zeros({y.size(0)}, y.options());
    for (std::size_t m = 0; m < grid.steps(); ++m) {
      StepCoefficients c = step_coefficients(dynamics, grid.tau[m], grid.step(m));
      if (last_step == LastStep::mean && m + 1 == grid.steps()) c.noise = 0;
      const at::Tensor s = score(means, model.leaves(), y, grid.tau[m], start.labels());
      if (frozen)
        u = u + c.penalty * (s - score(means_0, base.constants(), y, grid.tau[m], start.labels()))
                                .reshape({y.size(0), -1})
                                .square()
                                .sum(1);
      y = c.growth * y + c.pull * s;
      if (c.noise > 0) y = y + c.noise * normals(start, {.round = birth, .index = static_cast<std::int64_t>(m)});
    }
    const at::Tensor loss = (-objective.lambda * reward(y) + objective.beta * u).mean();
    std::vector<at::Tensor> parts =
        ::torch::autograd::grad({loss}, model.leaves(), {}, c10::nullopt, false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i] = (parts[i].defined() ? parts[i] : at::zeros_like(model.constants()[i])).flatten();
    return {at::cat(parts), y.detach(), loss.item<double>(), u.mean().item<double>()};
  }

 private:
  // One number after the other from the noise's own definition.
  at::Tensor normals(const TensorSamples& like, StepKey key) const {
    const at::Tensor z = at::empty(like.x().sizes(), at::kFloat);
    const std::size_t d = like.dimension();
    for (std::size_t i = 0; i < like.size(); ++i)
      for (std::size_t j = 0; j < d; ++j) z.data_ptr<float>()[i * d + j] = noise.normal(Stream::sampling, key, d, i, j);
    return z.to(like.x().scalar_type());
  }
};

}  // namespace implicit_diffusion::problems
