// Langevin dynamics on quadratics, where the law of the discretised chain is known after every number of steps, its
// bias included.
//
// Samples are independent, so a sample mean has standard error sqrt(v / n) and a sample covariance sqrt((v_a v_b +
// v_ab^2) / (n - 1)). The seeds are fixed; at five standard errors a correct sampler with another seed would fail a
// check once in 1.7 million times.
#include "implicit_diffusion/langevin/sampler.hpp"
#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/start.hpp"
#include "implicit_diffusion/population_arrays.hpp"
#include "langevin/statistics.hpp"
#include "problems/hexagon_reward.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

constexpr std::size_t n = 65'536;

// V = (x - theta)^2 / 2.
Quadratic line() { return Quadratic(std::vector<std::vector<double>>{{1.0}}); }

template <class Real>
void run(Langevin<Real>& sampler, Population<Real>& x, const std::vector<double>& theta, std::int64_t steps) {
  for (std::int64_t k = 0; k < steps; ++k) sampler.advance(x, theta, {.round = k});
}

// m_s = theta + (1 - g)^s (m_0 - theta),  v_s = v_g + (1 - g)^2s (v_0 - v_g),  v_g = 1 / (1 - g / 2).
TEST(Langevin, HasTheKnownMeanAndVarianceOnTheWay) {
  Population<float> x(n, 1);
  MixtureSampler({{1.0}, {{{-.3}, {4}}}}, Noise{1}).draw(x, 0);
  Langevin<float> sampler(line(), {.step_size = {0.1}, .noise = Noise{2}});
  run(sampler, x, {1.7}, 7);

  const double m = 0.7434062, v = 1.726894935515;
  const std::span<const float> column = std::as_const(x).coordinate(0);
  EXPECT_NEAR(mean(column), m, 5 * std::sqrt(v / n));
  EXPECT_NEAR(covariance(column, column), v, 5 * covariance_error(v, v, v, n));
  // One step more or less would be seen: the mean moves by a tenth of its distance to theta.
  EXPECT_GT(0.1 * (1.7 - m), 5 * std::sqrt(v / n));
}

TEST(Langevin, StationaryVarianceHasTheKnownStepBias) {
  for (const auto& [g, variance] :
       std::vector<std::pair<double, double>>{{.1, 1.052631578947}, {.2, 1.111111111111}, {.5, 1.333333333333}}) {
    Population<float> x(n, 1);
    Langevin<float> sampler(line(), {.step_size = {g}, .noise = Noise{3}});
    run(sampler, x, {0.5}, 80);  // what is left of the start: 0.9^160 = 5e-8

    const std::span<const float> column = std::as_const(x).coordinate(0);
    const double tolerance = 5 * covariance_error(variance, variance, variance, n);
    EXPECT_NEAR(covariance(column, column), variance, tolerance) << g;
    EXPECT_NEAR(mean(column), 0.5, 5 * std::sqrt(variance / n)) << g;
    EXPECT_GT(variance - 1, tolerance) << "too few samples to see the bias";
  }
}

// S_g = (P - g P^2 / 2)^-1 for V = (x - theta)' P (x - theta) / 2.
TEST(Langevin, StationaryCovarianceInThePlane) {
  Population<float> x(n, 2);
  Langevin<float> sampler(Quadratic({{2, .5}, {.5, 1}}), {.step_size = {0.2}, .noise = Noise{4}});
  run(sampler, x, {1, -1}, 60);

  const double known[2][2] = {{.69686411, -.27874564}, {-.27874564, 1.2543554}};
  const double unbiased[2][2] = {{1 / 1.75, -.5 / 1.75}, {-.5 / 1.75, 2 / 1.75}};  // P^-1
  for (std::size_t a = 0; a < 2; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      const double tolerance = 5 * covariance_error(known[a][a], known[b][b], known[a][b], n);
      EXPECT_NEAR(covariance(std::as_const(x).coordinate(a), std::as_const(x).coordinate(b)), known[a][b], tolerance);
    }
  for (std::size_t a = 0; a < 2; ++a)
    EXPECT_GT(std::abs(known[a][a] - unbiased[a][a]), 5 * covariance_error(known[a][a], known[a][a], known[a][a], n))
        << "too few samples to see the bias";
}

