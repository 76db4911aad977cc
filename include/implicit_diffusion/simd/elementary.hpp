// Elementary functions on number types, without branches and with known errors.
//
//     exp, log, sigmoid, softplus, tanh, erf   of float (and lanes of float) and double
//     sine_cosine                              of a direction given by 32 random bits
//
// The largest error, in units in the last place of the exact result ("fma" is x86-64-v3 and above; the baseline
// rounds a b + c twice). Floats: measured on every float and, for the angle, on all bits of a quarter turn; doubles: on
// a million of them:
//
//                      float, fma    float, baseline    double
//     exp                 1.02            0.99            0.92
//     log                 1.08            1.23            0.86
//     sigmoid             2.49            2.49            2.2
//     softplus            3.19            3.19            2.6
//     tanh                3.2             3.2             1.8
//     erf                 2.5             2.5             7.7
//     sine, cosine        absolute error 2.1e-7               -
//
// tests/simd/elementary_test.cpp checks it against long double, on a part of the floats.
//
// On double only + - * / and work on bits are used, no fma and no libm: the same bits on every machine.
//
// Special values: NaN gives NaN everywhere;
//
//     exp(-inf) = 0, exp(0) = 1, exp(inf) = inf; inf where the result is too large, 0 where it is below the smallest
//     normal number;
//
//     log(0) = -inf, log(x < 0) = NaN, log(1) = 0, log(inf) = inf; subnormal x are taken as they are;
//
//     sigmoid(-inf) = 0, sigmoid(inf) = 1; softplus(-inf) = 0, softplus(inf) = inf;
//     tanh and erf of -inf and inf are -1 and 1.
//
// Polynomials are minimax fits of our own (Remez, then rounded to the type); the error stated with each is relative to
// the result.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include "implicit_diffusion/simd/number.hpp"

