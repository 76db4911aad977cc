// Fixed problems on finite sets, and the ring of an experiment. One file, though a long one: all of them are put
// through the same comparisons, which stand first.
//
// Gradients of F(pi*(theta)) come by two routes from one linear system, and for Gibbs laws from a covariance. They are
// compared with
//
//     known numbers             by a program that shares no code with ours
//     central differences       of F at the law, which needs one more solve and no derivative
//     each other
//     samples                   Gamma from independent samples of the law, over many batches
//
// What both routes share, or a law and its differences, does not show there: moves, objectives and single steps are
// also written out here.
#include "finite_state/experiment.hpp"
#include "implicit_diffusion/differences.hpp"
#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/finite/ring.hpp"
#include "implicit_diffusion/finite/sampler.hpp"
#include "problems/finite_states.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace program {
namespace {

using namespace implicit_diffusion;
using Rows = std::vector<CheckRow>;
using Numbers = std::vector<double>;

constexpr double known_digits = 1e-11, difference_error = 1e-8;

// F(pi*(theta)) and its gradient.
struct Exact {
  double value;
  Numbers gradient;
};
Exact exact(auto& gamma, const Numbers& theta) {
  Exact e{0, Numbers(theta.size())};
  e.value = gamma.exact(theta, e.gradient);
  return e;
}

Numbers along(Numbers theta, const Numbers& direction, double t) {
  for (std::size_t j = 0; j < theta.size(); ++j) theta[j] += t * direction[j];
  return theta;
}

// F(pi*(theta)) alone.
auto value_of(auto& gamma) {
  return [&gamma](const Numbers& theta) { return exact(gamma, theta).value; };
}

// Central differences of value(theta) in every parameter.
Numbers quotients(auto&& value, const Numbers& theta) {
  Numbers all;
  for (std::size_t j = 0; j < theta.size(); ++j) {
    Numbers axis(theta.size());
    axis[j] = 1;
    all.push_back(difference([&](double t) { return value(along(theta, axis, t)); }, 1.0));
  }
  return all;
}

// Independent samples of a law, a pure function of the seed and the round.
StatePopulation draw(std::size_t n, const Numbers& law, std::uint64_t seed, std::int64_t round) {
  StatePopulation x{std::vector<std::uint32_t>(n)};
  Numbers up_to(law.size() - 1);  // the last state has the rest
  std::partial_sum(law.begin(), law.end() - 1, up_to.begin());
  for (std::size_t i = 0; i < n; ++i) {
    const double u = Noise(~seed).uniform(Stream::user, {.round = round}, 1, i, 0);
    x.states[i] = static_cast<std::uint32_t>(std::ranges::upper_bound(up_to, u) - up_to.begin());
  }
  return x;
}

// Something wrong, where the gradient is large enough for it to be seen.
void add_wrong(bool visible, const CheckRow& row, Rows& rows) {
  rows.push_back(visible ? must_be_off(row) : left_out("  a wrong gradient", "the gradient is too small to detect it"));
}

// How many batches, of how many samples. Small ones: a covariance divided by n in place of n - 1 would be a tenth too
// small, which shows.
struct Batches {
  std::size_t count = 50'000, size = 10;
};

void check_samples(auto& gamma, const Numbers& expected, const Numbers& theta, const Numbers& law, std::uint64_t seed,
                   Rows& rows, Batches batches = {}, const std::string& what = "Gamma from samples") {
  Numbers gradient(theta.size());
  BatchMeans means(theta.size());
  for (std::size_t b = 0; b < batches.count; ++b) {
    gamma.estimate(draw(batches.size, law, seed, static_cast<std::int64_t>(b)), theta, 0, gradient);
    means.add(gradient);
  }
  Numbers errors = means.standard_error();
  for (double& e : errors) e += known_digits;  // where all samples agree, their rounding is left
  rows.push_back(compare_means(what, expected, means.mean(), errors));
  double tenth = 0;  // the largest z of a tenth of the gradient
  for (std::size_t j = 0; j < errors.size(); ++j)
    if (expected[j] != 0) tenth = std::max(tenth, std::abs(0.1 * expected[j]) / errors[j]);
  Numbers wrong = means.mean();
  for (double& g : wrong) g *= 1.1;
  add_wrong(tenth > 2 * largest_z, compare_means("  1.1 times the estimate", expected, wrong, errors), rows);
}

// Probabilities of at most 40 groups of neighbouring states.
Numbers grouped(const Numbers& law) {
  const std::size_t groups = std::min<std::size_t>(law.size(), 40);
  Numbers sums(groups);
  for (std::size_t i = 0; i < law.size(); ++i) sums[i * groups / law.size()] += law[i];
  return sums;
}

// Shares of n independent samples have standard errors sqrt(p (1 - p) / n). Of many states it is groups that are
// compared: each state would be seen a few times only, and a few times are not normally distributed.
void check_sampler(auto&& sampler, const Numbers& theta, const Numbers& law, std::uint64_t seed, Rows& rows,
                   const std::string& what = "law after ten moves from it") {
  constexpr std::size_t n = 200'000;
  StatePopulation x = draw(n, law, seed, -1);
  for (std::int64_t k = 0; k < 10; ++k) sampler.advance(x, theta, {.round = k});
  Numbers shares(law.size()), errors;
  empirical(x, shares);
  const Numbers expected = grouped(law);
  for (const double p : expected) errors.push_back(std::sqrt(p * (1 - p) / static_cast<double>(n)));
  rows.push_back(compare_means(what, expected, grouped(shares), errors));
}

// The matrix of a chain at theta, row by row.
Numbers dense(auto chain, const Numbers& theta) {
  chain.prepare(theta);
  const std::size_t n = chain.states();
  Numbers p(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    const TransitionRow row = chain.matrix().row(i);
    for (std::size_t s = 0; s < row.size(); ++s) p[n * i + row.column(s)] += row.values[s];
  }
  return p;
}

// One move of many samples of each state: those of state i are in k with probability P_ik. A law that is kept says
// nothing of a sampler that does not move.
CheckRow check_move(auto& sampler, const Numbers& theta, std::size_t states, const Numbers& matrix,
                    const std::string& what) {
  constexpr std::size_t each = 50'000;
  StatePopulation x = spread_population(states * each, states);
  const StatePopulation before = x;
  sampler.advance(x, theta, {.round = 100});
  Numbers shares(matrix.size()), errors;
  for (std::size_t i = 0; i < x.size(); ++i)
    shares[states * before.states[i] + x.states[i]] += 1 / static_cast<double>(each);
  for (const double p : matrix)
    errors.push_back(std::sqrt(std::max(0.0, p * (1 - p)) / static_cast<double>(each)) + known_digits);
  return compare_means(what, matrix, shares, errors);
}

// Central differences are allowed more for larger rewards.
double allowed_differences(const RewardObjective& objective) {
  double size = 1;
  for (const double r : objective.reward()) size = std::max(size, std::abs(r));
  return difference_error * size;
}

// Both routes against central differences. Returns the gradient.
Numbers check_routes(const auto& chain, const RewardObjective& objective, const Numbers& theta, Rows& rows) {
  const double allowed = allowed_differences(objective);
  ChainGradient forward(chain, objective, Route::forward), adjoint(chain, objective, Route::adjoint);
  const Numbers by_adjoint = exact(adjoint, theta).gradient, expected = quotients(value_of(adjoint), theta);
  rows.push_back(compare("Gamma, forward route, differences", expected, exact(forward, theta).gradient, allowed));
  rows.push_back(compare("Gamma, adjoint route, differences", expected, by_adjoint, allowed));
  Numbers wrong = by_adjoint;
  double largest = 0;
  for (double& g : wrong) {
    largest = std::max(largest, std::abs(g));
    g *= 1.001;
  }
  add_wrong(0.001 * largest > 2 * allowed, compare("  1.001 times Gamma", expected, wrong, allowed), rows);
  return by_adjoint;
}

// Moves between the states of a graph that keep a law, written out: to a neighbour chosen uniformly, taken with the
// probability a / (a + b) by the heat bath and min(1, a / b) by Metropolis, where a = pi_k / degree k and b = pi_i /
// degree i.
Numbers moves_by_hand(const Numbers& law, const Graph& graph, Rule rule) {
  const std::size_t n = law.size();
  Numbers p(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    p[n * i + i] = 1;
    for (const std::uint32_t k : graph.neighbours(i)) {
      const auto from = static_cast<double>(graph.degree(i)), to = static_cast<double>(graph.degree(k));
      const double a = law[k] / to, b = law[i] / from;
      p[n * i + k] = (rule == Rule::heat_bath ? a / (a + b) : std::min(1.0, a / b)) / from;
      p[n * i + i] -= p[n * i + k];
    }
  }
  return p;
}

// Both rules on a ring, and on a star, whose degrees differ.
void check_moves(const problems::FourStates& known, std::uint64_t seed, Rows& rows) {
  using Edge = std::pair<std::uint32_t, std::uint32_t>;
  const Graph ring = Graph::ring(4), star(4, std::array{Edge{0, 1}, Edge{1, 2}, Edge{1, 3}});
  const RewardObjective objective(known.reward);
  for (const auto& [graph, graph_name] : {std::pair{&ring, "ring"}, std::pair{&star, "star"}})
    for (const auto& [rule, rule_name] : {std::pair{Rule::heat_bath, "heat bath"}, {Rule::metropolis, "Metropolis"}}) {
      const std::string name = std::string(graph_name) + ", " + rule_name + ": ";
      const Numbers by_hand = moves_by_hand(known.law, *graph, rule);
      const GibbsChain chain(known.potential, *graph, rule);
      rows.push_back(compare(name + "matrix", by_hand, dense(chain, known.theta), known_digits));
      ChainGradient forward(chain, objective, Route::forward), adjoint(chain, objective, Route::adjoint);
      const Numbers by_adjoint = exact(adjoint, known.theta).gradient;
      rows.push_back(compare(name + "law", known.law, adjoint.law(), known_digits));
      rows.push_back(
          compare(name + "Gamma, forward", known.gradient, exact(forward, known.theta).gradient, known_digits));
      rows.push_back(compare(name + "Gamma, adjoint", known.gradient, by_adjoint, known_digits));
      GibbsSampler sampler(known.potential, *graph, {.rule = rule, .noise = Noise(seed)});
      rows.push_back(check_move(sampler, known.theta, 4, by_hand, name + "one move"));
      if (graph == &ring && rule == Rule::heat_bath) continue;
      check_sampler(sampler, known.theta, known.law, seed, rows, name + "ten moves");
    }
}

// An objective without slope(), which samples then take at their shares.
struct WithoutSlope {
  RewardObjective objective;
  double value(std::span<const double> p) const { return objective.value(p); }
  void gradient(std::span<const double> p, std::span<double> f) const { objective.gradient(p, f); }
};

// F = -lambda E R + beta KL(pi || uniform), written out, and all that makes its gradient.
void check_objective(const problems::FourStates& known, std::uint64_t seed, Rows& rows) {
  constexpr double lambda = 0.7, beta = 0.4;
  const RewardObjective objective(known.reward, lambda, beta);
  const auto value = [&](const Numbers& p) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      sum += p[i] * (beta * std::log(static_cast<double>(p.size()) * p[i]) - lambda * known.reward[i]);
    return sum;
  };
  const auto at_theta = [&](const Numbers& theta) {
    LinearPotential v = known.potential;
    v.prepare(theta);
    Numbers p;
    for (std::size_t i = 0; i < v.states(); ++i) p.push_back(std::exp(-v.value(i)));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= sum;
    return value(p);
  };
  rows.push_back(compare("F at another p, written out", std::vector{value(known.p)},
                         std::vector{objective.value(known.p)}, known_digits));
  const Numbers expected = quotients(at_theta, known.theta);
  Numbers slopes, got(known.p.size()), gradient(known.theta.size());
  for (const double p : known.p)
    slopes.push_back(beta * (std::log(static_cast<double>(known.p.size()) * p) + 1) -
                     lambda * known.reward[slopes.size()]);
  objective.gradient(known.p, got);
  rows.push_back(compare("F' at another p, written out", slopes, got, known_digits));

