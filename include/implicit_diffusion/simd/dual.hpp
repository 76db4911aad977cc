// Dual numbers: a value and its derivatives along K directions, carried together through plain arithmetic.
//
//     (a + a' e)(b + b' e) = a b + (a' b + a b') e,     f(a + a' e) = f(a) + f'(a) a' e,     e_k e_l = 0
//
// A function written as a template over the number type, called with x_j + sum_k u_jk e_k, returns its value and its
// exact derivatives along the K directions u. So the gradient of a potential or a reward, and the mixed derivative d/dx
// grad_theta V . u, need no code of their own.
//
// With several directions a number also knows which of its derivatives are not zero by construction: a coordinate has
// one, a constant none. Where everything is inlined the compiler knows it too, and derivatives that are zero cost
// nothing.
#pragma once

#include "implicit_diffusion/simd/elementary.hpp"

#include <cstddef>
#include <cstdint>
#include <numbers>
#include <type_traits>

namespace implicit_diffusion {

// Which of K derivatives may differ from zero. For one direction it is not kept: it may.
template <std::size_t K>
struct Directions {
  std::uint64_t bits = 0;
  static_assert(K <= 64);

  static constexpr Directions only(std::size_t k) { return {std::uint64_t{1} << k}; }
  constexpr bool has(std::size_t k) const { return (bits >> k & 1) != 0; }
  friend constexpr Directions operator|(Directions a, Directions b) { return {a.bits | b.bits}; }
};
template <>
struct Directions<1> {
  static constexpr Directions only(std::size_t) { return {}; }
  constexpr bool has(std::size_t) const { return true; }
  friend constexpr Directions operator|(Directions, Directions) { return {}; }
};

template <Number Real, std::size_t K = 1>
struct Dual {
  Real value{};
  Real derivative[K];
  [[no_unique_address]] Directions<K> directions{};

