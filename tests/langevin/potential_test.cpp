// Potentials against the values of the corrected mathematics, against finite differences, and far from every well.
#include "implicit_diffusion/langevin/potential.hpp"
#include "implicit_diffusion/langevin/differentiated.hpp"
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "langevin/evaluate.hpp"
#include "problems/hexagon.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace implicit_diffusion {
namespace {

using problems::hexagon;
using problems::hexagon_with_centre;

// The largest difference between the analytic derivatives and central differences (step 1e-6: truncation below 1e-9,
// rounding about 1e-9 V).
template <class P>
double derivative_error(P potential, const std::vector<double>& x, const std::vector<double>& theta) {
  const Evaluation e = evaluate(potential, x, theta);
  const double h = 1e-6;
  double worst = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    auto up = x, down = x;
    up[j] += h;
    down[j] -= h;
    const double fd = (evaluate(potential, up, theta).value - evaluate(potential, down, theta).value) / (2 * h);
    worst = std::max(worst, std::abs(fd - e.grad_x[j]));
  }
  for (std::size_t j = 0; j < theta.size(); ++j) {
    auto up = theta, down = theta;
    up[j] += h;
    down[j] -= h;
    const double fd = (evaluate(potential, x, up).value - evaluate(potential, x, down).value) / (2 * h);
    worst = std::max(worst, std::abs(fd - e.grad_theta[j]));
  }
  return worst;
}

const std::vector<double> start{1.5, 0, 1.5, 0, 1.5, 0};

TEST(SoftmaxWells, HasTheKnownValues) {
  const Evaluation e = evaluate(SoftmaxWells(hexagon(), 2.0), {1, 2}, start);
  EXPECT_NEAR(e.value, 4.263386269279, 1e-11);
  expect_near(e.grad_x, {-.763610088361, -1.363244160654}, 1e-11);
  expect_near(e.grad_theta, {.243413829124, -.836427747967, .198875188567, .060806328924, .272524754699, .060807646652},
              1e-11);

  const Evaluation narrow = evaluate(SoftmaxWells(hexagon(), 1.0), {1, 2}, start);
  EXPECT_NEAR(narrow.value, 5.941882289146, 1e-11);
  expect_near(narrow.grad_x, {-1.988931275016, -2.926578710028}, 1e-11);

  const Evaluation seven = evaluate(SoftmaxWells(hexagon_with_centre(), 2.0), {1, 2}, {1.5, 0, 1.5, 0, 1.5, 0, 0});
  EXPECT_NEAR(seven.value, 4.018878544922, 1e-11);
  expect_near(seven.grad_x, {-.301898794196, -.482750323464}, 1e-11);
  EXPECT_NEAR(seven.grad_theta[6], -.204476169734, 1e-11);
}

TEST(SoftmaxWells, IsFiniteFarFromEveryWell) {
  SoftmaxWells wells(hexagon(), 2.0);
  EXPECT_NEAR(evaluate(wells, {40, -30}, start).value, 1076.876977112335, 1e-9);

  wells.prepare(start);
  const float far[2] = {40, -30};
  float grad_x[2], grad_theta[6];
  EXPECT_NEAR(wells.evaluate(far, grad_x, grad_theta), 1076.877, 1e-3);
  EXPECT_TRUE(std::isfinite(grad_x[0]) && std::isfinite(grad_theta[5]));
}

// The largest difference between single and double precision of V (relative, where it is large) and of both gradients.
template <class Wells>
double float_error(Wells wells, const std::vector<double>& theta, const std::vector<float>& x) {
  wells.prepare(theta);
  const std::size_t d = wells.dimension(), p = wells.parameters();
  std::vector<float> grad_x(d), grad_theta(p);
  std::vector<double> exact_point(x.begin(), x.end()), exact_x(d), exact_theta(p);
  const double value = wells.evaluate(x.data(), grad_x.data(), grad_theta.data());
  const double exact = wells.evaluate(exact_point.data(), exact_x.data(), exact_theta.data());
  double worst = std::abs(value - exact) / std::max(1.0, std::abs(exact));
  for (std::size_t j = 0; j < d; ++j)
    worst = std::max(worst, std::abs(grad_x[j] - exact_x[j]) / std::max(1.0, std::abs(exact_x[j])));
  for (std::size_t j = 0; j < p; ++j) worst = std::max(worst, std::abs(grad_theta[j] - exact_theta[j]));
  return worst;
}