namespace implicit_diffusion {

// Numbers whose lanes are floats: float itself and vectors of floats.
template <class T>
concept FloatNumber = Number<T> && std::same_as < Scalar<T>,
float > ;

namespace detail {

// The step of a polynomial: fused on floats, never on doubles.
template <FloatNumber Real>
[[gnu::always_inline]] inline Real multiply_add(Real a, Real b, Real c) {
  return fma(a, b, c);
}
[[gnu::always_inline]] inline double multiply_add(double a, double b, double c) { return a * b + c; }

// (...(top x + c_1) x + c_2 ...) x + c_m, the highest degree first.
template <Number Real, class... Rest>
[[gnu::always_inline]] inline Real horner(Real x, Scalar<Real> top, Rest... rest) {
  Real sum = Real(top);
  ((sum = multiply_add(sum, x, Real(rest))), ...);
  return sum;
}

// What exp and log need to know of a type.
template <class Scalar>
struct Format;

template <>
struct Format<float> {
  static constexpr int mantissa_bits = 23;
  static constexpr float round = 0x1.8p23f;        // adding it rounds to an integer, which is then in the low bits
  static constexpr float log2_e = 0x1.715476p0f;   // 1 / ln 2
  static constexpr float ln2_high = 0x1.62e4p-1f;  // 15 bits: n ln2_high is exact for |n| < 2^9
  static constexpr float ln2_low = 0x1.7f7d1cp-20f;
  static constexpr float exp_lowest = -87.3365402f;  // the ends of the x for which exp(x) is a normal number
  static constexpr float exp_highest = 88.7228317f;
  static constexpr float smallest_normal = 0x1p-126f;
  static constexpr float subnormal_scale = 0x1p23f;
  static constexpr std::int32_t two_thirds = 0x3f2aaaab;  // bits of 2/3
  static constexpr std::int32_t exponent_unit = std::int32_t{1} << mantissa_bits;
};

template <>
struct Format<double> {
  static constexpr int mantissa_bits = 52;
  static constexpr double round = 0x1.8p52;
  static constexpr double log2_e = 0x1.71547652b82fep0;
  static constexpr double ln2_high = 0x1.62e42fefa38p-1;  // 42 bits: n ln2_high is exact for |n| < 2^11
  static constexpr double ln2_low = 0x1.ef35793c7673p-45;
  static constexpr double exp_lowest = -708.39641853226408;
  static constexpr double exp_highest = 709.78271289338397;
  static constexpr double smallest_normal = 0x1p-1022;
  static constexpr double subnormal_scale = 0x1p52;
  static constexpr std::int64_t two_thirds = 0x3fe5555555555555;
  static constexpr std::int64_t exponent_unit = std::int64_t{1} << mantissa_bits;
};

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2: relative error of exp 3.6e-9 (float), 7.7e-19 (double).
template <FloatNumber Real>
[[gnu::always_inline]] inline Real exp_tail(Real r) {
  return horner(r, 0x1.6a2358p-10f, 0x1.123a6p-7f, 0x1.5558e8p-5f, 0x1.555492p-3f, 0x1.fffffcp-2f);
}
[[gnu::always_inline]] inline double exp_tail(double r) {
  return horner(r, 0x1.1e3cce8326beep-29, 0x1.af6c61ab5631p-26, 0x1.27e5b4fa0205fp-22, 0x1.71ddefdc2f94cp-19,
                0x1.a01a0135f8a4p-16, 0x1.a01a01b399244p-13, 0x1.6c16c16c3079p-10, 0x1.111111110ec19p-7,
                0x1.5555555555502p-5, 0x1.555555555555bp-3, 0.5);
}

// x = 2^exponent mantissa with 2/3 <= mantissa < 4/3, so that log has no cancellation near 1. For normal x > 0. The
// exponent comes in units of 2^mantissa_bits, as it lies in the bits of x.
template <Number Real>
struct Decomposition {
  Real exponent;
  Real mantissa;
};
template <Number Real>
[[gnu::always_inline]] inline Decomposition<Real> decompose(Real x) {
  using F = Format<Scalar<Real>>;
  const Integer<Real> bits = as_integer(x);
  const Integer<Real> exponent = wrap_add(bits, Integer<Real>(-F::two_thirds)) & Integer<Real>(-F::exponent_unit);
  return {to_real(exponent), as_real(wrap_subtract(bits, exponent))};
}

// next<1>(), ..., next<n>() of something that is done in steps.
template <int n, class Steps>
[[gnu::always_inline]] inline void next_to(Steps& steps) {
  if constexpr (n > 1) next_to<n - 1>(steps);
  steps.template next<n>();
}

// factor log(x) = factor (exponent ln 2 + log(1 + f)), factor 1 or -2: a power of two costs no digits.
//
// Floats: log(1 + f) = f + f^2 P(f), relative error 2.8e-8; ln 2 in one number is off by 1.9e-9 only. With g = factor f
// this is factor log(1 + f) = g + g^2 Q(g), the coefficients of Q being those of P over powers of the factor.
//
// In steps, for those who have other work to do between them: begin(), next<1>() to next<7>(), end().
template <int factor, FloatNumber Real>
class LogSteps {
 public:
  [[gnu::always_inline]] void begin(Decomposition<Real> x) {
    static_assert(factor == 1 || factor == -2);
    const Real one = Real(1.0f);
    exponent_ = x.exponent;
    g_ = factor == 1 ? x.mantissa - one : (one - x.mantissa) + (one - x.mantissa);
    q_ = Real(coefficient(0));
  }
  template <int k>
  [[gnu::always_inline]] void next() {
    q_ = fma(q_, g_, Real(coefficient(k)));
  }
  [[gnu::always_inline]] Real end() const {
    return fma(exponent_, Real(factor * 0x1.62e43p-1f / Format<float>::exponent_unit), fma(g_ * g_, q_, g_));
  }

 private:
  static constexpr float coefficient(int k) {
    constexpr float p[] = {0x1.1f4218p-3f, -0x1.3b283p-3f,  0x1.1ea26ep-3f, -0x1.5032eep-3f,
                           0x1.99d432p-3f, -0x1.00148ap-2f, 0x1.5554fap-2f, -0x1.ffffd4p-2f};
    float c = p[k];
    for (int power = 8 - k; power > 0; --power) c /= factor;
    return c;
  }