  GibbsGradient gamma(known.potential, objective);
  rows.push_back(compare("Gamma of F, differences", expected, exact(gamma, known.theta).gradient, difference_error));
  gamma.estimate(Distribution{known.law}, known.theta, 0, gradient);
  rows.push_back(compare("Gamma of F at the law, differences", expected, gradient, difference_error));
  ChainGradient moves(GibbsChain(known.potential, Graph::ring(4)), objective);
  rows.push_back(
      compare("Gamma of F, moves, differences", expected, exact(moves, known.theta).gradient, difference_error));
  check_samples(gamma, expected, known.theta, known.law, seed, rows, {}, "Gamma of F from samples");
  GibbsGradient by_shares(known.potential, WithoutSlope{RewardObjective(known.reward)});
  check_samples(by_shares, known.gradient, known.theta, known.law, seed, rows, {}, "Gamma from shares of samples");
}

Rows check_gibbs(std::uint64_t seed) {
  const problems::FourStates known;
  Rows rows;
  LinearPotential v = known.potential;
  v.prepare(known.theta);
  Numbers law(v.states()), gradient(2);
  gibbs_law(v, law);
  rows.push_back(compare("law, known numbers", known.law, law, known_digits));

  const RewardObjective objective(known.reward);
  GibbsGradient gamma(v, objective);
  const Numbers by_covariance = exact(gamma, known.theta).gradient;
  rows.push_back(compare("Gamma, known numbers", known.gradient, by_covariance, known_digits));
  const Numbers by_differences = quotients(value_of(gamma), known.theta);
  rows.push_back(compare("Gamma, differences", by_differences, by_covariance, difference_error));
  gamma.estimate(Distribution{known.p}, known.theta, 0, gradient);
  rows.push_back(compare("Gamma at another p, known numbers", known.gradient_at_p, gradient, known_digits));

  // The moves on a ring know nothing of the covariance.
  const GibbsChain moves(v, Graph::ring(4));
  const Numbers by_moves = check_routes(moves, objective, known.theta, rows);
  rows.push_back(compare("Gamma of the moves, known numbers", known.gradient, by_moves, known_digits));
  check_samples(gamma, by_covariance, known.theta, law, seed, rows);
  check_sampler(GibbsSampler(v, Graph::ring(4), {.noise = Noise(seed)}), known.theta, law, seed, rows);
  check_moves(known, seed, rows);
  check_objective(known, seed, rows);
  return rows;
}

