// Measures of trust against known values: shares of tails, trends at the end of a series.
#include "implicit_diffusion/diagnostics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace implicit_diffusion {
namespace {

TEST(Concentration, IsKnownWhereAllAreAlikeAndWhereOneIsAll) {
  const Concentration alike = concentration(std::vector<double>(1000, 2.5));
  EXPECT_NEAR(alike.tail_share, 0.01, 1e-12);
  EXPECT_NEAR(alike.effective_samples, 1000, 1e-9);

  std::vector<double> one(1000, 0.0);
  one[417] = 1e200;  // its square is beyond the largest double
  EXPECT_NEAR(concentration(one).tail_share, 1, 1e-12);
  EXPECT_NEAR(concentration(one).effective_samples, 1, 1e-12);

  const Concentration two = concentration(std::vector{3.0, 1.0});  // a hundredth of two is one of them
  EXPECT_NEAR(two.tail_share, 0.75, 1e-12);
  EXPECT_NEAR(two.effective_samples, 16.0 / 10, 1e-12);

  EXPECT_EQ(concentration({}).tail_share, 0);
  EXPECT_EQ(concentration(std::vector<double>(10, 0.0)).effective_samples, 0);
}

TEST(Concentration, OfVectorsIsAboutTheirMean) {
  const std::vector<std::vector<double>> vectors{{1, 0}, {3, 4}, {2, 2}};
  const std::vector<double> squares = squared_deviations(vectors);  // the mean is (2, 2)
  ASSERT_EQ(squares.size(), 3U);
  EXPECT_NEAR(squares[0], 5, 1e-12);
  EXPECT_NEAR(squares[1], 5, 1e-12);
  EXPECT_NEAR(squares[2], 0, 1e-12);
  EXPECT_TRUE(squared_deviations({}).empty());
}

// Quantiles in the middle of n equal parts stand for the law: with n = 100,000 the part above the last of them, 1e-5 of
// the mass, is missed, which is worth some 1e-4 of the shares and 1e-3 of the fourth moment.
TEST(Concentration, IsThatOfTheLawForQuantiles) {
  constexpr int n = 100'000;
  std::vector<double> exponential, normal;
  for (int i = 0; i < n; ++i) {
    const double u = (i + 0.5) / n;
    exponential.push_back(-std::log(u));
    double low = 0, high = 10;  // P(|Z| > z) = u
    for (int k = 0; k < 60; ++k) {
      const double z = (low + high) / 2;
      (std::erfc(z / std::numbers::sqrt2) > u ? low : high) = z;
    }
    normal.push_back(low * low);
  }
  // E[X; X > log 100] = (1 + log 100) / 100, E[X^2] = 2.
  EXPECT_NEAR(concentration(exponential).tail_share, 0.01 * (1 + std::log(100)), 2e-4);
  EXPECT_NEAR(concentration(exponential).effective_samples, n / 2.0, 2e-3 * n);
  // E[Z^2; |Z| > a] = 2 a phi(a) + P(|Z| > a) with a = 2.575829, P = 0.01; E[Z^4] = 3.
  const double a = 2.5758293035489, phi = std::exp(-a * a / 2) / std::sqrt(2 * std::numbers::pi);
  EXPECT_NEAR(concentration(normal).tail_share, 2 * a * phi + 0.01, 2e-4);
  EXPECT_NEAR(concentration(normal).effective_samples, n / 3.0, 2e-3 * n);
}

TEST(FinalTrend, OfAStraightLineIsKnown) {
  std::vector<double> line;
  for (int i = 0; i < 100; ++i) line.push_back(3.0 * i);
  const Trend t = final_trend(line).value();
  EXPECT_NEAR(t.change, 30, 1e-9);         // means of tenths are ten values apart
  EXPECT_NEAR(t.total, 3 * 94.5, 1e-9);    // from the first value to the middle of the last tenth
  EXPECT_NEAR(t.standard_error, 0, 1e-9);  // there is no noise
  EXPECT_TRUE(t.steady);
}

TEST(FinalTrend, PassesByWhatIsNotFiniteAndNeedsTwentyValues) {
  std::vector<double> line;
  for (int i = 0; i < 20; ++i) line.push_back(i);
  EXPECT_TRUE(final_trend(line).has_value());
  EXPECT_FALSE(final_trend(std::span(line).first(19)).has_value());
  std::vector<double> gaps{std::numeric_limits<double>::quiet_NaN()};
  gaps.insert(gaps.end(), line.begin(), line.end());
  gaps.push_back(std::numeric_limits<double>::infinity());
  EXPECT_EQ(final_trend(gaps)->change, final_trend(line)->change);
}

// e^(-k/8) has fallen by 4e-6 of its whole change over the last tenth of 100 values; e^(-k/100) by more than a
// twentieth.
TEST(FinalTrend, TellsASettledSeriesFromOneThatIsNot) {
  std::vector<double> settled, not_settled;
  for (int i = 0; i < 100; ++i) {
    settled.push_back(std::exp(-i / 8.0));
    not_settled.push_back(std::exp(-i / 100.0));
  }
  EXPECT_LT(std::abs(final_trend(settled)->change), 1e-4 * final_trend(settled)->total);
  EXPECT_GT(std::abs(final_trend(not_settled)->change), 0.05 * final_trend(not_settled)->total);
  EXPECT_TRUE(final_trend(not_settled)->steady);
}

// White noise of variance 1: the change has the standard error sqrt(2 / 100) with 100 values in a tenth, its estimate
// from 500 second differences one of some 5 % of it. Five means are in order for one series in 60, and beyond four
// standard errors for one in 16,000: both together for none of 2000, but for one seed in 500.
TEST(FinalTrend, IsNotFooledByNoise) {
  std::mt19937_64 bits(1);
  std::normal_distribution<double> normal;
  const auto noise = [&](int n) {
    std::vector<double> v;
    for (int i = 0; i < n; ++i) v.push_back(normal(bits));
    return v;
  };
  EXPECT_NEAR(final_trend(noise(1000))->standard_error, std::sqrt(0.02), 0.25 * std::sqrt(0.02));
  int steady = 0, fooled = 0;
  for (int k = 0; k < 2000; ++k) {
    const Trend t = final_trend(noise(100)).value();
    steady += t.steady;
    fooled += t.steady && std::abs(t.change) > 4 * t.standard_error;
  }
  EXPECT_EQ(fooled, 0);
  EXPECT_LT(steady, 80);  // 33 are expected, with a standard deviation of 6
}

}  // namespace
}  // namespace implicit_diffusion
