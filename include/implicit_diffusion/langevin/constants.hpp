// Constants of a kernel in the precision of its number type: prepared once in double, read as float or double without a
// conversion in the loop.
#pragma once

#include "implicit_diffusion/simd/number.hpp"

#include <span>
#include <type_traits>
#include <vector>

namespace implicit_diffusion {

class Constants {
 public:
  Constants() = default;
  Constants(const std::vector<double>& values) { assign(values); }  // implicit: a list of numbers is what it holds

  void assign(std::span<const double> values) {
    fill(values.size(), [&](std::size_t i) { return values[i]; });
  }
  // f(0), ..., f(n - 1). Allocates on the first call only.
  template <class F>
  void fill(std::size_t n, F&& f) {
    resize(n);
    for (std::size_t i = 0; i < n; ++i) set(i, f(i));
  }
  void resize(std::size_t n) {
    double_.resize(n);
    float_.resize(n);
  }
  void set(std::size_t i, double value) {
    double_[i] = value;
    float_[i] = static_cast<float>(value);
  }

  // The numbers for kernels over Real.
  template <class Real>
  [[gnu::always_inline]] const Scalar<Real>* of() const {
    if constexpr (std::is_same_v<Scalar<Real>, float>)
      return float_.data();
    else
      return double_.data();
  }
  const std::vector<double>& exact() const { return double_; }
  std::size_t size() const { return double_.size(); }

 private:
  std::vector<float> float_;
  std::vector<double> double_;
};

}  // namespace implicit_diffusion