Rows check_softmax_chain(std::uint64_t seed) {
  const problems::ThreeStates known;
  Rows rows;
  SoftmaxChain chain = known.chain;
  chain.prepare(known.theta);
  StationarySystem system;
  system.factorise(chain.matrix());
  const Numbers law(system.law().begin(), system.law().end());
  rows.push_back(compare("law, known numbers", known.law, law, known_digits));
  Numbers flow(3), derivative(3), u(3);
  push_forward(chain, law, 0, flow);
  system.forward(flow, derivative);
  rows.push_back(compare("its derivative, known numbers", known.derivative, derivative, known_digits));
  system.adjoint(known.f, u);
  rows.push_back(compare("adjoint solution, known numbers", known.u, u, known_digits));

  Numbers reward = known.f;  // F = pi . f
  for (double& r : reward) r = -r;
  const RewardObjective objective(reward);
  const Numbers gradient = check_routes(chain, objective, known.theta, rows);
  rows.push_back(compare("Gamma, known numbers", known.gradient, gradient, known_digits));
  ChainGradient gamma(chain, objective);
  check_samples(gamma, gradient, known.theta, law, seed, rows);
  ChainSampler sampler(chain, {.noise = Noise(seed)});
  check_sampler(sampler, known.theta, law, seed, rows);

  // At a law that is not kept: Gamma = p' dP u, and a step, each written out.
  const Distribution other{{.2, .5, .3}};
  const Numbers matrix = dense(chain, known.theta),
                slopes = differences([&](double t) { return dense(chain, {known.theta[0] + t}); }, 1.0);
  Numbers by_hand(1), by_adjoint(1), by_forward(1), at_law(1), next(3);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k) {
      by_hand[0] += other.p[i] * slopes[3 * i + k] * known.u[k];
      next[k] += other.p[i] * matrix[3 * i + k];
    }
  gamma.estimate(other, known.theta, 0, by_adjoint);
  ChainGradient forward(chain, objective, Route::forward);
  forward.estimate(other, known.theta, 0, by_forward);
  gamma.estimate(Distribution{law}, known.theta, 0, at_law);
  rows.push_back(compare("Gamma at the law, known numbers", known.gradient, at_law, known_digits));
  rows.push_back(compare("Gamma at another p, adjoint, by hand", by_hand, by_adjoint, difference_error));
  rows.push_back(compare("Gamma at another p, forward, by hand", by_hand, by_forward, difference_error));
  Distribution moved = other;
  sampler.advance(moved, known.theta, {});
  rows.push_back(compare("a step of another p, by hand", next, moved.p, known_digits));
  rows.push_back(must_be_off(compare("  no step", next, other.p, known_digits)));
  rows.push_back(check_move(sampler, known.theta, 3, matrix, "one move of samples"));
  return rows;
}

