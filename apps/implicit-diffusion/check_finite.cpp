// Fixed problems on finite sets, and the recursion that rates are measured on.
//
// Gradients of F(pi*(theta)) come by two routes from one linear system, and for Gibbs laws from a covariance. They are compared with
//
//     known numbers             by a program that shares no code with ours
//     central differences       of F at the law, which needs one more solve and no derivative
//     each other
//     samples                   Gamma from independent samples of the law, over many batches
#include "check.hpp"
#include "differences.hpp"
#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/finite/ring.hpp"
#include "implicit_diffusion/finite/sampler.hpp"
#include "implicit_diffusion/langevin/rates.hpp"
#include "problems/finite_states.hpp"
#include "problems/mean_field.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace program {
namespace {

using namespace implicit_diffusion;
using Rows = std::vector<CheckRow>;

constexpr double known_digits = 1e-11, difference_error = 1e-8;

template <class Gradient>
std::vector<double> exact(Gradient& gamma, const std::vector<double>& theta) {
  std::vector<double> gradient(theta.size());
  gamma.exact(theta, gradient);
  return gradient;
}

// Central differences of F(pi*(theta)).
template <class Gradient>
std::vector<double> quotients(Gradient& gamma, const std::vector<double>& theta) {
  std::vector<double> all, unused(theta.size());
  for (std::size_t j = 0; j < theta.size(); ++j)
    all.push_back(difference(
        [&](double t) {
          std::vector<double> there = theta;
          there[j] += t;
          return gamma.exact(there, unused);
        },
        1.0));
  return all;
}

// Independent samples of a law, a pure function of the seed and the round.
void draw(std::span<const double> law, Noise noise, std::int64_t round, StatePopulation& x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    double left = noise.uniform(Stream::user, {.round = round}, 1, i, 0);
    std::uint32_t state = 0;
    while (state + 1 < law.size() && left >= law[state]) left -= law[state++];
    x.states[i] = state;
  }
}

// Something wrong, where the gradient is large enough for it to be seen.
void add_wrong(bool visible, const CheckRow& row, Rows& rows) {
  rows.push_back(visible ? must_be_off(row)
                         : left_out("  a wrong gradient", "the gradient is too small for it to be seen"));
}

// How many batches, of how many samples. Small ones: a covariance divided by n in place of n - 1 would be a tenth too small, which shows.
struct Batches {
  std::size_t count = 50'000, size = 10;
};

template <class Gradient>
void check_samples(Gradient& gamma, const std::vector<double>& theta, const std::vector<double>& law,
                   std::uint64_t seed, Rows& rows, Batches batches = {}) {
  const std::vector<double> expected = exact(gamma, theta);
  StatePopulation x{std::vector<std::uint32_t>(batches.size)};
  std::vector<double> gradient(theta.size());
  BatchMeans means(theta.size());
  for (std::size_t b = 0; b < batches.count; ++b) {
    draw(law, Noise(~seed), static_cast<std::int64_t>(b), x);
    gamma.estimate(x, theta, 0, gradient);
    means.add(gradient);
  }
  std::vector<double> errors = means.standard_error();
  for (double& e : errors) e += known_digits;  // where all samples agree, their rounding is left
  rows.push_back(compare_means("Gamma from samples", expected, means.mean(), errors));
  double tenth = 0;  // the largest z of a tenth of the gradient
  for (std::size_t j = 0; j < errors.size(); ++j)
    if (expected[j] != 0) tenth = std::max(tenth, std::abs(0.1 * expected[j]) / errors[j]);
  std::vector<double> wrong = means.mean();
  for (double& g : wrong) g *= 1.1;
  add_wrong(tenth > 2 * largest_z, compare_means("  1.1 times the estimate", expected, wrong, errors), rows);
}

// Probabilities of at most 40 groups of neighbouring states.
std::vector<double> grouped(const std::vector<double>& law) {
  const std::size_t groups = std::min<std::size_t>(law.size(), 40);
  std::vector<double> sums(groups);
  for (std::size_t i = 0; i < law.size(); ++i) sums[i * groups / law.size()] += law[i];
  return sums;
}

