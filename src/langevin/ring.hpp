// A potential for benchmarks, its derivatives once by hand and once by dual numbers: a ring of radius theta_1 with a
// soft wall,
//
//     V(x, theta) = theta_2 u^2 / 2 + log(1 + e^u),    u = |x| - theta_1
#pragma once

#include "implicit_diffusion/langevin/differentiated.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

namespace implicit_diffusion {

struct RingValue {
  static constexpr std::size_t dimension = 2, parameters = 2;

  template <class Real>
  [[gnu::always_inline]] Real operator()(const Real* x, const Real* theta) const {
    const Real u = sqrt(x[0] * x[0] + x[1] * x[1]) - theta[0];
    return theta[1] * u * u / 2 + log(exp(u) + 1);
  }
};
using RingByDuals = Differentiated<RingValue>;

class RingByHand {
 public:
  static constexpr bool any_number = true;
  static constexpr std::size_t fixed_dimension = 2;

  std::size_t dimension() const { return 2; }
  std::size_t parameters() const { return 2; }
  void prepare(std::span<const double> theta) { theta_.assign(theta); }

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    const auto* theta = theta_.of<Real>();
    const Real one = Real(Scalar<Real>(1));
    const Real radius = sqrt(fma(x[0], x[0], x[1] * x[1])), u = radius - theta[0];
    const Real e = exp(u) + one;
    const Real slope = fma(u, Real(theta[1]), one - one / e);  // dV/du
    if (grad_x) {
      const Real along = slope / radius;
      grad_x[0] = along * x[0];
      grad_x[1] = along * x[1];
    }
    if (grad_theta) {
      grad_theta[0] = -slope;
      grad_theta[1] = u * u * Scalar<Real>(0.5);
    }
    return fma(u * u, Real(Scalar<Real>(0.5) * theta[1]), log(e));
  }

 private:
  Constants theta_;
};

}  // namespace implicit_diffusion