// Up or down in each parameter by chance: a step to a theta nearby.
Numbers some_direction(std::size_t parameters, std::uint64_t seed) {
  const double size = 0.5 / std::sqrt(0.5 * static_cast<double>(parameters));
  Numbers direction;
  for (std::size_t j = 0; j < parameters; ++j)
    direction.push_back(Noise(~seed).uniform(Stream::user, {.round = -2}, 1, j, 0) < 0.5 ? size : -size);
  return direction;
}

// What does not show at a start without a current: both routes at a theta that has one, along the drift and along a
// direction that has a part of all parameters. Differences in every parameter would take as long as all the rest.
void check_ring_nearby(const RingProblem& ring, const Numbers& theta, const Numbers& direction, double allowed,
                       Rows& rows) {
  Numbers drift(theta.size());
  drift[0] = 1;
  ChainGradient forward(ring.chain, ring.objective, Route::forward), adjoint(ring.chain, ring.objective);
  const Numbers by_forward = exact(forward, theta).gradient, by_adjoint = exact(adjoint, theta).gradient;
  Numbers expected, of_forward, of_adjoint;
  for (const Numbers& way : {drift, direction}) {
    expected.push_back(difference([&](double t) { return exact(adjoint, along(theta, way, t)).value; }, 1.0));
    of_forward.push_back(std::inner_product(way.begin(), way.end(), by_forward.begin(), 0.0));
    of_adjoint.push_back(std::inner_product(way.begin(), way.end(), by_adjoint.begin(), 0.0));
  }
  rows.push_back(compare("nearby, forward route, differences", expected, of_forward, allowed));
  rows.push_back(compare("nearby, adjoint route, differences", expected, of_adjoint, allowed));
}