// Weights and places of wells far from the origin, and far from one another, keep their digits: what is left is the
// spacing of floats at 2000, 1.2e-4, times slopes of order 1. (A linear form would be off by 2000^2 / 2 x 6e-8 = 0.12.)
TEST(SoftmaxWells, MayLieFarFromTheOriginInSinglePrecision) {
  const SoftmaxWells cluster({{1000, 2000}, {1001.5, 2000}, {1000, 2002}}, 2.0);
  const SoftmaxWells apart({{0, 0}, {2000, 0}, {2001.5, 0}}, 2.0);
  for (float t = -2; t <= 4; t += 0.25f) {
    EXPECT_LT(float_error(cluster, {0.3, 0, -0.5}, {1000 + t, 2000 + t / 2}), 1e-3) << t;
    EXPECT_LT(float_error(apart, {0.3, 0, -0.5}, {2000 + t, t / 2}), 1e-3) << t;
    EXPECT_LT(float_error(apart, {0.3, 0, -0.5}, {t, t / 2}), 1e-3) << t;
  }
}

// From the wells outwards past the radius where one way of evaluation hands over to the other, with weights down to
// e^-85: no term may overflow or vanish on the way. Exponents reach (|x| + 4)^2 / q; sixteen roundings of 6e-8 each.
TEST(SoftmaxWells, HasNoSeamInSinglePrecision) {
  const std::vector<std::vector<double>> apart = {{4, 0}, {-2, 3.4}, {-2, -3.4}},
                                         close = {{.05, 0}, {-.03, .04}, {0, -.05}};
  for (const auto& [centres, q] : {std::pair{apart, 0.5}, {apart, 2.0}, {apart, 20.0}, {close, 0.01}})
    for (const std::vector<double>& theta : {std::vector<double>{0, 0, 0}, {0, -60, 3}, {-85, 0, -20}})
      for (int angle = 0; angle < 12; ++angle)
        for (float r = 0; r < 60; r += 0.37f) {
          const float turn = 0.5236f * static_cast<float>(angle);
          EXPECT_LT(float_error(SoftmaxWells(centres, q), theta, {r * std::cos(turn), r * std::sin(turn)}),
                    1e-5 + 1e-6 * (r + 4) * (r + 4) / q)
              << "q " << q << ", |x| " << r << ", theta_1 " << theta[1];
        }
}

// Weights that do not sum to 1: 64 equal terms may overflow together where none does alone.
TEST(LogisticWells, HaveNoSeamInSinglePrecision) {
  const LogisticWells wells(std::vector<std::vector<double>>(64, {0.05, 0.0}), 0.01, 0.1);
  for (float r = 0; r < 20; r += 0.01f)
    EXPECT_LT(float_error(wells, std::vector<double>(64, 9.0), {r, 0}), 1e-5 + 1e-6 * r * r / 0.01) << r;
}

TEST(SoftmaxWells, ThetaCountsUpToAConstant) {
  const SoftmaxWells wells(hexagon(), 2.0);
  auto shifted = start;
  for (double& t : shifted) t += 700;  // exp(700) would overflow a float, and the sum of six a double at 710
  EXPECT_NEAR(evaluate(wells, {1, 2}, shifted).value, evaluate(wells, {1, 2}, start).value, 1e-11);
}

TEST(LogisticWells, HasTheKnownValues) {
  const std::vector<double> theta{-2, -1, 0, 1, 2, 3};
  const Evaluation e = evaluate(LogisticWells(hexagon(), 1.0, 0.1), {1, 2}, theta);
  EXPECT_NEAR(e.value, 4.215828837506, 1e-11);
  EXPECT_NEAR(e.grad_theta[1], -.517032991772, 1e-11);
  double norm = 0;
  for (const double g : e.grad_theta) norm += std::abs(g);
  EXPECT_LE(norm, (1 - std::sqrt(0.1)) / (1 + std::sqrt(0.1)));
}

