// Laws in the plane against their own samples, and integrals over the plane against closed forms.
#include "implicit_diffusion/langevin/plane_laws.hpp"

#include "io/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace implicit_diffusion {
namespace {

// V = a |x - m|^2 / 2, at all points.
std::vector<double> quadratic(std::span<const double> points, double a, double m) {
  std::vector<double> v;
  for (std::size_t i = 0; i < points.size(); i += 2)
    v.push_back(a * (std::pow(points[i] - m, 2) + std::pow(points[i + 1] - m, 2)) / 2);
  return v;
}

TEST(PlaneEnergy, OfAGaussianHasItsNormaliser) {
  for (const double a : {25.0, 4.0, 1.0, 0.02}) {
    const auto e = integrate_energy([a](std::span<const double> x) { return quadratic(x, a, 0.3); });
    ASSERT_TRUE(e) << a;
    // What lies outside the cells is at most a hundred times what is on their border.
    EXPECT_NEAR(e->log_normaliser, std::log(2 * std::numbers::pi / a), 1e-6) << a;
  }
}

TEST(PlaneEnergy, IsRefusedWhereItIsTooFlatOrNotFinite) {
  EXPECT_FALSE(integrate_energy([](std::span<const double> x) { return quadratic(x, 1e-4, 0); }));
  EXPECT_FALSE(integrate_energy([](std::span<const double> x) {
    std::vector<double> v = quadratic(x, 1, 0);
    v[7] = NAN;
    return v;
  }));
}

// KL(N(m_1, s_1^2 I) || N(m_2, I / a)) in two dimensions.
TEST(PlaneDivergence, OfTwoGaussiansIsTheClosedForm) {
  const double a = 1.7, m = 0.3, s = 0.4;
  const auto e = integrate_energy([&](std::span<const double> x) { return quadratic(x, a, m); });
  ASSERT_TRUE(e);
  const GaussianMixture p{{1.0}, {{{-0.2, 0.5}, {s * s, 0, 0, s * s}}}};
  const MixtureLogDensity log_p(p);
  const PlaneDivergence d = divergence_from(*e, [&](std::span<const double> x) { return log_p(x); });
  const double shift = std::pow(-0.2 - m, 2) + std::pow(0.5 - m, 2);
  const double kl = a * s * s - 1 - std::log(a * s * s) + a * shift / 2;
  EXPECT_NEAR(d.kl, kl, 1e-6);
  EXPECT_NEAR(d.log_likelihood, -kl - (1 + std::log(2 * std::numbers::pi * s * s)), 1e-6);
}

TEST(PlaneDivergence, OfTheBoardIsTheClosedForm) {
  const double a = 0.5;
  const auto e = integrate_energy([a](std::span<const double> x) { return quadratic(x, a, 0); });
  const PlaneDivergence d = divergence_from(*e, Checkerboard::log_density);
  // E|x|^2 over the board is 2 (4^2 / 12); middles of cells of side h fall short of it by 2 h^2 / 12.
  const double h = e->cells.spacing, second = 2 * (16.0 / 12 - h * h / 12);
  EXPECT_NEAR(d.kl, -std::log(8.0) + a * second / 2 + std::log(2 * std::numbers::pi / a), 1e-6);
}

// Shares of eight squares, a mean and a second moment of 100,000 samples, each within five standard errors.
TEST(Checkerboard, SamplesAreUniformOnTheDarkSquares) {
  constexpr std::size_t n = 100'000;
  Population<float> x(n, 2);
  Checkerboard::draw(x, Noise(3), 5);
  std::vector<double> share(16, 0.0);
  double mean = 0, second = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double at[] = {static_cast<double>(x(i, 0)), static_cast<double>(x(i, 1))};
    ASSERT_EQ(Checkerboard::log_density(at), -std::log(8.0)) << at[0] << " " << at[1];
    share[static_cast<std::size_t>(4 * std::floor(at[1] + 2) + std::floor(at[0] + 2))] += 1.0 / n;
    mean += at[0] / n;
    second += at[0] * at[0] / n;
  }
  std::size_t squares = 0;
  for (const double s : share) {
    if (s == 0) continue;
    ++squares;
    EXPECT_NEAR(s, 1.0 / 8, 5 * std::sqrt(1.0 / 8 * 7 / 8 / n));
  }
  EXPECT_EQ(squares, 8U);
  EXPECT_NEAR(mean, 0, 5 * std::sqrt(16.0 / 12 / n));
  EXPECT_NEAR(second, 16.0 / 12, 5 * std::sqrt((16.0 / 5 - 16.0 / 9) / n));
  // Another round has other samples, the same round the same.
  Population<float> again(n, 2), other(n, 2);
  Checkerboard::draw(again, Noise(3), 5);
  Checkerboard::draw(other, Noise(3), 6);
  EXPECT_EQ(again(17, 1), x(17, 1));
  EXPECT_NE(other(17, 1), x(17, 1));
}

TEST(PlaneLaws, HaveTheirMoments) {
  const auto moments = [](const GaussianMixture& m) {
    double x = 0, y = 0, square = 0;
    for (std::size_t k = 0; k < m.components.size(); ++k) {
      const Gaussian& g = m.components[k];
      x += m.weights[k] * g.mean[0];
      y += m.weights[k] * g.mean[1];
      square += m.weights[k] * (g.mean[0] * g.mean[0] + g.mean[1] * g.mean[1] + g.covariance[0] + g.covariance[3]);
    }
    return std::array{x, y, square};
  };
  const auto eight = moments(eight_gaussians());
  EXPECT_NEAR(eight[0], 0, 1e-15);
  EXPECT_NEAR(eight[1], 0, 1e-15);
  EXPECT_NEAR(eight[2], 4 + 2 * 0.09, 1e-12);
  // A half circle's centre of mass is 2 / pi above its own centre.
  const auto moons = moments(two_moons());
  EXPECT_NEAR(moons[0], 0, 1e-15);
  EXPECT_NEAR(moons[1], 0, 1e-15);
  EXPECT_NEAR(moons[2], 1 + 0.25 + 0.0625 - 2 * 0.25 * 2 / std::numbers::pi + 2 * 0.01, 1e-3);
  EXPECT_ERROR(two_moons(0.01), usage, "deviation: 0.01");
  EXPECT_ERROR(eight_gaussians(2, 0), usage, "deviation: 0");
}

}  // namespace
}  // namespace implicit_diffusion
