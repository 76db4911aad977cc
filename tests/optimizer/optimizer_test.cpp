// Optimizers and schedules against steps computed apart, and the pair of schedules on a recursion whose numbers are
// known.
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/any.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "implicit_diffusion/optimizer/rms_prop.hpp"
#include "implicit_diffusion/optimizer/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace implicit_diffusion {
namespace {

TEST(Schedule, IsAPowerOfTheStepCountedFromOne) {
  const Schedule constant = 0.3, root{0.3, 0.5}, other{0.3, 0.7};
  for (const std::int64_t k : {0, 1, 2, 8, 99, 4999, 1'000'000}) {
    const double count = static_cast<double>(k + 1);
    EXPECT_EQ(constant(k), 0.3);
    EXPECT_EQ(root(k), 0.3 / std::sqrt(count));
    // exp(-a log n): the rounding of a log n, up to 14 here, is the relative error.
    EXPECT_NEAR(other(k) / (0.3 * std::pow(count, -0.7)), 1.0, 1e-14);
  }
  EXPECT_EQ(root(0), 0.3);
  EXPECT_EQ(other(0), 0.3);
}

TEST(Schedule, TheProvedPairIsMadeOfCubeRoots) {
  const SchedulePair pair = cube_root_pair(0.25);
  for (const std::int64_t k : {0, 1, 7, 26, 999}) {
    const double eps = 1 / std::cbrt(static_cast<double>(k + 1));
    EXPECT_NEAR(pair.sampler(k), 0.25 * eps, 1e-15);
    EXPECT_NEAR(pair.optimizer(k), pair.sampler(k) * eps, 1e-15);
  }
}

TEST(GradientDescent, StepsAgainstTheGradient) {
  GradientDescent descent{{0.5, 0.5}};
  std::vector<double> theta{1, -2};
  descent.update(theta, std::vector<double>{2, -4}, 0);
  EXPECT_EQ(theta, (std::vector<double>{0, 0}));
  descent.update(theta, std::vector<double>{1, 3}, 3);  // 0.5 / sqrt(4)
  EXPECT_EQ(theta, (std::vector<double>{-0.25, -0.75}));
}

TEST(Hold, DoesNothing) {
  std::vector<double> theta{1, -2};
  Hold{}.update(theta, std::vector<double>{2, -4}, 0);
  EXPECT_EQ(theta, (std::vector<double>{1, -2}));
}

// theta after each of the gradients, from 1.
std::vector<double> adam_path(AdamOptions options, const std::vector<double>& gradients) {
  Adam adam(options);
  std::vector<double> theta{1.0}, path;
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    adam.update(theta, std::vector<double>{gradients[t]}, static_cast<std::int64_t>(t));
    path.push_back(theta[0]);
  }
  return path;
}

// Worked out apart, in another language, for gradients 1, -2, 1/2.
TEST(Adam, TakesTheKnownSteps) {
  const std::vector<double> gradients{1, -2, 0.5};
  const std::vector<double> usual = adam_path({}, gradients);
  EXPECT_NEAR(usual[0], 0.99900000001, 1e-15);
  EXPECT_NEAR(usual[1], 0.9993661035347208, 1e-15);
  EXPECT_NEAR(usual[2], 0.9995027941967383, 1e-15);
  const std::vector<double> short_memory =
      adam_path({.rate = {0.1}, .first_decay = 0.5, .second_decay = 0.8}, gradients);
  EXPECT_NEAR(short_memory[0], 0.900000001, 1e-14);
  EXPECT_NEAR(short_memory[1], 0.9612372441945795, 1e-14);
  EXPECT_NEAR(short_memory[2], 0.972271301008614, 1e-14);
}

// Unrolled, the moments are weighted means of all gradients so far: m_t = (1 - b) sum_i b^(t - i) g_i.
TEST(Adam, MomentsAreWeightedMeans) {
  const AdamOptions options{.rate = {0.1, 0.5}, .first_decay = 0.7, .second_decay = 0.9};
  std::vector<double> gradients;
  for (int t = 0; t < 30; ++t) gradients.push_back(std::sin(1.0 + 2.0 * t));
  const std::vector<double> path = adam_path(options, gradients);
  double theta = 1.0;
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    double first = 0, first_sum = 0, second = 0, second_sum = 0;
    for (std::size_t i = 0; i <= t; ++i) {
      const double a = std::pow(0.7, static_cast<double>(t - i)), b = std::pow(0.9, static_cast<double>(t - i));
      first += a * gradients[i];
      first_sum += a;
      second += b * gradients[i] * gradients[i];
      second_sum += b;
    }
    theta -= 0.1 / std::sqrt(static_cast<double>(t + 1)) * first / first_sum / (std::sqrt(second / second_sum) + 1e-8);
    EXPECT_NEAR(path[t], theta, 1e-13) << t;
  }
}

TEST(Adam, TheFirstStepIsTheRateWhateverTheSizeOfTheGradient) {
  for (const double size : {1e-3, 1.0, 1e8}) {
    Adam adam({.rate = {0.01}});
    std::vector<double> theta{0, 0, 0};
    adam.update(theta, std::vector<double>{size, -size, 0}, 0);
    EXPECT_NEAR(theta[0], -0.01, 0.01 * 1e-8 / size + 1e-16);
    EXPECT_NEAR(theta[1], 0.01, 0.01 * 1e-8 / size + 1e-16);
    EXPECT_EQ(theta[2], 0.0);
  }
}

