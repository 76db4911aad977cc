// Markov chains that depend on theta: row-stochastic P(theta) on a finite set, with the derivative of each row.
//
// A chain is any type with
//
//     states(), parameters()
//     prepare(theta)                 P at theta
//     matrix()                       P, as a TransitionMatrix
//     row_derivatives(i, out)        out[s parameters + j] = dP_ik / dtheta_j for entry s of row i, k its column;
//                                    over s they sum to zero
//
// and everything else follows from rows:
//
//     pull_back       gradient_j = left' dP_j u          of all j, for the adjoint route
//     push_forward    out = left' dP_j                   of one j, for the forward route
#pragma once

#include "implicit_diffusion/finite/transition_matrix.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

namespace implicit_diffusion {

template <class C>
concept FiniteChain = requires(C& c, const C& made, std::span<const double> theta, std::size_t i,
                               std::span<double> out) {
  { made.states() } -> std::convertible_to<std::size_t>;
  { made.parameters() } -> std::convertible_to<std::size_t>;
  c.prepare(theta);
  { made.matrix() } -> std::convertible_to<const TransitionMatrix&>;
  made.row_derivatives(i, out);
};

// Row i of a chain that stays where it does not move: the entry s of another state k is probability(s, k), the diagonal
// has the rest.
template <class Probability>
void fill_moves(TransitionMatrix& matrix, std::size_t i, Probability&& probability) {
  const TransitionRow row = matrix.row(i);
  const std::span<double> values = matrix.values(i);
  double leaving = 0;
  std::size_t stay = 0;
  for (std::size_t s = 0; s < row.size(); ++s) {
    if (const std::size_t k = row.column(s); k != i)
      leaving += values[s] = probability(s, k);
    else
      stay = s;
  }
  values[stay] = std::max(0.0, 1 - leaving);
}

// The derivatives of such a row: add(s, k, out) adds those of the entry s of another state k, the diagonal has minus
// their sum.
template <class Add>
void fill_move_derivatives(const TransitionRow& row, std::size_t i, std::size_t parameters, std::span<double> out,
                           Add&& add) {
  std::ranges::fill(out, 0.0);
  std::size_t stay = 0;
  for (std::size_t s = 0; s < row.size(); ++s) {
    if (const std::size_t k = row.column(s); k != i)
      add(s, k, out.subspan(s * parameters, parameters));
    else
      stay = s;
  }
  for (std::size_t s = 0; s < row.size(); ++s)
    for (std::size_t j = 0; s != stay && j < parameters; ++j) out[stay * parameters + j] -= out[s * parameters + j];
}

// From differences u_k - u_i: what is common to all u_k cancels before it is rounded.
template <FiniteChain C>
void pull_back(const C& chain, std::span<const double> left, std::span<const double> u, std::span<double> gradient) {
  const std::size_t p = gradient.size();
  std::vector<double> scratch(chain.matrix().longest_row() * p);
  std::ranges::fill(gradient, 0.0);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0) continue;
    const TransitionRow row = chain.matrix().row(i);
    chain.row_derivatives(i, std::span(scratch).first(row.size() * p));
    for (std::size_t s = 0; s < row.size(); ++s) {
      const double difference = left[i] * (u[row.column(s)] - u[i]);
      for (std::size_t j = 0; j < p; ++j) gradient[j] += scratch[s * p + j] * difference;
    }
  }
}

template <FiniteChain C>
void push_forward(const C& chain, std::span<const double> left, std::size_t j, std::span<double> out) {
  const std::size_t p = chain.parameters();
  std::vector<double> scratch(chain.matrix().longest_row() * p);
  for (double& b : out) b = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const TransitionRow row = chain.matrix().row(i);
    chain.row_derivatives(i, std::span(scratch).first(row.size() * p));
    for (std::size_t s = 0; s < row.size(); ++s) out[row.column(s)] += left[i] * scratch[s * p + j];
  }
}

// P = the softmax over each row of A_0 + sum_j theta_j A_j, on a dense or a sparse pattern.
class SoftmaxChain {
 public:
  // `pattern` gives the places; `offset` (A_0) and each of `directions` (A_j) have a number for each entry of it, row
  // after row.
  SoftmaxChain(TransitionMatrix pattern, std::vector<double> offset, std::vector<std::vector<double>> directions);

  std::size_t states() const { return matrix_.states(); }
  std::size_t parameters() const { return directions_.size(); }
  void prepare(std::span<const double> theta);
  const TransitionMatrix& matrix() const { return matrix_; }
  void row_derivatives(std::size_t i, std::span<double> out) const;

 private:
  TransitionMatrix matrix_;
  std::vector<std::size_t> starts_;  // of the rows in offset and directions
  std::vector<double> offset_;
  std::vector<std::vector<double>> directions_;
};

}  // namespace implicit_diffusion