// theta of the mixture with the covariances of the training experiment.
struct MixtureCase {
  Mixture mixture;
  std::vector<double> theta;
};
MixtureCase mixture_case(MixtureOptions options) {
  const Mixture m(2, 2, options);
  const std::vector<Gaussian> parts{{{-4, 0}, {.75, -.5, -.5, 1.5}}, {{2, -2 * std::sqrt(3.0)}, {.75, .5, .5, 1.25}}};
  return {m, m.parameters_of(std::vector<double>{1.5, 0}, parts)};
}

TEST(Mixture, HasTheKnownValuesWithDirectCovariances) {
  const auto [mixture, theta] = mixture_case({CovarianceForm::direct});
  const Evaluation e = evaluate(mixture, {-1, -1.5}, theta);
  EXPECT_NEAR(e.value, 8.079614421001, 1e-11);
  expect_near(e.grad_x, {4.285121419844, .428778234065}, 1e-11);
  const std::vector<double>& g = e.grad_theta;
  expect_near({g[0], g[1]}, {-.182372440993, .182372440993}, 1e-11);
  expect_near({g[2], g[3]}, {-4.285486787944, -.4285486787944}, 1e-11);
  expect_near({g[6], g[7], g[8], g[9]}, {-8.326088616577, -.6326194782203, -.6326194782203, .3367168190527}, 1e-11);

  const auto printed = mixture_case({CovarianceForm::direct, 1.0});
  EXPECT_NEAR(evaluate(printed.mixture, {-1, -1.5}, printed.theta).value, 14.186810351170, 1e-11);
}

TEST(Mixture, HasTheKnownValuesWithCholeskyFactors) {
  const auto [mixture, theta] = mixture_case({CovarianceForm::cholesky});
  expect_near({theta.begin() + 6, theta.end()},
              {-.143841036226, -.57735026919, .077075339914, -.143841036226, .57735026919, -.043505688495}, 1e-11);
  const Evaluation e = evaluate(mixture, {-1, -1.5}, theta);
  EXPECT_NEAR(e.value, 8.079614421001, 1e-11);
  expect_near({e.grad_theta.begin() + 6, e.grad_theta.begin() + 9}, {-11.85651344664, -1.484536170377, .7856725777897},
              1e-10);
}

TEST(Mixture, NoticesACovarianceThatIsNotPositiveDefinite) {
  auto [mixture, theta] = mixture_case({CovarianceForm::direct});
  EXPECT_FALSE(mixture.find_inadmissible(theta));
  theta[mixture.covariance_at(1) + 3] = 0.2;  // determinant .75 * .2 - .25 < 0
  EXPECT_EQ(mixture.find_inadmissible(theta), mixture.covariance_at(1) + 3);
}

// In double precision a Cholesky factor too can be singular: L_22 = e^-40 beside L_21 = 1 vanishes in L L'.
// V = kappa x'Px around one Gaussian: the chain multiplies x by 1 - g 2 kappa P, stable below 2 / (2 kappa lambda_max).
TEST(Mixture, KnowsItsLargestStableStep) {
  for (const double kappa : {0.5, 1.0}) {
    Mixture one(1, 2, {CovarianceForm::direct, kappa});
    one.prepare(std::vector<double>{0, 1, 1, 2, 0, 0, 0.25});
    EXPECT_NEAR(one.largest_stable_step().value(), 2 / (2 * kappa * 4), 1e-12);
  }
}

TEST(Mixture, NoticesAFactorThatHasVanished) {
  auto [mixture, theta] = mixture_case({CovarianceForm::cholesky});
  EXPECT_FALSE(mixture.find_inadmissible(theta));
  theta[mixture.covariance_at(0) + 1] = 1;
  theta[mixture.covariance_at(0) + 2] = -40;
  EXPECT_EQ(mixture.find_inadmissible(theta), mixture.covariance_at(0) + 2);
}