// x <- x - g grad V(x) + sqrt(2 g) z with the noise of its definition, sample by sample, for sizes that do not fill
// groups and blocks.
template <class Real>
void expect_definition(std::size_t size, double tolerance) {
  SoftmaxWells wells = problems::hexagon_wells();
  const std::vector<double> theta = problems::hexagon_start();
  const StepKey at{.round = 5, .index = 3};
  const double g = 0.2;
  Population<Real> x(size, 2);
  StandardNormalStart<Real>{Noise{5}}.draw(x, 0);
  const Population<Real> before = x;
  Langevin<Real> sampler(wells, {.step_size = {g}, .noise = Noise{6}});
  sampler.advance(x, theta, at);

  wells.prepare(theta);
  for (std::size_t i = 0; i < size; ++i) {
    const std::array<double, 2> point{before(i, 0), before(i, 1)};
    std::array<double, 2> slope;
    wells.evaluate(point.data(), slope.data(), static_cast<double*>(nullptr));
    for (std::size_t j = 0; j < 2; ++j) {
      const double z = Noise{6}.normal(Stream::sampling, at, 2, i, j);
      ASSERT_NEAR(x(i, j), point[j] - g * slope[j] + std::sqrt(2 * g) * z, tolerance) << size << ", sample " << i;
      ASSERT_EQ(before(i, j), static_cast<Real>(Noise{5}.normal(Stream::initial, {.round = 0}, 2, i, j)));
    }
  }
}
TEST(Langevin, StepsByItsDefinition) {
  for (const std::size_t size : {1, 15, 16, 17, 255, 256, 257, 1000}) {
    expect_definition<double>(size, 1e-14);  // numbers up to 10, a few roundings of 1e-16 each
    expect_definition<float>(size, 1e-5);
  }
}

TEST(Langevin, StepSizeFollowsTheRound) {
  const SoftmaxWells wells = problems::hexagon_wells();
  Population<float> x(100, 2), y;
  StandardNormalStart<float>{Noise{7}}.draw(x, 0);
  y = x;
  Langevin<float> falling(wells, {.step_size = {0.2, 0.5}, .noise = Noise{8}});
  Langevin<float> half(wells, {.step_size = {0.1}, .noise = Noise{8}});
  falling.advance(x, problems::hexagon_start(), {.round = 3});  // 0.2 / sqrt(4)
  half.advance(y, problems::hexagon_start(), {.round = 3});
  EXPECT_EQ(x, y);
  half.advance(y, problems::hexagon_start(), {.round = 4});
  falling.advance(x, problems::hexagon_start(), {.round = 4});
  EXPECT_NE(x, y);
}

TEST(StandardNormalStart, IsStandardNormalAndNewInEveryRound) {
  Population<float> x(n, 2), y(n, 2);
  StandardNormalStart<float>{Noise{9}}.draw(x, 0);
  StandardNormalStart<float>{Noise{9}}.draw(y, 1);
  for (std::size_t j = 0; j < 2; ++j) {
    const std::span<const float> a = std::as_const(x).coordinate(j), b = std::as_const(y).coordinate(j);
    EXPECT_NEAR(mean(a), 0, 5 / std::sqrt(double(n)));
    EXPECT_NEAR(covariance(a, a), 1, 5 * covariance_error(1, 1, 1, n));
    EXPECT_NEAR(covariance(a, b), 0, 5 * covariance_error(1, 1, 0, n));
  }
}

TEST(GaussianStart, ShiftsAndScalesTheStandardNormalStart) {
  Population<float> z(300, 2), x(300, 2);
  StandardNormalStart<float>{Noise{9}}.draw(z, 4);
  AnyStart<float>{GaussianStart<float>{{1.5, -2}, 0.5, Noise{9}}}.draw(x, 4);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x(i, 0), static_cast<float>(1.5 + 0.5 * static_cast<double>(z(i, 0))));
    EXPECT_EQ(x(i, 1), static_cast<float>(-2 + 0.5 * static_cast<double>(z(i, 1))));
  }
  Population<float> again(300, 2);
  AnyStart<float>{SampleStart<float>{x}}.draw(again, 7);
  EXPECT_EQ(again, x);
}

TEST(PopulationArrays, AreRowByRow) {
  const std::vector<double> rows{1, 2, 3, 4, 5, 6};
  const auto x = from_rows<float, double>(rows, 2);
  ASSERT_EQ(x.size(), 3U);
  EXPECT_EQ(x(1, 0), 3);
  EXPECT_EQ(x(2, 1), 6);
  EXPECT_EQ(to_rows(x), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace implicit_diffusion
