// Gaussian mixtures as exact laws: densities against potentials, divergences against known values, samples against
// their moments.
#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "langevin/statistics.hpp"
#include "problems/hexagon_reward.hpp"
#include "problems/training.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

using problems::hexagon;
using problems::hexagon_elsewhere;
using problems::hexagon_start;

// ---- densities

// pi* = exp(-V) / Z, so log density + V = -log Z at every point. Returns the largest difference.
template <class P>
double density_error(P potential, const std::vector<double>& theta, double log_z) {
  potential.prepare(theta);
  const MixtureLogDensity log_density(potential.law(theta));
  double worst = 0;
  for (const std::vector<double>& x : std::vector<std::vector<double>>{{1, 2}, {-1, -1.5}, {4, 0}, {0, 0}, {-7, 9}}) {
    const double v = potential.evaluate(x.data(), static_cast<double*>(nullptr), static_cast<double*>(nullptr));
    worst = std::max(worst, std::abs(log_density(x) + v + log_z));
  }
  return worst;
}

// V is up to 100 here: a few roundings of it are 1e-13.
TEST(MixtureLogDensity, IsThatOfTheGibbsLaw) {
  const double pi = std::numbers::pi;
  EXPECT_LT(density_error(SoftmaxWells(hexagon(), 2.0), hexagon_start(), std::log(2 * pi)), 1e-12);
  EXPECT_LT(density_error(SoftmaxWells(hexagon(), 1.0), hexagon_elsewhere(), std::log(pi)), 1e-12);

  // Here Z depends on theta: it is pi q times the sum of the weights.
  const std::vector<double> theta{-2, -1, 0, 1, 2, 3};
  double total = 0;
  for (const double t : theta) total += 0.1 + 0.9 / (1 + std::exp(-t));
  EXPECT_LT(density_error(LogisticWells(hexagon(), 1.0, 0.1), theta, std::log(pi * total)), 1e-12);
  EXPECT_GT(density_error(LogisticWells(hexagon(), 1.0, 0.1), theta, std::log(pi)), 0.1);

  for (const auto form : {CovarianceForm::direct, CovarianceForm::cholesky}) {
    const problems::TwoGaussians half({form, 0.5}), one({form, 1.0});
    EXPECT_LT(density_error(half.mixture, half.target, 0.0), 1e-12);
    EXPECT_LT(density_error(one.mixture, one.target, -std::log(2.0)), 1e-12);  // (2 kappa)^(-d/2)
  }

  EXPECT_LT(density_error(Quadratic({{2, .5}, {.5, 1}}), {.4, -.3}, std::log(2 * pi / std::sqrt(1.75))), 1e-12);
}

TEST(MixtureLogDensity, IsFiniteFarOutAndIgnoresEmptyComponents) {
  const MixtureLogDensity far(SoftmaxWells(hexagon(), 2.0).law(hexagon_start()));
  EXPECT_NEAR(far(std::vector<double>{40, -30}), -1076.876977112335 - std::log(2 * std::numbers::pi), 1e-9);

  const Gaussian a{{0}, {1}}, b{{5}, {2}};
  const MixtureLogDensity both({{0.0, 1.0}, {a, b}}), alone({{1.0}, {b}});
  for (const double x : {-3.0, 0.0, 5.0, 60.0}) EXPECT_EQ(both(std::vector{x}), alone(std::vector{x}));
}

TEST(MixtureLogDensity, RejectsACovarianceThatIsNone) {
  EXPECT_THROW(MixtureLogDensity({{1.0}, {{{0, 0}, {1, 2, 2, 1}}}}), Error);
}

// ---- divergences

