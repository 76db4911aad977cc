// Eigenvalues, the one thing the Langevin parts need Eigen for.
#pragma once

#include "implicit_diffusion/langevin/law.hpp"

#include <cstddef>

namespace implicit_diffusion::detail {

// The largest eigenvalue of a symmetric d x d matrix.
double largest_eigenvalue(const double* matrix, std::size_t d);

}  // namespace implicit_diffusion::detail
