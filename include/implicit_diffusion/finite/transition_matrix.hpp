// Matrices of transition probabilities on a finite set: P_ik >= 0, every row sums to one.
//
// Stored row by row, densely or with the columns of what may differ from zero. The pattern is fixed when the matrix is
// made, the values change with theta:
//
//     row(i).column(s), row(i).values[s]      entry s of row i, columns in ascending order
//
// What is solved with P (stationary.hpp) reads its off-diagonal entries alone and takes the diagonal of I - P as their
// sum: then the rows of I - P sum to zero whatever was rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace implicit_diffusion {

struct TransitionRow {
  std::span<const double> values;
  const std::uint32_t* columns;  // null: all of them

  std::size_t size() const { return values.size(); }
  std::size_t column(std::size_t s) const { return columns ? columns[s] : s; }
};

class TransitionMatrix {
 public:
  TransitionMatrix() = default;
  // n x n zeros, to be filled.
  static TransitionMatrix dense(std::size_t n);
  // Row i has the columns columns[starts[i]], ..., columns[starts[i + 1] - 1]. Throws a usage Error unless they ascend
  // and are below n.
  static TransitionMatrix sparse(std::vector<std::size_t> starts, std::vector<std::uint32_t> columns);

  std::size_t states() const { return states_; }
  bool is_dense() const { return dense_; }
  std::size_t entries() const { return values_.size(); }
  // Entries in the longest row.
  std::size_t longest_row() const { return longest_row_; }

  TransitionRow row(std::size_t i) const {
    return {std::span(values_).subspan(starts_[i], starts_[i + 1] - starts_[i]),
            dense_ ? nullptr : columns_.data() + starts_[i]};
  }
  std::span<double> values(std::size_t i) {
    return std::span(values_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }

  // out = p' P.
  void multiply_left(std::span<const double> p, std::span<double> out) const;
  // Throws a usage Error that names the first row that has a negative entry or does not sum to one, up to 1e-9.
  void require_stochastic() const;

 private:
  bool dense_ = false;
  std::size_t states_ = 0, longest_row_ = 0;
  std::vector<std::size_t> starts_;
  std::vector<std::uint32_t> columns_;
  std::vector<double> values_;
};

}  // namespace implicit_diffusion
