// The ring: its law and its derivatives, and the single loop on it, with the law itself and with samples, to the
// optimum that is known.
#include "implicit_diffusion/finite/ring.hpp"

#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/finite/gibbs.hpp"
#include "implicit_diffusion/finite/sampler.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "io/expect_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

const std::vector<double> coefficients{.5, .2, -.3, .1};
constexpr double beta = 0.5;

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

TEST(RingChain, WithoutDriftIsTheHeatBathOfItsPotential) {
  const RingOptions options{.states = 11, .harmonics = 2, .width = 2};
  const std::vector<double> theta{0, 1, -.5, .3, .8}, inner(theta.begin() + 1, theta.end());
  RingChain ring(options);
  GibbsChain heat_bath(RingPotential(11, 2), Graph::ring(11, 2));
  ring.prepare(theta);
  heat_bath.prepare(inner);
  ring.matrix().require_stochastic();
  std::vector<double> a(25), b(20);
  for (std::size_t i = 0; i < 11; ++i) {
    EXPECT_LT(largest_difference(ring.matrix().row(i).values, heat_bath.matrix().row(i).values), 1e-16);
    ring.row_derivatives(i, a);
    heat_bath.row_derivatives(i, b);
    for (std::size_t s = 0; s < 5; ++s)
      EXPECT_LT(largest_difference(std::span(a).subspan(5 * s + 1, 4), std::span(b).subspan(4 * s, 4)), 1e-15);
  }
}

TEST(RingChain, DerivativesEqualFiniteDifferences) {
  RingChain ring({.states = 9, .harmonics = 2, .width = 3});
  const std::vector<double> theta{.7, 1, -.5, .3, .8};
  for (std::size_t j = 0; j < theta.size(); ++j) {
    const double h = 1e-5;
    std::vector<double> up = theta, down = theta, derivatives(7 * 5);
    up[j] += h;
    down[j] -= h;
    RingChain above = ring, below = ring;
    above.prepare(up);
    below.prepare(down);
    ring.prepare(theta);
    for (std::size_t i = 0; i < 9; ++i) {
      ring.row_derivatives(i, derivatives);
      for (std::size_t s = 0; s < 7; ++s)
        EXPECT_NEAR(derivatives[5 * s + j],
                    (above.matrix().row(i).values[s] - below.matrix().row(i).values[s]) / (2 * h), 1e-9);
    }
  }
}

// With a drift the law is not the Gibbs law. As n grows it is the law of dX = (c - V') dt + sqrt(2) dB, up to O(h^2):
// p(x) ~ int_0^{2 pi} exp(U(x + y) - U(x)) dy with U(x) = V(x) - c x.
TEST(RingChain, ApproachesTheDiffusionWithDrift) {
  const double c = 1.5, a = 0.8;
  double last = 0;
  for (const std::size_t n : {50, 100, 200}) {
    RingChain ring({.states = n, .harmonics = 1});
    ring.prepare(std::vector<double>{c, a, 0});
    StationarySystem system;
    system.factorise(ring.matrix());
    std::vector<double> density(n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double x = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
      const int nodes = 4000;  // midpoints
      for (int q = 0; q < nodes; ++q) {
        const double y = 2 * std::numbers::pi * (q + 0.5) / nodes;
        density[i] += std::exp(a * std::cos(x + y) - c * y - a * std::cos(x));
      }
      sum += density[i];
    }
    for (double& p : density) p /= sum;
    const double distance = static_cast<double>(n) * largest_difference(system.law(), density);
    if (last > 0) {
      EXPECT_NEAR(last / distance, 4, 0.2) << n;
    }
    last = distance;
  }
  EXPECT_LT(last, 1e-3);
}

TEST(RingProblem, TheGradientVanishesAtTheOptimumAndNowhereNear) {
  for (const std::size_t n : {30, 3000}) {
    const RingProblem ring = ring_problem({.states = n}, coefficients, beta);
    ChainGradient estimator(ring.chain, ring.objective);
    std::vector<double> gradient(5), zero(5, 0.0), near = ring.optimum;
    const double best = estimator.exact(ring.optimum, gradient);
    EXPECT_LT(largest_difference(gradient, zero), 1e-12);
    EXPECT_LT(largest_difference(estimator.law(), ring.best_law), 1e-14);
    for (std::size_t j = 0; j < 5; ++j) {
      near = ring.optimum;
      near[j] += 0.1;
      EXPECT_GT(estimator.exact(near, gradient), best);
      EXPECT_GT(gradient[j], 1e-5);
    }
  }
}

