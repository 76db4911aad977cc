#include "implicit_diffusion/report/ticks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace implicit_diffusion::report {
namespace {

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> out;
  for (const Tick& tick : ticks) out.push_back(tick.label);
  return out;
}

using Labels = std::vector<std::string>;

TEST(LinearTicks, AreTheOnesAPersonWouldChoose) {
  EXPECT_EQ(labels(linear_ticks(0, 5000, 6)), (Labels{"0", "1000", "2000", "3000", "4000", "5000"}));
  EXPECT_EQ(labels(linear_ticks(0.07, 0.29, 6)), (Labels{"0.10", "0.15", "0.20", "0.25"}));
  EXPECT_EQ(labels(linear_ticks(-6.9, -1.2, 4)), (Labels{"−6", "−4", "−2"}));
  EXPECT_EQ(labels(linear_ticks(0, 20000, 5)), (Labels{"0", "5k", "10k", "15k", "20k"}));
  EXPECT_EQ(labels(linear_ticks(0, 2.5e6, 6)), (Labels{"0", "0.5M", "1.0M", "1.5M", "2.0M", "2.5M"}));
  EXPECT_EQ(labels(linear_ticks(0, 4e-5, 5)), (Labels{"0", "1×10⁻⁵", "2×10⁻⁵", "3×10⁻⁵", "4×10⁻⁵"}));
}

// Over ranges of any place and size: few enough, inside, ascending, evenly spaced by 1, 2 or 5 times a power of ten,
// told apart by their labels.
TEST(LinearTicks, AreNiceOnAnyRange) {
  std::mt19937 random{1};
  std::uniform_real_distribution<double> exponent{-12, 12}, unit{-1, 1};
  for (int trial = 0; trial < 5000; ++trial) {
    const double width = std::pow(10, exponent(random));
    const double low = unit(random) * width * 10, high = low + width;
    const std::size_t most = 2 + static_cast<std::size_t>(trial % 9);
    const auto ticks = linear_ticks(low, high, most);
    ASSERT_LE(ticks.size(), most);
    ASSERT_GE(ticks.size(), 1U) << low << ' ' << high << ' ' << most;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      ASSERT_GE(ticks[i].value, low);
      ASSERT_LE(ticks[i].value, high);
      if (i == 0) continue;
      ASSERT_NE(ticks[i].label, ticks[i - 1].label);
      const double spacing = ticks[i].value - ticks[i - 1].value;
      const double mantissa = spacing / std::pow(10, std::floor(std::log10(spacing) + 1e-6));
      ASSERT_TRUE(std::abs(mantissa - 1) < 1e-6 || std::abs(mantissa - 2) < 1e-6 || std::abs(mantissa - 5) < 1e-6)
          << mantissa;
    }
  }
}

TEST(LinearTicks, EndOnStrangeRanges) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(linear_ticks(1, 1, 5).empty());
  EXPECT_TRUE(linear_ticks(2, 1, 5).empty());
  EXPECT_TRUE(linear_ticks(0, 1, 0).empty());
  EXPECT_TRUE(linear_ticks(0, inf, 5).empty());
  EXPECT_TRUE(linear_ticks(nan, 1, 5).empty());
  EXPECT_LE(linear_ticks(1, std::nextafter(1, 2), 5).size(), 5U);
  EXPECT_LE(linear_ticks(0, std::numeric_limits<double>::denorm_min(), 5).size(), 5U);
  EXPECT_LE(linear_ticks(-8e307, 8e307, 5).size(), 5U);
}

TEST(LogTicks, StandAtPowersOfTen) {
  EXPECT_EQ(labels(log_ticks(1, 1e5, 8)), (Labels{"1", "10", "100", "1000", "10k", "100k"}));
  EXPECT_EQ(labels(log_ticks(1e-4, 2, 6)), (Labels{"10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"}));
  EXPECT_EQ(labels(log_ticks(0.9, 60, 8)), (Labels{"1", "2", "5", "10", "20", "50"}));
  EXPECT_EQ(labels(log_ticks(1e-12, 1, 7)), (Labels{"10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"}));
  EXPECT_EQ(labels(log_ticks(3.1, 3.9, 5)), (Labels{"3.2", "3.4", "3.6", "3.8"}));
  EXPECT_TRUE(log_ticks(0, 1, 5).empty());
  EXPECT_LE(log_ticks(1e-300, 1e300, 6).size(), 6U);
  EXPECT_GE(log_ticks(1e-300, 1e300, 6).size(), 2U);
}

}  // namespace
}  // namespace implicit_diffusion::report
