// Gibbs laws on a finite set: pi_i(theta) = exp(-V_i(theta)) / Z, the argmin over probability vectors of
//
//     G(p, theta) = sum_i p_i log p_i + p_i V_i(theta)
//
// A potential is any type with states(), parameters(), prepare(theta), value(i) = V_i and add_gradient(i, weight,
// gradient), which adds weight dV_i/dtheta. The derivative of the law solves a bordered system (implicit_function.hpp),
// whose solution is known:
//
//     [diag(1/p), 1; 1', 0] [gamma_j; nu_j] = [-dV/dtheta_j; 0]       gamma_j = -p (dV/dtheta_j - E_p[dV/dtheta_j])
//
// so that F' . gamma = -Cov_p[F', dV/dtheta], at every p and not only at pi. The sampler moves on a graph, from i to a
// neighbour k chosen uniformly, which is taken with the probability
//
//     heat bath     1 / (1 + exp(D))        the law of the pair {i, k}; smooth in theta
//     Metropolis    min(1, exp(-D))         moves more
//
// D = V_k - V_i + log(degree k / degree i). Both keep pi.
#pragma once

#include "implicit_diffusion/finite/chain.hpp"
#include "implicit_diffusion/finite/graph.hpp"
#include "implicit_diffusion/finite/population.hpp"
#include "implicit_diffusion/finite/transition_matrix.hpp"
#include "implicit_diffusion/parallel/sums.hpp"
#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

template <class V>
concept FinitePotential = requires(V& v, const V& made, std::span<const double> theta, std::size_t i, double weight,
                                   std::span<double> gradient) {
  { made.states() } -> std::convertible_to<std::size_t>;
  { made.parameters() } -> std::convertible_to<std::size_t>;
  v.prepare(theta);
  { made.value(i) } -> std::convertible_to<double>;
  made.add_gradient(i, weight, gradient);
};

// The Gibbs law of a prepared potential.
template <FinitePotential V>
void gibbs_law(const V& potential, std::span<double> law) {
  double lowest = potential.value(0);
  for (std::size_t i = 0; i < law.size(); ++i) lowest = std::min(lowest, law[i] = potential.value(i));
  double sum = 0;
  for (double& x : law) sum += x = exp(lowest - x);
  for (double& x : law) x /= sum;
}

// V = E + B theta.
class LinearPotential {
 public:
  // B row by row, states x parameters.
  LinearPotential(std::vector<double> offset, std::vector<double> slopes);

  std::size_t states() const { return offset_.size(); }
  std::size_t parameters() const { return slopes_.size() / offset_.size(); }
  void prepare(std::span<const double> theta);
  double value(std::size_t i) const { return values_[i]; }
  void add_gradient(std::size_t i, double weight, std::span<double> gradient) const {
    for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] += weight * slopes_[i * gradient.size() + j];
  }

 private:
  std::vector<double> offset_, slopes_, values_;
};

enum class Rule { heat_bath, metropolis };

namespace detail {

// The probability with which a rise by `difference` is taken.
inline double acceptance(Rule rule, double difference) {
  if (rule == Rule::heat_bath) return sigmoid(-difference);
  return difference <= 0 ? 1 : exp(-difference);
}
// And its derivative.
inline double acceptance_slope(Rule rule, double difference) {
  if (rule == Rule::heat_bath) return -sigmoid(difference) * sigmoid(-difference);
  return difference <= 0 ? 0 : -exp(-difference);
}

template <FinitePotential V>
double rise(const V& potential, const Graph& graph, std::size_t i, std::size_t k) {
  const double step = potential.value(k) - potential.value(i);
  if (graph.degree(i) == graph.degree(k)) return step;
  return step + log(static_cast<double>(graph.degree(k)) / static_cast<double>(graph.degree(i)));
}

// Calls task(sample) for all samples, a block after the other.
template <class Task>
void for_each_sample(Workers* workers, std::size_t n, Task&& task) {
  for_each_task(workers, (n + block_size - 1) / block_size, blocks_per_thread, [&](std::size_t b) {
    for (std::size_t i = b * block_size; i < std::min(n, (b + 1) * block_size); ++i) task(i);
  });
}

}  // namespace detail

struct GibbsOptions {
  Rule rule = Rule::heat_bath;
  Noise noise{};
  Workers* workers = nullptr;  // null: the calling thread alone
};

// One move of every sample. It looks at the states it visits only, however many there are.
template <FinitePotential V>
class GibbsSampler {
 public:
  GibbsSampler(V potential, Graph graph, GibbsOptions options = {})
      : potential_(std::move(potential)), graph_(std::move(graph)), options_(options) {}

  void advance(StatePopulation& x, std::span<const double> theta, StepKey at) {
    potential_.prepare(theta);
    detail::for_each_sample(options_.workers, x.size(), [&](std::size_t i) { move(x.states[i], at, x.first() + i); });
  }

 private:
  void move(std::uint32_t& state, StepKey at, std::size_t sample) const {
    const std::span<const std::uint32_t> neighbours = graph_.neighbours(state);
    // 32 random bits scaled to the number of neighbours: their bias is below degree / 2^32.
    const std::uint64_t choice = options_.noise.bits(Stream::sampling, at, 2, sample, 0);
    const std::uint32_t next = neighbours[choice * neighbours.size() >> 32];
    const double taken = detail::acceptance(options_.rule, detail::rise(potential_, graph_, state, next));
    if (options_.noise.uniform(Stream::sampling, at, 2, sample, 1) < taken) state = next;
  }

  V potential_;
  Graph graph_;
  GibbsOptions options_;
};

// The same moves as a matrix: a chain (chain.hpp) whose stationary law is the Gibbs law.
template <FinitePotential V>
class GibbsChain {
 public:
  GibbsChain(V potential, Graph graph, Rule rule = Rule::heat_bath)
      : potential_(std::move(potential)), graph_(std::move(graph)), rule_(rule), matrix_(move_pattern(graph_)) {}

  std::size_t states() const { return graph_.states(); }
  std::size_t parameters() const { return potential_.parameters(); }
  const TransitionMatrix& matrix() const { return matrix_; }
  const V& potential() const { return potential_; }

  void prepare(std::span<const double> theta) {
    potential_.prepare(theta);
    for (std::size_t i = 0; i < states(); ++i) {
      const double choice = 1.0 / static_cast<double>(graph_.degree(i));
      fill_moves(matrix_, i, [&](std::size_t, std::size_t k) {
        return choice * detail::acceptance(rule_, detail::rise(potential_, graph_, i, k));
      });
    }
  }

  void row_derivatives(std::size_t i, std::span<double> out) const {
    const double choice = 1.0 / static_cast<double>(graph_.degree(i));
    fill_move_derivatives(matrix_.row(i), i, parameters(), out,
                          [&](std::size_t, std::size_t k, std::span<double> derivatives) {
                            const double rise = detail::rise(potential_, graph_, i, k);
                            const double slope = choice * detail::acceptance_slope(rule_, rise);
                            potential_.add_gradient(k, slope, derivatives);
                            potential_.add_gradient(i, -slope, derivatives);
                          });
  }

 private:
  V potential_;
  Graph graph_;
  Rule rule_;
  TransitionMatrix matrix_;
};

}  // namespace implicit_diffusion