TEST(Potentials, DerivativesEqualFiniteDifferences) {
  const std::vector<double> x{.7, -1.1};
  EXPECT_LT(derivative_error(SoftmaxWells(hexagon(), 2.0), x, {.3, -.2, .1, .4, 0, -.5}), 1e-7);
  EXPECT_LT(derivative_error(SoftmaxWells(hexagon(), 1.0), x, {.3, -.2, .1, .4, 0, -.5}), 1e-7);
  EXPECT_LT(derivative_error(LogisticWells(hexagon(), 1.0, 0.1), x, {-2, -1, 0, 1, 2, 3}), 1e-7);
  EXPECT_LT(derivative_error(Quadratic({{2, .5}, {.5, 1}}), x, {.4, -.3}), 1e-7);
  for (const auto form : {CovarianceForm::direct, CovarianceForm::cholesky})
    for (const double kappa : {0.5, 1.0}) {
      const auto [mixture, theta] = mixture_case({form, kappa});
      EXPECT_LT(derivative_error(mixture, {-1, -1.5}, theta), 1e-6);
      EXPECT_LT(derivative_error(mixture, {1.5, -2.5}, theta), 1e-6);
    }
  // Three dimensions, three components: nothing above is special to the plane.
  const Mixture cube(3, 3, {CovarianceForm::cholesky});
  std::vector<double> theta(cube.parameters());
  for (std::size_t j = 0; j < theta.size(); ++j) theta[j] = std::sin(1.0 + 2.0 * static_cast<double>(j));
  EXPECT_LT(derivative_error(cube, {.3, -.2, .8}, theta), 1e-6);
}

// The check itself must be able to fail: a potential whose theta-gradient is 1 % off.
struct SlightlyWrong : SoftmaxWells {
  using SoftmaxWells::SoftmaxWells;
  template <class Real>
  Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    const Real value = SoftmaxWells::evaluate(x, grad_x, grad_theta);
    if (grad_theta) grad_theta[0] *= Real(1.01);
    return value;
  }
};
// V by its value alone, against the same with derivatives by hand: every combination of what is asked for.
struct RingValue {
  static constexpr std::size_t dimension = 2, parameters = 2;
  template <class Real>
  Real operator()(const Real* x, const Real* theta) const {
    const Real u = x[0] * x[0] + x[1] * x[1] - theta[0];
    return theta[1] * u * u / 4;
  }
};
TEST(Differentiated, HasTheDerivativesOfItsValue) {
  Differentiated<RingValue> ring;
  ring.prepare(std::vector<double>{4, 1.5});
  const double x[2] = {1.2, -0.7}, u = 1.2 * 1.2 + 0.7 * 0.7 - 4, none = 99;
  double* const null = nullptr;
  double gx[2] = {none, none}, gt[2] = {none, none};
  EXPECT_NEAR(ring.evaluate(x, null, null), 1.5 * u * u / 4, 1e-15);
  for (const bool with_x : {false, true})
    for (const bool with_theta : {false, true}) {
      EXPECT_NEAR(ring.evaluate(x, with_x ? gx : null, with_theta ? gt : null), 1.5 * u * u / 4, 1e-15);
      if (with_x) expect_near({gx[0], gx[1]}, {1.5 * u * 1.2, 1.5 * u * -0.7}, 1e-14);
      if (with_theta) expect_near({gt[0], gt[1]}, {-1.5 * u / 2, u * u / 4}, 1e-14);
    }

  // d/dx grad_theta V . u, the derivative of a derivative.
  Potential<double> potential = ring;
  potential.prepare(std::vector<double>{4, 1.5});
  Population<double> one(1, 2);
  one(0, 0) = x[0];
  one(0, 1) = x[1];
  std::vector<double> direction(2 * block_size), sums(2);
  direction[0] = 0.3;
  direction[block_size] = 2;
  potential.add_weighted_mixed(one.block(0), direction.data(), sums.data());
  const double slope = 2 * (1.2 * 0.3 - 0.7 * 2);  // of u along the direction
  expect_near(sums, {-1.5 * slope / 2, u * slope / 2}, 1e-14);
}

