// The mean-field model of the theorems: numbers worked out apart, the flow where it is known, and the exponents.
#include "implicit_diffusion/langevin/rates.hpp"

#include "io/expect_error.hpp"
#include "problems/mean_field.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace implicit_diffusion {
namespace {

const std::vector<std::int64_t> decades{100, 1000, 10'000, 100'000};
const std::vector<double> known_targets{1, 1.5, 2.2, 3.3, 5, 7, 10, 15, 22, 33, 50};

TEST(Rates, TheRecursionHasItsKnownNumbers) {
  const problems::MeanFieldAnswers known;
  const std::vector<MeanField> s = mean_field_recursion(cube_root_pair(known.scale), known.target, known.steps);
  EXPECT_NEAR(s[0].theta, known.after_5.theta, 1e-10);
  EXPECT_NEAR(s[0].m, known.after_5.m, 1e-10);
  EXPECT_NEAR(s[0].v, known.after_5.v, 1e-10);
  EXPECT_NEAR(s[0].average, known.after_5.average, 1e-10);
  EXPECT_NEAR(s[1].theta, known.theta_after_1000, 1e-10);
  EXPECT_NEAR(s[1].average, known.average_after_1000, 1e-10);
}

// The worst cases have four known digits. The proved pair loses a factor K^(1/3) a decade, the pair of the statement
// hardly anything.
TEST(Rates, OnlyTheProvedPairKeepsItsBound) {
  const std::vector<double> cube{.2324, .1086, .05123, .02519}, square{.4055, .3209, .2346, .2226};
  const std::vector<RateRow> a = discrete_rates(1.0 / 3, 0.25, known_targets, decades);
  const std::vector<RateRow> b = discrete_rates(0.5, 0.25, known_targets, decades);
  for (std::size_t r = 0; r < decades.size(); ++r) {
    EXPECT_EQ(a[r].horizon, static_cast<double>(decades[r]));
    EXPECT_NEAR(a[r].worst_average / cube[r], 1, 3e-4);
    EXPECT_NEAR(b[r].worst_average / square[r], 1, 3e-4);
  }
  // From the known digits: the fits of their logarithms.
  EXPECT_NEAR(fitted_slope(a), -.3221, 2e-4);
  EXPECT_NEAR(fitted_slope(b), -.0917, 2e-4);
  EXPECT_NEAR(fitted_slope(std::span(a).last(2)), -.308, 5e-4);
  EXPECT_NEAR(fitted_slope(std::span(b).last(2)), -.023, 5e-4);
}

TEST(Rates, TheFitFindsAPower) {
  std::vector<RateRow> rows;
  for (const double x : {1.0, 3.0, 10.0, 70.0}) rows.push_back({x, 5 * std::pow(x, -0.37), 0});
  EXPECT_NEAR(fitted_slope(rows), -0.37, 1e-15);
}

// Far from the target erf = -1: theta = t up to 1 and 2 sqrt(t) - 1 from then on; m follows theta, m = t - 1 + e^-t up
// to 1. The Runge-Kutta method is of order 4: on polynomials and exponentials at h = 1/16 errors are near h^4 / 120 =
// 1e-7.
TEST(Rates, TheFlowIsKnownFarFromItsTarget) {
  const std::vector<double> times{0.5, 1, 4, 100};
  const std::vector<MeanField> s = mean_field_flow(1000, times);
  for (std::size_t r = 0; r < times.size(); ++r) {
    const double t = times[r];
    EXPECT_NEAR(s[r].theta, t < 1 ? t : 2 * std::sqrt(t) - 1, 1e-7);
    EXPECT_NEAR(s[r].v, 1, 1e-15);
    EXPECT_NEAR(s[r].average, 1, 1e-12);
    if (t <= 1) {
      EXPECT_NEAR(s[r].m, t - 1 + std::exp(-t), 1e-7);
    }
  }
}

// Half the step, a sixteenth of the error; at the step that is the default it is below 1e-6.
TEST(Rates, TheFlowIsOfOrderFour) {
  const std::vector<double> times{40};
  const double exact = mean_field_flow(5, times, 256)[0].average;
  const double coarse = mean_field_flow(5, times, 4)[0].average - exact;
  const double fine = mean_field_flow(5, times, 8)[0].average - exact;
  EXPECT_NEAR(coarse / fine, 16, 4);
  EXPECT_LT(std::abs(mean_field_flow(5, times)[0].average - exact), 1e-6);
}

// theta needs the time c^2 / 4 to get to c, and the average is near 1 until then: the worst average / gap is near 1 /
// (2 sqrt T), attained where theta just arrives. A grid of ratio 1.1 is off by less than a tenth of that, which moves a
// slope over three decades by 0.1 / log(1000) = 0.014.
TEST(Rates, TheFlowKeepsItsBound) {
  const std::vector<double> times{10, 100, 1000, 10'000}, targets = rate_targets(400, 1.1);
  const std::vector<RateRow> rows = flow_rates(targets, times);
  for (const RateRow& row : rows) {
    RecordProperty("T" + std::to_string(static_cast<int>(row.horizon)), std::to_string(row.worst_average));
    EXPECT_GT(row.worst_target, std::sqrt(row.horizon));
    EXPECT_LT(row.worst_target, 4 * std::sqrt(row.horizon));
  }
  RecordProperty("slope", std::to_string(fitted_slope(rows)));
  EXPECT_NEAR(fitted_slope(std::span(rows).last(3)), -0.5, 0.03);
}

// l(0) - inf l by quadrature of its slope: midpoints, error (c / n)^2 / 24 sqrt(2 / pi), at most 1.6e-8.
TEST(Rates, TheGapIsTheIntegralOfTheSlope) {
  for (const double c : {0.5, 2.0, 7.0}) {
    double sum = 0;
    const int n = 10'000;
    for (int i = 0; i < n; ++i) sum += std::erf(c * (i + 0.5) / n / std::sqrt(2.0)) * c / n;
    EXPECT_NEAR(initial_gap(c), sum, 1.8e-8);
  }
}

TEST(Rates, RefuseBadOptions) {
  EXPECT_ERROR(rate_targets(10, 1), usage, "rates.ratio: it must be above 1");
  EXPECT_ERROR(discrete_rates(-1, 1, known_targets, decades), usage, "rates.exponent: -1");
  EXPECT_ERROR(discrete_rates(1, 0, known_targets, decades), usage, "rates.scale: 0");
  EXPECT_ERROR(mean_field_flow(1, std::vector<double>{1}, 0), usage, "flow.steps_per_time");
}

}  // namespace
}  // namespace implicit_diffusion
