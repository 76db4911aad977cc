#include "implicit_diffusion/finite/chain.hpp"

#include "../require.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

namespace implicit_diffusion {

SoftmaxChain::SoftmaxChain(TransitionMatrix pattern, std::vector<double> offset,
                           std::vector<std::vector<double>> directions)
    : matrix_(std::move(pattern)), offset_(std::move(offset)), directions_(std::move(directions)) {
  for (std::size_t j = 0; j <= directions_.size(); ++j) {
    const std::size_t numbers = j == 0 ? offset_.size() : directions_[j - 1].size();
    require(numbers == matrix_.entries(), "softmax chain", "A_{} has {} numbers, the pattern has {} places", j, numbers,
            matrix_.entries());
  }
  for (std::size_t i = 0, start = 0; i < states(); start += matrix_.row(i++).size()) {
    require(matrix_.row(i).size() > 0, "softmax chain", "row {} is empty", i);
    starts_.push_back(start);
  }
}

void SoftmaxChain::prepare(std::span<const double> theta) {
  for (std::size_t i = 0; i < states(); ++i) {
    const std::span<double> row = matrix_.values(i);
    for (std::size_t s = 0; s < row.size(); ++s) {
      row[s] = offset_[starts_[i] + s];
      for (std::size_t j = 0; j < directions_.size(); ++j) row[s] += theta[j] * directions_[j][starts_[i] + s];
    }
    const double top = *std::ranges::max_element(row);
    double sum = 0;
    for (double& v : row) sum += v = exp(v - top);
    for (double& v : row) v /= sum;
  }
}

// dP_ik = P_ik (A_ik - sum_l P_il A_il).
void SoftmaxChain::row_derivatives(std::size_t i, std::span<double> out) const {
  const std::span<const double> row = matrix_.row(i).values;
  const std::size_t p = parameters();
  for (std::size_t j = 0; j < p; ++j) {
    const double* a = directions_[j].data() + starts_[i];
    double mean = 0;
    for (std::size_t s = 0; s < row.size(); ++s) mean += row[s] * a[s];
    for (std::size_t s = 0; s < row.size(); ++s) out[s * p + j] = row[s] * (a[s] - mean);
  }
}

}  // namespace implicit_diffusion
