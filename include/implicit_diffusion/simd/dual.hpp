// Dual numbers: a value and its derivative along one direction, carried together through plain arithmetic.
//
//     (a + a' e)(b + b' e) = a b + (a' b + a b') e,     f(a + a' e) = f(a) + f'(a) a' e,     e^2 = 0
//
// A function written as a template over the number type, called with x_j + u_j e, returns its value and its exact
// derivative along u. So the mixed derivative d/dx grad_theta V . u, and the gradient of a reward, need no code of
// their own.
#pragma once

#include "implicit_diffusion/simd/elementary.hpp"

#include <type_traits>

namespace implicit_diffusion {

template <Number Real>
struct Dual {
  Real value{};
  Real derivative{};

  Dual() = default;
  // A constant; implicit, so that plain literals of any type mix in.
  [[gnu::always_inline]] Dual(Real v) : value(v), derivative(Real(Scalar<Real>(0))) {}
  template <class T>
  requires std::is_arithmetic_v<T>
  [[gnu::always_inline]] Dual(T v) : Dual(Real(static_cast<Scalar<Real>>(v))) {}
  [[gnu::always_inline]] Dual(Real v, Real d) : value(v), derivative(d) {}
};

template <Number Real>
struct NumberTraits<Dual<Real>> {
  using Scalar = typename NumberTraits<Real>::Scalar;
  static constexpr std::size_t width = NumberTraits<Real>::width;
};

// Each operator in the three forms that arithmetic with constants needs.
#define IMPLICIT_DIFFUSION_DUAL_OPERATOR(op, expression)                                                    \
  template <Number Real>                                                                                    \
  [[gnu::always_inline]] inline Dual<Real> operator op(const Dual<Real>& a, const Dual<Real>& b) {          \
    return expression;                                                                                      \
  }                                                                                                         \
  template <Number Real>                                                                                    \
  [[gnu::always_inline]] inline Dual<Real> operator op(const Dual<Real>& a, std::type_identity_t<Real> b) { \
    return a op Dual<Real>(b);                                                                              \
  }                                                                                                         \
  template <Number Real>                                                                                    \
  [[gnu::always_inline]] inline Dual<Real> operator op(std::type_identity_t<Real> a, const Dual<Real>& b) { \
    return Dual<Real>(a) op b;                                                                              \
  }
IMPLICIT_DIFFUSION_DUAL_OPERATOR(+, Dual<Real>(a.value + b.value, a.derivative + b.derivative))
IMPLICIT_DIFFUSION_DUAL_OPERATOR(-, Dual<Real>(a.value - b.value, a.derivative - b.derivative))
IMPLICIT_DIFFUSION_DUAL_OPERATOR(*, Dual<Real>(a.value* b.value, a.derivative* b.value + a.value * b.derivative))
IMPLICIT_DIFFUSION_DUAL_OPERATOR(/, Dual<Real>(a.value / b.value,
                                               (a.derivative - a.value / b.value * b.derivative) / b.value))
#undef IMPLICIT_DIFFUSION_DUAL_OPERATOR

template <Number Real>
[[gnu::always_inline]] inline Dual<Real> operator-(const Dual<Real>& a) {
  return {-a.value, -a.derivative};
}
template <Number Real, class T>
[[gnu::always_inline]] inline Dual<Real>& operator+=(Dual<Real>& a, const T& b) {
  return a = a + b;
}
template <Number Real, class T>
[[gnu::always_inline]] inline Dual<Real>& operator-=(Dual<Real>& a, const T& b) {
  return a = a - b;
}
template <Number Real, class T>
[[gnu::always_inline]] inline Dual<Real>& operator*=(Dual<Real>& a, const T& b) {
  return a = a * b;
}

template <Number Real>
[[gnu::always_inline]] inline auto operator>(const Dual<Real>& a, const Dual<Real>& b) {
  return a.value > b.value;
}
template <Number Real>
[[gnu::always_inline]] inline auto operator<(const Dual<Real>& a, const Dual<Real>& b) {
  return a.value < b.value;
}
template <Number Real>
[[gnu::always_inline]] inline auto operator>=(const Dual<Real>& a, const Dual<Real>& b) {
  return a.value >= b.value;
}

template <class Mask, Number Real>
[[gnu::always_inline]] inline Dual<Real> select(Mask mask, const Dual<Real>& a, const Dual<Real>& b) {
  return {select(mask, a.value, b.value), select(mask, a.derivative, b.derivative)};
}
template <Number Real>
[[gnu::always_inline]] inline Dual<Real> abs(const Dual<Real>& a) {
  return select(a < Dual<Real>(Real(0)), -a, a);
}
template <Number Real>
[[gnu::always_inline]] inline Dual<Real> max(const Dual<Real>& a, const Dual<Real>& b) {
  return select(a < b, b, a);
}
template <Number Real>
[[gnu::always_inline]] inline Dual<Real> fma(const Dual<Real>& a, const Dual<Real>& b, const Dual<Real>& c) {
  return a * b + c;
}
template <Number Real>
[[gnu::always_inline]] inline Dual<Real> sqrt(const Dual<Real>& a) {
  const Real root = sqrt(a.value);
  return {root, a.derivative / (root + root)};
}
template <Number Real>
[[gnu::always_inline]] inline Dual<Real> exp(const Dual<Real>& a) {
  const Real e = exp(a.value);
  return {e, e * a.derivative};
}
template <Number Real>
[[gnu::always_inline]] inline Dual<Real> exp2_fixed(const Dual<Real>& a) {
  const Real e = exp2_fixed(a.value);
  return {e, e * (a.derivative * Scalar<Real>(0x1.62e42fefa39efp-1 / exp2_unit))};
}
template <Number Real>
[[gnu::always_inline]] inline Dual<Real> log(const Dual<Real>& a) {
  return {log(a.value), a.derivative / a.value};
}
template <Number Real>
[[gnu::always_inline]] inline Dual<Real> sigmoid(const Dual<Real>& a) {
  const Real s = sigmoid(a.value);
  return {s, s * sigmoid(-a.value) * a.derivative};
}

}  // namespace implicit_diffusion
