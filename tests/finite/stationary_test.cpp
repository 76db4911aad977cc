// Stationary laws and the gradients of what is asked of them: numbers worked out apart, finite differences, and the two
// routes against each other, dense and sparse, small and large.
#include "implicit_diffusion/finite/stationary.hpp"

#include "finite/random_chain.hpp"
#include "implicit_diffusion/finite/chain.hpp"
#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/finite/graph.hpp"
#include "implicit_diffusion/finite/objective.hpp"
#include "implicit_diffusion/finite/ring.hpp"
#include "io/expect_error.hpp"
#include "problems/finite_states.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace implicit_diffusion {
namespace {

TEST(StationarySystem, HasTheKnownNumbersOfThreeStates) {
  const problems::ThreeStates known;
  SoftmaxChain chain = known.chain;
  chain.prepare(known.theta);
  chain.matrix().require_stochastic();
  StationarySystem system;
  system.factorise(chain.matrix());
  std::vector<double> flow(3), gamma(3), u(3), gradient(1);
  push_forward(chain, system.law(), 0, flow);
  system.forward(flow, gamma);
  system.adjoint(known.f, u);
  pull_back(chain, system.law(), u, gradient);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(system.law()[i], known.law[i], 1e-11);
    EXPECT_NEAR(gamma[i], known.derivative[i], 1e-11);
    EXPECT_NEAR(u[i], known.u[i], 1e-11);
  }
  EXPECT_NEAR(gradient[0], known.gradient[0], 1e-11);
}

// An objective that is neither linear nor a sum over states: (p . a)^2 + |p|^2.
struct Curved {
  std::vector<double> a;
  double value(std::span<const double> p) const {
    const double mean = std::inner_product(p.begin(), p.end(), a.begin(), 0.0);
    return mean * mean + std::inner_product(p.begin(), p.end(), p.begin(), 0.0);
  }
  void gradient(std::span<const double> p, std::span<double> f) const {
    const double mean = std::inner_product(p.begin(), p.end(), a.begin(), 0.0);
    for (std::size_t i = 0; i < p.size(); ++i) f[i] = 2 * mean * a[i] + 2 * p[i];
  }
};

// The largest difference between the exact gradient and difference quotients of the value.
template <class Gradient>
double distance_from_differences(Gradient& estimator, const std::vector<double>& theta, double scale = 1) {
  std::vector<double> gradient(theta.size()), unused(theta.size());
  estimator.exact(theta, gradient);
  double worst = 0;
  for (std::size_t j = 0; j < theta.size(); ++j) {
    const double h = 1e-5;  // h^2 times third derivatives below 1, and 1e-15 / h: both below 1e-9
    std::vector<double> up = theta, down = theta;
    up[j] += h;
    down[j] -= h;
    const double quotient = (estimator.exact(up, unused) - estimator.exact(down, unused)) / (2 * h);
    worst = std::max(worst, std::abs(scale * gradient[j] - quotient));
  }
  return worst;
}

TEST(ChainGradient, EqualsFiniteDifferences) {
  const std::vector<double> theta{.4, -.6, .9};
  for (const std::size_t n : {2, 3, 7, 20})
    for (const Route route : {Route::forward, Route::adjoint}) {
      const SoftmaxChain dense = random_chain(TransitionMatrix::dense(n), 3, n);
      ChainGradient curved(dense, Curved{random_numbers(n, 50)}, route);
      EXPECT_LT(distance_from_differences(curved, theta), 1e-8) << n;
      EXPECT_GT(distance_from_differences(curved, theta, 1.001), 1e-8) << n;
      ChainGradient reward(dense, RewardObjective(random_numbers(n, 51), 1.5, 0.3), route);
      EXPECT_LT(distance_from_differences(reward, theta), 1e-8) << n;
      if (n <= 5) continue;
      const SoftmaxChain sparse = random_chain(move_pattern(Graph::ring(n, 2)), 3, n);
      ChainGradient banded(sparse, Curved{random_numbers(n, 52)}, route);
      EXPECT_LT(distance_from_differences(banded, theta), 1e-8) << n;
      EXPECT_GT(distance_from_differences(banded, theta, 1.001), 1e-8) << n;
    }
}

