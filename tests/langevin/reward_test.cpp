// Rewards: known values, gradients by dual numbers against finite differences, expectations against quadrature.
#include "implicit_diffusion/langevin/reward.hpp"
#include "implicit_diffusion/differences.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "langevin/evaluate.hpp"
#include "problems/hexagon_reward.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

using problems::five_points;
using problems::hard_reward;
using problems::HexagonAnswers;
using problems::population_of;
using problems::smooth_reward;

template <class Real>
std::vector<double> values(const Reward<Real>& reward, const Population<Real>& x) {
  std::vector<Real> out(x.size());
  for (std::size_t b = 0; b < x.blocks(); ++b) reward.values(x.block(b), out.data() + b * block_size);
  return {out.begin(), out.end()};
}

double value(const Reward<double>& reward, const std::vector<double>& x) {
  return values(reward, population_of<double>({x}))[0];
}

std::vector<double> gradient(const Reward<double>& reward, const std::vector<double>& x) {
  const auto population = population_of<double>({x});
  std::vector<double> by_coordinate(x.size() * block_size), out;
  reward.gradient(population.block(0), by_coordinate.data());
  for (std::size_t j = 0; j < x.size(); ++j) out.push_back(by_coordinate[j * block_size]);
  return out;
}

// The largest difference between `slope` and central differences of the values. Step 1e-5: truncation h^2 R''' / 6
// below 1e-10, rounding 1e-11.
double gradient_error(const Reward<double>& reward, const std::vector<double>& x, const std::vector<double>& slope) {
  const double h = 1e-5;
  double worst = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    auto up = x, down = x;
    up[j] += h;
    down[j] -= h;
    worst = std::max(worst, std::abs((value(reward, up) - value(reward, down)) / (2 * h) - slope[j]));
  }
  return worst;
}

TEST(Rewards, HaveTheKnownValues) {
  const HexagonAnswers known;
  expect_near(values<double>(hard_reward(), population_of<double>(five_points())), known.hard, 1e-11);
  expect_near(values<double>(smooth_reward(), population_of<double>(five_points())), known.smooth, 1e-11);
  // Floats: a few roundings of 6e-8.
  expect_near(values<float>(hard_reward(), population_of<float>(five_points())), known.hard, 5e-7);
  expect_near(values<float>(smooth_reward(), population_of<float>(five_points())), known.smooth, 5e-7);

  EXPECT_NEAR(value(BumpReward({1, -1}, 2.0), {2, 0}), std::exp(-2.0 / 4.0), 1e-15);
  EXPECT_NEAR(value(QuadraticReward({1, -1}), {3, 0.5}), -6.25, 1e-15);
}

TEST(RadiusReward, IsLargestAtItsRadius) {
  const RadiusReward reward({1, -1}, 2, 0.3);
  EXPECT_NEAR(value(reward, {3, -1}), 1, 1e-15);
  EXPECT_NEAR(value(reward, {1, -3}), 1, 1e-15);
  EXPECT_NEAR(value(reward, {1 + 1.8, -1 - 2.4}), std::exp(-1 / 0.6), 1e-14);
  EXPECT_NEAR(value(reward, {1, -1}), std::exp(-4 / 0.6), 1e-14);
  EXPECT_NEAR(value(RadiusReward({0}, 1, 1), {-3}), std::exp(-2.0), 1e-15);
  for (const auto& x : {std::vector<double>{2.5, 0.5}, std::vector<double>{1.2, -0.9}}) {
    std::vector<double> slope = gradient(reward, x);
    EXPECT_LT(gradient_error(reward, x, slope), 1e-8);
    slope[0] *= 1.01;
    EXPECT_GT(gradient_error(reward, x, slope), 1e-6);
  }
  // At the centre no direction is better than another.
  for (const double s : gradient(reward, {1, -1})) EXPECT_NEAR(s, 0, 1e-12);
  EXPECT_THROW(RadiusReward({0, 0}, 0, 1), Error);
  EXPECT_THROW(RadiusReward({0, 0}, 1, -1), Error);
}

// Far away the squares of distances overflow; the reward is 0 there, and so is its gradient.
template <class Real>
void expect_zero_far_away(Real far) {
  const Reward<Real> narrow = RadiusReward({0, 0}, 1, 1e-30), wide = RadiusReward({0, 0}, 1e18, 1);
  for (const Reward<Real>& reward : {narrow, wide})
    for (const Real x : {far, -far, std::numeric_limits<Real>::max()}) {
      const auto population = population_of<Real>({{static_cast<double>(x), 1}});
      EXPECT_EQ(values(reward, population)[0], 0) << x;
      std::vector<Real> slope(2 * block_size);
      reward.gradient(population.block(0), slope.data());
      EXPECT_EQ(slope[0], 0) << x;
      EXPECT_EQ(slope[block_size], 0) << x;
    }
}
TEST(RadiusReward, StaysFiniteFarAway) {
  expect_zero_far_away(1e19f);
  expect_zero_far_away(1e36f);
  expect_zero_far_away(1e160);
  EXPECT_EQ(values<float>(RadiusReward({0}, 1e18, 1), population_of<float>({{1e18}}))[0], 1);
}

