// The gradient of a denoising objective on the line, without samples: the density of the chain is propagated on a grid
// of points, and so is the expectation of what is still to come.
//
//     v_T(y) = -lambda r y          v_n(y) = beta U_n(y) + E v_{n+1}(m_n(y) + noise xi)
//     p_0 = N(0, 1)                 p_{n+1} = the density of m_n(Y_n) + noise xi
//     gradient = sum_n integral of p_n (ds/dtheta) (pull d/dm E v_{n+1}(m + noise xi) + 2 beta penalty (s - s_0))
//
// with m_n the mean of step n. Sums over equally spaced points are as good as exact for such densities.
#pragma once

#include "denoising_mixture/experiment.hpp"

#include <optional>
#include <vector>

namespace program {

// Of the chain with Euler-Maruyama steps on the grid, at theta. Nothing where it would take too many points to resolve
// how narrowly the components of the base pass into one another. For models of one dimension.
std::optional<std::vector<double>> exact_gradient(const DenoisingConfiguration& c,
                                                  const implicit_diffusion::TimeGrid& grid,
                                                  const std::vector<double>& theta);

}  // namespace program