// The same chain with its zeros stored and with them left out: a border and a pinned state.
TEST(StationarySystem, DenseAndSparseAgree) {
  const std::size_t n = 40;
  SoftmaxChain sparse = random_chain(move_pattern(Graph::ring(n, 3)), 1, 9);
  sparse.prepare(std::vector<double>{.8});
  TransitionMatrix dense = TransitionMatrix::dense(n);
  for (std::size_t i = 0; i < n; ++i) {
    const TransitionRow row = sparse.matrix().row(i);
    for (std::size_t s = 0; s < row.size(); ++s) dense.values(i)[row.column(s)] = row.values[s];
  }
  StationarySystem a, b;
  a.factorise(sparse.matrix());
  b.factorise(dense);
  const std::vector<double> f = random_numbers(n, 3);
  std::vector<double> ua(n), ub(n), flow(n), ga(n), gb(n), step(n);
  a.adjoint(f, ua);
  b.adjoint(f, ub);
  push_forward(sparse, a.law(), 0, flow);
  a.forward(flow, ga);
  b.forward(flow, gb);
  dense.multiply_left(b.law(), step);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(a.law()[i], b.law()[i], 1e-16);
    EXPECT_NEAR(step[i], b.law()[i], 1e-16);
    EXPECT_NEAR(ua[i], ub[i], 1e-13);
    EXPECT_NEAR(ga[i], gb[i], 1e-15);
  }
}

// The largest relative difference of the gradients by the two routes.
template <class C, class F>
double distance_of_routes(const C& chain, const F& objective, const std::vector<double>& theta) {
  ChainGradient forward(chain, objective, Route::forward), adjoint(chain, objective, Route::adjoint);
  std::vector<double> a(theta.size()), b(theta.size());
  forward.exact(theta, a);
  adjoint.exact(theta, b);
  double size = 0, difference = 0;
  for (std::size_t j = 0; j < theta.size(); ++j) {
    size = std::max(size, std::abs(a[j]));
    difference = std::max(difference, std::abs(a[j] - b[j]));
  }
  EXPECT_GT(size, 0);
  return difference / size;
}

TEST(ChainGradient, RoutesAgreeOnAThousandDenseStates) {
  const std::size_t n = 1000;
  const double distance = distance_of_routes(random_chain(TransitionMatrix::dense(n), 2, 1),
                                             RewardObjective(random_numbers(n, 2)), {.4, -.6});
  RecordProperty("distance", std::to_string(distance * 1e12) + "e-12");
  EXPECT_LT(distance, 1e-8);
}

