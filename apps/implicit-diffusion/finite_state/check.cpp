// Fixed problems on finite sets, and the ring of an experiment: one file, as all of them are put through the same
// comparisons.
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
class Draws {
 public:
  Draws(std::span<const double> law, std::uint64_t seed) : noise_(~seed) {
    double sum = 0;
    for (const double p : law) up_to_.push_back(sum += p);
    up_to_.pop_back();  // the last state has the rest
  }
  void operator()(std::int64_t round, StatePopulation& x) const {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double u = noise_.uniform(Stream::user, {.round = round}, 1, i, 0);
      x.states[i] = static_cast<std::uint32_t>(std::ranges::upper_bound(up_to_, u) - up_to_.begin());
    }
  }

 private:
  Noise noise_;
  std::vector<double> up_to_;
};

// Something wrong, where the gradient is large enough for it to be seen.
void add_wrong(bool visible, const CheckRow& row, Rows& rows) {
  rows.push_back(visible ? must_be_off(row)
                         : left_out("  a wrong gradient", "the gradient is too small for it to be seen"));
}

// How many batches, of how many samples. Small ones: a covariance divided by n in place of n - 1 would be a tenth too
// small, which shows.
struct Batches {
  std::size_t count = 50'000, size = 10;
};

template <class Gradient>
void check_samples(Gradient& gamma, const std::vector<double>& expected, const std::vector<double>& theta,
                   const std::vector<double>& law, std::uint64_t seed, Rows& rows, Batches batches = {},
                   const std::string& what = "Gamma from samples") {
  StatePopulation x{std::vector<std::uint32_t>(batches.size)};
  std::vector<double> gradient(theta.size());
  BatchMeans means(theta.size());
  const Draws draw(law, seed);
  for (std::size_t b = 0; b < batches.count; ++b) {
    draw(static_cast<std::int64_t>(b), x);
    gamma.estimate(x, theta, 0, gradient);
    means.add(gradient);
  }
  std::vector<double> errors = means.standard_error();
  for (double& e : errors) e += known_digits;  // where all samples agree, their rounding is left
  rows.push_back(compare_means(what, expected, means.mean(), errors));
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

// Shares of n independent samples have standard errors sqrt(p (1 - p) / n). Of many states it is groups that are
// compared: each state would be seen a few times only, and a few times are not normally distributed.
template <class Sampler>
void check_sampler(Sampler&& sampler, const std::vector<double>& theta, const std::vector<double>& law,
                   std::uint64_t seed, Rows& rows, const std::string& what = "law after ten moves from it") {
  constexpr std::size_t n = 200'000;
  StatePopulation x{std::vector<std::uint32_t>(n)};
  Draws(law, seed)(-1, x);
  for (std::int64_t k = 0; k < 10; ++k) sampler.advance(x, theta, {.round = k});
  std::vector<double> shares(law.size()), errors;
  empirical(x, shares);
  const std::vector<double> expected = grouped(law);
  for (const double p : expected) errors.push_back(std::sqrt(p * (1 - p) / static_cast<double>(n)));
  rows.push_back(compare_means(what, expected, grouped(shares), errors));
}

using Matrix = std::vector<std::vector<double>>;

// The rows of a chain at theta.
template <class C>
Matrix dense(C chain, const std::vector<double>& theta) {
  chain.prepare(theta);
  Matrix p(chain.states(), std::vector<double>(chain.states()));
  for (std::size_t i = 0; i < p.size(); ++i) {
    const TransitionRow row = chain.matrix().row(i);
    for (std::size_t s = 0; s < row.size(); ++s) p[i][row.column(s)] += row.values[s];
  }
  return p;
}

std::vector<double> flattened(const Matrix& p) {
  std::vector<double> all;
  for (const std::vector<double>& row : p) all.insert(all.end(), row.begin(), row.end());
  return all;
}

// p P.
std::vector<double> moved_law(const std::vector<double>& p, const Matrix& matrix) {
  std::vector<double> out(p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    for (std::size_t k = 0; k < p.size(); ++k) out[k] += p[i] * matrix[i][k];
  return out;
}

// One move of many samples of each state: those of state i are in k with probability P_ik. A law that is kept says
// nothing of a sampler that does not move.
template <class Sampler>
void check_move(Sampler&& sampler, const std::vector<double>& theta, const Matrix& matrix, Rows& rows,
                const std::string& what) {
  const std::size_t states = matrix.size(), each = 50'000;
  StatePopulation x = spread_population(states * each, states);
  const StatePopulation before = x;
  sampler.advance(x, theta, {.round = 100});
  Matrix shares(states, std::vector<double>(states));
  for (std::size_t i = 0; i < x.size(); ++i) shares[before.states[i]][x.states[i]] += 1 / static_cast<double>(each);
  const std::vector<double> expected = flattened(matrix);
  std::vector<double> errors;
  for (const double p : expected)
    errors.push_back(std::sqrt(std::max(0.0, p * (1 - p)) / static_cast<double>(each)) + known_digits);
  rows.push_back(compare_means(what, expected, flattened(shares), errors));
}

// Central differences are allowed more for larger rewards.
double allowed_differences(const RewardObjective& objective) {
  double size = 1;
  for (const double r : objective.reward()) size = std::max(size, std::abs(r));
  return difference_error * size;
}

// Both routes against central differences. Returns the gradient.
template <class C, class F>
std::vector<double> check_routes(const C& chain, const F& objective, const std::vector<double>& theta, Rows& rows) {
  const double allowed = allowed_differences(objective);
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

// Moves between the states of a graph that keep a law, written out: to a neighbour chosen uniformly, taken with the
// probability a / (a + b) by the heat bath and min(1, a / b) by Metropolis, where a = pi_k / degree k and b = pi_i /
// degree i.
Matrix moves_by_hand(const std::vector<double>& law, const Graph& graph, Rule rule) {
  Matrix p(law.size(), std::vector<double>(law.size()));
  for (std::size_t i = 0; i < law.size(); ++i) {
    p[i][i] = 1;
    for (const std::uint32_t k : graph.neighbours(i)) {
      const auto from = static_cast<double>(graph.degree(i)), to = static_cast<double>(graph.degree(k));
      const double a = law[k] / to, b = law[i] / from;
      p[i][k] = (rule == Rule::heat_bath ? a / (a + b) : std::min(1.0, a / b)) / from;
      p[i][i] -= p[i][k];
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
      const Matrix by_hand = moves_by_hand(known.law, *graph, rule);
      const GibbsChain chain(known.potential, *graph, rule);
      rows.push_back(compare(name + "matrix", flattened(by_hand), flattened(dense(chain, known.theta)), known_digits));
      ChainGradient forward(chain, objective, Route::forward), adjoint(chain, objective, Route::adjoint);
      const std::vector<double> by_adjoint = exact(adjoint, known.theta);
      rows.push_back(compare(name + "law", known.law, adjoint.law(), known_digits));
      rows.push_back(compare(name + "Gamma, forward", known.gradient, exact(forward, known.theta), known_digits));
      rows.push_back(compare(name + "Gamma, adjoint", known.gradient, by_adjoint, known_digits));
      GibbsSampler sampler(known.potential, *graph, {.rule = rule, .noise = Noise(seed)});
      check_move(sampler, known.theta, by_hand, rows, name + "one move");
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
  const auto value = [&](const std::vector<double>& p) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      sum += p[i] * (beta * std::log(static_cast<double>(p.size()) * p[i]) - lambda * known.reward[i]);
    return sum;
  };
  const auto at_theta = [&](const std::vector<double>& theta) {
    LinearPotential v = known.potential;
    v.prepare(theta);
    std::vector<double> p(v.states());
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(-v.value(i));
    for (double& x : p) x /= sum;
    return value(p);
  };
  rows.push_back(compare("F at another p, written out", std::vector{value(known.p)},
                         std::vector{objective.value(known.p)}, known_digits));
  std::vector<double> expected, slopes, got(known.p.size()), gradient(known.theta.size());
  for (std::size_t j = 0; j < known.theta.size(); ++j)
    expected.push_back(difference(
        [&](double t) {
          std::vector<double> there = known.theta;
          there[j] += t;
          return at_theta(there);
        },
        1.0));
  for (const double p : known.p)
    slopes.push_back(beta * (std::log(static_cast<double>(known.p.size()) * p) + 1) -
                     lambda * known.reward[slopes.size()]);
  objective.gradient(known.p, got);
  rows.push_back(compare("F' at another p, written out", slopes, got, known_digits));

  GibbsGradient gamma(known.potential, objective);
  rows.push_back(compare("Gamma of F, differences", expected, exact(gamma, known.theta), difference_error));
  gamma.estimate(Distribution{known.law}, known.theta, 0, gradient);
  rows.push_back(compare("Gamma of F at the law, differences", expected, gradient, difference_error));
  ChainGradient moves(GibbsChain(known.potential, Graph::ring(4)), objective);
  rows.push_back(compare("Gamma of F, moves, differences", expected, exact(moves, known.theta), difference_error));
  check_samples(gamma, expected, known.theta, known.law, seed, rows, {}, "Gamma of F from samples");
  GibbsGradient by_shares(known.potential, WithoutSlope{RewardObjective(known.reward)});
  check_samples(by_shares, known.gradient, known.theta, known.law, seed, rows, {}, "Gamma from shares of samples");
}

Rows check_gibbs(std::uint64_t seed) {
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
  check_samples(gamma, gradient, known.theta, law, seed, rows);
  ChainSampler sampler(chain, {.noise = Noise(seed)});
  check_sampler(sampler, known.theta, law, seed, rows);

  // At a law that is not kept: Gamma = p' dP u, and a step, each written out.
  const Distribution other{{.2, .5, .3}};
  const Matrix matrix = dense(chain, known.theta);
  const std::vector<double> slopes =
      differences([&](double t) { return flattened(dense(chain, {known.theta[0] + t})); }, 1.0);
  std::vector<double> by_hand(1), by_adjoint(1), by_forward(1), at_law(1);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k) by_hand[0] += other.p[i] * slopes[3 * i + k] * known.u[k];
  gamma.estimate(other, known.theta, 0, by_adjoint);
  ChainGradient forward(chain, objective, Route::forward);
  forward.estimate(other, known.theta, 0, by_forward);
  gamma.estimate(Distribution{law}, known.theta, 0, at_law);
  rows.push_back(compare("Gamma at the law, known numbers", known.gradient, at_law, known_digits));
  rows.push_back(compare("Gamma at another p, adjoint, by hand", by_hand, by_adjoint, difference_error));
  rows.push_back(compare("Gamma at another p, forward, by hand", by_hand, by_forward, difference_error));
  Distribution moved = other;
  sampler.advance(moved, known.theta, {});
  rows.push_back(compare("a step of another p, by hand", moved_law(other.p, matrix), moved.p, known_digits));
  rows.push_back(must_be_off(compare("  no step", moved_law(other.p, matrix), other.p, known_digits)));
  check_move(sampler, known.theta, matrix, rows, "one move of samples");
  return rows;
}

// Up or down in each parameter by chance: a step to a theta nearby.
std::vector<double> some_direction(std::size_t parameters, std::uint64_t seed) {
  const double size = 0.5 / std::sqrt(0.5 * static_cast<double>(parameters));
  std::vector<double> direction;
  for (std::size_t j = 0; j < parameters; ++j)
    direction.push_back(Noise(~seed).uniform(Stream::user, {.round = -2}, 1, j, 0) < 0.5 ? size : -size);
  return direction;
}
std::vector<double> along(std::vector<double> theta, const std::vector<double>& direction, double t) {
  for (std::size_t j = 0; j < theta.size(); ++j) theta[j] += t * direction[j];
  return theta;
}

// What does not show at a start without a current: both routes at a theta that has one, along the drift and along a
// direction that has a part of all parameters. Differences in every parameter would take as long as all the rest.
void check_ring_nearby(const RingProblem& ring, const std::vector<double>& theta, const std::vector<double>& direction,
                       double allowed, Rows& rows) {
  std::vector<double> drift(theta.size());
  drift[0] = 1;
  ChainGradient forward(ring.chain, ring.objective, Route::forward), adjoint(ring.chain, ring.objective);
  const std::vector<double> by_forward = exact(forward, theta), by_adjoint = exact(adjoint, theta);
  std::vector<double> expected, of_forward, of_adjoint, unused(theta.size());
  for (const std::vector<double>& way : {drift, direction}) {
    expected.push_back(difference([&](double t) { return adjoint.exact(along(theta, way, t), unused); }, 1.0));
    of_forward.push_back(std::inner_product(way.begin(), way.end(), by_forward.begin(), 0.0));
    of_adjoint.push_back(std::inner_product(way.begin(), way.end(), by_adjoint.begin(), 0.0));
  }
  rows.push_back(compare("nearby, forward route, differences", expected, of_forward, allowed));
  rows.push_back(compare("nearby, adjoint route, differences", expected, of_adjoint, allowed));
}

// The loop of a finite-state experiment that has no linear system: the Gibbs law of V, its moves and its covariance.
void check_ring_gibbs(const RingProblem& ring, const FiniteStateConfiguration& c, const std::vector<double>& theta,
                      double allowed, Rows& rows) {
  RingPotential v(c.ring.states, c.ring.harmonics);
  const std::vector<double> inner(theta.begin() + 1, theta.end());
  GibbsGradient gamma(v, ring.objective);
  const std::vector<double> expected = exact(gamma, inner);
  rows.push_back(compare("Gibbs: Gamma nearby, differences", quotients(gamma, inner), expected, allowed));
  std::vector<double> law(c.ring.states);
  v.prepare(inner);
  gibbs_law(v, law);
  check_samples(gamma, expected, inner, law, c.seed, rows, {.count = 20'000, .size = 10},
                "Gibbs: Gamma nearby from samples");
  const Graph graph = Graph::ring(c.ring.states, c.ring.width);
  check_sampler(GibbsSampler(v, graph, {.rule = c.rule, .noise = Noise(c.seed)}), inner, law, c.seed, rows,
                "Gibbs: law nearby after ten moves");
}

Rows check_ring_at(const RingProblem& ring, const std::vector<double>& theta, std::uint64_t seed,
                   const std::optional<Batches>& batches) {
  Rows rows;
  const std::vector<double> expected = check_routes(ring.chain, ring.objective, theta, rows);

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
    check_samples(gamma, expected, theta, law, seed, rows, *batches);
  else
    rows.push_back(left_out("Gamma from samples", "each estimate solves a system, which would take too long"));
  check_sampler(ChainSampler(ring.chain, {.noise = Noise(seed)}), theta, law, seed, rows);
  return rows;
}

Rows check_ring(std::uint64_t seed) {
  const RingProblem ring =
      ring_problem({.states = 40, .harmonics = 2, .width = 2}, std::vector<double>{.5, .2, -.3, .1}, 0.5);
  const std::vector<double> theta{.7, 1, -.5, .3, .8};  // with a current: no Gibbs law
  return check_ring_at(ring, theta, seed, Batches{});
}

// The system of n states with jumps of w costs some n w^2 operations.
Rows check_finite_state(const FiniteStateConfiguration& c) {
  const RingProblem ring = ring_problem(c.ring, c.reward, c.beta);
  const double cost = static_cast<double>(c.ring.states) * std::pow(static_cast<double>(c.ring.width), 2);
  std::optional<Batches> batches;
  if (cost < 2e7) batches = Batches{.count = 100, .size = 5000};
  Rows rows = check_ring_at(ring, c.start, c.seed, batches);
  const std::vector<double> direction = some_direction(c.start.size(), c.seed), theta = along(c.start, direction, 1);
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