// Shares of n independent samples have standard errors sqrt(p (1 - p) / n). Of many states it is groups that are compared: each state would
// be seen a few times only, and a few times are not normally distributed.
template <class Sampler>
void check_sampler(Sampler&& sampler, const std::vector<double>& theta, const std::vector<double>& law,
                   std::uint64_t seed, Rows& rows) {
  constexpr std::size_t n = 200'000;
  StatePopulation x{std::vector<std::uint32_t>(n)};
  draw(law, Noise(~seed), -1, x);
  for (std::int64_t k = 0; k < 10; ++k) sampler.advance(x, theta, {.round = k});
  std::vector<double> shares(law.size()), errors;
  empirical(x, shares);
  const std::vector<double> expected = grouped(law);
  for (const double p : expected) errors.push_back(std::sqrt(p * (1 - p) / static_cast<double>(n)));
  rows.push_back(compare_means("law after ten moves from it", expected, grouped(shares), errors));
}

// Both routes against central differences, which are allowed more for larger rewards. Returns the gradient.
template <class C, class F>
std::vector<double> check_routes(const C& chain, const F& objective, const std::vector<double>& theta, Rows& rows) {
  double size = 1;
  for (const double r : objective.reward()) size = std::max(size, std::abs(r));
  const double allowed = difference_error * size;
  ChainGradient forward(chain, objective, Route::forward), adjoint(chain, objective, Route::adjoint);
  const std::vector<double> expected = quotients(adjoint, theta), by_adjoint = exact(adjoint, theta);
  rows.push_back(compare("Gamma, forward route, differences", expected, exact(forward, theta), allowed));
  rows.push_back(compare("Gamma, adjoint route, differences", expected, by_adjoint, allowed));
  std::vector<double> wrong = by_adjoint;
  double largest = 0;
  for (double& g : wrong) {
    largest = std::max(largest, std::abs(g));
    g *= 1.001;
  }
  add_wrong(0.001 * largest > 2 * allowed, compare("  1.001 times Gamma", expected, wrong, allowed), rows);
  return by_adjoint;
}

}  // namespace

std::vector<CheckRow> check_gibbs(std::uint64_t seed) {
  const problems::FourStates known;
  Rows rows;
  LinearPotential v = known.potential;
  v.prepare(known.theta);
  std::vector<double> law(v.states()), gradient(2);
  gibbs_law(v, law);
  rows.push_back(compare("law, known numbers", known.law, law, known_digits));

  const RewardObjective objective(known.reward);
  GibbsGradient gamma(v, objective);
  const std::vector<double> by_covariance = exact(gamma, known.theta);
  rows.push_back(compare("Gamma, known numbers", known.gradient, by_covariance, known_digits));
  rows.push_back(compare("Gamma, differences", quotients(gamma, known.theta), by_covariance, difference_error));
  gamma.estimate(Distribution{known.p}, known.theta, 0, gradient);
  rows.push_back(compare("Gamma at another p, known numbers", known.gradient_at_p, gradient, known_digits));

  // The moves on a ring know nothing of the covariance.
  const GibbsChain moves(v, Graph::ring(4));
  const std::vector<double> by_moves = check_routes(moves, objective, known.theta, rows);
  rows.push_back(compare("Gamma of the moves, known numbers", known.gradient, by_moves, known_digits));
  check_samples(gamma, known.theta, law, seed, rows);
  check_sampler(GibbsSampler(v, Graph::ring(4), {.noise = Noise(seed)}), known.theta, law, seed, rows);
  return rows;
}

