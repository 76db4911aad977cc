// LibTorch's autograd as the engines use it: vector-Jacobian products, gradients into theta, and what LibTorch refuses
// as an Error of ours.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/torch/parameters.hpp"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <span>
#include <string>
#include <vector>

namespace implicit_diffusion::detail {

// f(), or a usage Error with the first line of what LibTorch says.
template <class F>
auto unless_refused(const char* where, F&& f) {
  try {
    return f();
  } catch (const c10::Error& e) {
    const std::string what = e.what_without_backtrace();
    throw Error(ErrorKind::usage, where, what.substr(0, what.find('\n')));
  }
}

// The same numbers as the start of a graph. Tiles of a batch share a counter of changes, by which autograd would take
// one thread's step for a change of another's samples: a leaf has its own.
at::Tensor leaf_of(const at::Tensor& x);

// out_x' c for each x; undefined where out does not depend on it. `keep`: the graph, for another product.
std::vector<at::Tensor> pull_back(const at::Tensor& out, const std::vector<at::Tensor>& x, const at::Tensor& c,
                                  bool keep = false);

// Adds the gradients by all weights of a layout to theta, each to its place. An undefined one is zero.
void add_gradients(std::span<const at::Tensor> gradients, std::span<const at::Tensor> weights, TensorParameters& sum);

}  // namespace implicit_diffusion::detail
