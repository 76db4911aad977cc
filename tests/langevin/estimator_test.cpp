// Gradient estimators: exact on given batches, and unbiased with exact samples.
//
// Random checks ask for 4.5 standard errors, estimated from the samples: a correct estimator with another seed fails
// one in 150,000 times a number. The same check must reject the estimate when it is scaled by a tenth or has lost its
// centring.
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "langevin/evaluate.hpp"
#include "langevin/statistics.hpp"
#include "problems/hexagon_reward.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace implicit_diffusion {
namespace {

using problems::five_points;
using problems::hard_reward;
using problems::hexagon_elsewhere;
using problems::hexagon_start;
using problems::hexagon_wells;
using problems::HexagonAnswers;
using problems::population_of;
using problems::three_references;

template <class Real>
std::vector<double> estimate(GradientEstimator<Real>&& estimator, const Population<Real>& x,
                             const std::vector<double>& theta, std::int64_t step = 0) {
  std::vector<double> gradient(theta.size(), 99.0);  // what was there must not matter
  estimator.estimate(x, theta, step, gradient);
  return gradient;
}

template <class Real, class... Parts>
GradientEstimator<Real> sum_with(Normaliser normaliser, Potential<Real> potential, Parts... parts) {
  typename GradientEstimator<Real>::Terms list;
  (list.push_back(std::make_unique<Parts>(std::move(parts))), ...);
  return {std::move(potential), std::move(list), {.normaliser = normaliser}};
}
template <class Real, class... Parts>
GradientEstimator<Real> sum_of(Potential<Real> potential, Parts... parts) {
  return sum_with(Normaliser::n_minus_1, std::move(potential), std::move(parts)...);
}

// ---- given batches

template <class Real>
class Batch : public testing::Test {
 public:
  static constexpr double tolerance = std::is_same_v<Real, double> ? 1e-12 : 1e-6;
  Potential<Real> wells = hexagon_wells();
  Population<Real> x = population_of<Real>(five_points());
  HexagonAnswers known;

