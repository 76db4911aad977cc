// What `check` compares of denoising diffusions in one dimension.
#pragma once

#include "denoising_gaussian/configuration.hpp"
#include "experiment/check_rows.hpp"

#include <vector>

namespace program {

// Reverse chains: the order of each kind of step, and a small diffusion with all its numbers.
std::vector<CheckRow> check_chains();

// A queue of samples on the denoising diffusion that can be solved.
std::vector<CheckRow> check_denoising_gaussian(const DenoisingGaussianConfiguration& c);

}  // namespace program
