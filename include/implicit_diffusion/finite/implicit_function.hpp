// The implicit function theorem, one linear solve: the derivative of a root x*(theta) in R^m of
//
//     A(x, theta) = 0          dx*/dtheta_j = -A_x^-1 dA/dtheta_j,        A_x the Jacobian, m x m
//
// or of an argmin of G, where A = grad_x G and A_x is its Hessian. An objective F(x*(theta)) needs one solve however
// many parameters there are:
//
//     A_x' w = -grad F(x*)     dF/dtheta_j = w . dA/dtheta_j              the adjoint form
//
// An argmin over the probability vectors, sum_i x_i = 1, is a root of its Lagrangian: A_x gets a border of ones, A a
// zero, and the last number of x is the multiplier. Without the border the derivative would not keep the mass.
//
// The factorisation is LU with partial pivoting: m^3 2/3 operations, once for all solves.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace implicit_diffusion {

class ImplicitFunction {
 public:
  // The Jacobian row by row, m x m; it is factorised in its place. Throws a usage Error where it is singular to working
  // precision or not finite: then the theorem says nothing.
  ImplicitFunction(std::vector<double> jacobian, std::size_t m);
  ~ImplicitFunction();
  ImplicitFunction(ImplicitFunction&&) noexcept;
  ImplicitFunction& operator=(ImplicitFunction&&) noexcept;

  // dx*/dtheta_j from dA/dtheta_j, m numbers each.
  void derivative(std::span<const double> partial, std::span<double> dx) const;
  // w from grad F(x*), m numbers each.
  void adjoint(std::span<const double> objective_gradient, std::span<double> w) const;

  // A_x^-1 b and A_x'^-1 b.
  void solve(std::span<const double> b, std::span<double> x) const;
  void solve_transposed(std::span<const double> b, std::span<double> x) const;

 private:
  struct Factors;
  std::unique_ptr<Factors> factors_;
};

// The matrix (m x m, row by row) with a border of ones and a zero in the corner: (m + 1) x (m + 1).
std::vector<double> bordered(std::span<const double> matrix, std::size_t m);

}  // namespace implicit_diffusion