std::vector<CheckRow> check_softmax_chain(std::uint64_t seed) {
  const problems::ThreeStates known;
  Rows rows;
  SoftmaxChain chain = known.chain;
  chain.prepare(known.theta);
  StationarySystem system;
  system.factorise(chain.matrix());
  const std::vector<double> law(system.law().begin(), system.law().end());
  rows.push_back(compare("law, known numbers", known.law, law, known_digits));
  std::vector<double> flow(3), derivative(3), u(3);
  push_forward(chain, law, 0, flow);
  system.forward(flow, derivative);
  rows.push_back(compare("its derivative, known numbers", known.derivative, derivative, known_digits));
  system.adjoint(known.f, u);
  rows.push_back(compare("adjoint solution, known numbers", known.u, u, known_digits));

  std::vector<double> reward = known.f;  // F = pi . f
  for (double& r : reward) r = -r;
  const RewardObjective objective(reward);
  const std::vector<double> gradient = check_routes(chain, objective, known.theta, rows);
  rows.push_back(compare("Gamma, known numbers", known.gradient, gradient, known_digits));
  ChainGradient gamma(chain, objective);
  check_samples(gamma, known.theta, law, seed, rows);
  check_sampler(ChainSampler(chain, {.noise = Noise(seed)}), known.theta, law, seed, rows);
  return rows;
}

namespace {

Rows check_ring_at(const RingProblem& ring, const std::vector<double>& theta, std::uint64_t seed,
                   const std::optional<Batches>& batches) {
  Rows rows;
  check_routes(ring.chain, ring.objective, theta, rows);

  ChainGradient gamma(ring.chain, ring.objective);
  if (*std::min_element(ring.best_law.begin(), ring.best_law.end()) > 1e-100) {
    const std::vector<double> at_optimum = exact(gamma, ring.optimum);
    rows.push_back(compare("law at the optimum", ring.best_law, gamma.law(), known_digits));
    rows.push_back(compare("Gamma at the optimum", std::vector<double>(theta.size()), at_optimum, difference_error));
  } else {
    rows.push_back(left_out("law at the optimum", "there the chain all but falls apart"));
  }

  exact(gamma, theta);
  const std::vector<double> law(gamma.law().begin(), gamma.law().end());
  if (batches)
    check_samples(gamma, theta, law, seed, rows, *batches);
  else
    rows.push_back(left_out("Gamma from samples", "each estimate solves a system, which would take too long"));
  check_sampler(ChainSampler(ring.chain, {.noise = Noise(seed)}), theta, law, seed, rows);
  return rows;
}

}  // namespace

std::vector<CheckRow> check_ring(std::uint64_t seed) {
  const RingProblem ring =
      ring_problem({.states = 40, .harmonics = 2, .width = 2}, std::vector<double>{.5, .2, -.3, .1}, 0.5);
  const std::vector<double> theta{.7, 1, -.5, .3, .8};  // with a current: no Gibbs law
  return check_ring_at(ring, theta, seed, Batches{});
}

// The system of n states with jumps of w costs some n w^2 operations.
std::vector<CheckRow> check_finite_state(const FiniteStateConfiguration& c) {
  const RingProblem ring = ring_problem(c.ring, c.reward, c.beta);
  const double cost = static_cast<double>(c.ring.states) * std::pow(static_cast<double>(c.ring.width), 2);
  std::optional<Batches> batches;
  if (cost < 2e7) batches = Batches{.count = 100, .size = 5000};
  return check_ring_at(ring, c.start, c.seed, batches);
}

std::vector<CheckRow> check_rates() {
  const problems::MeanFieldAnswers known;
  constexpr double digits = 1e-10;
  const auto numbers = [](const MeanField& s) { return std::vector<double>{s.theta, s.m, s.v, s.average}; };
  const std::vector<MeanField> s = mean_field_recursion(cube_root_pair(known.scale), known.target, known.steps);
  const std::vector<double> after_5 = numbers(known.after_5);
  const std::vector<double> after_1000{known.theta_after_1000, known.average_after_1000};
  const SchedulePair square_roots{{known.scale, 0.5}, {known.scale, 1.0}};
  const std::vector<MeanField> wrong = mean_field_recursion(square_roots, known.target, known.steps);
  return {compare("after 5 steps, known numbers", after_5, numbers(s[0]), digits),
          compare("after 1000 steps, known numbers", after_1000, std::vector<double>{s[1].theta, s[1].average}, digits),
          must_be_off(compare("  with square roots for cube roots", after_5, numbers(wrong[0]), digits))};
}

}  // namespace program
