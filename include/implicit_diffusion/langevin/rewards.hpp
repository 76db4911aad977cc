// The rewards of the library. Most know their expectation under a Gaussian: a closed form unless stated. Those with a
// parameter D in their call take the dimension as a constant there, 0 where it is not one.
#pragma once

#include "implicit_diffusion/langevin/constants.hpp"
#include "implicit_diffusion/langevin/kernel.hpp"
#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <cstddef>
#include <limits>
#include <vector>

namespace implicit_diffusion {

// exp(-|x - c|^2 / width) / denominator, the factor that most of them share.
class ScaledBump {
 public:
  ScaledBump(const std::vector<double>& centre, double width, double denominator);

  // D is the dimension, 0 where it is not a constant.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real evaluate_in(const Real* x) const {
    const auto* c = centre_.of<Real>();
    Real square = Real(0);
    for (std::size_t j = 0; j < (D ? D : centre_.size()); ++j) square = fma(x[j] - c[j], x[j] - c[j], square);
    const Real t = square * factor_.of<Real>()[0];
    return exp2_fixed(max(t, Real(exp2_lowest<Real>))) * factor_.of<Real>()[1];
  }

  // E[f(X_1) bump(X)] = mass E[f(Y)], Y ~ N(mean, variance), for X Gaussian.
  struct Tilted {
    double mass, mean, variance;
  };
  Tilted tilt(const Gaussian& g) const;
  std::size_t dimension() const { return centre_.size(); }

 private:
  Constants centre_;
  Constants factor_;  // -1 / width in the units of exp2_fixed(), 1 / denominator
  double width_, denominator_;
};

// R(x) = 1[x_1 >= 0] exp(-|x - c|^2 / width) / denominator: the paper's reward. It jumps, and no gradient sees the
// jump.
class HardReward {
 public:
  static constexpr bool any_number = true;
  using BuiltIn = HardReward;
  HardReward(const std::vector<double>& centre, double width, double denominator) : bump_(centre, width, denominator) {}

  template <std::size_t D = 0, class Real>
  [[gnu::always_inline]] Real operator()(const Real* x) const {
    return select(x[0] >= Real(0), bump_.evaluate_in<D>(x), Real(0));
  }
  double expectation(const Gaussian& g) const;
  std::size_t dimension() const { return bump_.dimension(); }

 private:
  ScaledBump bump_;
};

// R(x) = sigmoid(x_1 / softness) exp(-|x - c|^2 / width) / denominator: the differentiable stand-in for HardReward.
// Its expectation is a one-dimensional quadrature.
class SmoothReward {
 public:
  static constexpr bool any_number = true;
  using BuiltIn = SmoothReward;
  SmoothReward(const std::vector<double>& centre, double width, double denominator, double softness);

  template <std::size_t D = 0, class Real>
  [[gnu::always_inline]] Real operator()(const Real* x) const {
    return sigmoid(x[0] * Scalar<Real>(1 / softness_)) * bump_.evaluate_in<D>(x);
  }
  double expectation(const Gaussian& g) const;
  std::size_t dimension() const { return bump_.dimension(); }

 private:
  ScaledBump bump_;
  double softness_;
};

// R(x) = exp(-|x - c|^2 / (2 s))
class BumpReward {
 public:
  static constexpr bool any_number = true;
  using BuiltIn = BumpReward;
  BumpReward(const std::vector<double>& centre, double s) : bump_(centre, 2 * s, 1.0) {}

  template <std::size_t D = 0, class Real>
  [[gnu::always_inline]] Real operator()(const Real* x) const {
    return bump_.evaluate_in<D>(x);
  }
  double expectation(const Gaussian& g) const { return bump_.tilt(g).mass; }
  std::size_t dimension() const { return bump_.dimension(); }

 private:
  ScaledBump bump_;
};

// R(x) = -|x - target|^2
class QuadraticReward {
 public:
  static constexpr bool any_number = true;
  using BuiltIn = QuadraticReward;
  explicit QuadraticReward(const std::vector<double>& target) : target_(target) {}

  template <class Real>
  [[gnu::always_inline]] Real operator()(const Real* x) const {
    const auto* t = target_.of<Real>();
    Real square = Real(0);
    for (std::size_t j = 0; j < target_.size(); ++j) square = fma(x[j] - t[j], x[j] - t[j], square);
    return -square;
  }
  double expectation(const Gaussian& g) const;
  std::size_t dimension() const { return target_.size(); }

 private:
  Constants target_;
};

// R(x) = exp(-(|x - c| - r)^2 / (2 s)): closeness of the distance from c to a radius.
class RadiusReward {
 public:
  static constexpr bool any_number = true;
  using BuiltIn = RadiusReward;
  // Throws an Error unless r and s are positive.
  RadiusReward(const std::vector<double>& centre, double radius, double s);

  template <class Real>
  [[gnu::always_inline]] Real operator()(const Real* x) const {
    const auto* c = centre_.of<Real>();
    // At the centre itself the distance has no gradient: a tiny one in its place gives 0.
    Real square = Real(Scalar<Real>(1e-30));
    for (std::size_t j = 0; j < centre_.size(); ++j) square = fma(x[j] - c[j], x[j] - c[j], square);
    // So far away that squares overflow the reward is 0, and so is its gradient.
    const Real largest = Real(std::numeric_limits<Scalar<Real>>::max() / Scalar<Real>(32));
    const Real gap = sqrt(min(square, largest)) - Scalar<Real>(radius_);
    constexpr double exp_is_zero = -1e4;
    return exp(max(gap * gap * Scalar<Real>(-0.5 / s_), Real(Scalar<Real>(exp_is_zero))));
  }
  std::size_t dimension() const { return centre_.size(); }

 private:
  Constants centre_;
  double radius_, s_;
};

// R(x) = direction . x
struct LinearReward {
  static constexpr bool any_number = true;
  std::vector<double> direction;

  std::size_t dimension() const { return direction.size(); }

  template <class N>
  N operator()(const N* x) const {
    using Real = Scalar<N>;
    N sum = x[0] * static_cast<Real>(direction[0]);
    for (std::size_t j = 1; j < direction.size(); ++j) sum = sum + x[j] * static_cast<Real>(direction[j]);
    return sum;
  }
};

}  // namespace implicit_diffusion
