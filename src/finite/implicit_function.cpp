#include "implicit_diffusion/finite/implicit_function.hpp"

#include "../require.hpp"

#include <Eigen/LU>

#include <limits>
#include <utility>

namespace implicit_diffusion {
namespace {

using Vector = Eigen::Map<Eigen::VectorXd>;
using ConstVector = Eigen::Map<const Eigen::VectorXd>;

Vector map(std::span<double> v) { return {v.data(), static_cast<Eigen::Index>(v.size())}; }
ConstVector map(std::span<const double> v) { return {v.data(), static_cast<Eigen::Index>(v.size())}; }

}  // namespace

// A matrix row by row is its transpose to Eigen, which stores columns: what is factorised is A_x'.
struct ImplicitFunction::Factors {
  Factors(std::vector<double> jacobian, Eigen::Index m)
      : values(std::move(jacobian)), matrix(values.data(), m, m), lu(matrix) {}

  std::vector<double> values;
  Eigen::Map<Eigen::MatrixXd> matrix;
  Eigen::PartialPivLU<Eigen::Ref<Eigen::MatrixXd>> lu;  // in place of values
};

ImplicitFunction::ImplicitFunction(std::vector<double> jacobian, std::size_t m) {
  require(m > 0 && jacobian.size() == m * m, "jacobian", "{} numbers are not a {} x {} matrix", jacobian.size(), m, m);
  require(map(std::as_const(jacobian)).allFinite(), "jacobian", "it is not finite");
  factors_ = std::make_unique<Factors>(std::move(jacobian), static_cast<Eigen::Index>(m));
  const double reciprocal_condition = factors_->lu.rcond();
  require(reciprocal_condition > std::numeric_limits<double>::epsilon(), "jacobian",
          "it is singular: x is not a function of theta here");
}
ImplicitFunction::~ImplicitFunction() = default;
ImplicitFunction::ImplicitFunction(ImplicitFunction&&) noexcept = default;
ImplicitFunction& ImplicitFunction::operator=(ImplicitFunction&&) noexcept = default;

void ImplicitFunction::solve(std::span<const double> b, std::span<double> x) const {
  map(x) = factors_->lu.transpose().solve(map(b));
}

void ImplicitFunction::solve_transposed(std::span<const double> b, std::span<double> x) const {
  map(x) = factors_->lu.solve(map(b));
}

void ImplicitFunction::derivative(std::span<const double> partial, std::span<double> dx) const {
  solve(partial, dx);
  map(dx) = -map(dx);
}

void ImplicitFunction::adjoint(std::span<const double> objective_gradient, std::span<double> w) const {
  solve_transposed(objective_gradient, w);
  map(w) = -map(w);
}

std::vector<double> bordered(std::span<const double> matrix, std::size_t m) {
  std::vector<double> out((m + 1) * (m + 1), 1.0);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t k = 0; k < m; ++k) out[i * (m + 1) + k] = matrix[i * m + k];
  out.back() = 0;
  return out;
}

}  // namespace implicit_diffusion
