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

// A narrow component of the model between the nodes of a wide reference: by a million samples the first divergence is
// 0.669, where 24 nodes give 0.278. Beside its own kind the same component is no difficulty.
TEST(MixtureDivergence, SaysNothingWhereItsNodesDoNotResolveTheModel) {
  const GaussianMixture uneven{{0.27, 0.73}, {{{-10}, {0.1}}, {{10}, {100}}}};
  EXPECT_FALSE(MixtureDivergence({{1.0}, {{{0}, {100}}}})(uneven));
  EXPECT_FALSE(MixtureDivergence({{1.0}, {{{-8}, {100}}}})(uneven));
  EXPECT_NEAR(MixtureDivergence(uneven)(uneven).value(), 0, 1e-12);
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

}  // namespace
}  // namespace implicit_diffusion
