// Eigenvalues, the one thing the Langevin parts need Eigen for.
#include "implicit_diffusion/langevin/law.hpp"
#include "matrices.hpp"

#include <Eigen/Eigenvalues>

#include <cmath>

namespace implicit_diffusion {

double detail::largest_eigenvalue(const double* matrix, std::size_t d) {
  const auto size = static_cast<Eigen::Index>(d);
  const Eigen::Map<const Eigen::MatrixXd> m(matrix, size, size);
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(m, Eigen::EigenvaluesOnly).eigenvalues().maxCoeff();
}

namespace {

// The eigenvalues of the Jacobi matrix of orthogonal polynomials are the nodes, the squares of the first components of
// its eigenvectors the weights, which sum to 1 (Golub and Welsch). The diagonal is 0, off_diagonal(i) is beside it.
template <class F>
Quadrature golub_welsch(std::size_t n, F&& off_diagonal) {
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd jacobi = Eigen::MatrixXd::Zero(size, size);
  for (Eigen::Index i = 1; i < size; ++i) jacobi(i, i - 1) = jacobi(i - 1, i) = off_diagonal(static_cast<double>(i));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(jacobi);
  Quadrature q;
  for (Eigen::Index i = 0; i < size; ++i) {
    q.nodes.push_back(solver.eigenvalues()(i));
    q.weights.push_back(solver.eigenvectors()(0, i) * solver.eigenvectors()(0, i));
  }
  return q;
}

}  // namespace

// The probabilists' Hermite polynomials.
Quadrature gauss_hermite(std::size_t n) {
  return golub_welsch(n, [](double i) { return std::sqrt(i); });
}

Quadrature gauss_legendre(std::size_t n) {
  Quadrature q = golub_welsch(n, [](double i) { return i / std::sqrt(4 * i * i - 1); });
  for (double& w : q.weights) w *= 2;
  return q;
}

}  // namespace implicit_diffusion