// Numbers that lie beside a centre, or beside a sample, are not read.
TEST(Rewards, RefuseSamplesOfAnotherDimension) {
  const std::vector<Reward<double>> rewards{hard_reward(),
                                            smooth_reward(),
                                            BumpReward({1, -1}, 2.0),
                                            QuadraticReward({1, -1}),
                                            RadiusReward({1, -1}, 1, 1),
                                            LinearReward{{1, -1}}};
  for (const Reward<double>& reward : rewards)
    for (const std::size_t d : {1, 3}) {
      const Population<double> x(1, d);
      std::vector<double> out(d * block_size);
      EXPECT_THROW(reward.values(x.block(0), out.data()), Error);
      EXPECT_THROW(reward.gradient(x.block(0), out.data()), Error);
      const Gaussian g{std::vector<double>(d), std::vector<double>(d * d, 1.0)};
      EXPECT_THROW((void)reward.expectation({{1.0}, {g}}), Error);
    }
  EXPECT_THROW((void)value(LinearReward{}, {1}), Error);
}

TEST(HardReward, IncludesItsEdge) {
  const double on_the_edge = std::exp(-(16 + 3.8 * 3.8) / 20) / 2.5;
  EXPECT_NEAR(value(hard_reward(), {0, 0}), on_the_edge, 1e-15);
  EXPECT_EQ(value(hard_reward(), {-1e-9, 0}), 0.0);
}

TEST(Rewards, GradientsEqualFiniteDifferences) {
  expect_near(gradient(smooth_reward(), {3, 2}), HexagonAnswers().smooth_slope_at_first, 1e-11);
  const std::vector<Reward<double>> rewards{smooth_reward(), hard_reward(), BumpReward({1, -1}, 2.0),
                                            QuadraticReward({1, -1})};
  for (const Reward<double>& reward : rewards)
    for (const std::vector<double>& x : five_points()) {
      ASSERT_TRUE(reward.has_gradient());
      const std::vector<double> slope = gradient(reward, x);
      EXPECT_LT(gradient_error(reward, x, slope), 1e-8);
      if (std::hypot(slope[0], slope[1]) < 1e-3) continue;
      const std::vector<double> wrong{1.001 * slope[0], 1.001 * slope[1]};
      EXPECT_GT(gradient_error(reward, x, wrong), 1e-7) << "a gradient that is off by 0.1 % would pass";
    }
}

// Far from the centre only the jump matters, and no gradient sees it.
TEST(HardReward, GradientDoesNotSeeTheJump) {
  EXPECT_EQ(gradient(hard_reward(), {-1e-9, 0}), (std::vector<double>{0, 0}));
}

TEST(HardReward, HasTheKnownExpectationInEachWell) {
  const HexagonAnswers known;
  const Reward<double> reward = hard_reward();
  for (std::size_t i = 0; i < 6; ++i) {
    const GaussianMixture well{{1.0}, {{problems::hexagon()[i], {1, 0, 0, 1}}}};
    EXPECT_NEAR(reward.expectation(well).value(), known.hard_by_well[i], 1e-12) << i;
  }
  // A mixture is the mean of its components: sum_i softmax(theta)_i rho_i.
  EXPECT_NEAR(reward.expectation(problems::hexagon_wells().law(problems::hexagon_start())).value(),
              known.expected_reward, 1e-11);
}

// E R(X), X ~ N(m, S) in the plane: Gauss-Legendre, five nodes on panels of length 1/4, to 14 beyond the origin on both
// axes; 0 is the edge of a panel, where the hard reward jumps. Good to 1e-13: it gives mass and covariances of the
// Gaussian itself to that (checked below).
double integrate(const Gaussian& g, const std::function<double(const std::vector<double>&)>& f) {
  const std::array<double, 5> node{-.906179845938664, -.538469310105683, 0, .538469310105683, .906179845938664};
  const std::array<double, 5> weight{.236926885056189, .478628670499366, .568888888888889, .478628670499366,
                                     .236926885056189};
  const double half = 0.125, end = 14;
  const double a = g.covariance[0], b = g.covariance[1], c = g.covariance[3], det = a * c - b * b;
  double sum = 0;
  for (double u = -end + half; u < end; u += 2 * half)
    for (double v = -end + half; v < end; v += 2 * half)
      for (std::size_t i = 0; i < 5; ++i)
        for (std::size_t j = 0; j < 5; ++j) {
          const double x = u + half * node[i], y = v + half * node[j], p = x - g.mean[0], q = y - g.mean[1];
          const double exponent = (c * p * p - 2 * b * p * q + a * q * q) / det;
          if (exponent > 100) continue;  // below 2e-22
          sum += weight[i] * weight[j] * half * half * std::exp(-exponent / 2) * f({x, y});
        }
  return sum / (2 * std::numbers::pi * std::sqrt(det));
}

