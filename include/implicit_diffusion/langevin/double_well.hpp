// A double well in R^d with its barrier as the parameter:
//
//     V(x, theta) = theta (u^2 - 1)^2 + (x_2^2 + ... + x_d^2) / (2 s),     u = x_1 / a
//
// The wells are at x_1 = -a and a, and theta, which is positive, is how far V rises between them: the rate of crossings
// falls as exp(-theta).
//
//     dV/dx_1 = 4 theta u (u^2 - 1) / a          dV/dx_j = x_j / s          dV/dtheta = (u^2 - 1)^2
//
// It is no mixture of Gaussians. Along x_1 its curvature is 4 theta (3 u^2 - 1) / a^2: 8 theta / a^2 in the wells and
// more outside of them. Langevin with step g is stable where V is at most 2 above its wells, as it is for most samples,
// if g < 2 / k, with k the curvature at the outermost such point, u^2 = 1 + sqrt(2 / theta):
//
//     k = max((8 theta + 12 sqrt(2 theta)) / a^2, 1 / s)
//
// A sample escapes to infinity from u^2 - 1 > a^2 / (2 g theta) on, where a step leads further out on the other side.
// At that limit V is 72 there and more; at the limit of the wells alone, g = a^2 / (4 theta), only 4 theta.
#pragma once

#include "implicit_diffusion/langevin/constants.hpp"
#include "implicit_diffusion/langevin/kernel.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace implicit_diffusion {

class DoubleWell {
 public:
  static constexpr bool any_number = true;
  using BuiltIn = DoubleWell;

  // a: half the distance of the wells; s: the variance of the other coordinates. Throws an Error unless all are
  // positive.
  DoubleWell(std::size_t dimension, double half_distance, double variance);

  std::size_t dimension() const { return dimension_; }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> theta) { constants_.set(0, theta[0]); }

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    const auto* c = constants_.of<Real>();  // theta, 1 / a, 1 / s
    const Real u = x[0] * c[1], rise = u * u - Scalar<Real>(1);
    Real value = rise * rise;
    if (grad_theta) grad_theta[0] = value;
    value = value * c[0];
    if (grad_x) grad_x[0] = u * rise * (4 * c[0] * c[1]);
    for (std::size_t j = 1; j < dimension_; ++j) {
      const Real slope = x[j] * c[2];
      value = value + x[j] * slope * Scalar<Real>(0.5);
      if (grad_x) grad_x[j] = slope;
    }
    return value;
  }

  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return theta[0] > 0 ? std::nullopt : std::optional<std::size_t>(0);
  }
  std::optional<double> largest_stable_step() const;  // 2 / k

 private:
  std::size_t dimension_;
  Constants constants_;
};

}  // namespace implicit_diffusion
