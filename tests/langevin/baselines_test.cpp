// The methods the single loop is compared with: unrolling through the last step, and guidance by the gradient of the
// reward.
#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "problems/hexagon_reward.hpp"
#include "problems/training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace implicit_diffusion {
namespace {

using problems::five_points;
using problems::hexagon_start;
using problems::hexagon_wells;
using problems::HexagonAnswers;
using problems::population_of;
using problems::smooth_reward;

double mean_reward(const Reward<double>& reward, const Population<double>& x) {
  double sum = 0;
  std::array<double, block_size> r;
  for (std::size_t b = 0; b < x.blocks(); ++b) {
    reward.values(x.block(b), r.data());
    for (std::size_t i = 0; i < x.block(b).size; ++i) sum += r[i];
  }
  return sum / static_cast<double>(x.size());
}

// The formula g mean_i [ (d/dx grad_theta V)(x_i) . grad R(x'_i) ] with noise that is given: its two halves are those
// that Unrolled calls.
TEST(Unrolled, FormulaHasTheKnownValue) {
  const HexagonAnswers known;
  const double g = 0.2;
  Potential<double> wells = hexagon_wells();
  wells.prepare(hexagon_start());
  const Population<double> x = population_of<double>(five_points());
  std::vector<double> slope(2 * block_size), direction(2 * block_size), gradient(6);
  wells.gradient(x.block(0), slope.data());
  Population<double> after = x;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < 2; ++j)
      after(i, j) += std::sqrt(2 * g) * known.unrolled_noise[i][j] - g * slope[j * block_size + i];
  EXPECT_NEAR(-mean_reward(smooth_reward(), after), known.unrolled_objective, 1e-11);

  Reward<double>(smooth_reward()).gradient(std::as_const(after).block(0), direction.data());
  wells.add_weighted_mixed(x.block(0), direction.data(), gradient.data());
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(gradient[j] * g / 5, known.unrolled_gradient[j], 1e-11) << j;
}

// The largest difference between `gradient` and central differences in theta of -mean R(x'(theta)), the step taken anew
// at each theta with the same noise. h = 1e-5: truncation about h^2, rounding 1e-16 / h.
double unrolled_error(const Potential<double>& potential, const Reward<double>& reward, const LangevinOptions& options,
                      const Population<double>& x, const std::vector<double>& theta, StepKey at,
                      const std::vector<double>& gradient) {
  const auto objective = [&](const std::vector<double>& t) {
    Population<double> moved = x;
    Langevin<double>(potential, options).advance(moved, t, at);
    return -mean_reward(reward, moved);
  };
  const double h = 1e-5;
  double worst = 0;
  for (std::size_t j = 0; j < theta.size(); ++j) {
    auto up = theta, down = theta;
    up[j] += h;
    down[j] -= h;
    worst = std::max(worst, std::abs((objective(up) - objective(down)) / (2 * h) - gradient[j]));
  }
  return worst;
}

TEST(Unrolled, EqualsFiniteDifferencesWithTheSameNoise) {
  const problems::TwoGaussians direct({CovarianceForm::direct}), cholesky({CovarianceForm::cholesky});
  struct Case {
    const char* name;
    Potential<double> potential;
    std::vector<double> theta;
  };
  const std::vector<Case> cases{{"wells", hexagon_wells(), hexagon_start()},
                                {"logistic", LogisticWells(problems::hexagon(), 2.0, 0.1), {-2, -1, 0, 1, 2, 3}},
                                {"quadratic", Quadratic({{2, .5}, {.5, 1}}), {.4, -.3}},
                                {"direct", direct.mixture, direct.target},
                                {"cholesky", cholesky.mixture, cholesky.target}};
  for (const Case& c : cases)
    for (const std::size_t n :
         {40, 300}) {  // fewer might all sit inside wells, where there is no gradient to get wrong
      const StepKey at{.round = 3};
      const LangevinOptions options{.step_size = {0.2, 0.5}, .noise = Noise{71}};
      Population<double> x(n, 2), moved;
      MixtureSampler(c.potential.law(c.theta).value(), Noise{72}).draw(x, 0);
      moved = x;
      Unrolled<double> unrolled(c.potential, smooth_reward(), options);
      std::vector<double> gradient(c.theta.size());
      unrolled.advance(moved, c.theta, at);
      unrolled.estimate(moved, c.theta, at.round, gradient);
      EXPECT_LT(unrolled_error(c.potential, smooth_reward(), options, x, c.theta, at, gradient), 1e-8) << c.name;

      for (double& g : gradient) g *= 1.01;
      EXPECT_GT(unrolled_error(c.potential, smooth_reward(), options, x, c.theta, at, gradient), 1e-7)
          << c.name << ": a gradient that is off by 1 % would pass";
    }
}

// The step is Langevin's, bit for bit.
TEST(Unrolled, SamplesAsLangevinDoes) {
  const LangevinOptions options{.step_size = {0.2}, .noise = Noise{73}};
  Population<float> x(100, 2), y(100, 2);
  Unrolled<float> unrolled(hexagon_wells(), smooth_reward(), options);
  Langevin<float> langevin(hexagon_wells(), options);
  for (std::int64_t k = 0; k < 5; ++k) {
    unrolled.advance(x, hexagon_start(), {.round = k});
    langevin.advance(y, hexagon_start(), {.round = k});
  }
  EXPECT_EQ(x, y);
}