  ReferenceTerm<Real> reference(double beta = 1.0) const {
    return ReferenceTerm<Real>(std::make_unique<FixedReference<Real>>(population_of<Real>(three_references())), beta);
  }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Batch, Reals);

TYPED_TEST(Batch, RewardHasTheKnownGradient) {
  using Real = TypeParam;
  const auto biased =
      estimate(sum_with(Normaliser::n, this->wells, RewardTerm<Real>(hard_reward())), this->x, hexagon_start());
  expect_near(biased, this->known.reward_gradient, this->tolerance);

  auto expected = this->known.reward_gradient;
  for (double& g : expected) g *= 5.0 / 4.0;
  const auto unbiased = estimate(sum_of(this->wells, RewardTerm<Real>(hard_reward())), this->x, hexagon_start());
  expect_near(unbiased, expected, this->tolerance);
  expect_near(estimate(GradientEstimator<Real>(this->wells, hard_reward()), this->x, hexagon_start()), unbiased, 0);

  for (double& g : expected) g *= 2.5;
  expect_near(estimate(GradientEstimator<Real>(this->wells, hard_reward(), 2.5), this->x, hexagon_start()), expected,
              2.5 * this->tolerance);
}

TYPED_TEST(Batch, ReferenceHasTheKnownGradient) {
  expect_near(estimate(sum_of(this->wells, this->reference()), this->x, hexagon_start()),
              this->known.reference_gradient, this->tolerance);
}

TYPED_TEST(Batch, TermsAddUp) {
  using Real = TypeParam;
  auto estimator = sum_with(Normaliser::n, this->wells, RewardTerm<Real>(hard_reward(), 1.3), this->reference(0.7));
  expect_near(estimate(std::move(estimator), this->x, hexagon_start()), this->known.combined_gradient, this->tolerance);
}

// KL(pi || base) has gradient Cov[V - V_base, grad V]: that of a reward V - V_base.
TYPED_TEST(Batch, BaseIsTheRewardOfTheDifference) {
  using Real = TypeParam;
  Potential<Real> base = this->wells;
  base.prepare(hexagon_start());
  const auto got = estimate(sum_of(this->wells, BaseTerm<Real>(base, 1.7)), this->x, hexagon_elsewhere());

  SoftmaxWells here = hexagon_wells(), there = hexagon_wells();
  here.prepare(hexagon_elsewhere());
  there.prepare(hexagon_start());
  const auto value = [](const SoftmaxWells& w, const Real* point) {
    return w.evaluate(point, static_cast<Real*>(nullptr), static_cast<Real*>(nullptr));
  };
  const auto reward = [=](const Real* point) { return value(here, point) - value(there, point); };
  expect_near(estimate(GradientEstimator<Real>(this->wells, Reward<Real>(reward), 1.7), this->x, hexagon_elsewhere()),
              got, this->tolerance);
  // At the base itself there is nothing to gain.
  expect_near(estimate(sum_of(this->wells, BaseTerm<Real>(base)), this->x, hexagon_start()), std::vector<double>(6), 0);
}

// A constant added to the reward changes nothing: the weights are centred.
TYPED_TEST(Batch, OnlyDifferencesOfRewardCount) {
  using Real = TypeParam;
  const HardReward reward = hard_reward();
  const auto raised = [reward](const Real* point) { return reward(point) + Real(1); };
  expect_near(estimate(GradientEstimator<Real>(this->wells, Reward<Real>(raised)), this->x, hexagon_start()),
              estimate(GradientEstimator<Real>(this->wells, hard_reward()), this->x, hexagon_start()), this->tolerance);
}

// ... not even in single precision: a reward of 2^20 and 2^20 + 1, exact as floats, has the gradient of 0 and 1. (Sums
// of products with 2^20 would be rounded by 0.06.)
TYPED_TEST(Batch, ALargeConstantInTheRewardCostsNoDigits) {
  using Real = TypeParam;
  const auto step = [](Real offset) {
    return Reward<Real>([offset](const Real* point) { return point[0] > 0 ? offset + 1 : offset; });
  };
  expect_near(estimate(GradientEstimator<Real>(this->wells, step(0x1p20)), this->x, hexagon_start()),
              estimate(GradientEstimator<Real>(this->wells, step(0)), this->x, hexagon_start()), this->tolerance);
}

// Batches larger than a block, odd sizes: against the plain double sum.
TEST(GradientEstimator, EqualsThePlainSumForAnySize) {
  SoftmaxWells wells = hexagon_wells();
  const HardReward reward = hard_reward();
  for (const std::size_t n : {2, 15, 17, 255, 256, 257, 1000}) {
    Population<double> x(n, 2);
    MixtureSampler(wells.law(hexagon_start()), Noise{50}).draw(x, 0);
    wells.prepare(hexagon_elsewhere());
    double mean_reward = 0;
    for (std::size_t i = 0; i < n; ++i)
      mean_reward += reward(std::vector{x(i, 0), x(i, 1)}.data()) / static_cast<double>(n);
    std::vector<double> expected(6), slope(6);
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<double> point{x(i, 0), x(i, 1)};
      wells.evaluate(point.data(), static_cast<double*>(nullptr), slope.data());
      for (std::size_t j = 0; j < 6; ++j)
        expected[j] += (reward(point.data()) - mean_reward) * slope[j] / static_cast<double>(n - 1);
    }
    expect_near(estimate(GradientEstimator<double>(wells, reward), x, hexagon_elsewhere()), expected, 1e-14);
  }
}

// ---- exact samples

constexpr std::size_t many = 200'000;

template <class P>
std::vector<std::vector<double>> slopes(P potential, const Population<double>& x, const std::vector<double>& theta) {
  potential.prepare(theta);
  std::vector<std::vector<double>> by_parameter(theta.size(), std::vector<double>(x.size()));
  std::vector<double> point(x.dimension()), slope(theta.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.dimension(); ++j) point[j] = x(i, j);
    potential.evaluate(point.data(), static_cast<double*>(nullptr), slope.data());
    for (std::size_t j = 0; j < theta.size(); ++j) by_parameter[j][i] = slope[j];
  }
  return by_parameter;
}