// KL(N(a, S) || N(b, T)) = (tr T^-1 S + (b - a)' T^-1 (b - a) - d + log det T / det S) / 2: here the integrand is a
// polynomial of degree 2, and Gauss-Hermite is exact.
TEST(MixtureDivergence, IsExactBetweenGaussians) {
  const Gaussian p{{1, -2}, {1.5, .4, .4, .8}}, q{{0.5, 0}, {2, -.6, -.6, 1}};
  const double det_p = 1.5 * .8 - .16, det_q = 2 - .36;
  const std::array<double, 4> inverse{1 / det_q, .6 / det_q, .6 / det_q, 2 / det_q};
  const double trace = inverse[0] * 1.5 + 2 * inverse[1] * .4 + inverse[3] * .8;
  const double square = inverse[0] * .25 - 2 * inverse[1] * .5 * 2 + inverse[3] * 4;
  const double expected = (trace + square - 2 + std::log(det_q / det_p)) / 2;
  for (const std::size_t nodes : {2, 8, 24})
    EXPECT_NEAR(MixtureDivergence({{1.0}, {p}}, nodes)({{1.0}, {q}}).value(), expected, 1e-12) << nodes;

  const Gaussian line{{1}, {2}}, solid{{0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  EXPECT_NEAR(MixtureDivergence({{1.0}, {line}})({{1.0}, {{{0}, {1}}}}).value(), (2 + 1 - 1 - std::log(2.0)) / 2,
              1e-12);
  EXPECT_NEAR(MixtureDivergence({{1.0}, {solid}})({{1.0}, {{{1, 2, 2}, solid.covariance}}}).value(), 4.5, 1e-12);
}

// The log of a sum of wells bends where one well hands over to the next, and that limits the quadrature: for wells of
// distance 4 and width 1 the error is 9e-5 with 16 nodes, 3.5e-5 with 24 (the default), 3e-7 with 48 and 3e-8 with 64.
TEST(MixtureDivergence, HasTheKnownValues) {
  struct Case {
    const char* name;
    GaussianMixture reference, model;
    double known;
  };
  const SoftmaxWells wells = problems::hexagon_wells();
  const problems::SevenWells seven;
  const problems::TwoGaussians direct({CovarianceForm::direct}), cholesky({CovarianceForm::cholesky});
  const std::vector<Case> cases{
      {"six wells", wells.law(hexagon_start()), wells.law(hexagon_elsewhere()), problems::HexagonAnswers().divergence},
      {"seven wells", seven.wells.law(seven.target), seven.wells.law(seven.start), seven.start_divergence},
      {"direct", direct.mixture.law(direct.target), direct.mixture.law(direct.start), direct.start_divergence},
      {"cholesky", cholesky.mixture.law(cholesky.target), cholesky.mixture.law(cholesky.start),
       cholesky.start_divergence}};
  for (const Case& c : cases) {
    EXPECT_NEAR(MixtureDivergence(c.reference)(c.model).value(), c.known, 5e-5) << c.name;
    EXPECT_NEAR(MixtureDivergence(c.reference, 48)(c.model).value(), c.known, 1e-6) << c.name;
    EXPECT_NEAR(MixtureDivergence(c.reference, 64)(c.model).value(), c.known, 1e-7) << c.name;
  }
}

TEST(MixtureDivergence, VanishesAtTheReferenceOnly) {
  const SoftmaxWells wells = problems::hexagon_wells();
  const MixtureDivergence divergence(wells.law(hexagon_start()));
  EXPECT_EQ(divergence(wells.law(hexagon_start())), 0.0);
  auto near = hexagon_start();
  near[1] += 0.01;
  EXPECT_GT(divergence(wells.law(near)).value(), 1e-7);
}

// The log of a one-dimensional mixture's density, and KL(p || q) by the trapezoidal rule on a fine grid: no code of the
// library. The spacing is a fiftieth of the narrowest deviation or less, where the rule is exact to 1e-9.
double log_density(const GaussianMixture& mixture, double x) {
  double top = -1e300, sum = 0;
  for (const bool summing : {false, true})
    for (std::size_t i = 0; i < mixture.weights.size(); ++i) {
      const double v = mixture.components[i].covariance[0], from = x - mixture.components[i].mean[0];
      const double term = std::log(mixture.weights[i] / std::sqrt(2 * std::numbers::pi * v)) - from * from / (2 * v);
      if (summing)
        sum += std::exp(term - top);
      else
        top = std::max(top, term);
    }
  return top + std::log(sum);
}
double divergence_on_a_grid(const GaussianMixture& p, const GaussianMixture& q, double half_width) {
  constexpr int points = 100'000;
  const double h = 2 * half_width / points;
  double sum = 0;
  for (int i = 0; i <= points; ++i) {
    const double x = -half_width + h * i, log_p = log_density(p, x);
    sum += h * std::exp(log_p) * (log_p - log_density(q, x));
  }
  return sum;
}

// Narrow components of the model, or of the reference, that fall between the nodes of Gauss-Hermite rules. The first
// has two rules that agree on 0.7028. The tolerance of the adaptive quadrature is 1e-5.
TEST(MixtureDivergence, SeesNarrowComponentsOfEitherLaw) {
  const GaussianMixture two{{0.5, 0.5}, {{{-1}, {1}}, {{1}, {1}}}};
  const GaussianMixture narrow{{0.5, 0.5}, {{{0.37}, {0.0025}}, {{0}, {2}}}};
  EXPECT_NEAR(divergence_on_a_grid(two, narrow, 10), 0.5450599, 1e-7);
  EXPECT_NEAR(MixtureDivergence(two)(narrow).value(), 0.5450599, 1e-5);
  EXPECT_NEAR(MixtureDivergence(narrow)(two).value(), divergence_on_a_grid(narrow, two, 10), 1e-5);

  const GaussianMixture uneven{{0.27, 0.73}, {{{-10}, {0.1}}, {{10}, {100}}}};
  for (const double mean : {0.0, -8.0}) {  // 24 nodes give 0.278 for the first, which is 0.670
    const GaussianMixture wide{{1.0}, {{{mean}, {100}}}};
    EXPECT_NEAR(MixtureDivergence(wide)(uneven).value(), divergence_on_a_grid(wide, uneven, 150), 1e-5);
  }
  EXPECT_NEAR(MixtureDivergence(uneven)(uneven).value(), 0, 1e-12);

  // The place and the width of the narrow one vary; the deviations are 0.3 to 0.01.
  for (int i = 0; i < 20; ++i) {
    const double mean = 2 * std::sin(5.0 * i), deviation = 0.3 * std::pow(30.0, -i / 19.0), weight = 0.05 + 0.045 * i;
    const GaussianMixture q{{weight, 1 - weight}, {{{mean}, {deviation * deviation}}, {{0.5}, {1.5}}}};
    EXPECT_NEAR(MixtureDivergence(two)(q).value(), divergence_on_a_grid(two, q, 10), 1e-5) << i;
    EXPECT_NEAR(MixtureDivergence(q)(two).value(), divergence_on_a_grid(q, two, 10), 1e-5) << i;
  }
}

// Coordinates that are independent add their divergences, and a turn of the axes changes nothing. So the divergence of
// the line, and KL(N(0, 1) || N(1, 2)) = log(2) / 2 for each of the other axes, tell those of the plane and of space.
TEST(MixtureDivergence, SeesNarrowComponentsInThePlaneAndInSpace) {
  const GaussianMixture two{{0.5, 0.5}, {{{-1}, {1}}, {{1}, {1}}}};
  const GaussianMixture narrow{{0.5, 0.5}, {{{0.37}, {0.0025}}, {{0}, {2}}}};
  const double line = divergence_on_a_grid(two, narrow, 10), other = 0.5 * std::log(2.0);
  const auto turned = [](const GaussianMixture& mixture, std::size_t d, double mean, double variance) {
    const double c = std::cos(0.6), s = std::sin(0.6);
    GaussianMixture out{mixture.weights, {}};
    for (const Gaussian& g : mixture.components) {
      Gaussian t{std::vector<double>(d, mean), std::vector<double>(d * d)};
      t.mean[0] = c * g.mean[0] - s * mean;
      t.mean[1] = s * g.mean[0] + c * mean;
      for (std::size_t a = 2; a < d; ++a) t.covariance[a * d + a] = variance;
      t.covariance[0] = c * c * g.covariance[0] + s * s * variance;
      t.covariance[1] = t.covariance[d] = c * s * (g.covariance[0] - variance);
      t.covariance[d + 1] = s * s * g.covariance[0] + c * c * variance;
      out.components.push_back(t);
    }
    return out;
  };
  EXPECT_NEAR(MixtureDivergence(turned(two, 2, 0, 1))(turned(narrow, 2, 1, 2)).value(), line + other, 2e-5);
  // In space the narrow one is a sheet at an angle to the axes: it takes many cells, and with few there is no value.
  const DivergenceEffort much{1e-4, 2e8};
  EXPECT_NEAR(MixtureDivergence(turned(two, 3, 0, 1), 24, much)(turned(narrow, 3, 1, 2)).value(), line + 2 * other,
              2e-4);
  EXPECT_FALSE(MixtureDivergence(turned(two, 3, 0, 1), 24, {1e-5, 1e5})(turned(narrow, 3, 1, 2)));
}

// KL between two Gaussians is exact whatever their widths.
TEST(MixtureDivergence, IsExactBetweenGaussiansOfAnyWidth) {
  const auto line = [](double mean, double variance) { return GaussianMixture{{1.0}, {{{mean}, {variance}}}}; };
  for (const double v : {1e-4, 0.01, 100.0, 1e4})
    EXPECT_NEAR(MixtureDivergence(line(1, 2))(line(0, v)).value() / ((3 / v - 1 + std::log(v / 2)) / 2), 1, 1e-12) << v;
}

TEST(MixtureDivergence, SaysNothingWhereTheEffortIsTooSmall) {
  const GaussianMixture two{{0.5, 0.5}, {{{-1}, {1}}, {{1}, {1}}}};
  const GaussianMixture narrow{{0.5, 0.5}, {{{0.37}, {0.0025}}, {{0}, {2}}}};
  EXPECT_FALSE(MixtureDivergence(two, 24, {1e-5, 1000})(narrow));
}

TEST(MixtureDivergence, IsForFewDimensionsOnly) {
  std::vector<double> identity(16);
  for (std::size_t i = 0; i < 4; ++i) identity[5 * i] = 1;
  EXPECT_THROW(MixtureDivergence({{1.0}, {{{0, 0, 0, 0}, identity}}}), Error);
}

TEST(GaussHermite, IntegratesPolynomialsExactly) {
  for (const std::size_t nodes : {1, 2, 5, 24, 128}) {
    const Quadrature q = gauss_hermite(nodes);
    double moment = 1;  // E X^(2k) = (2k - 1)!!
    for (std::size_t k = 0; k < std::min<std::size_t>(nodes, 10); ++k) {
      double sum = 0, odd = 0;
      for (std::size_t i = 0; i < nodes; ++i) {
        const double power = std::pow(q.nodes[i], static_cast<double>(2 * k));
        sum += q.weights[i] * power;
        odd += q.weights[i] * power * q.nodes[i];
      }
      EXPECT_NEAR(sum / moment, 1, 1e-12) << nodes << " nodes, degree " << 2 * k;
      EXPECT_NEAR(odd / moment, 0, 1e-12) << nodes << " nodes, degree " << 2 * k + 1;
      moment *= static_cast<double>(2 * k + 1);
    }
  }
}

TEST(GaussLegendre, IntegratesPolynomialsExactly) {
  for (const std::size_t nodes : {1, 4, 6, 8}) {
    const Quadrature q = gauss_legendre(nodes);
    for (std::size_t degree = 0; degree < 2 * nodes; ++degree) {
      double sum = 0;
      for (std::size_t i = 0; i < nodes; ++i) sum += q.weights[i] * std::pow(q.nodes[i], static_cast<double>(degree));
      EXPECT_NEAR(sum, degree % 2 == 0 ? 2.0 / static_cast<double>(degree + 1) : 0, 1e-14) << nodes << " " << degree;
    }
  }
}

// ---- samples

// Three components so far apart (more than 20 standard deviations) that a sample tells which one it is of.
GaussianMixture islands() {
  return {{0.2, 0.5, 0.3}, {{{-50, 0}, {1, .8, .8, 2}}, {{0, 10}, {3, -1, -1, 1}}, {{50, 0}, {.5, 0, 0, .25}}}};
}
std::size_t island_of(double x) { return x < -25 ? 0 : x < 25 ? 1 : 2; }

// Seeds are fixed. Frequencies, means and covariances, 18 checks at five standard errors: a correct sampler with
// another seed fails once in a hundred thousand.
TEST(MixtureSampler, HasTheWeightsMeansAndCovariancesOfTheMixture) {
  const std::size_t n = 200'000;
  const GaussianMixture mixture = islands();
  Population<double> x(n, 2);
  MixtureSampler(mixture, Noise{41}).draw(x, 7);

  std::array<std::vector<double>, 3> first, second;
  for (std::size_t i = 0; i < n; ++i) {
    first[island_of(x(i, 0))].push_back(x(i, 0));
    second[island_of(x(i, 0))].push_back(x(i, 1));
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const double w = mixture.weights[c];
    const std::span<const double> a = first[c], b = second[c];
    const auto& [m, s] = mixture.components[c];
    const double count = static_cast<double>(a.size());
    EXPECT_NEAR(count / n, w, 5 * std::sqrt(w * (1 - w) / n));
    EXPECT_NEAR(mean(a), m[0], 5 * std::sqrt(s[0] / count));
    EXPECT_NEAR(mean(b), m[1], 5 * std::sqrt(s[3] / count));
    EXPECT_NEAR(covariance(a, a), s[0], 5 * covariance_error(s[0], s[0], s[0], a.size()));
    EXPECT_NEAR(covariance(b, b), s[3], 5 * covariance_error(s[3], s[3], s[3], a.size()));
    EXPECT_NEAR(covariance(a, b), s[1], 5 * covariance_error(s[0], s[3], s[1], a.size()));
  }
  // A weight off by 1 %, or a factor used transposed (L'L instead of L L'), would be seen.
  EXPECT_GT(0.01 * 0.5, 5 * std::sqrt(0.25 / n) * 0.8);
  EXPECT_GT(0.8 * 0.8, 5 * covariance_error(1, 1, 1, static_cast<std::size_t>(0.2 * n)));
}

template <class Real>
Population<Real> draw(std::size_t n, std::int64_t round, std::uint64_t seed = 42) {
  Population<Real> x(n, 2);
  MixtureSampler(islands(), Noise{seed}).draw(x, round);
  return x;
}

TEST(MixtureSampler, IsAPureFunctionOfSeedRoundAndSample) {
  EXPECT_EQ(draw<float>(1000, 3), draw<float>(1000, 3));
  EXPECT_NE(draw<float>(1000, 3), draw<float>(1000, 4));
  EXPECT_NE(draw<float>(1000, 3), draw<float>(1000, 3, 43));

  const Population<double> many = draw<double>(1000, 3);
  const Population<float> rounded = draw<float>(1000, 3);
  for (const std::size_t few : {1, 17, 256, 300}) {
    const Population<double> x = draw<double>(few, 3);
    for (std::size_t i = 0; i < few; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        ASSERT_EQ(x(i, j), many(i, j)) << "a sample must not depend on how many are drawn";
        ASSERT_EQ(rounded(i, j), static_cast<float>(many(i, j)));
      }
  }
}

// ---- counting

// Two Gaussians of deviation 1 on the line part at b = (m + n) / 2 + ln(v / w) / (n - m), where both are as likely. Below
// it are v Phi(b - m) + w Phi(b - n) of the samples, and the integral of x there is v (m Phi(b - m) - phi(b - m)) +
// w (n Phi(b - n) - phi(b - n)). Of a million samples the standard errors are below 5e-4 and 2e-3; 5 of them are a
// false alarm in a million.
TEST(Counted, HasTheSharesAndMeansOfItsRule) {
  const double v = 0.7, w = 0.3, m = -1, n = 1.5, b = (m + n) / 2 + std::log(v / w) / (n - m);
  const GaussianMixture law{{v, w}, {{{m}, {1}}, {{n}, {1}}}};
  Population<float> x(1'000'000, 1);
  MixtureSampler(law, Noise(5)).draw(x, 0);
  const GaussianMixture got = counted(law, x);
  const auto below = [](double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; };
  const auto density = [](double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); };
  const double share = v * below(b - m) + w * below(b - n),
               integral = v * (m * below(b - m) - density(b - m)) + w * (n * below(b - n) - density(b - n));
  EXPECT_NEAR(got.weights[0], share, 2.5e-3);
  EXPECT_NEAR(got.weights[0] + got.weights[1], 1, 1e-12);
  EXPECT_NEAR(got.components[0].mean[0], integral / share, 1e-2);
  EXPECT_NEAR(got.components[1].mean[0], (v * m + w * n - integral) / (1 - share), 1e-2);
  EXPECT_GT(std::abs(share - v), 0.01) << "the rule would not be seen";
}

TEST(Counted, KeepsTheMeanOfAComponentWithoutSamples) {
  const GaussianMixture law{{0.5, 0.5}, {{{0}, {1}}, {{100}, {1}}}};
  Population<float> x(3, 1);
  const GaussianMixture got = counted(law, x);
  EXPECT_EQ(got.weights, (std::vector<double>{1, 0}));
  EXPECT_EQ(got.components[1].mean[0], 100);
  EXPECT_THROW((void)counted(law, Population<float>(3, 2)), Error);
}

}  // namespace
}  // namespace implicit_diffusion
