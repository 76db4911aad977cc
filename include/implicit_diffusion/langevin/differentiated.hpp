// A potential given by its value alone: dual numbers do the derivatives.
//
//     struct Ring {
//       static constexpr std::size_t dimension = 2, parameters = 2;
//       template <class Real>
//       Real operator()(const Real* x, const Real* theta) const {
//         const Real u = x[0] * x[0] + x[1] * x[1] - theta[0];
//         return theta[1] * u * u / 4;
//       }
//     };
//     Langevin<float> sampler(Differentiated<Ring>{}, ...);
//
// The function is a template over the number type, made of arithmetic, select() and the functions of
// simd/elementary.hpp. One sweep of dual numbers with dimension + parameters directions gives all derivatives: nearly
// as fast as derivatives by hand where these are few.
#pragma once

#include "implicit_diffusion/langevin/constants.hpp"
#include "implicit_diffusion/simd/dual.hpp"

#include <cstddef>
#include <span>
#include <utility>

namespace implicit_diffusion {

template <class F>
class Differentiated {
 public:
  static constexpr bool any_number = true;
  static constexpr std::size_t fixed_dimension = F::dimension;

  explicit Differentiated(F f = {}) : f_(std::move(f)), theta_(std::vector<double>(F::parameters)) {}

  std::size_t dimension() const { return F::dimension; }
  std::size_t parameters() const { return F::parameters; }
  void prepare(std::span<const double> theta) { theta_.assign(theta); }

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    if (grad_x && grad_theta) return sweep<F::dimension, F::parameters>(x, grad_x, grad_theta);
    if (grad_x) return sweep<F::dimension, 0>(x, grad_x, grad_theta);
    if (grad_theta) return sweep<0, F::parameters>(x, grad_x, grad_theta);
    const auto* t = theta_.of<Real>();
    Real theta[F::parameters];
    for (std::size_t j = 0; j < F::parameters; ++j) theta[j] = Real(t[j]);
    return f_(x, static_cast<const Real*>(theta));
  }

 private:
  // Derivatives along the first D coordinates of x and P of theta, where D and P are all or none.
  template <std::size_t D, std::size_t P, class Real>
  [[gnu::always_inline]] Real sweep(const Real* x, Real* grad_x, Real* grad_theta) const {
    using Number = Dual<Real, D + P>;
    const auto* t = theta_.of<Real>();
    const Real one = Real(Scalar<Real>(1));
    Number point[F::dimension], theta[F::parameters];
#pragma GCC unroll 16
    for (std::size_t j = 0; j < F::dimension; ++j) point[j] = j < D ? Number(x[j], one, j) : Number(x[j]);
#pragma GCC unroll 16
    for (std::size_t j = 0; j < F::parameters; ++j)
      theta[j] = j < P ? Number(Real(t[j]), one, D + j) : Number(Real(t[j]));
    const Number v = f_(static_cast<const Number*>(point), static_cast<const Number*>(theta));
#pragma GCC unroll 16
    for (std::size_t j = 0; j < D; ++j) grad_x[j] = v.along(j);
#pragma GCC unroll 16
    for (std::size_t j = 0; j < P; ++j) grad_theta[j] = v.along(D + j);
    return v.value;
  }

  F f_;
  Constants theta_;
};

}  // namespace implicit_diffusion