// Of the sample covariance of f with each column: that of the mean of (f - mean f)(column - mean column).
std::vector<double> covariance_errors(const std::vector<double>& f, std::vector<std::vector<double>> columns) {
  const double mean_f = mean<double>(f);
  std::vector<double> errors;
  for (std::vector<double>& column : columns) {
    const double mean_column = mean<double>(column);
    for (std::size_t i = 0; i < f.size(); ++i) column[i] = (f[i] - mean_f) * (column[i] - mean_column);
    errors.push_back(standard_error(column));
  }
  return errors;
}

// The largest deviation, in standard errors.
double deviation(const std::vector<double>& got, const std::vector<double>& expected,
                 const std::vector<double>& errors) {
  double worst = 0;
  for (std::size_t j = 0; j < got.size(); ++j) worst = std::max(worst, std::abs(got[j] - expected[j]) / errors[j]);
  return worst;
}
void expect_within(const std::vector<double>& got, const std::vector<double>& expected,
                   const std::vector<double>& errors) {
  EXPECT_LT(deviation(got, expected, errors), 4.5);
  auto wrong = got;
  for (double& g : wrong) g *= 1.1;
  EXPECT_GT(deviation(wrong, expected, errors), 4.5) << "an estimate that is off by a tenth would pass";
  for (double& g : wrong) g *= -1;
  EXPECT_GT(deviation(wrong, expected, errors), 4.5) << "the opposite sign would pass";
}

std::vector<double> evaluate(const std::function<double(const double*)>& f, const Population<double>& x) {
  std::vector<double> out, point(x.dimension());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.dimension(); ++j) point[j] = x(i, j);
    out.push_back(f(point.data()));
  }
  return out;
}

Population<double> exact_samples(const GaussianMixture& law, std::uint64_t seed, std::size_t n = many) {
  Population<double> x(n, law.dimension());
  MixtureSampler(law, Noise{seed}).draw(x, 0);
  return x;
}

TEST(RewardTerm, IsTheGradientOfTheExpectedReward) {
  const SoftmaxWells wells = hexagon_wells();
  const Population<double> x = exact_samples(wells.law(hexagon_start()), 51);
  const auto errors = covariance_errors(evaluate(hard_reward(), x), slopes(wells, x, hexagon_start()));
  expect_within(estimate(GradientEstimator<double>(wells, hard_reward()), x, hexagon_start()),
                HexagonAnswers().exact_reward_gradient, errors);
}

TEST(ReferenceTerm, IsTheGradientOfTheDivergence) {
  const SoftmaxWells wells = hexagon_wells();
  const Population<double> x = exact_samples(wells.law(hexagon_elsewhere()), 52);
  const Population<double> y = exact_samples(wells.law(hexagon_start()), 53);
  ReferenceTerm<double> term(std::make_unique<FixedReference<double>>(y));
  const auto at_x = slopes(wells, x, hexagon_elsewhere()), at_y = slopes(wells, y, hexagon_elsewhere());
  std::vector<double> errors;
  for (std::size_t j = 0; j < 6; ++j) errors.push_back(std::hypot(standard_error(at_x[j]), standard_error(at_y[j])));
  expect_within(estimate(sum_of<double>(wells, std::move(term)), x, hexagon_elsewhere()),
                HexagonAnswers().divergence_gradient, errors);
}

TEST(BaseTerm, IsTheGradientOfTheReverseDivergence) {
  SoftmaxWells here = hexagon_wells(), there = hexagon_wells();
  here.prepare(hexagon_elsewhere());
  there.prepare(hexagon_start());
  const Population<double> x = exact_samples(here.law(hexagon_elsewhere()), 54);
  const auto value = [](const SoftmaxWells& w, const double* p) {
    return w.evaluate(p, static_cast<double*>(nullptr), static_cast<double*>(nullptr));
  };
  const auto f = evaluate([&](const double* p) { return value(here, p) - value(there, p); }, x);
  expect_within(estimate(sum_of<double>(here, BaseTerm<double>(there)), x, hexagon_elsewhere()),
                HexagonAnswers().reverse_divergence_gradient,
                covariance_errors(f, slopes(here, x, hexagon_elsewhere())));
}

