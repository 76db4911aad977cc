// theta of networks: one flat tensor, as a value.
//
// Copies are deep to those who use them: a copy never changes with the original. They share their memory until one of
// them is changed, so that a copy which is only read costs nothing, and a loop's step makes one copy of theta, when
// the optimizer changes it. Elements are float or double, in host memory.
//
// All optimizers work on it through for_each_element (implicit_diffusion/parameters.hpp).
#pragma once

#include "implicit_diffusion/io/pieces.hpp"
#include "implicit_diffusion/parameters.hpp"

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

namespace implicit_diffusion {

class TensorParameters {
 public:
  // None.
  TensorParameters() = default;
  // So many zeros.
  TensorParameters(std::int64_t size, at::ScalarType type);
  // A copy of all elements of a tensor of any shape. Throws a usage Error unless they are float or double.
  explicit TensorParameters(const at::Tensor& elements);

  std::size_t size() const { return flat_ ? static_cast<std::size_t>(flat_->numel()) : 0; }
  at::ScalarType type() const { return flat_ ? flat_->scalar_type() : at::ScalarType::Float; }

  // One dimension, contiguous. Only edit() is for writing: it makes the memory this value's own.
  const at::Tensor& read() const;
  const at::Tensor& edit();

  // Whether they are copies that share their memory, hence equal.
  bool same(const TensorParameters& other) const { return flat_ == other.flat_; }
  friend bool operator==(const TensorParameters& a, const TensorParameters& b);

 private:
  std::shared_ptr<at::Tensor> flat_;
};

TensorParameters zeros_like(const TensorParameters& v);
std::optional<std::size_t> first_nonfinite(const TensorParameters& v);

std::size_t size_in_bytes(const TensorParameters& v);
void give_pieces(const TensorParameters& v, const PieceSink& sink);
void take_pieces(TensorParameters& v, const PieceSource& source);

namespace detail {

template <class Real>
Real* elements(TensorParameters& v) {
  return v.size() == 0 ? nullptr : v.edit().data_ptr<Real>();
}
template <class Real>
const Real* elements(const TensorParameters& v) {
  return v.size() == 0 ? nullptr : v.read().data_ptr<Real>();
}
// Throws a usage Error where two parameters that are worked on together are not of one size and type.
void require_alike(const TensorParameters& a, const TensorParameters& b);

}  // namespace detail

// All of the same size and type.
template <class F, class First, class... More>
requires std::same_as<std::remove_cvref_t<First>, TensorParameters>
void for_each_element(F&& f, First&& v, More&&... more) {
  (detail::require_alike(v, more), ...);
  // Pieces of a constant size, and the promise that elements do not overlap: so that compilers take several at once.
  constexpr std::size_t piece = 64;
  const auto over = [&f, size = v.size()](auto*... all) {
    std::size_t j = 0;
    for (; j + piece <= size; j += piece) {
#pragma GCC ivdep
      for (std::size_t i = j; i < j + piece; ++i) f(all[i]...);
    }
    for (; j < size; ++j) f(all[j]...);
  };
  if (v.type() == at::ScalarType::Float)
    over(detail::elements<float>(v), detail::elements<float>(more)...);
  else
    over(detail::elements<double>(v), detail::elements<double>(more)...);
}

}  // namespace implicit_diffusion