  Dual() = default;
  // A constant; implicit, so that plain literals of any type mix in.
  [[gnu::always_inline]] Dual(Real v) : value(v) {
    if constexpr (K == 1) derivative[0] = Real(Scalar<Real>(0));
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  [[gnu::always_inline]] Dual(T v) : Dual(Real(static_cast<Scalar<Real>>(v))) {}
  // v + d e_k.
  [[gnu::always_inline]] Dual(Real v, Real d, std::size_t k = 0) : value(v), directions(Directions<K>::only(k)) {
    derivative[k] = d;
  }

  [[gnu::always_inline]] bool has(std::size_t k) const { return directions.has(k); }
  // The derivative along direction k.
  [[gnu::always_inline]] Real along(std::size_t k) const { return has(k) ? derivative[k] : Real(Scalar<Real>(0)); }
};

template <Number Real, std::size_t K>
struct NumberTraits<Dual<Real, K>> {
  using Scalar = typename NumberTraits<Real>::Scalar;
  static constexpr std::size_t width = NumberTraits<Real>::width;
};

namespace detail {

// f(a) with the value and the slope f'(a) given.
template <Number Real, std::size_t K>
[[gnu::always_inline]] inline Dual<Real, K> chain(const Dual<Real, K>& a, const Real& value, const Real& slope) {
  Dual<Real, K> r;
  r.value = value;
  r.directions = a.directions;
#pragma GCC unroll 16
  for (std::size_t k = 0; k < K; ++k)
    if (a.has(k)) r.derivative[k] = slope * a.derivative[k];
  return r;
}

// f(a, b) with the value given, where its derivative is both(a', b') or, with one of them zero, first(a') or
// second(b').
template <Number Real, std::size_t K, class Both, class First, class Second>
[[gnu::always_inline]] inline Dual<Real, K> combine(const Dual<Real, K>& a, const Dual<Real, K>& b, const Real& value,
                                                    Both&& both, First&& first, Second&& second) {
  Dual<Real, K> r;
  r.value = value;
  r.directions = a.directions | b.directions;
#pragma GCC unroll 16
  for (std::size_t k = 0; k < K; ++k) {
    if (a.has(k) && b.has(k))
      r.derivative[k] = both(a.derivative[k], b.derivative[k]);
    else if (a.has(k))
      r.derivative[k] = first(a.derivative[k]);
    else if (b.has(k))
      r.derivative[k] = second(b.derivative[k]);
  }
  return r;
}

}  // namespace detail

#define IMPLICIT_DIFFUSION_DUAL         \
  template <Number Real, std::size_t K> \
  [[gnu::always_inline]] inline

IMPLICIT_DIFFUSION_DUAL Dual<Real, K> operator+(const Dual<Real, K>& a, const Dual<Real, K>& b) {
  const auto same = [](const Real& d) __attribute__((always_inline)) { return d; };
  const auto both = [](const Real& p, const Real& q) __attribute__((always_inline)) { return p + q; };
  return detail::combine(a, b, a.value + b.value, both, same, same);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> operator-(const Dual<Real, K>& a, const Dual<Real, K>& b) {
  const auto same = [](const Real& d) __attribute__((always_inline)) { return d; };
  const auto minus = [](const Real& d) __attribute__((always_inline)) { return -d; };
  const auto both = [](const Real& p, const Real& q) __attribute__((always_inline)) { return p - q; };
  return detail::combine(a, b, a.value - b.value, both, same, minus);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> operator*(const Dual<Real, K>& a, const Dual<Real, K>& b) {
  const auto first = [&](const Real& p) __attribute__((always_inline)) { return p * b.value; };
  const auto second = [&](const Real& q) __attribute__((always_inline)) { return a.value * q; };
  const auto both = [&](const Real& p, const Real& q) __attribute__((always_inline)) {
    return p * b.value + a.value * q;
  };
  return detail::combine(a, b, a.value * b.value, both, first, second);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> operator/(const Dual<Real, K>& a, const Dual<Real, K>& b) {
  const Real ratio = a.value / b.value;
  const auto first = [&](const Real& p) __attribute__((always_inline)) { return p / b.value; };
  const auto second = [&](const Real& q) __attribute__((always_inline)) { return -(ratio * q) / b.value; };
  const auto both = [&](const Real& p, const Real& q) __attribute__((always_inline)) {
    return (p - ratio * q) / b.value;
  };
  return detail::combine(a, b, ratio, both, first, second);
}

// With a constant on either side.
#define IMPLICIT_DIFFUSION_DUAL_CONSTANT(op)                                                                \
  IMPLICIT_DIFFUSION_DUAL Dual<Real, K> operator op(const Dual<Real, K>& a, std::type_identity_t<Real> b) { \
    return a op Dual<Real, K>(b);                                                                           \
  }                                                                                                         \
  IMPLICIT_DIFFUSION_DUAL Dual<Real, K> operator op(std::type_identity_t<Real> a, const Dual<Real, K>& b) { \
    return Dual<Real, K>(a) op b;                                                                           \
  }                                                                                                         \
  template <Number Real, std::size_t K, class T>                                                            \
  [[gnu::always_inline]] inline Dual<Real, K>& operator op##=(Dual<Real, K>& a, const T& b) {               \
    return a = a op b;                                                                                      \
  }
IMPLICIT_DIFFUSION_DUAL_CONSTANT(+)
IMPLICIT_DIFFUSION_DUAL_CONSTANT(-)
IMPLICIT_DIFFUSION_DUAL_CONSTANT(*)
IMPLICIT_DIFFUSION_DUAL_CONSTANT(/)
#undef IMPLICIT_DIFFUSION_DUAL_CONSTANT

IMPLICIT_DIFFUSION_DUAL Dual<Real, K> operator-(const Dual<Real, K>& a) {
  Dual<Real, K> r;
  r.value = -a.value;
  r.directions = a.directions;
#pragma GCC unroll 16
  for (std::size_t k = 0; k < K; ++k)
    if (a.has(k)) r.derivative[k] = -a.derivative[k];
  return r;
}

// Comparisons are of values.
#define IMPLICIT_DIFFUSION_DUAL_COMPARISON(op)                                               \
  IMPLICIT_DIFFUSION_DUAL auto operator op(const Dual<Real, K>& a, const Dual<Real, K>& b) { \
    return a.value op b.value;                                                               \
  }
IMPLICIT_DIFFUSION_DUAL_COMPARISON(<)
IMPLICIT_DIFFUSION_DUAL_COMPARISON(<=)
IMPLICIT_DIFFUSION_DUAL_COMPARISON(>)
IMPLICIT_DIFFUSION_DUAL_COMPARISON(>=)
#undef IMPLICIT_DIFFUSION_DUAL_COMPARISON

template <class Mask, Number Real, std::size_t K>
[[gnu::always_inline]] inline Dual<Real, K> select(Mask mask, const Dual<Real, K>& a, const Dual<Real, K>& b) {
  const Real zero = Real(Scalar<Real>(0));
  const auto first = [&](const Real& p) __attribute__((always_inline)) { return select(mask, p, zero); };
  const auto second = [&](const Real& q) __attribute__((always_inline)) { return select(mask, zero, q); };
  const auto both = [&](const Real& p, const Real& q) __attribute__((always_inline)) { return select(mask, p, q); };
  return detail::combine(a, b, select(mask, a.value, b.value), both, first, second);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> abs(const Dual<Real, K>& a) {
  return select(a.value < Real(Scalar<Real>(0)), -a, a);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> max(const Dual<Real, K>& a, const Dual<Real, K>& b) {
  return select(a < b, b, a);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> min(const Dual<Real, K>& a, const Dual<Real, K>& b) {
  return select(b < a, b, a);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> fma(const Dual<Real, K>& a, const Dual<Real, K>& b, const Dual<Real, K>& c) {
  return a * b + c;
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> sqrt(const Dual<Real, K>& a) {
  const Real root = sqrt(a.value);
  return detail::chain(a, root, Scalar<Real>(0.5) / root);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> exp(const Dual<Real, K>& a) {
  const Real e = exp(a.value);
  return detail::chain(a, e, e);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> exp2_fixed(const Dual<Real, K>& a) {
  const Real e = exp2_fixed(a.value);
  return detail::chain(a, e, e * Scalar<Real>(std::numbers::ln2 / exp2_unit));
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> log(const Dual<Real, K>& a) {
  return detail::chain(a, log(a.value), Scalar<Real>(1) / a.value);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> log_positive(const Dual<Real, K>& a) {
  return detail::chain(a, log_positive(a.value), Scalar<Real>(1) / a.value);
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> sigmoid(const Dual<Real, K>& a) {
  const Real s = sigmoid(a.value);
  return detail::chain(a, s, s * sigmoid(-a.value));
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> softplus(const Dual<Real, K>& a) {
  return detail::chain(a, softplus(a.value), sigmoid(a.value));
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> tanh(const Dual<Real, K>& a) {
  const Real t = tanh(a.value);
  return detail::chain(a, t, (Scalar<Real>(1) - t) * (Scalar<Real>(1) + t));
}
IMPLICIT_DIFFUSION_DUAL Dual<Real, K> erf(const Dual<Real, K>& a) {
  return detail::chain(a, erf(a.value), exp(-(a.value * a.value)) * Scalar<Real>(2 * std::numbers::inv_sqrtpi));
}
#undef IMPLICIT_DIFFUSION_DUAL

}  // namespace implicit_diffusion