TEST(Potentials, AWrongGradientIsRejected) {
  EXPECT_GT(derivative_error(SlightlyWrong(hexagon(), 2.0), {.7, -1.1}, {.3, -.2, .1, .4, 0, -.5}), 1e-4);
}

// Blocks: weighted sums and mixed derivatives of a population equal sums over its samples, odd sizes included.
template <class Real>
void expect_blocks_equal_points(std::size_t n, double tolerance) {
  const SoftmaxWells point(hexagon(), 2.0);
  Potential<Real> potential(point);
  potential.prepare(start);
  Population<Real> x(n, 2);
  std::vector<Real> w(n);
  std::vector<double> expected(6), sums(6), mixed(6), expected_mixed(6);
  for (std::size_t i = 0; i < n; ++i) {
    const double t = static_cast<double>(i);
    x(i, 0) = static_cast<Real>(3 * std::sin(t));
    x(i, 1) = static_cast<Real>(3 * std::cos(1.7 * t));
    w[i] = static_cast<Real>(std::sin(0.3 + t) / 10);
    const std::vector<double> at{x(i, 0), x(i, 1)};
    const Evaluation e = evaluate(point, at, start);
    const double h = 1e-5;  // the mixed derivative along u = (1, -2), by central differences of grad_theta
    const Evaluation up = evaluate(point, {at[0] + h, at[1] - 2 * h}, start);
    const Evaluation down = evaluate(point, {at[0] - h, at[1] + 2 * h}, start);
    for (std::size_t j = 0; j < 6; ++j) {
      expected[j] += static_cast<double>(w[i]) * e.grad_theta[j];
      expected_mixed[j] += (up.grad_theta[j] - down.grad_theta[j]) / (2 * h);
    }
  }
  std::vector<Real> u(2 * block_size);
  std::fill(u.begin(), u.begin() + block_size, Real(1));
  std::fill(u.begin() + block_size, u.end(), Real(-2));
  for (std::size_t b = 0; b < x.blocks(); ++b) {
    std::vector<double> all(1 + 2 * 6);
    std::vector<Real> signal(block_size);
    const Block<const Real> block = std::as_const(x).block(b);
    std::copy_n(w.begin() + static_cast<std::ptrdiff_t>(block.first), block.size, signal.begin());
    potential.evaluate(block, {.sums = all.data(), .signal = signal.data()});
    for (std::size_t j = 0; j < 6; ++j) sums[j] += all[1 + 6 + j];
    potential.add_weighted_mixed(std::as_const(x).block(b), u.data(), mixed.data());
  }
  for (std::size_t j = 0; j < 6; ++j) {
    EXPECT_NEAR(sums[j], expected[j], tolerance) << n;
    EXPECT_NEAR(mixed[j], expected_mixed[j], std::max(tolerance * 10, 1e-7)) << n;
  }
}
TEST(Potentials, BlocksEqualPoints) {
  for (const std::size_t n : {1, 15, 16, 17, 255, 256, 257, 1000}) {
    expect_blocks_equal_points<double>(n, 1e-12);
    expect_blocks_equal_points<float>(n, 1e-5);  // sums of up to 1000 terms of size 0.1 at 6e-8 each
  }
}

// So far out that V is no number of single precision any more, a signal without a share of V has finite sums.
TEST(Potentials, HaveSumsWhereVIsInfinite) {
  Potential<float> v(SoftmaxWells({{0, 0, 0}, {1, 0, 0}}, 2));
  v.prepare(std::vector<double>{0, 0});
  Population<float> x(1, 3);
  x(0, 0) = 1e18F;
  BlockArray<float> value, signal;  // whole groups are written and read
  v.values(x.block(0), value.data());
  ASSERT_TRUE(std::isinf(value[0]));
  signal.clear(block_size);
  signal[0] = 1;
  double sums[5] = {};
  v.evaluate(x.block(0), {.sums = sums, .signal = signal.data()});
  EXPECT_EQ(sums[0], 1);
  for (const double sum : sums) EXPECT_TRUE(std::isfinite(sum));
}

}  // namespace
}  // namespace implicit_diffusion