// The loop of a finite-state experiment that has no linear system: the Gibbs law of V, its moves and its covariance.
void check_ring_gibbs(const RingProblem& ring, const FiniteStateConfiguration& c, const Numbers& theta, double allowed,
                      Rows& rows) {
  RingPotential v(c.ring.states, c.ring.harmonics);
  const Numbers inner(theta.begin() + 1, theta.end());
  GibbsGradient gamma(v, ring.objective);
  const Numbers expected = exact(gamma, inner).gradient;
  rows.push_back(compare("Gibbs: Gamma nearby, differences", quotients(value_of(gamma), inner), expected, allowed));
  Numbers law(c.ring.states);
  v.prepare(inner);
  gibbs_law(v, law);
  check_samples(gamma, expected, inner, law, c.seed, rows, {.count = 20'000, .size = 10},
                "Gibbs: Gamma nearby from samples");
  const Graph graph = Graph::ring(c.ring.states, c.ring.width);
  check_sampler(GibbsSampler(v, graph, {.rule = c.rule, .noise = Noise(c.seed)}), inner, law, c.seed, rows,
                "Gibbs: law nearby after ten moves");
}

Rows check_ring_at(const RingProblem& ring, const Numbers& theta, std::uint64_t seed,
                   const std::optional<Batches>& batches) {
  Rows rows;
  const Numbers expected = check_routes(ring.chain, ring.objective, theta, rows);

  ChainGradient gamma(ring.chain, ring.objective);
  if (*std::min_element(ring.best_law.begin(), ring.best_law.end()) > 1e-100) {
    const Numbers at_optimum = exact(gamma, ring.optimum).gradient;
    rows.push_back(compare("law at the optimum", ring.best_law, gamma.law(), known_digits));
    rows.push_back(compare("Gamma at the optimum", Numbers(theta.size()), at_optimum, difference_error));
  } else {
    rows.push_back(left_out("law at the optimum", "the chain is nearly disconnected there"));
  }

  exact(gamma, theta);
  const Numbers law(gamma.law().begin(), gamma.law().end());
  if (batches)
    check_samples(gamma, expected, theta, law, seed, rows, *batches);
  else
    rows.push_back(left_out("Gamma from samples", "each estimate solves a linear system: too slow"));
  check_sampler(ChainSampler(ring.chain, {.noise = Noise(seed)}), theta, law, seed, rows);
  return rows;
}

Rows check_ring(std::uint64_t seed) {
  const RingProblem ring = ring_problem({.states = 40, .harmonics = 2, .width = 2}, Numbers{.5, .2, -.3, .1}, 0.5);
  const Numbers theta{.7, 1, -.5, .3, .8};  // with a current: no Gibbs law
  return check_ring_at(ring, theta, seed, Batches{});
}

// The system of n states with jumps of w costs some n w^2 operations.
Rows check_finite_state(const FiniteStateConfiguration& c) {
  const RingProblem ring = ring_problem(c.ring, c.reward, c.beta);
  const double cost = static_cast<double>(c.ring.states) * std::pow(static_cast<double>(c.ring.width), 2);
  std::optional<Batches> batches;
  if (cost < 2e7) batches = Batches{.count = 100, .size = 5000};
  Rows rows = check_ring_at(ring, c.start, c.seed, batches);
  const Numbers direction = some_direction(c.start.size(), c.seed), theta = along(c.start, direction, 1);
  const double allowed = allowed_differences(ring.objective);
  check_ring_nearby(ring, theta, direction, allowed, rows);
  check_ring_gibbs(ring, c, theta, allowed, rows);
  return rows;
}

}  // namespace

std::vector<Problem> FiniteStateExperiment::checks() const {
  return {{configuration().experiment, [c = configuration()] { return check_finite_state(c); }}};
}

std::vector<Problem> FiniteStateExperiment::standard_checks() const {
  const std::uint64_t seed = configuration().seed;
  return {{"finite Gibbs law", [seed] { return check_gibbs(problem_seed(seed, "gibbs")); }},
          {"softmax chain", [seed] { return check_softmax_chain(problem_seed(seed, "softmax")); }},
          {"ring chain", [seed] { return check_ring(problem_seed(seed, "ring")); }}};
}

}  // namespace program