// V = (x - theta)^2 / 2 and any population N(m, v): Gamma = -v d/dm E[R] by Stein's identity, whatever theta.
TEST(RewardTerm, HasTheKnownGradientsOfTheGaussianFamily) {
  const Quadratic line(std::vector<std::vector<double>>{{1.0}});
  struct Case {
    double m, v;
    Reward<double> reward;
    double expected;
  };
  const std::vector<Case> cases{
      {.8, 1.3, QuadraticReward({-.4}), 3.12},
      {.8, 1.3, BumpReward({1.5}, 2.0), -.199316111190},
      {.4, 1.2, [](const double* x) { return -std::abs(x[0] - 1); }, -.499341095076},
  };
  for (const Case& c : cases)
    for (const double theta : {0.0, 0.7}) {
      const Population<double> x = exact_samples({{1.0}, {{{c.m}, {c.v}}}}, 55);
      std::vector<double> f(x.size());
      for (std::size_t b = 0; b < x.blocks(); ++b) c.reward.values(x.block(b), f.data() + b * block_size);
      expect_within(estimate(GradientEstimator<double>(line, c.reward), x, {theta}), {c.expected},
                    covariance_errors(f, slopes(line, x, {theta})));
    }
}

// ---- reference samples

// Pearson's statistic of how often each of the ten rows was drawn; `row_of` maps a value to its row. With 9 degrees of
// freedom a fair draw exceeds 50 once in ten million times.
double unevenness(Reference<float>& reference, std::int64_t steps) {
  std::map<float, double> count;
  double total = 0;
  for (std::int64_t k = 0; k < steps; ++k) {
    const Population<float>& batch = reference.batch(k);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(batch(i, 1), -batch(i, 0)) << "rows are taken whole";
      count[batch(i, 0)] += 1;
    }
    total += static_cast<double>(batch.size());
  }
  double sum = 0;
  for (int row = 0; row < 10; ++row) {
    const double off = count[static_cast<float>(row)] - total / 10;
    sum += off * off / (total / 10);
  }
  return sum;
}
Population<float> ten_rows() {
  Population<float> data(10, 2);
  for (std::size_t i = 0; i < 10; ++i) {
    data(i, 0) = static_cast<float>(i);
    data(i, 1) = -static_cast<float>(i);
  }
  return data;
}

TEST(MinibatchReference, DrawsRowsUniformly) {
  MinibatchReference<float> fair(ten_rows(), 100, Noise{61});
  EXPECT_LT(unevenness(fair, 500), 50);

  Population<float> tilted(100, 2);  // row 0 takes a tenth of row 1's share: 11 % and 9 %
  for (std::size_t i = 0; i < 100; ++i) {
    const auto row = static_cast<float>(i == 19 ? 0 : i / 10);
    tilted(i, 0) = row;
    tilted(i, 1) = -row;
  }
  MinibatchReference<float> unfair(tilted, 100, Noise{61});
  EXPECT_GT(unevenness(unfair, 500), 50) << "an uneven draw would pass";
}

TEST(References, AreAPureFunctionOfTheStep) {
  const GaussianMixture law = hexagon_wells().law(hexagon_start());
  MinibatchReference<float> rows(ten_rows(), 40, Noise{62});
  MixtureReference<float> samples(law, 40, Noise{62});
  FixedReference<float> fixed(ten_rows());
  for (Reference<float>* reference :
       {static_cast<Reference<float>*>(&rows), static_cast<Reference<float>*>(&samples)}) {
    const Population<float> third = reference->batch(3), fourth = reference->batch(4), again = reference->batch(3);
    EXPECT_EQ(third.size(), 40u);
    EXPECT_EQ(third, again);
    EXPECT_NE(third, fourth);
  }
  EXPECT_EQ(fixed.batch(3), ten_rows());
  EXPECT_EQ(fixed.batch(4), ten_rows());

  Population<float> direct(40, 2);
  MixtureSampler(law, Noise{62}).draw(direct, 3);
  EXPECT_EQ(samples.batch(3), direct);
}

