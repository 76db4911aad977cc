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

// The eigenvalues of the Jacobi matrix of the (probabilists') Hermite polynomials are the nodes, the squares of the
// first components of its eigenvectors the weights (Golub and Welsch).
Quadrature gauss_hermite(std::size_t n) {
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd jacobi = Eigen::MatrixXd::Zero(size, size);
  for (Eigen::Index i = 1; i < size; ++i) jacobi(i, i - 1) = jacobi(i - 1, i) = std::sqrt(static_cast<double>(i));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(jacobi);
  Quadrature q;
  for (Eigen::Index i = 0; i < size; ++i) {
    q.nodes.push_back(solver.eigenvalues()(i));
    q.weights.push_back(solver.eigenvectors()(0, i) * solver.eigenvectors()(0, i));
  }
  return q;
}

}  // namespace implicit_diffusion