constexpr RingOptions small{.states = 16, .harmonics = 1, .width = 4};
const std::vector<double> small_reward{1, .5};
constexpr double small_beta = 0.2;

// From a chain that is driven around; the way back from the drift is the slowest: steps of 8 make it some 0.0013
// shorter each.
template <class Sampler, class Estimator, class Population>
void expect_optimum(Sampler& sampler, Estimator& estimator, Population population, std::vector<double> start,
                    double eta, std::int64_t steps, const std::vector<double>& optimum) {
  State<Population, GradientDescent> s{0, std::move(start), std::move(population), GradientDescent{{eta}}};
  EXPECT_GT(largest_difference(s.theta, optimum), 0.5);
  EXPECT_EQ(single_loop(sampler, estimator, s, {.steps = steps}).status, Status::completed);
  EXPECT_LT(largest_difference(s.theta, optimum), 1e-7);
}

// The law is exact, so the loop has a fixed point: p = pi*(theta) and Gamma = 0, at the optimum itself.
TEST(SingleLoop, WithTheExactLawReachesTheOptimumOfTheRing) {
  const RingProblem ring = ring_problem(small, small_reward, small_beta);
  for (const Route route : {Route::forward, Route::adjoint}) {
    ChainSampler sampler(ring.chain);
    ChainGradient estimator(ring.chain, ring.objective, route);
    expect_optimum(sampler, estimator, uniform_distribution(16), {.5, 0, 0}, 8, 16'000, ring.optimum);
  }
}

// At the optimum over all laws F' is constant, hence u too: the noise of the samples vanishes there, and the loop
// arrives as if there were none.
TEST(SingleLoop, WithSamplesOfTheChainReachesTheOptimumOfTheRing) {
  const RingProblem ring = ring_problem(small, small_reward, small_beta);
  ChainSampler sampler(ring.chain, {.noise = Noise(21)});
  ChainGradient estimator(ring.chain, ring.objective);
  expect_optimum(sampler, estimator, spread_population(200, 16), {.5, 0, 0}, 8, 16'000, ring.optimum);
}

// The covariance of a Gibbs law in place of the linear system.
TEST(SingleLoop, OnGibbsLawsReachesTheOptimum) {
  const RingPotential v(40, 2);
  const std::vector<double> start(4, 0.0);
  std::vector<double> optimum;
  for (const double r : coefficients) optimum.push_back(-r / beta);
  const Graph graph = Graph::ring(40, 8);
  GibbsGradient estimator(v, RewardObjective(ring_reward(40, coefficients), 1.0, beta));
  for (const Rule rule : {Rule::heat_bath, Rule::metropolis}) {
    ChainSampler law(GibbsChain(v, graph, rule));
    expect_optimum(law, estimator, uniform_distribution(40), start, 1, 2000, optimum);
    GibbsSampler samples(v, graph, {.rule = rule, .noise = Noise(22)});
    expect_optimum(samples, estimator, spread_population(1000, 40), start, 0.5, 2000, optimum);
  }
}

// A reward alone, two wells: the parameter that is best is where the shares of samples balance, and the noise stays.
// theta lifts state 1 of 3; F = (p_1 - 1/4)^2, known at the samples only through their shares; the optimum is
// exp(-theta) / (2 + exp(-theta)) = 1/4.
struct Quarter {
  double value(std::span<const double> p) const { return (p[1] - 0.25) * (p[1] - 0.25); }
  void gradient(std::span<const double> p, std::span<double> f) const {
    f[0] = f[2] = 0;
    f[1] = 2 * (p[1] - 0.25);
  }
};

TEST(SingleLoop, WithNoiseThatStaysReachesTheOptimumOnAverage) {
  const LinearPotential v({0, 0, 0}, {0, 1, 0});
  const std::size_t n = 2000, length = 200, batches = 20;
  GibbsSampler sampler(v, Graph::ring(3), {.noise = Noise(23)});
  GibbsGradient estimator(v, Quarter{});
  State<StatePopulation, GradientDescent> s{0, {-2}, spread_population(n, 3), GradientDescent{{1.0}}};
  std::vector<double> means(batches, 0.0);
  const auto observe = [&](const auto& state) {
    if (state.step > 1000) means[static_cast<std::size_t>(state.step - 1001) / length] += state.theta[0] / length;
  };
  EXPECT_EQ(single_loop(sampler, estimator, s, {.steps = 1000 + length * batches}, observe).status, Status::completed);
  double mean = 0, squares = 0;
  for (const double m : means) mean += m / batches;
  for (const double m : means) squares += (m - mean) * (m - mean);
  // Means over 200 steps, where samples are correlated over 4 and theta over 20, are independent: 4.5 standard errors
  // of their mean. The bias of a product of shares is of order 1 / n.
  const double error = std::sqrt(squares / (batches - 1) / batches);
  EXPECT_NEAR(mean, -std::log(2.0 / 3.0), 4.5 * error + 2.0 / n);
  EXPECT_LT(error, 0.01);
  EXPECT_GT(error, 1e-4);
}

TEST(SingleLoop, ContinuedEqualsUninterrupted) {
  const RingProblem ring = ring_problem(small, small_reward, small_beta);
  const auto run = [&](const std::vector<std::int64_t>& stops) {
    State<StatePopulation, GradientDescent> s{0, ring.start, spread_population(300, small.states), GradientDescent{}};
    for (const std::int64_t stop : stops) {
      ChainSampler sampler(ring.chain, {.noise = Noise(4)});
      ChainGradient estimator(ring.chain, ring.objective);
      (void)single_loop(sampler, estimator, s, {.steps = stop});
    }
    return s;
  };
  const auto whole = run({60}), parts = run({17, 60});
  EXPECT_EQ(whole.theta, parts.theta);
  EXPECT_EQ(whole.population, parts.population);
}

// A probability of zero has no logarithm: the loop says so and does not go on.
TEST(SingleLoop, ReportsALawWithoutLogarithm) {
  const RingProblem ring = ring_problem(small, small_reward, small_beta);
  ChainSampler sampler(ring.chain);
  ChainGradient estimator(ring.chain, ring.objective);
  State<Distribution, GradientDescent> s{0, ring.start, uniform_distribution(small.states), GradientDescent{}};
  std::ranges::fill(s.population.p, 0.0);
  s.population.p[0] = 1;
  const Outcome outcome = single_loop(sampler, estimator, s, {.steps = 5});
  EXPECT_EQ(outcome.status, Status::diverged);
  EXPECT_EQ(outcome.divergence->where, Divergence::Where::gradient);
}

// A step that is far too long: probabilities underflow and the chain falls apart. At the start that is an error, on the
// way it is divergence.
TEST(SingleLoop, ReportsAChainThatFallsApart) {
  const RingProblem ring = ring_problem(small, small_reward, small_beta);
  for (const bool at_the_start : {false, true}) {
    ChainSampler sampler(ring.chain);
    ChainGradient estimator(ring.chain, RewardObjective(ring_reward(16, small_reward)));
    State<Distribution, GradientDescent> s{0, ring.start, uniform_distribution(16), GradientDescent{{1e5}}};
    if (at_the_start) {
      s.theta[1] = 1e5;
      EXPECT_ERROR(single_loop(sampler, estimator, s, {.steps = 5}), usage, "chain: ");
    } else {
      const Outcome outcome = single_loop(sampler, estimator, s, {.steps = 5});
      EXPECT_EQ(outcome.status, Status::diverged);
      EXPECT_EQ(outcome.divergence->where, Divergence::Where::gradient);
    }
  }
}

TEST(Ring, RefusesBadShapes) {
  EXPECT_ERROR(RingChain({.states = 4, .harmonics = 2}), usage, "ring: 4 states are too few for 2 harmonics");
  EXPECT_ERROR(RingChain({.states = 5, .harmonics = 2, .width = 3}), usage, "ring: 5 states are too few");
  EXPECT_ERROR(ring_problem({.states = 9}, std::vector<double>(5, 1.0), 1), usage, "ring.reward: 5 coefficients");
  EXPECT_ERROR(ring_problem({.states = 9}, coefficients, 0), usage, "ring.beta: 0 must be finite and positive");
}

}  // namespace
}  // namespace implicit_diffusion