  Real exponent_, g_, q_;
};
template <FloatNumber Real>
[[gnu::always_inline]] inline Real log_of(Decomposition<Real> x) {
  LogSteps<1, Real> log;
  log.begin(x);
  next_to<7>(log);
  return log.end();
}
// Doubles: with s = f / (2 + f), log(1 + f) = 2 atanh(s) = 2 s + s R(s^2), relative error 1.6e-17; written as f plus a
// smaller term, f^2 / 2 split off, so that the rounding of s does no harm.
[[gnu::always_inline]] inline double log_of(Decomposition<double> x) {
  using F = Format<double>;
  const double f = x.mantissa - 1.0, exponent = x.exponent * (1.0 / static_cast<double>(F::exponent_unit));
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double r = z * horner(z, 0x1.3abd92894d4fp-3, 0x1.3852e90a351b9p-3, 0x1.7474e1e4eb76dp-3, 0x1.c71c0169256dcp-3,
                              0x1.249249b21b96dp-2, 0x1.99999998f0caep-2, 0x1.5555555555776p-1);
  const double half_square = 0.5 * f * f;
  return exponent * F::ln2_high + (f - (half_square - (s * (half_square + r) + exponent * F::ln2_low)));
}

}  // namespace detail

// e^x = 2^n e^r, x = n ln 2 + r, n the nearest integer. In lanes beyond the ends the intermediate values mean nothing
// and are replaced.
template <Number Real>
[[gnu::always_inline]] inline Real exp(Real x) {
  using S = Scalar<Real>;
  using F = detail::Format<S>;
  const Real shifted = detail::multiply_add(x, Real(F::log2_e), Real(F::round));  // its low bits are n
  const Real n = shifted - Real(F::round);
  const Real r = detail::multiply_add(n, Real(-F::ln2_low), detail::multiply_add(n, Real(-F::ln2_high), x));
  const Real e = detail::multiply_add(r * r, detail::exp_tail(r), r) + Real(S(1));
  const Real scaled = as_real(wrap_add(as_integer(e), shift_left<F::mantissa_bits>(as_integer(shifted))));
  const Real result = select(x < Real(F::exp_lowest), Real(S(0)), scaled);
  return select(x <= Real(F::exp_highest), result, x * Real(std::numeric_limits<S>::infinity()));  // NaN stays NaN
}

// 2^(t / 2^23) for -126 <= t / 2^23 < 127: the exponential of kernels, half the cost of exp(). The argument comes in
// units of 2^-23 so that one rounding to an integer splits it into exponent and fraction, ready to be bits of the
// result. Floats: a minimax polynomial in the fraction, relative error 7.8e-8 and 1.3 ulp with its roundings. Doubles:
// by exp().
inline constexpr double exp2_unit = 0x1p23;
template <FloatNumber Real>
[[gnu::always_inline]] inline Real exp2_fixed(Real t) {
  using I = Integer<Real>;
  const I bits = to_integer(t);
  const Real m = as_real((bits & I(0x7fffff)) | I(0x3f800000));  // 1 + fraction
  const Real p = detail::horner(m, 0x1.ec320ap-10f, -0x1.a1e76ap-12f, 0x1.3c93e0p-5f, 0x1.b9b11cp-4f, 0x1.6a3ed6p-2f,
                                0x1.fe3eaap-2f);
  return as_real(wrap_add(as_integer(p), bits & I(std::int32_t(0xff800000u))));
}
[[gnu::always_inline]] inline double exp2_fixed(double t) { return exp(t * (0x1.62e42fefa39efp-1 / exp2_unit)); }
// Below this exp2_fixed() is not defined; take the max of it and the argument. Its power of two is as good as 0 beside
// 1.
template <Number Real>
inline constexpr Scalar<Real> exp2_lowest = std::same_as<Scalar<Real>, float> ? Scalar<Real>(-126 * exp2_unit)
                                                                              : Scalar<Real>(-1000 * exp2_unit);

// exp2_fixed() where it is defined, 0 below: for terms of a sum beside which what is left there would still count,
// times a large number. NaN gives 0. (Below, exp2_fixed() gives bits that mean nothing, and no harm is done.)
template <Number Real>
[[gnu::always_inline]] inline Real exp2_or_zero(Real t) {
  const Real lowest(static_cast<Scalar<Real>>(exp2_lowest<Real>));
  return select(t >= lowest, exp2_fixed(t), Real(Scalar<Real>(0)));
}

// The natural logarithm.
template <Number Real>
[[gnu::always_inline]] inline Real log(Real x) {
  using S = Scalar<Real>;
  using F = detail::Format<S>;
  constexpr S infinity = std::numeric_limits<S>::infinity();
  const auto subnormal = x < Real(F::smallest_normal);
  const Real normal = select(subnormal, x * Real(F::subnormal_scale), x);
  detail::Decomposition<Real> parts = detail::decompose(normal);
  parts.exponent = parts.exponent - select(subnormal, Real(S(F::mantissa_bits * F::exponent_unit)), Real(S(0)));
  Real result = select(x < Real(infinity), detail::log_of(parts), x);  // inf and NaN are kept
  result = select(x < Real(S(0)), Real(std::numeric_limits<S>::quiet_NaN()), result);
  return select(x == Real(S(0)), Real(-infinity), result);
}

// The same for x that is known to be finite and no smaller than the smallest normal number, without care for others.
template <Number Real>
[[gnu::always_inline]] inline Real log_positive(Real x) {
  return detail::log_of(detail::decompose(x));
}

// 1 / (1 + e^-x).
template <Number Real>
[[gnu::always_inline]] inline Real sigmoid(Real x) {
  const Real one = Real(Scalar<Real>(1));
  return one / (one + exp(-x));
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). For small e the error of the rounded sum w = 1 + e is undone by e / (w -
// 1).
template <Number Real>
[[gnu::always_inline]] inline Real softplus(Real x) {
  const Real zero = Real(Scalar<Real>(0));
  const Real one = Real(Scalar<Real>(1));
  const Real e = exp(-abs(x));
  const Real w = one + e;
  const Real excess = w - one;
  const Real log1p = select(excess == zero, e, detail::log_of(detail::decompose(w)) * (e / excess));
  return max(zero, x) + log1p;  // in this order max keeps a NaN
}

// Near 0 a convergent of Lambert's continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))), error below 1e-9 (float,
// |x| < 1/2); further out 1 - 2 / (e^2|x| + 1).
template <FloatNumber Real>
[[gnu::always_inline]] inline Real tanh(Real x) {
  const Real one = Real(1.0f), z = x * x, size = abs(x);
  const Real near =
      x * detail::horner(z, 1.0f, 378.0f, 17325.0f, 135135.0f) / detail::horner(z, 28.0f, 3150.0f, 62370.0f, 135135.0f);
  const Real far = one - Real(2.0f) / (exp(size + size) + one);
  const Real signed_far = select(x < Real(0.0f), -far, far);
  return select(Real(0.5f) <= size, signed_far, near);  // NaN takes the near way and stays
}
[[gnu::always_inline]] inline double tanh(double x) {
  const double size = abs(x);
  if (!(size < 0.5)) return x != x ? x : (x < 0 ? -1 : 1) * (1 - 2 / (exp(size + size) + 1));
  double fraction = 21;
  for (double odd = 19; odd >= 1; odd -= 2) fraction = odd + x * x / fraction;
  return x / fraction;
}

// Floats: x P(x^2) up to 1, relative error 1.2e-9, and 1 - exp(Q(|x| - 2.5)) to 4, absolute error 1e-9; beyond, 1 is
// nearest.
template <FloatNumber Real>
[[gnu::always_inline]] inline Real erf(Real x) {
  const Real size = abs(x);
  const Real near = x * detail::horner(x * x, 0x1.496a32p-14f, -0x1.a3f7p-11f, 0x1.5405b2p-8f, -0x1.b7f90ep-6f,
                                       0x1.ce2cf8p-4f, -0x1.81273ep-2f, 0x1.20dd74p0f);
  const Real log_rest =
      detail::horner(select(size < Real(4.0f), size, Real(4.0f)) - Real(2.5f), 0x1.852d4cp-13f, -0x1.47264ap-13f,
                     0x1.4225c4p-9f, -0x1.5f331ep-7f, -0x1.e344f2p-1f, -0x1.56928ap2f, -0x1.f3a2e8p2f);
  const Real far = Real(1.0f) - exp(log_rest);
  const Real signed_far = select(x < Real(0.0f), -far, far);
  return select(Real(1.0f) < size, signed_far, near);  // NaN takes the near way and stays
}
// Doubles: 2 / sqrt(pi) e^(-x^2) sum_n 2^n x^(2n+1) / (2n+1)!!, whose terms are all of one sign, up to 1.25; further
// out 1 - e^(-x^2) / sqrt(pi) / (x + (1/2) / (x + 1 / (x + (3/2) / (x + ...)))).
[[gnu::always_inline]] inline double erf(double x) {
  const double size = abs(x);
  if (!(size < 6)) return x != x ? x : x < 0 ? -1 : 1;
  if (size < 1.25) {
    double term = x, sum = x;
    for (double n = 1; abs(term) > 1e-18 * abs(sum); ++n) sum += term *= 2 * x * x / (2 * n + 1);
    return 1.1283791670955126 * exp(-x * x) * sum;
  }
  double fraction = size;
  for (double n = 150; n >= 1; --n) fraction = size + n / 2 / fraction;
  return (x < 0 ? -1 : 1) * (1 - 0.56418958354775629 * exp(-x * x) / fraction);
}

template <Number Real>
struct SineCosine {
  Real sine;
  Real cosine;
};

// Sine and cosine of a direction given by 32 random bits: 2^32 directions all round. As a signed number they are an
// angle (pi / 2) t, t = bits / 2^31, in the right half plane; the lowest bit turns it into the left one. So there is no
// quadrant to sort out, and as no one asks for a particular angle, none is needed.
//
// Polynomials on the half turn, error relative 3.5e-8 (sine) and absolute 6.4e-8 (cosine); with roundings 2.1e-7
// absolute, without fma.
//
// In steps too: begin(), next<1>() to next<4>(), end().
template <FloatNumber Real>
class SineCosineSteps {
 public:
  [[gnu::always_inline]] void begin(Integer<Real> bits) {
    bits_ = bits;
    t_ = to_real(bits) * Real(0x1p-31f);
    z_ = t_ * t_;
    s_ = Real(sine[0]);
    c_ = Real(cosine[0]);
  }
  template <int k>
  [[gnu::always_inline]] void next() {
    s_ = fma(s_, z_, Real(sine[k]));
    c_ = fma(c_, z_, Real(cosine[k]));
  }
  [[gnu::always_inline]] SineCosine<Real> end() const {
    return {t_ * s_, as_real(as_integer(c_) ^ shift_left<31>(bits_))};
  }

 private:
  static constexpr float sine[] = {0x1.3dafcep-13f, -0x1.324ce8p-8f, 0x1.4668aep-4f, -0x1.4abbc4p-1f, 0x1.921fb6p+0f};
  static constexpr float cosine[] = {0x1.c1f080p-11f, -0x1.54f620p-6f, 0x1.03bd0ap-2f, -0x1.3bd3a6p+0f, 0x1.fffffep-1f};

  Integer<Real> bits_;
  Real t_, z_, s_, c_;
};
template <FloatNumber Real>
[[gnu::always_inline]] inline SineCosine<Real> sine_cosine(Integer<Real> bits) {
  SineCosineSteps<Real> direction;
  direction.begin(bits);
  detail::next_to<4>(direction);
  return direction.end();
}

}  // namespace implicit_diffusion
