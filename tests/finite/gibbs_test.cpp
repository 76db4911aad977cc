// Gibbs laws on finite sets: numbers worked out apart, the bordered system against its known solution, and the moves
// that keep the law.
#include "implicit_diffusion/finite/gibbs.hpp"

#include "finite/random_chain.hpp"
#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/finite/implicit_function.hpp"
#include "implicit_diffusion/finite/sampler.hpp"
#include "io/expect_error.hpp"
#include "problems/finite_states.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

const std::vector<double> theta = problems::FourStates().theta;
const std::vector<double> reward = problems::FourStates().reward;

LinearPotential four_states() { return problems::FourStates().potential; }

TEST(Gibbs, HasTheKnownNumbersOfFourStates) {
  const problems::FourStates known;
  LinearPotential v = four_states();
  v.prepare(theta);
  std::vector<double> law(4), gradient(2);
  gibbs_law(v, law);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(law[i], known.law[i], 1e-11);
  GibbsGradient estimator(v, RewardObjective(reward));
  estimator.exact(theta, gradient);
  for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(gradient[j], known.gradient[j], 1e-11);
  estimator.estimate(Distribution{known.p}, theta, 0, gradient);
  for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(gradient[j], known.gradient_at_p[j], 1e-14);
}

// [diag(1/p), 1; 1', 0] at a p that is not the law: the system itself, and the covariance that solves it.
TEST(Gibbs, TheCovarianceSolvesTheBorderedSystem) {
  LinearPotential v = four_states();
  const std::vector<double> p{.1, .2, .3, .4};
  std::vector<double> hessian(16, 0.0), w(5), gradient(2);
  for (std::size_t i = 0; i < 4; ++i) hessian[5 * i] = 1 / p[i];
  const ImplicitFunction implicit(bordered(hessian, 4), 5);
  const RewardObjective objective(reward, 1.3, 0.7);
  std::vector<double> f(5, 0.0);
  objective.gradient(p, std::span(f).first(4));
  implicit.adjoint(f, w);
  std::vector<double> by_system(2, 0.0);
  for (std::size_t i = 0; i < 4; ++i) v.add_gradient(i, w[i], by_system);
  GibbsGradient estimator(v, objective);
  estimator.estimate(Distribution{p}, theta, 0, gradient);
  for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(gradient[j], by_system[j], 1e-14);
}

// A path of four states with a branch: degrees 1, 3, 1, 1 are not equal, which the rule has to make up for.
Graph star() {
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> edges{{1, 0}, {1, 2}, {3, 1}};
  return {4, edges};
}

// The chain of moves knows nothing of the covariance: its law and its gradient come from P and dP.
TEST(GibbsChain, KeepsTheLawAndItsDerivative) {
  const RewardObjective objective(reward, 1.3, 0.7);
  EXPECT_TRUE(move_pattern(Graph::complete(4)).is_dense());
  EXPECT_FALSE(move_pattern(star()).is_dense());
  for (const Graph& graph : {star(), Graph::ring(4), Graph::complete(4)})
    for (const Rule rule : {Rule::heat_bath, Rule::metropolis}) {
      GibbsChain chain(four_states(), graph, rule);
      chain.prepare(theta);
      chain.matrix().require_stochastic();
      ChainGradient by_chain(chain, objective);
      GibbsGradient by_covariance(four_states(), objective);
      std::vector<double> a(2), b(2), law(4);
      EXPECT_NEAR(by_chain.exact(theta, a), by_covariance.exact(theta, b), 1e-15);
      for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(a[j], b[j], 1e-14);
      gibbs_law(chain.potential(), law);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(by_chain.law()[i], law[i], 1e-15);
    }
}

// Shares of n independent samples have standard errors sqrt(p (1 - p) / n). 4.5 of them and 32 shares: one seed in 4600
// would fail.
void expect_shares(const StatePopulation& x, const std::vector<double>& law) {
  std::vector<double> shares(law.size());
  empirical(x, shares);
  const auto n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < law.size(); ++i)
    EXPECT_NEAR(shares[i], law[i], 4.5 * std::sqrt(law[i] * (1 - law[i]) / n)) << i;
}

