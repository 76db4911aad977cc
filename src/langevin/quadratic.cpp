#include "implicit_diffusion/langevin/quadratic.hpp"

#include "../require.hpp"
#include "matrices.hpp"

#include <fmt/format.h>

namespace implicit_diffusion {
namespace {

constexpr auto key = "precision";

std::vector<double> flatten(const std::vector<std::vector<double>>& rows) {
  std::vector<double> flat;
  for (const auto& row : rows) {
    if (row.size() != rows.size())
      throw Error(
          ErrorKind::usage, key,
          fmt::format("a row of {} numbers in a matrix of {} rows: it must be square", row.size(), rows.size()));
    flat.insert(flat.end(), row.begin(), row.end());
  }
  return flat;
}

}  // namespace

Quadratic::Quadratic(std::vector<std::vector<double>> precision)
    : dimension_(precision.size()), precision_(flatten(precision)), centre_(std::vector<double>(precision.size())) {
  require(dimension_ != 0, key, "an empty matrix");
  for (std::size_t i = 0; i < dimension_; ++i)
    for (std::size_t j = 0; j < i; ++j)
      require(precision[i][j] == precision[j][i], key, "not symmetric: entries {} and {} at ({}, {})", precision[i][j],
              precision[j][i], i + 1, j + 1);
  std::vector<double> factor(dimension_ * dimension_);
  const auto row = detail::cholesky(precision_.exact().data(), dimension_, factor.data());
  require(!row, key, "not positive definite: its leading {0} x {0} minor is not positive", row.value_or(0) + 1);
}

std::optional<double> Quadratic::largest_stable_step() const {
  return 2.0 / detail::largest_eigenvalue(precision_.exact().data(), dimension_);
}

GaussianMixture Quadratic::law(std::span<const double> theta) const {
  const std::size_t d = dimension_;
  std::vector<double> factor(d * d), inverse(d * d), covariance(d * d);
  detail::cholesky(precision_.exact().data(), d, factor.data());
  detail::invert_lower(factor.data(), d, inverse.data());
  detail::precision_from_inverse_factor(inverse.data(), d, covariance.data());
  return {{1.0}, {{{theta.begin(), theta.end()}, covariance}}};
}

}  // namespace implicit_diffusion
