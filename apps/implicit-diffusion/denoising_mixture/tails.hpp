// How heavy the tails of the gradient are, for the warnings of a run and for `check`.
#pragma once

#include "denoising_mixture/experiment.hpp"
#include "implicit_diffusion/diagnostics.hpp"

namespace program {

// Of the variance of the gradient of 16 samples, what the largest hundredth may have. Normal numbers have 0.085, four
// Gaussians five deviations apart 0.25. Batches of 500 were seen to go astray from 0.5 on.
inline constexpr double largest_tail_share = 0.5;

// Of the gradients of groups of 16 samples at theta, with noise that no run has, on a chain of so many steps.
implicit_diffusion::Concentration gradient_concentration(const DenoisingConfiguration& c,
                                                         const std::vector<double>& theta, std::size_t steps,
                                                         std::size_t groups);

}  // namespace program