// From all samples in one state; after 200 moves the second eigenvalue, below 0.9, has left nothing.
TEST(GibbsSampler, SamplesTheLaw) {
  LinearPotential v = four_states();
  v.prepare(theta);
  std::vector<double> law(4);
  gibbs_law(v, law);
  for (const Rule rule : {Rule::heat_bath, Rule::metropolis})
    for (const bool on_a_star : {true, false}) {
      const Graph graph = on_a_star ? star() : Graph::ring(4);
      StatePopulation x{std::vector<std::uint32_t>(20'000, 0)};
      GibbsSampler sampler(v, graph, {.rule = rule, .noise = Noise(11)});
      for (std::int64_t k = 0; k < 200; ++k) sampler.advance(x, theta, {.round = k});
      expect_shares(x, law);
      StatePopulation y{std::vector<std::uint32_t>(20'000, 0)};
      ChainSampler steps(GibbsChain(v, graph, rule), {.noise = Noise(12)});
      for (std::int64_t k = 0; k < 200; ++k) steps.advance(y, theta, {.round = k});
      expect_shares(y, law);
    }
  // Without the degrees the star's law would be weighted by them, as Metropolis by differences of V alone: 0.3 from the
  // law.
  EXPECT_GT(3 * law[1] / (1 + 2 * law[1]) - law[1], 4.5 * std::sqrt(law[1] * (1 - law[1]) / 20'000));
}

TEST(GibbsSampler, IsAPureFunctionOfTheSeedWhateverTheThreads) {
  Workers three(3);
  StatePopulation a = spread_population(100'001, 4), b = a, c = a;
  GibbsSampler one_thread(four_states(), star(), {.noise = Noise(5)});
  GibbsSampler three_threads(four_states(), star(), {.noise = Noise(5), .workers = &three});
  GibbsSampler other_seed(four_states(), star(), {.noise = Noise(6)});
  for (std::int64_t k = 0; k < 5; ++k) {
    one_thread.advance(a, theta, {.round = k});
    three_threads.advance(b, theta, {.round = k});
    other_seed.advance(c, theta, {.round = k});
  }
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

// The estimate from samples of the law is unbiased: its mean over batches against the exact gradient, 4.5 standard
// errors.
TEST(GibbsGradient, FromSamplesIsUnbiased) {
  LinearPotential v = four_states();
  v.prepare(theta);
  std::vector<double> law(4), exact(2), gradient(2);
  gibbs_law(v, law);
  GibbsGradient estimator(v, RewardObjective(reward, 1.3, 0.7));
  estimator.exact(theta, exact);
  const std::size_t batches = 4000, batch = 5;
  double sum[2] = {}, squares[2] = {};
  for (std::size_t b = 0; b < batches; ++b) {
    StatePopulation x{std::vector<std::uint32_t>(batch)};
    for (std::size_t i = 0; i < batch; ++i) {
      double left = Noise(3).uniform(Stream::user, {}, 1, b * batch + i, 0);
      while (x.states[i] < 3 && left >= law[x.states[i]]) left -= law[x.states[i]++];
    }
    estimator.estimate(x, theta, 0, gradient);
    for (std::size_t j = 0; j < 2; ++j) {
      sum[j] += gradient[j];
      squares[j] += gradient[j] * gradient[j];
    }
  }
  for (std::size_t j = 0; j < 2; ++j) {
    const double mean = sum[j] / batches, error = std::sqrt((squares[j] / batches - mean * mean) / batches);
    EXPECT_NEAR(mean, exact[j], 4.5 * error);
  }
  // Division by n in place of n - 1 takes a fifth away, which is seen in the second coordinate.
  const double mean = sum[1] / batches, error = std::sqrt((squares[1] / batches - mean * mean) / batches);
  EXPECT_GT(0.2 * std::abs(exact[1]), 4.5 * error);
}

TEST(Graph, RefusesBadEdges) {
  using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_ERROR(Graph(3, Edges{{0, 3}}), usage, "graph: 0-3 is not an edge");
  EXPECT_ERROR(Graph(3, Edges{{1, 1}}), usage, "graph: 1-1 is not an edge");
  EXPECT_ERROR(Graph(3, Edges{{0, 1}}), usage, "graph: state 2 has no neighbour");
  EXPECT_ERROR(Graph(2, Edges{{0, 1}, {1, 0}}), usage, "graph: the edge 0-1 is given twice");
  EXPECT_ERROR(Graph::complete(1), usage, "graph: 1 states have no neighbours");
  EXPECT_ERROR(Graph::ring(4, 2), usage, "ring: 4 states are too few for neighbours at 2");
  EXPECT_ERROR(LinearPotential({1, 2}, {1, 2, 3}), usage, "linear potential: 3 slopes");
}

}  // namespace
}  // namespace implicit_diffusion
