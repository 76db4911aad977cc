// V(x, theta) = (x - theta)' P (x - theta) / 2,  the Gaussian N(theta, P^-1).
//
//     grad_x V = P (x - theta)          grad_theta V = -P (x - theta)
//
// Langevin with step g is stable for g < 2 / lambda_max(P) and then samples N(theta, (P - g P^2 / 2)^-1), not N(theta,
// P^-1).
#pragma once

#include "implicit_diffusion/langevin/constants.hpp"
#include "implicit_diffusion/langevin/kernel.hpp"
#include "implicit_diffusion/langevin/law.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

class Quadratic {
 public:
  static constexpr bool any_number = true;
  using BuiltIn = Quadratic;

  // P, row by row: symmetric and positive definite, or an Error.
  explicit Quadratic(std::vector<std::vector<double>> precision);

  std::size_t dimension() const { return dimension_; }
  std::size_t parameters() const { return dimension_; }
  void prepare(std::span<const double> theta) { centre_.assign(theta); }

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    const auto* precision = precision_.of<Real>();
    const auto* centre = centre_.of<Real>();
    Real value = Real(0);
    for (std::size_t i = 0; i < dimension_; ++i) {
      Real slope = Real(0);
      for (std::size_t j = 0; j < dimension_; ++j) slope += precision[i * dimension_ + j] * (x[j] - centre[j]);
      value += (x[i] - centre[i]) * slope;
      if (grad_x) grad_x[i] = slope;
      if (grad_theta) grad_theta[i] = -slope;
    }
    return Scalar<Real>(0.5) * value;
  }

  std::optional<double> largest_stable_step() const;  // 2 / lambda_max(P)
  GaussianMixture law(std::span<const double> theta) const;

 private:
  std::size_t dimension_;
  Constants precision_;
  Constants centre_;
};

}  // namespace implicit_diffusion
