// The elementary functions against long double (64 bits of mantissa), over their whole range.
//
// Errors are in units in the last place of the exact result: |got - exact| / 2^(exponent(exact) - mantissa bits), with
// the exponent no smaller than that of the smallest normal number. The limits are what simd/elementary.hpp states,
// rounded up a little. Everything here is deterministic.
#include "implicit_diffusion/simd/elementary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace implicit_diffusion {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
double ulp_error(T got, long double exact) {
  using Limits = std::numeric_limits<T>;
  const int exponent = std::max(exact == 0 ? Limits::min_exponent : std::ilogb(exact), Limits::min_exponent - 1);
  const long double ulp = std::ldexp(1.0L, exponent - (Limits::digits - 1));
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / ulp);
}

// The largest error seen, and where.
template <class T>
struct Worst {
  double error = 0.0;
  T at = 0;

  void add(T x, T got, long double exact) {
    const double e = std::isnan(got) ? std::numeric_limits<double>::infinity() : ulp_error(got, exact);
    if (e <= error) return;
    error = e;
    at = x;
  }
};

template <class T>
::testing::AssertionResult within(const Worst<T>& worst, double limit) {
  if (worst.error <= limit) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << worst.error << " ulp at " << worst.at;
}

// A sequence of 64 well-mixed bits (splitmix64), independent of the library's own generator.
std::uint64_t mixed(std::uint64_t k) {
  std::uint64_t z = (k + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
double uniform(std::uint64_t k) { return static_cast<double>(mixed(k) >> 11) * 0x1p-53; }

// Every 1021st float (a prime, so that all low bits occur), all 2^32 patterns being walked; then f(x) for 2000 floats
// around x.
constexpr std::uint32_t stride = 1021;
template <class F>
void for_floats(F&& f) {
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += stride)
    f(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}
template <class F>
void for_floats_around(float x, F&& f) {
  const auto centre = std::bit_cast<std::int32_t>(x);
  for (std::int32_t k = -1000; k < 1000; ++k) f(std::bit_cast<float>(centre + k));
}

TEST(Exp, FloatErrorOverTheWholeRange) {
  Worst<float> worst;
  std::int64_t wrong = 0;
  const auto check = [&](float x) {
    const float got = exp(x);
    const long double exact = std::exp(static_cast<long double>(x));
    if (std::isnan(x)) {
      wrong += !std::isnan(got);
    } else if (exact > std::numeric_limits<float>::max()) {
      wrong += got != infinity;
    } else if (exact < std::numeric_limits<float>::min()) {
      wrong += got != 0.0f;
    } else {
      worst.add(x, got, exact);
    }
  };
  for_floats(check);
  for (const float x : {-87.33654f, 88.72283f, 0.34657359f, -0.34657359f, 88.376f}) for_floats_around(x, check);
  EXPECT_TRUE(within(worst, 1.02));
  EXPECT_EQ(wrong, 0) << "special values";
}

TEST(Exp, SpecialValues) {
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(exp(-0.0f), 1.0f);
  EXPECT_EQ(exp(infinity), infinity);
  EXPECT_EQ(exp(-infinity), 0.0f);
  EXPECT_EQ(exp(1e30f), infinity);
  EXPECT_EQ(exp(-1e30f), 0.0f);
  EXPECT_EQ(exp(1e-40f), 1.0f);
  EXPECT_TRUE(std::isnan(exp(nan)));
  EXPECT_TRUE(std::isnan(exp(std::bit_cast<float>(0x7f800001u)))) << "a NaN with other bits";
  EXPECT_TRUE(std::isnan(exp(std::bit_cast<float>(0xffffffffu)))) << "a NaN with other bits";

  constexpr double infinity64 = std::numeric_limits<double>::infinity();
  EXPECT_EQ(exp(0.0), 1.0);
  EXPECT_EQ(exp(infinity64), infinity64);
  EXPECT_EQ(exp(-infinity64), 0.0);
  EXPECT_EQ(exp(709.79), infinity64);
  EXPECT_LT(exp(709.78271289338397), infinity64);
  EXPECT_GT(exp(-708.396418532264), 0.0);
  EXPECT_EQ(exp(-708.3965), 0.0);
  EXPECT_TRUE(std::isnan(exp(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Exp, DoubleError) {
  Worst<double> worst;
  const auto check = [&](double x) { worst.add(x, exp(x), std::exp(static_cast<long double>(x))); };
  for (std::uint64_t k = 0; k < 500'000; ++k) {
    check(-708.39 + (709.78 + 708.39) * uniform(k));
    check(std::ldexp(uniform(k) - 0.5, -static_cast<int>(k % 60)));
  }
  EXPECT_TRUE(within(worst, 1.0));
}

TEST(Log, FloatErrorOverTheWholeRange) {
  Worst<float> worst;
  std::int64_t wrong = 0;
  const auto check = [&](float x) {
    const float got = log(x);
    if (std::isnan(x) || x < 0) {
      wrong += !std::isnan(got);
    } else if (x == 0 || x == infinity) {
      wrong += got != (x == 0 ? -infinity : infinity);
    } else {
      worst.add(x, got, std::log(static_cast<long double>(x)));
      if (x >= 0x1p-126f) wrong += log_positive(x) != got;
    }
  };
  for_floats(check);
  for (const float x : {0x1p-126f, 1e-44f, 3.4028234e38f, 4.0f / 3.0f, 2.0f / 3.0f}) for_floats_around(x, check);
  EXPECT_TRUE(within(worst, 1.25));
  EXPECT_EQ(wrong, 0) << "special values, or log_positive is not log";
}

// Near 1 the result is small and cancellation would show: every float there is.
TEST(Log, FloatErrorNearOneOnEveryFloat) {
  Worst<float> worst;
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(0.5f); bits < std::bit_cast<std::uint32_t>(2.0f); ++bits) {
    const float x = std::bit_cast<float>(bits);
    worst.add(x, log(x), std::log(static_cast<long double>(x)));
  }
  EXPECT_TRUE(within(worst, 1.25));
}

TEST(Log, SpecialValues) {
  EXPECT_EQ(log(1.0f), 0.0f);
  EXPECT_EQ(log(0.0f), -infinity);
  EXPECT_EQ(log(-0.0f), -infinity);
  EXPECT_EQ(log(infinity), infinity);
  EXPECT_TRUE(std::isnan(log(-1.0f)));
  EXPECT_TRUE(std::isnan(log(-infinity)));
  EXPECT_TRUE(std::isnan(log(-1e-44f)));
  EXPECT_TRUE(std::isnan(log(nan)));
  EXPECT_EQ(log(0x1p-149f), std::log(0x1p-149f)) << "the smallest subnormal";

  constexpr double infinity64 = std::numeric_limits<double>::infinity();
  EXPECT_EQ(log(1.0), 0.0);
  EXPECT_EQ(log(0.0), -infinity64);
  EXPECT_EQ(log(-0.0), -infinity64);
  EXPECT_EQ(log(infinity64), infinity64);
  EXPECT_TRUE(std::isnan(log(-1.0)));
  EXPECT_TRUE(std::isnan(log(std::numeric_limits<double>::quiet_NaN())));
}

// Bits of numbers that have no logarithm go beyond the largest integer: defined, which a sanitizer sees, as for
// positive ones.
TEST(Log, DecomposesAnyBits) {
  for (const float x : {-0.0f, -1.0f, -infinity, nan, 0.0f, infinity, 3.0f}) {
    const auto [exponent, mantissa] = detail::decompose(x);
    const auto bits = std::bit_cast<std::uint32_t>(mantissa) + static_cast<std::uint32_t>(to_integer(exponent));
    EXPECT_EQ(bits, std::bit_cast<std::uint32_t>(x)) << x;
  }
  for (const double x : {-0.0, -1.0, -HUGE_VAL, std::nan(""), 0.0, HUGE_VAL, 3.0}) {
    const auto [exponent, mantissa] = detail::decompose(x);
    const auto bits = std::bit_cast<std::uint64_t>(mantissa) + static_cast<std::uint64_t>(to_integer(exponent));
    EXPECT_EQ(bits, std::bit_cast<std::uint64_t>(x)) << x;
  }
}

TEST(Log, DoubleError) {
  Worst<double> worst;
  const auto check = [&](double x) { worst.add(x, log(x), std::log(static_cast<long double>(x))); };
  for (std::uint64_t k = 0; k < 400'000; ++k) {
    check(std::bit_cast<double>(mixed(k) % std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity())));
    check(0.5 + 1.5 * uniform(k));
    check(1.0 + std::ldexp(uniform(k) - 0.5, -static_cast<int>(k % 50)));
  }
  check(std::numeric_limits<double>::denorm_min());
  check(std::numeric_limits<double>::max());
  EXPECT_TRUE(within(worst, 1.0));
}

TEST(Sigmoid, Error) {
  Worst<float> worst;
  Worst<double> worst64;
  for (std::uint64_t k = 0; k < 500'000; ++k) {
    const double x = -87.3 + 187.0 * uniform(k);
    const double y = std::ldexp(uniform(k) - 0.5, 4 - static_cast<int>(k % 30));
    for (const double z : {x, y}) {
      const auto f = static_cast<float>(z);
      worst.add(f, sigmoid(f), 1.0L / (1.0L + std::exp(-static_cast<long double>(f))));
      worst64.add(z, sigmoid(z), 1.0L / (1.0L + std::exp(-static_cast<long double>(z))));
    }
  }
  EXPECT_TRUE(within(worst, 2.5));
  EXPECT_TRUE(within(worst64, 2.5));
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
  EXPECT_EQ(sigmoid(infinity), 1.0f);
  EXPECT_EQ(sigmoid(-infinity), 0.0f);
  EXPECT_TRUE(std::isnan(sigmoid(nan)));
}

TEST(Softplus, Error) {
  Worst<float> worst;
  Worst<double> worst64;
  for (std::uint64_t k = 0; k < 500'000; ++k) {
    const double x = -87.3 + 187.0 * uniform(k);
    const double y = std::ldexp(uniform(k) - 0.5, 4 - static_cast<int>(k % 30));
    for (const double z : {x, y}) {
      const auto f = static_cast<float>(z);
      worst.add(f, softplus(f), std::log1p(std::exp(static_cast<long double>(f))));
      worst64.add(z, softplus(z), std::log1p(std::exp(static_cast<long double>(z))));
    }
  }
  EXPECT_TRUE(within(worst, 3.2));
  EXPECT_TRUE(within(worst64, 3.0));
  EXPECT_EQ(softplus(infinity), infinity);
  EXPECT_EQ(softplus(-infinity), 0.0f);
  EXPECT_EQ(softplus(200.0f), 200.0f);
  EXPECT_TRUE(std::isnan(softplus(nan)));
}

TEST(Tanh, Error) {
  Worst<float> worst;
  Worst<double> worst64;
  for (std::uint64_t k = 0; k < 500'000; ++k) {
    const double x = 20 * (uniform(k) - 0.5), y = std::ldexp(uniform(k) - 0.5, 2 - static_cast<int>(k % 30));
    for (const double z : {x, y}) {
      const auto f = static_cast<float>(z);
      worst.add(f, tanh(f), std::tanh(static_cast<long double>(f)));
      worst64.add(z, tanh(z), std::tanh(static_cast<long double>(z)));
    }
  }
  EXPECT_TRUE(within(worst, 3.5));
  EXPECT_TRUE(within(worst64, 2.0));
  EXPECT_EQ(tanh(infinity), 1.0f);
  EXPECT_EQ(tanh(-infinity), -1.0f);
  EXPECT_EQ(tanh(0.0f), 0.0f);
  EXPECT_EQ(tanh(-std::numeric_limits<double>::infinity()), -1.0);
  EXPECT_TRUE(std::isnan(tanh(nan)));
  EXPECT_TRUE(std::isnan(tanh(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Erf, Error) {
  Worst<float> worst;
  Worst<double> worst64;
  for (std::uint64_t k = 0; k < 500'000; ++k) {
    const double x = 14 * (uniform(k) - 0.5), y = std::ldexp(uniform(k) - 0.5, 2 - static_cast<int>(k % 30));
    for (const double z : {x, y}) {
      const auto f = static_cast<float>(z);
      worst.add(f, erf(f), std::erf(static_cast<long double>(f)));
      worst64.add(z, erf(z), std::erf(static_cast<long double>(z)));
    }
  }
  EXPECT_TRUE(within(worst, 2.6));
  EXPECT_TRUE(within(worst64, 8.0));
  EXPECT_EQ(erf(infinity), 1.0f);
  EXPECT_EQ(erf(-infinity), -1.0f);
  EXPECT_EQ(erf(0.0f), 0.0f);
  EXPECT_EQ(erf(-std::numeric_limits<double>::infinity()), -1.0);
  EXPECT_TRUE(std::isnan(erf(nan)));
  EXPECT_TRUE(std::isnan(erf(std::numeric_limits<double>::quiet_NaN())));
}

// A float near 1 is off by up to 6e-8, a polynomial by as much, and the last steps of Horner's rule round once or twice
// more.
TEST(SineCosine, Error) {
  double worst = 0;
  const auto check = [&](std::uint32_t bits) {
    const SineCosine<float> got = sine_cosine<float>(static_cast<std::int32_t>(bits));
    const long double angle = std::numbers::pi_v<long double> / 2 * static_cast<std::int32_t>(bits) / 0x1p31L;
    worst = std::max(worst, std::abs(static_cast<double>(got.sine - std::sin(angle))));
    worst = std::max(worst, std::abs(static_cast<double>(got.cosine - (bits & 1 ? -1 : 1) * std::cos(angle))));
  };
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 2039) check(static_cast<std::uint32_t>(bits));
  for (std::uint32_t octant = 0; octant < 8; ++octant)
    for (std::uint32_t k = 0; k < 1000; ++k) check((octant << 29) - 500 + k);
  EXPECT_LT(worst, 2.2e-7);
  EXPECT_GT(worst, 1e-8) << "nothing was compared";
}

// The exponential of kernels: one rounding of the argument to 2^-23, worth 4.1e-8, the polynomial's 7.8e-8, and a
// rounding or two.
TEST(Exp2Fixed, Error) {
  double worst = 0;
  for (double t = -126; t < 127; t += 0.000123) {
    const auto argument = static_cast<float>(t * exp2_unit);
    const long double exact = std::exp2(static_cast<long double>(argument) / static_cast<long double>(exp2_unit));
    worst = std::max(worst, std::abs(static_cast<double>(exp2_fixed(argument) / exact - 1)));
  }
  EXPECT_LT(worst, 2.5e-7);
  EXPECT_GT(worst, 1e-8) << "nothing was compared";
  EXPECT_NEAR(exp2_fixed(3.25 * exp2_unit), std::exp2(3.25), 1e-14);
}
TEST(Exp2, IsZeroBelowWhatItIsDefinedFor) {
  const auto unit = static_cast<float>(exp2_unit);
  EXPECT_EQ(exp2_or_zero(-125.5f * unit), exp2_fixed(-125.5f * unit));
  EXPECT_GT(exp2_or_zero(-126.0f * unit), 0.0f);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float low : {-126.00001f, -127.0f, -255.0f, -256.0f, -1000.0f, -1e20f, -inf})
    EXPECT_EQ(exp2_or_zero(low * unit), 0.0f) << low;
  EXPECT_EQ(exp2_or_zero(std::numeric_limits<float>::quiet_NaN()), 0.0f);
  EXPECT_EQ(exp2_or_zero(-1e4 * exp2_unit), 0.0);
}
// Doubles use no fma: these bits are the same on every machine and in every build. A compiler that fuses on its own
// would show here.
TEST(Elementary, DoublesHaveTheSameBitsEverywhere) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](double y) { hash = (hash ^ std::bit_cast<std::uint64_t>(y)) * 0x100000001b3u; };
  for (std::uint64_t k = 0; k < 100'000; ++k) {
    add(exp(100.0 * (uniform(k) - 0.5)));
    add(log(4.0 * uniform(k)));
    add(sigmoid(20.0 * (uniform(k) - 0.5)));
    add(softplus(20.0 * (uniform(k) - 0.5)));
  }
  EXPECT_EQ(hash, 13727769223343223380u);
}

}  // namespace
}  // namespace implicit_diffusion