// A ring that forgets in n^2 steps, 10^10. Both routes use the same factors and share their errors: the next test has
// the truth.
TEST(ChainGradient, RoutesAgreeOnABandedChainOfManyStates) {
  for (const std::size_t width : {1, 3}) {
    const RingProblem ring =
        ring_problem({.states = 100'000, .harmonics = 2, .width = width}, std::vector<double>{1, 0.4, -0.5, 0.3}, 0.5);
    const double distance = distance_of_routes(ring.chain, ring.objective, {.5, 1, -.5, .3, .8});
    RecordProperty("distance" + std::to_string(width), std::to_string(distance * 1e12) + "e-12");
    EXPECT_LT(distance, 1e-8);
  }
}

// Without drift the ring has a Gibbs law, whose gradient is a covariance and needs no system. The condition number is
// 10^12: solutions that are not refined are wrong by 1e-6 here.
TEST(ChainGradient, OfManyStatesIsTheCovarianceOfTheGibbsLaw) {
  const std::vector<double> theta{0, 1, -.5, .3, .8}, inner(theta.begin() + 1, theta.end());
  const RingProblem ring =
      ring_problem({.states = 1'000'000, .harmonics = 2}, std::vector<double>{1, 0.4, -0.5, 0.3}, 0.5);
  ChainGradient by_system(ring.chain, ring.objective);
  GibbsGradient by_covariance(RingPotential(1'000'000, 2), ring.objective);
  std::vector<double> a(5), b(4), law(1'000'000);
  const double value = by_system.exact(theta, a);
  EXPECT_NEAR(by_covariance.exact(inner, b), value, 1e-12);
  double worst = 0;
  for (std::size_t j = 0; j < 4; ++j) worst = std::max(worst, std::abs(a[1 + j] - b[j]) / std::abs(b[j]));
  RecordProperty("distance", std::to_string(worst * 1e12) + "e-12");
  EXPECT_LT(worst, 1e-8);
}

// One state in ten million visits, and it is the first, which is pinned first: the law of a birth and death chain is
// known, ratios of rates.
TEST(StationarySystem, PinsAStateThatIsVisited) {
  const std::size_t n = 30;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t i = 0; i + 1 < n; ++i) edges.emplace_back(i, i + 1);
  TransitionMatrix p = move_pattern(Graph(n, edges));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t s = 0; s < p.row(i).size(); ++s) {
      const std::size_t k = p.row(i).column(s);
      p.values(i)[s] = k == i + 1 ? .4 : k + 1 == i ? .1 : (i == 0 ? .6 : i + 1 == n ? .9 : .5);
    }
  p.require_stochastic();
  StationarySystem system;
  system.factorise(p);
  const double last = .75 / (1 - std::pow(.25, n));
  for (std::size_t i = 0; i < n; ++i) {
    const double exact = last * std::pow(.25, static_cast<double>(n - 1 - i));
    EXPECT_NEAR(system.law()[i] / exact, 1, 1e-13) << i;
  }
}

TEST(StationarySystem, RefusesChainsThatFallApart) {
  TransitionMatrix apart = TransitionMatrix::dense(4);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t k = 0; k < 4; ++k) apart.values(i)[k] = i / 2 == k / 2 ? .5 : 0;
  StationarySystem system;
  EXPECT_ERROR(system.factorise(apart), usage, "chain: state 2 cannot reach state 0");
  TransitionMatrix sparse = TransitionMatrix::sparse({0, 1, 3}, {0, 0, 1});
  sparse.values(0)[0] = 1;
  sparse.values(1)[1] = 1;
  EXPECT_ERROR(system.factorise(sparse), usage, "chain: state 1 cannot reach state 0");
  EXPECT_ERROR(system.factorise(TransitionMatrix::dense(1)), usage, "chain: 1 states are too few");
}

TEST(TransitionMatrix, RefusesBadInput) {
  EXPECT_ERROR(TransitionMatrix::sparse({0, 2, 3}, {1, 0, 1}), usage, "column 0 of row 0");
  EXPECT_ERROR(TransitionMatrix::sparse({0, 2, 3}, {0, 2, 1}), usage, "column 2 of row 0");
  EXPECT_ERROR(TransitionMatrix::sparse({0, 2, 3}, {0, 1}), usage, "the starts of the rows do not fit");
  TransitionMatrix p = TransitionMatrix::dense(2);
  p.values(0)[0] = 1;
  EXPECT_ERROR(p.require_stochastic(), usage, "row 1 sums to 0");
  p.values(1)[0] = 2;
  p.values(1)[1] = -1;
  EXPECT_ERROR(p.require_stochastic(), usage, "row 1 has the probability -1");
  EXPECT_ERROR(SoftmaxChain(TransitionMatrix::dense(2), {1, 2, 3, 4}, {{1, 2, 3}}), usage, "A_1 has 3 numbers");
}

}  // namespace
}  // namespace implicit_diffusion
