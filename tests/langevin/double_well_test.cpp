// The double well: its values and derivatives, where its law is known by quadrature, and a run that finds a barrier.
#include "implicit_diffusion/langevin/double_well.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "langevin/evaluate.hpp"
#include "langevin/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace implicit_diffusion {
namespace {

Evaluation evaluate(DoubleWell v, const std::vector<double>& x, double theta) {
  Evaluation e{0, std::vector<double>(v.dimension()), std::vector<double>(1)};
  v.prepare(std::vector<double>{theta});
  e.value = v.evaluate(x.data(), e.grad_x.data(), e.grad_theta.data());
  return e;
}

TEST(DoubleWell, HasItsWellsAndItsBarrier) {
  const DoubleWell v(3, 1.5, 0.4);
  EXPECT_EQ(evaluate(v, {1.5, 0, 0}, 2.5).value, 0);
  EXPECT_EQ(evaluate(v, {-1.5, 0, 0}, 2.5).value, 0);
  EXPECT_EQ(evaluate(v, {0, 0, 0}, 2.5).value, 2.5);
  EXPECT_NEAR(evaluate(v, {1.5, 0.2, -0.6}, 2.5).value, 0.4 / (2 * 0.4), 1e-15);
  EXPECT_NEAR(evaluate(v, {3, 0, 0}, 2.5).value, 2.5 * 9, 1e-13);
}

// Central differences of step 1e-6: truncation below 1e-10, rounding below 1e-8.
TEST(DoubleWell, HasTheDerivativesOfItsValue) {
  const double h = 1e-6;
  for (const std::size_t d : {1, 2, 5}) {
    const DoubleWell v(d, 1.3, 0.7);
    std::vector<double> x(d);
    for (std::size_t j = 0; j < d; ++j) x[j] = 0.9 - 0.7 * static_cast<double>(j);
    const Evaluation e = evaluate(v, x, 1.7);
    for (std::size_t j = 0; j < d; ++j) {
      auto up = x, down = x;
      up[j] += h;
      down[j] -= h;
      EXPECT_NEAR(e.grad_x[j], (evaluate(v, up, 1.7).value - evaluate(v, down, 1.7).value) / (2 * h), 1e-7) << j;
    }
    EXPECT_NEAR(e.grad_theta[0], (evaluate(v, x, 1.7 + h).value - evaluate(v, x, 1.7 - h).value) / (2 * h), 1e-7);
    EXPECT_GT(std::abs(e.grad_x[0]), 0.1) << "a point where a wrong derivative would not be seen";
  }
}

// E f(x_1) under exp(-V) by Simpson's rule on [-6, 6], exact to 1e-12 for a = 1.
double expectation(double theta, const std::function<double(double)>& f) {
  double top = 0, bottom = 0;
  constexpr int n = 4000;
  for (int i = 0; i <= n; ++i) {
    const double x = -6 + 12.0 * i / n, w = (i == 0 || i == n ? 1
                                             : i % 2          ? 4
                                                              : 2) *
                                            std::exp(-theta * std::pow(x * x - 1, 2));
    top += w * f(x);
    bottom += w;
  }
  return top / bottom;
}

// For R = exp(-4 x_1^2), the mass near the barrier, the gradient of E R by theta is -Cov(R, (u^2 - 1)^2). Exact samples
// by inversion, so 40,000 of them are independent.
TEST(DoubleWell, GradientsAreThoseOfItsLaw) {
  constexpr double theta = 1.2;
  const auto near_barrier = [](double x) { return std::exp(-4 * x * x); };
  const auto rise = [](double x) { return std::pow(x * x - 1, 2); };
  const double exact = -(expectation(theta, [&](double x) { return near_barrier(x) * rise(x); }) -
                         expectation(theta, near_barrier) * expectation(theta, rise));
  const double h = 1e-4;
  EXPECT_NEAR(exact, (expectation(theta + h, near_barrier) - expectation(theta - h, near_barrier)) / (2 * h), 1e-7);

  constexpr std::size_t n = 40'000;
  std::vector<double> grid, cdf;
  double mass = 0;
  for (int i = 0; i <= 24'000; ++i) {
    grid.push_back(-3 + 6.0 * i / 24'000);
    mass += std::exp(-theta * rise(grid.back()));
    cdf.push_back(mass);
  }
  Population<double> x(n, 1);
  const Noise noise(31);
  std::vector<double> products;
  const double mean_near = expectation(theta, near_barrier), mean_rise = expectation(theta, rise);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = noise.uniform(Stream::user, {}, 1, i, 0) * mass;
    x(i, 0) = grid[static_cast<std::size_t>(std::lower_bound(cdf.begin(), cdf.end(), u) - cdf.begin())];
    products.push_back((near_barrier(x(i, 0)) - mean_near) * (rise(x(i, 0)) - mean_rise));
  }
  GradientEstimator<double> estimator(DoubleWell(1, 1, 1),
                                      Reward<double>([&](const double* p) { return near_barrier(p[0]); }));
  std::vector<double> gradient(1);
  estimator.estimate(x, {theta}, 0, gradient);
  double variance = 0;
  for (const double p : products) variance += (p + exact) * (p + exact) / n;
  // The estimator is of -E R. Five standard errors: one seed in two million would fail.
  const double tolerance = 5 * std::sqrt(variance / n);
  EXPECT_NEAR(gradient[0], -exact, tolerance);
  EXPECT_GT(std::abs(exact), 5 * tolerance) << "too few samples to see a wrong sign or factor";
}

// Samples of a barrier of 2 are all that is known; the single loop finds it. 20,000 particles: the estimate of theta
// scatters by about 0.03.
TEST(DoubleWell, IsLearntFromSamples) {
  const DoubleWell v(2, 1, 0.5);
  const LangevinOptions options{.step_size = {0.01}, .noise = Noise(5)};
  Population<float> data(20'000, 2);
  StandardNormalStart<float>{Noise(6)}.draw(data, 0);
  Langevin<float> chain(v, {.step_size = {0.01}, .noise = Noise(6)});
  for (int k = 0; k < 1500; ++k) chain.advance(data, {2.0}, {.round = k});
  GradientEstimator<float>::Terms terms;
  terms.push_back(std::make_unique<ReferenceTerm<float>>(std::make_unique<FixedReference<float>>(data)));
  LangevinEngine<float> engine(v, std::move(terms), options);
  State<Population<float>, GradientDescent> s{0, {1.0}, data, {{0.05}}};
  ASSERT_EQ(single_loop(engine, engine, s, {.steps = 1500}).status, Status::completed);
  EXPECT_NEAR(s.theta[0], 2.0, 0.15);
}

TEST(DoubleWell, StaysWithinItsDomain) {
  const DoubleWell v(2, 1, 0.5);
  EXPECT_FALSE(v.find_inadmissible(std::vector<double>{0.1}));
  EXPECT_EQ(v.find_inadmissible(std::vector<double>{0.0}), 0U);
  EXPECT_EQ(v.find_inadmissible(std::vector<double>{-1.0}), 0U);
  EXPECT_THROW(DoubleWell(0, 1, 1), Error);
  EXPECT_THROW(DoubleWell(2, 0, 1), Error);
  EXPECT_THROW(DoubleWell(2, 1, -1), Error);
  DoubleWell steep(2, 0.5, 4);
  steep.prepare(std::vector<double>{3});
  EXPECT_NEAR(*steep.largest_stable_step(), 2 / ((8 * 3 + 12 * std::sqrt(6.0)) / 0.25), 1e-15);
  // It is 2 over the curvature where V is 2, here by differences of the slope.
  const double u = std::sqrt(1 + std::sqrt(2.0 / 3)), h = 1e-5;
  const auto slope = [&](double x1) {
    const double x[2] = {x1, 0};
    double gradient[2];
    EXPECT_LT(std::abs(steep.evaluate(x, gradient, static_cast<double*>(nullptr)) - 2), 1e-3);
    return gradient[0];
  };
  EXPECT_NEAR(*steep.largest_stable_step() * (slope(0.5 * u + h) - slope(0.5 * u - h)) / (2 * h), 2, 1e-6);
}

}  // namespace
}  // namespace implicit_diffusion
