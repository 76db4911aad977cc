// What every network must do: tests share it.
#pragma once

#include "implicit_diffusion/torch/network.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "torch/made_up.hpp"

namespace implicit_diffusion {

inline std::vector<at::Tensor> leaves_of(const Network& network, const TensorParameters& theta) {
  std::vector<at::Tensor> leaves = weights_of(network.layout, theta);
  for (at::Tensor& w : leaves) w = w.detach().set_requires_grad(true);
  return leaves;
}

// f = <c, out> of a network in double precision changes along a direction (dx, dtheta) as its vector-Jacobian products
// say: (f(+h) - f(-h)) / 2h = <by_sample, dx> + <by_theta, dtheta> + O(h^2). With h = 1e-5 the remainder is about 1e-10
// f''' and the rounding 1e-16 f / h = 1e-11 f: 1e-6 of the size of the products is far above both, and far below any
// wrong term.
inline void expect_derivatives_by_differences(const Network& network, const TensorParameters& theta,
                                              const NetworkInput& in) {
  const std::vector<at::Tensor> leaves = leaves_of(network, theta);
  NetworkInput at = in;
  at.x = in.x.detach().clone().set_requires_grad(true);
  const at::Tensor out = evaluate(network, leaves, at);
  const at::Tensor c = made_up("cotangent", out.sizes().vec());
  std::vector<at::Tensor> variables = leaves;
  variables.push_back(at.x);
  const std::vector<at::Tensor> products = torch::autograd::grad({out}, variables, {c}, false, false, true);

  std::vector<at::Tensor> directions;
  double expected = 0, size = 1;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    directions.push_back(made_up("direction" + std::to_string(i), variables[i].sizes().vec()));
    // A weight without a gradient is a constant: it stays.
    if (!products[i].defined()) directions.back().zero_();
    const at::Tensor terms = products[i].defined() ? products[i] * directions.back() : at::zeros({1}, at::kDouble);
    expected += terms.sum().item<double>();
    size = std::max(size, terms.abs().max().item<double>());
  }
  const auto f = [&](double h) {
    at::NoGradGuard none;
    std::vector<at::Tensor> moved;
    for (std::size_t i = 0; i < variables.size(); ++i) moved.push_back(variables[i].detach() + h * directions[i]);
    NetworkInput there = in;
    there.x = moved.back();
    moved.pop_back();
    return (c * evaluate(network, moved, there)).sum().item<double>();
  };
  constexpr double h = 1e-5;
  EXPECT_NEAR((f(h) - f(-h)) / (2 * h), expected, 1e-6 * size);
  EXPECT_GT(std::abs(expected), 1e-4 * size) << "nothing to see in this direction";
}

// What happens to a sample does not depend on its neighbours: another first sample leaves the bits of the others.
inline void expect_samples_to_be_alone(const Network& network, const TensorParameters& theta, const NetworkInput& in) {
  at::NoGradGuard none;
  const std::vector<at::Tensor> weights = weights_of(network.layout, theta);
  const at::Tensor out = evaluate(network, weights, in);
  NetworkInput other = in;
  other.x = in.x.clone();
  other.x[0] = 3 - other.x[0];
  const at::Tensor changed = evaluate(network, weights, other);
  EXPECT_TRUE(at::equal(out.narrow(0, 1, out.size(0) - 1), changed.narrow(0, 1, out.size(0) - 1)));
  EXPECT_FALSE(at::equal(out[0], changed[0]));
}

}  // namespace implicit_diffusion
