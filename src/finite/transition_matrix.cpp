#include "implicit_diffusion/finite/transition_matrix.hpp"

#include "../require.hpp"

#include <algorithm>
#include <cmath>

namespace implicit_diffusion {

TransitionMatrix TransitionMatrix::dense(std::size_t n) {
  TransitionMatrix m;
  m.dense_ = true;
  m.states_ = m.longest_row_ = n;
  for (std::size_t i = 0; i <= n; ++i) m.starts_.push_back(i * n);
  m.values_.assign(n * n, 0.0);
  return m;
}

TransitionMatrix TransitionMatrix::sparse(std::vector<std::size_t> starts, std::vector<std::uint32_t> columns) {
  require(
      starts.size() >= 2 && starts.front() == 0 && starts.back() == columns.size() && std::ranges::is_sorted(starts),
      "transition matrix", "the starts of the rows do not fit its entries");
  TransitionMatrix m;
  m.states_ = starts.size() - 1;
  for (std::size_t i = 0; i < m.states_; ++i) {
    m.longest_row_ = std::max(m.longest_row_, starts[i + 1] - starts[i]);
    for (std::size_t e = starts[i]; e < starts[i + 1]; ++e)
      require(columns[e] < m.states_ && (e == starts[i] || columns[e] > columns[e - 1]), "transition matrix",
              "column {} of row {} is not below {} and above the one before", columns[e], i, m.states_);
  }
  m.values_.assign(columns.size(), 0.0);
  m.starts_ = std::move(starts);
  m.columns_ = std::move(columns);
  return m;
}

void TransitionMatrix::multiply_left(std::span<const double> p, std::span<double> out) const {
  std::ranges::fill(out, 0.0);
  for (std::size_t i = 0; i < states_; ++i) {
    const TransitionRow r = row(i);
    for (std::size_t s = 0; s < r.size(); ++s) out[r.column(s)] += p[i] * r.values[s];
  }
}

void TransitionMatrix::require_stochastic() const {
  for (std::size_t i = 0; i < states_; ++i) {
    double sum = 0;
    for (const double v : row(i).values) {
      require(v >= 0, "transition matrix", "row {} has the probability {}", i, v);
      sum += v;
    }
    require(std::abs(sum - 1) < 1e-9, "transition matrix", "row {} sums to {}", i, sum);
  }
}

}  // namespace implicit_diffusion