// Unrolled, v is a sum over all gradients so far: v_t = (1 - b) sum_i b^(t - i) g_i^2, without a correction for its
// beginning.
TEST(RmsProp, DividesByTheSizeOfRecentGradients) {
  RmsProp optimizer({.rate = {0.1, 0.5}, .decay = 0.9, .epsilon = 1e-3});
  std::vector<double> theta{1.0, -1.0}, expected = theta;
  std::vector<std::vector<double>> gradients;
  for (std::size_t t = 0; t < 30; ++t) {
    gradients.push_back({std::sin(1.0 + 2.0 * static_cast<double>(t)), 100.0});
    optimizer.update(theta, gradients.back(), static_cast<std::int64_t>(t));
    for (std::size_t j = 0; j < 2; ++j) {
      double v = 0;
      for (std::size_t i = 0; i <= t; ++i)
        v += 0.1 * std::pow(0.9, static_cast<double>(t - i)) * gradients[i][j] * gradients[i][j];
      expected[j] -= 0.1 / std::sqrt(static_cast<double>(t + 1)) * gradients[t][j] / (std::sqrt(v) + 1e-3);
      EXPECT_NEAR(theta[j], expected[j], 1e-13) << t;
    }
  }
}

TEST(RmsProp, TheFirstStepDoesNotDependOnTheSizeOfTheGradient) {
  for (const double size : {1e-3, 1.0, 1e8}) {
    RmsProp optimizer({.rate = {0.01}, .decay = 0.99});
    std::vector<double> theta{0, 0, 0};
    optimizer.update(theta, std::vector<double>{size, -size, 0}, 0);
    EXPECT_NEAR(theta[0], -0.1, 0.1 * 1e-7 / size + 1e-15);
    EXPECT_NEAR(theta[1], 0.1, 0.1 * 1e-7 / size + 1e-15);
    EXPECT_EQ(theta[2], 0.0);
  }
}

// Langevin for V = (x - theta)^2 / 2 from a Gaussian N(m, v) stays Gaussian, and with R = -|x - c| the estimator's
// expectation is known:
//
//     m' = m - g (m - theta)     v' = (1 - g)^2 v + 2 g     theta' = theta - g eps v erf((m - c) / sqrt(2 v))
//
// so the single loop with the proved pair of schedules can be followed without noise.
struct MeanField {
  double theta = 0, m = 0, v = 1,
         average = 0;  // average: of the squared gradient of the objective at the thetas so far
};
MeanField mean_field(const SchedulePair& pair, double c, std::int64_t steps) {
  MeanField s;
  GradientDescent descent{pair.optimizer};
  double sum = 0;
  for (std::int64_t k = 0; k < steps; ++k) {
    const double slope = std::erf((s.theta - c) / std::sqrt(2.0));
    sum += slope * slope;
    const double g = pair.sampler(k);
    const std::vector<double> gradient{s.v * std::erf((s.m - c) / std::sqrt(2 * s.v))};
    s.m -= g * (s.m - s.theta);
    s.v = (1 - g) * (1 - g) * s.v + 2 * g;
    descent.update(std::span(&s.theta, 1), gradient, k);
  }
  s.average = sum / static_cast<double>(steps);
  return s;
}

TEST(AnyOptimizer, IsTheOneOfItsName) {
  EXPECT_EQ(AnyOptimizer::names(), (std::vector<std::string>{"gradient-descent", "adam", "rms-prop"}));
  const Schedule rate{0.1, 0.5};
  const auto expect_same = [&](AnyOptimizer any, auto optimizer) {
    std::vector<double> a{1, -2}, b = a;
    for (std::int64_t k = 0; k < 5; ++k) {
      const std::vector<double> gradient{0.3 * static_cast<double>(k), -1};
      any.update(a, gradient, k);
      optimizer.update(b, gradient, k);
    }
    EXPECT_EQ(a, b);
    if constexpr (requires { optimizer.memory(); })
      EXPECT_EQ(any.memory().list(), optimizer.memory().list());
    else
      EXPECT_TRUE(any.memory().list().empty());
  };
  expect_same(AnyOptimizer::make("gradient-descent", rate), GradientDescent{rate});
  expect_same(AnyOptimizer::make("adam", rate), Adam({.rate = rate}));
  expect_same(AnyOptimizer::make("rms-prop", rate), RmsProp({.rate = rate}));
  expect_same(AnyOptimizer(), Hold{});
  expect_same(AnyOptimizer::make("none of them", rate), Hold{});
}

TEST(Schedule, DrivesTheMeanFieldRecursionToItsKnownNumbers) {
  const MeanField early = mean_field(cube_root_pair(0.25), 3.0, 5);
  EXPECT_NEAR(early.theta, .744312376958, 1e-10);
  EXPECT_NEAR(early.m, .249960803552, 1e-10);
  EXPECT_NEAR(early.v, 1.083125059431, 1e-10);
  EXPECT_NEAR(early.average, .979580131726, 1e-10);
  const MeanField late = mean_field(cube_root_pair(0.25), 3.0, 1000);
  EXPECT_NEAR(late.theta, 2.989985502679, 1e-10);
  EXPECT_NEAR(late.average, .051689699280, 1e-10);
}

// The pair in the paper's statement, square roots, moves theta by 1/k a step: it does not arrive.
TEST(Schedule, SquareRootsDoNotArrive) {
  const SchedulePair square_roots{{0.25, 0.5}, {0.25, 1.0}};
  EXPECT_GT(mean_field(square_roots, 10.0, 100'000).average, 0.99);
  EXPECT_LT(mean_field(cube_root_pair(0.25), 10.0, 100'000).average, 0.03);
}

}  // namespace
}  // namespace implicit_diffusion
