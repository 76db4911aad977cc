// Dual numbers: the derivative they carry against the analytic one, for every operation that a kernel uses.
#include "implicit_diffusion/simd/dual.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace implicit_diffusion {
namespace {

// The larger of the relative errors of value and derivative (absolute below 1).
template <class Real>
double error(Dual<Real> got, double value, double derivative) {
  const auto off = [](double a, double b) { return std::abs(a - b) / std::max(1.0, std::abs(b)); };
  return std::max(off(got.value, value), off(got.along(0), derivative));
}

// Values and derivatives are a few operations of up to two units in the last place each: 20 of them are ample.
template <class Real>
constexpr double tolerance = 20 * std::numeric_limits<Real>::epsilon();

template <class Real>
class DualNumbers : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(DualNumbers, Reals);

TYPED_TEST(DualNumbers, FollowTheElementaryFunctions) {
  using Real = TypeParam;
  for (const double at : {0.1, 0.7, 1.0, 2.5, 5.0}) {
    const Real x = static_cast<Real>(at);
    const double v = x, seed = -1.5;
    const Dual<Real> a{x, static_cast<Real>(seed)};
    const double s = 1 / (1 + std::exp(-v));
    EXPECT_LT(error(exp(a), std::exp(v), std::exp(v) * seed), tolerance<Real>);
    EXPECT_LT(error(log(a), std::log(v), seed / v), tolerance<Real>);
    EXPECT_LT(error(log_positive(a), std::log(v), seed / v), tolerance<Real>);
    EXPECT_LT(error(sqrt(a), std::sqrt(v), seed / (2 * std::sqrt(v))), tolerance<Real>);
    EXPECT_LT(error(sigmoid(a), s, s * (1 - s) * seed), tolerance<Real>);
    const double t = std::tanh(v);
    EXPECT_LT(error(softplus(a), std::log1p(std::exp(v)), s * seed), tolerance<Real>);
    EXPECT_LT(error(tanh(a), t, (1 - t * t) * seed), tolerance<Real>);
    EXPECT_LT(error(erf(a), std::erf(v), 2 / std::sqrt(std::numbers::pi) * std::exp(-v * v) * seed), tolerance<Real>);
    EXPECT_LT(error(exp2_fixed(a * Real(exp2_unit)), std::exp2(v), std::numbers::ln2 * std::exp2(v) * seed),
              tolerance<Real>);
    EXPECT_LT(error(exp(-a), std::exp(-v), -std::exp(-v) * seed), tolerance<Real>);
    EXPECT_LT(error(sigmoid(-a), 1 - s, -s * (1 - s) * seed), tolerance<Real>);
  }
}

// s (1 - s) would round to 0 where s rounds to 1; its true value is e^-x.
TYPED_TEST(DualNumbers, SigmoidHasADerivativeFarOut) {
  using Real = TypeParam;
  const Real x = 40;
  const double expected = std::exp(-40.0);
  EXPECT_NEAR(sigmoid(Dual<Real>(x, Real(1))).along(0) / expected, 1.0, 1e-5);
  EXPECT_NEAR(sigmoid(Dual<Real>(-x, Real(1))).along(0) / expected, 1.0, 1e-5);
}

TYPED_TEST(DualNumbers, FollowTheArithmetic) {
  using Real = TypeParam;
  const Dual<Real> a{Real(1.25), Real(0.5)}, b{Real(-0.75), Real(2)}, c{Real(3), Real(-1)};
  const double u = 1.25, du = 0.5, v = -0.75, dv = 2, w = 3, dw = -1;
  EXPECT_LT(error(a + b, u + v, du + dv), tolerance<Real>);
  EXPECT_LT(error(a - b, u - v, du - dv), tolerance<Real>);
  EXPECT_LT(error(a * b, u * v, du * v + u * dv), tolerance<Real>);
  EXPECT_LT(error(a / b, u / v, (du * v - u * dv) / (v * v)), tolerance<Real>);
  EXPECT_LT(error(fma(a, b, c), u * v + w, du * v + u * dv + dw), tolerance<Real>);
  EXPECT_LT(error(-a, -u, -du), tolerance<Real>);

  // With constants on either side, which have no derivative.
  const Real k = 4;
  EXPECT_LT(error(k + a, 4 + u, du), tolerance<Real>);
  EXPECT_LT(error(a + k, 4 + u, du), tolerance<Real>);
  EXPECT_LT(error(k - a, 4 - u, -du), tolerance<Real>);
  EXPECT_LT(error(a - k, u - 4, du), tolerance<Real>);
  EXPECT_LT(error(k * a, 4 * u, 4 * du), tolerance<Real>);
  EXPECT_LT(error(a * k, 4 * u, 4 * du), tolerance<Real>);
  EXPECT_LT(error(k / a, 4 / u, -4 * du / (u * u)), tolerance<Real>);
  EXPECT_LT(error(a / k, u / 4, du / 4), tolerance<Real>);
  EXPECT_EQ(Dual<Real>(k).along(0), Real(0));
  EXPECT_EQ(Dual<Real>(2).along(0), Real(0));

  Dual<Real> d = a;
  d += b;
  d *= c;
  d -= k;
  EXPECT_LT(error(d, (u + v) * w - 4, (du + dv) * w + (u + v) * dw), tolerance<Real>);
  d /= k;
  EXPECT_LT(error(d, ((u + v) * w - 4) / 4, ((du + dv) * w + (u + v) * dw) / 4), tolerance<Real>);
}

TYPED_TEST(DualNumbers, SelectAndMaxTakeTheDerivativeOfWhatTheyTake) {
  using Real = TypeParam;
  const Dual<Real> low{Real(-1), Real(5)}, high{Real(2), Real(7)};
  EXPECT_LT(error(max(low, high), 2, 7), tolerance<Real>);
  EXPECT_LT(error(max(high, low), 2, 7), tolerance<Real>);
  EXPECT_LT(error(min(low, high), -1, 5), tolerance<Real>);
  EXPECT_LT(error(min(high, low), -1, 5), tolerance<Real>);
  EXPECT_LT(error(abs(low), 1, -5), tolerance<Real>);
  EXPECT_LT(error(select(low <= high, low, high), -1, 5), tolerance<Real>);
  EXPECT_LT(error(select(low > high, low, high), 2, 7), tolerance<Real>);
  EXPECT_LT(error(select(low < high, low, high), -1, 5), tolerance<Real>);
  EXPECT_LT(error(select(low >= high, low, high), 2, 7), tolerance<Real>);
  EXPECT_LT(error(select(high >= Dual<Real>(0), high, Dual<Real>(0)), 2, 7), tolerance<Real>);
  EXPECT_LT(error(select(low >= Dual<Real>(0), low, Dual<Real>(0)), 0, 0), tolerance<Real>);
}

// A function of two variables, composed of everything: against central differences of its values. With step h = 1e-5
// the truncation is h^2 f''' / 6, below 1e-9 here, and the rounding 1e-16 / h = 1e-11.
template <class Number>
Number composed(const Number& x, const Number& y) {
  const Number r = sqrt(x * x + y * y);
  return log(Number(1) + exp(-r)) * sigmoid(x / (Number(2) + y)) + max(x, y) * r;
}
TEST(DualNumber, FollowsACompositionAlongAnyDirection) {
  const double x = 0.8, y = -0.3, h = 1e-5;
  for (const auto& [p, q] : std::vector<std::pair<double, double>>{{1, 0}, {0, 1}, {0.6, -2}}) {
    const double got = composed(Dual<double>(x, p), Dual<double>(y, q)).along(0);
    const double fd = (composed(x + h * p, y + h * q) - composed(x - h * p, y - h * q)) / (2 * h);
    EXPECT_NEAR(got, fd, 1e-8);
    EXPECT_GT(std::abs(1.001 * got - fd), 1e-8) << "a derivative that is off by 0.1 % would pass";
  }
}

// Several directions at once are each what they are alone, also where a number has no derivative along one of them.
TEST(DualNumber, FollowsSeveralDirectionsAtOnce) {
  using Two = Dual<double, 2>;
  const double x = 0.8, y = -0.3;
  const auto all = composed(Two(x, 1.0, 0), Two(y, 1.0, 1));
  EXPECT_EQ(all.value, composed(x, y));
  EXPECT_NEAR(all.along(0), composed(Dual<double>(x, 1.0), Dual<double>(y)).along(0), 1e-15);
  EXPECT_NEAR(all.along(1), composed(Dual<double>(x), Dual<double>(y, 1.0)).along(0), 1e-15);

  const Two only_x = exp(Two(x, 2.0, 0)) * 3 - 1, constant = Two(y) / 2;
  EXPECT_TRUE(only_x.has(0));
  EXPECT_FALSE(only_x.has(1));
  EXPECT_EQ(only_x.along(1), 0.0);
  EXPECT_FALSE(constant.has(0) || constant.has(1));
  const Two quotient = Two(1) / only_x, choice = select(true, constant, only_x), difference = constant - only_x;
  EXPECT_NEAR(quotient.along(0), -6 * std::exp(x) / std::pow(3 * std::exp(x) - 1, 2), 1e-15);
  EXPECT_EQ(choice.along(0), 0.0);
  EXPECT_NEAR(difference.along(0), -6 * std::exp(x), 1e-14);
}

}  // namespace
}  // namespace implicit_diffusion