// For V = (x - theta)^2 / 2 the mixed derivative is -1: the estimate is g times -mean R'(x').
TEST(Unrolled, IsTheStepTimesTheGradientForOneGaussian) {
  const double g = 0.3;
  Population<double> x(1000, 1);
  Unrolled<double> unrolled(Quadratic(std::vector<std::vector<double>>{{1.0}}), QuadraticReward({2.0}),
                            {.step_size = {g}, .noise = Noise{74}});
  std::vector<double> gradient(1);
  unrolled.advance(x, std::vector<double>{0.5}, {});
  unrolled.estimate(x, std::vector<double>{0.5}, 0, gradient);
  double slope = 0;
  for (const double v : x.coordinate(0)) slope += 2 * (v - 2) / 1000;  // of -R
  EXPECT_NEAR(gradient[0], g * slope, 1e-13);
}

// lambda is a factor of the gradient. One that grows as the step of the sampler decays keeps the gradient's size: it is
// g(0) times -mean R'(x') at every step.
TEST(Unrolled, WeighsTheReward) {
  const double g = 0.3, third = 1.0 / 3.0;
  const auto gradient_over_slope = [&](Schedule step_size, Schedule lambda, std::int64_t k) {
    Population<double> x(1000, 1);
    Unrolled<double> unrolled(Quadratic(std::vector<std::vector<double>>{{1.0}}), QuadraticReward({2.0}),
                              {.step_size = step_size, .noise = Noise{74}}, lambda);
    std::vector<double> gradient(1);
    unrolled.advance(x, std::vector<double>{0.5}, {.round = k});
    unrolled.estimate(x, std::vector<double>{0.5}, k, gradient);
    double slope = 0;
    for (const double v : x.coordinate(0)) slope += 2 * (v - 2) / 1000;  // of -R
    return gradient[0] / slope;
  };
  for (const double lambda : {1.0, 5.0, -0.5, 0.0})
    EXPECT_NEAR(gradient_over_slope({g}, lambda, 0), lambda * g, 1e-13) << lambda;
  for (const std::int64_t k : {0, 1, 7, 26}) {
    const double decay = std::pow(static_cast<double>(k + 1), -third);
    EXPECT_NEAR(gradient_over_slope({g, third}, 1, k), g * decay, 1e-13) << k;
    EXPECT_NEAR(gradient_over_slope({g, third}, {1, -third}, k), g, 1e-13) << k;
  }
}

TEST(Unrolled, NeedsDerivativesAndAStepBeforeTheEstimate) {
  const Reward<double> lambda = [](const double* x) { return x[0]; };
  EXPECT_THROW(Unrolled<double>(hexagon_wells(), lambda, {}), Error);

  // The paper's order estimates before the first step: there is nothing to differentiate yet.
  Unrolled<double> unrolled(hexagon_wells(), smooth_reward(), {.step_size = {0.2}});
  State<Population<double>, GradientDescent> s{0, hexagon_start(), population_of<double>(five_points()), {}};
  EXPECT_THROW((void)single_loop(unrolled, unrolled, s, {.steps = 3, .order = Order::paper}), Error);
  EXPECT_EQ(single_loop(unrolled, unrolled, s, {.steps = 3, .order = Order::authors}).status, Status::completed);
}

// grad (V - lambda R) against central differences of its values.
double guided_error(const Potential<double>& potential, const std::vector<double>& x,
                    const std::vector<double>& slope) {
  const auto value = [&](const std::vector<double>& at) {
    const Population<double> one = population_of<double>({at});
    double out = 0;
    potential.values(one.block(0), &out);
    return out;
  };
  const double h = 1e-5;
  double worst = 0;
  for (std::size_t j = 0; j < 2; ++j) {
    auto up = x, down = x;
    up[j] += h;
    down[j] -= h;
    worst = std::max(worst, std::abs((value(up) - value(down)) / (2 * h) - slope[j]));
  }
  return worst;
}

TEST(Guided, IsThePotentialMinusTheReward) {
  const double lambda = 5;
  Potential<double> plain = hexagon_wells(), bent = guided<double>(hexagon_wells(), smooth_reward(), lambda);
  plain.prepare(hexagon_start());
  bent.prepare(hexagon_start());
  const Population<double> x = population_of<double>(five_points());
  std::array<double, block_size> v, w, r;
  std::vector<double> dv(2 * block_size), dw(2 * block_size), dr(2 * block_size);
  plain.values(x.block(0), v.data());
  bent.values(x.block(0), w.data());
  plain.gradient(x.block(0), dv.data());
  bent.gradient(x.block(0), dw.data());
  Reward<double>(smooth_reward()).values(x.block(0), r.data());
  Reward<double>(smooth_reward()).gradient(x.block(0), dr.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(w[i], v[i] - lambda * r[i], 1e-14);
    const std::vector<double> slope{dw[i], dw[block_size + i]};
    for (std::size_t j = 0; j < 2; ++j)
      EXPECT_NEAR(slope[j], dv[j * block_size + i] - lambda * dr[j * block_size + i], 1e-14);
    EXPECT_LT(guided_error(bent, five_points()[i], slope), 1e-8);
    EXPECT_GT(guided_error(plain, five_points()[i], slope), 1e-3) << "the reward left out would pass";
  }
  EXPECT_FALSE(bent.law(hexagon_start()));  // no mixture of Gaussians any more
}

TEST(Guided, NeedsAGradient) {
  const Reward<double> lambda = [](const double* x) { return x[0]; };
  EXPECT_THROW(guided<double>(hexagon_wells(), lambda, 1.0), Error);
}

}  // namespace
}  // namespace implicit_diffusion
