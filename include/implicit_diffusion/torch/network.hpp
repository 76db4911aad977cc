// A network: a layout of weights, and a pure function of weights, samples, times and labels.
//
//     const Network net{.layout = {{"weight", {2, 2}}, {"bias", {2}}},
//                       .sample = {2},
//                       .forward = [](std::span<const at::Tensor> w, const NetworkInput& in) {
//                         return at::linear(in.x, w[0], w[1]);
//                       }};
//
// That is all there is to one of your own: theta (torch/parameters.hpp) holds the weights, and the engines
// (torch/steps.hpp, torch/energy.hpp) differentiate the function by LibTorch's autograd. It must
//
//     be pure: no state, no randomness, so no dropout; it is called from several threads at once;
//     treat samples alike: row i of the result depends on row i of the input alone, so no batch normalisation;
//     take single and double precision, whichever the weights have: make tensors with in.x.options().
//
// It returns what it is used for: a prediction of the shape of x, a number for each sample (an energy, a reward), or a
// row of scores for each (a classifier).
#pragma once

#include "implicit_diffusion/layout.hpp"
#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/torch/parameters.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace implicit_diffusion {

struct NetworkInput {
  at::Tensor x;       // (n, sample shape...)
  at::Tensor t;       // (n), of the type of x; undefined where a network has no time
  at::Tensor labels;  // (n), 64-bit integers; undefined where samples have none
};

struct Network {
  Layout layout;
  std::vector<std::int64_t> sample;  // the shape of one sample, such as {1, 28, 28}
  // Weights in the order of the layout, each of its shape.
  std::function<at::Tensor(std::span<const at::Tensor> weights, const NetworkInput& in)> forward;
};

// The tensors of a layout inside theta: views, in its order. Throws a usage Error where theta has another size.
std::vector<at::Tensor> weights_of(const Layout& layout, const TensorParameters& theta);

// The weights of a network at some theta, ready to be used: a value.
class NetworkWeights {
 public:
  // Puts them at theta; false where they were there. Throws a usage Error where theta has another size.
  bool set(const Layout& layout, const TensorParameters& theta);

  const std::vector<at::Tensor>& constants() const { return constants_; }  // for what is not differentiated by them
  const std::vector<at::Tensor>& leaves() const { return leaves_; }        // the same, for autograd

 private:
  TensorParameters theta_;  // a copy, so that nobody changes it
  std::vector<at::Tensor> constants_, leaves_;
};

// Weights to begin training with, as PyTorch's layers have them. With n the inputs of a unit (the elements of a weight
// over its first dimension):
//
//     NAME.weight of two or more dimensions, and NAME.bias beside it      uniform in +-1 / sqrt(n)
//     NAME.weight of one dimension, and NAME.bias beside it               1 and 0: a normalisation
//     anything else                                                       0
//
// By key: (Stream::initial, round = index of the tensor), so a tensor does not depend on those before it.
TensorParameters initial_parameters(const Layout& layout, const Noise& noise,
                                    at::ScalarType type = at::ScalarType::Float);

// The function on the samples of `in`, at these weights, on one thread. Throws a usage Error that names the network
// where LibTorch refuses it.
at::Tensor evaluate(const Network& network, std::span<const at::Tensor> weights, const NetworkInput& in);

}  // namespace implicit_diffusion