TEST(Rewards, ExpectationsEqualQuadratureForFullCovariances) {
  const Gaussian g{{0.5, -0.7}, {1.5, 0.8, 0.8, 1.1}}, upright{{0.5, -0.7}, {1.5, 0, 0, 1.1}};
  ASSERT_NEAR(integrate(g, [](const auto&) { return 1.0; }), 1.0, 1e-12);
  ASSERT_NEAR(integrate(g, [](const auto& x) { return (x[0] - 0.5) * (x[1] + 0.7); }), 0.8, 1e-12);

  struct Case {
    const char* name;
    Reward<double> reward;
    double tolerance;
    bool sees_correlation = true;
  };
  const std::vector<Case> cases{{"hard", hard_reward(), 1e-11},
                                {"smooth", smooth_reward(), 1e-11},
                                {"bump", BumpReward({1, -1}, 2.0), 1e-11},
                                {"quadratic", QuadraticReward({1, -1}), 1e-11, false}};
  for (const Case& c : cases) {
    const double expected = integrate(g, [&](const std::vector<double>& x) { return value(c.reward, x); });
    EXPECT_NEAR(c.reward.expectation({{1.0}, {g}}).value(), expected, c.tolerance) << c.name;
    if (c.sees_correlation) {
      EXPECT_GT(std::abs(c.reward.expectation({{1.0}, {upright}}).value() - expected), 1e-4) << c.name;
    }
  }
}

// A steep sigmoid beside a wide Gaussian, and one that is hardly soft at all: its reward is the hard one's, up to
// softness^2 pi^2 / 6 times the slope of the density.
TEST(SmoothReward, ExpectationHoldsForAnySoftness) {
  const Gaussian wide{{-1, 2}, {4, -1, -1, 3}};
  for (const double softness : {0.3, 1.0, 1.3, 1.5, 2.0, 5.0}) {
    const Reward<double> reward = SmoothReward({4, 3.8}, 20, 2.5, softness);
    const double expected = integrate(wide, [&](const std::vector<double>& x) { return value(reward, x); });
    EXPECT_NEAR(reward.expectation({{1.0}, {wide}}).value(), expected, 1e-10) << softness;
  }
  for (const double softness : {1e-2, 1e-4, 1e-12}) {
    const Reward<double> soft = SmoothReward({4, 3.8}, 20, 2.5, softness), hard = HardReward({4, 3.8}, 20, 2.5);
    EXPECT_NEAR(soft.expectation({{1.0}, {wide}}).value(), hard.expectation({{1.0}, {wide}}).value(),
                softness * softness + 1e-14)
        << softness;
  }
}

TEST(Reward, MayBeALambda) {
  const Reward<float> reward = [](const float* x) { return x[0] * x[1]; };
  EXPECT_FALSE(reward.has_gradient());
  EXPECT_FALSE(reward.expectation({{1.0}, {{{0, 0}, {1, 0, 0, 1}}}}));
  EXPECT_EQ(values<float>(reward, population_of<float>({{2, 3}, {-1, 4}})), (std::vector<double>{6, -4}));
}

// A type of the user's own that promises any number gets its gradient for nothing.
struct Product {
  static constexpr bool any_number = true;
  template <class Real>
  Real operator()(const Real* x) const {
    return x[0] * x[1] * x[2];
  }
};
TEST(Reward, OfAnyNumberHasAGradient) { EXPECT_EQ(gradient(Product{}, {2, 3, 5}), (std::vector<double>{15, 10, 6})); }

TEST(Reward, BlocksOfAnySize) {
  const Reward<double> reward = Product{};
  for (const std::size_t size : {1, 15, 16, 17, 255, 256, 257}) {
    Population<double> x(size, 3);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < 3; ++j) x(i, j) = std::sin(static_cast<double>(3 * i + j));
    const std::vector<double> all = values(reward, x);
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(all[i], x(i, 0) * x(i, 1) * x(i, 2));
  }
}

// Differences of sixth order are exact for a linear function, and for polynomials of up to the sixth degree.
TEST(LinearReward, IsAProductAndItsGradientTheDirection) {
  const LinearReward r{{0.5, -2, 3}};
  const std::vector<double> x{1, 2, -1};
  EXPECT_EQ(r(x.data()), 0.5 - 4 - 3);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const auto moved = [&](double t) {
      std::vector<double> there = x;
      there[j] += t;
      return r(there.data());
    };
    EXPECT_NEAR(difference(moved, 1.0), r.direction[j], 1e-12);
  }
  const auto powers = [](double t) { return std::vector<double>{2 + 3 * t + std::pow(t, 6), std::exp(t)}; };
  const std::vector<double> slopes = differences(powers, 1.0);
  EXPECT_NEAR(slopes[0], 3, 1e-12);
  EXPECT_NEAR(slopes[1], 1, 1e-12);
  EXPECT_GT(std::abs((std::exp(0.01) - std::exp(-0.01)) / 0.02 - 1), 1e-6) << "second order would not do";
}

}  // namespace
}  // namespace implicit_diffusion