TEST(ReferenceTerm, TakesTheBatchOfItsStep) {
  const auto with = [](std::unique_ptr<Reference<float>> reference, std::int64_t step) {
    return estimate(sum_of<float>(hexagon_wells(), ReferenceTerm<float>(std::move(reference))),
                    population_of<float>(five_points()), hexagon_start(), step);
  };
  MinibatchReference<float> rows(ten_rows(), 4, Noise{62});
  for (const std::int64_t step : {0, 3, 4})
    EXPECT_EQ(with(std::make_unique<MinibatchReference<float>>(ten_rows(), 4, Noise{62}), step),
              with(std::make_unique<FixedReference<float>>(rows.batch(step)), 0));
  const Population<float> first = rows.batch(0);
  ASSERT_NE(first, rows.batch(3));
}

// Its gradient is the mean of dV/dtheta; for logistic wells the integral of exp(-V) is sum_i w_i(theta) (pi q)^(d/2),
// whose logarithm has the derivative w_i' / sum w. Exact samples: five standard errors, one seed in two million would
// fail.
TEST(MarginalLikelihoodTerm, IsTheGradientOfTheLogIntegral) {
  const LogisticWells wells({{-2, 0}, {1, 1}}, 1.0, 0.1);
  const std::vector<double> theta{0.4, -0.7};
  constexpr std::size_t n = 40'000;
  Population<double> x(n, 2);
  MixtureSampler(wells.law(theta), Noise{63}).draw(x, 0);
  const std::vector<double> got = estimate(sum_of<double>(wells, MarginalLikelihoodTerm<double>(2.0)), x, theta);
  const auto sigmoid = [](double t) { return 1 / (1 + std::exp(-t)); };
  const auto weight = [&](double t) { return 0.1 + 0.9 * sigmoid(t); };
  for (std::size_t j = 0; j < 2; ++j) {
    const double slope = 0.9 * sigmoid(theta[j]) * (1 - sigmoid(theta[j]));
    const double exact = -2 * slope / (weight(theta[0]) + weight(theta[1]));
    // dV/dtheta_j is between -slope / w_j and 0.
    const double tolerance = 5 * 2 * slope / weight(theta[j]) / 2 / std::sqrt(n);
    EXPECT_NEAR(got[j], exact, tolerance);
    EXPECT_GT(std::abs(exact), 5 * tolerance) << "too few samples to see a wrong sign or factor";
  }
}

// Sizes are checked before any memory is touched.
TEST(Sizes, ThatDoNotFitAreRefused) {
  const std::vector<double> theta(6);
  std::vector<double> gradient(6), small(5);
  Population<float> x(10, 2), line(10, 1), none(0, 2);
  GradientEstimator<float> estimator(hexagon_wells(), Reward<float>(hard_reward()));
  Langevin<float> sampler(hexagon_wells());
  GradientEstimator<float>::Terms terms;
  terms.push_back(std::make_unique<RewardTerm<float>>(hard_reward()));
  LangevinEngine<float> engine(hexagon_wells(), std::move(terms), {});
  EXPECT_THROW(estimator.estimate(x, small, 0, gradient), Error);
  EXPECT_THROW(estimator.estimate(x, theta, 0, small), Error);
  EXPECT_THROW(estimator.estimate(line, theta, 0, gradient), Error);
  EXPECT_THROW(estimator.estimate(none, theta, 0, gradient), Error);
  EXPECT_THROW(sampler.advance(x, small, {}), Error);
  EXPECT_THROW(sampler.advance(line, theta, {}), Error);
  EXPECT_THROW(sampler.advance(none, theta, {}), Error);
  EXPECT_THROW(engine.advance_and_estimate(x, small, {}, gradient), Error);
  EXPECT_THROW(engine.advance_and_estimate(x, theta, {}, small), Error);
  EXPECT_THROW(
      estimate(sum_of<float>(hexagon_wells(), ReferenceTerm<float>(std::make_unique<FixedReference<float>>(line))), x,
               theta),
      Error);
  Unrolled<float> unrolled(hexagon_wells(), SmoothReward({4, 3.8}, 20, 0.7, 0.5), {});
  unrolled.advance(x, theta, {});
  EXPECT_THROW(unrolled.estimate(x, theta, 0, small), Error);
}

TEST(NoGradient, IsZero) {
  std::vector<double> gradient{1, 2};
  NoGradient().estimate(Population<float>(3, 2), {}, 0, gradient);
  EXPECT_EQ(gradient, (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace implicit_diffusion
