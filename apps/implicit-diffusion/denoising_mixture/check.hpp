// What `check` compares of a diffusion of a mixture, at the parameters of its tilted law.
#pragma once

#include "denoising_mixture/configuration.hpp"
#include "experiment/check_rows.hpp"

#include <vector>

namespace program {

std::vector<CheckRow> check_denoising_mixture(DenoisingConfiguration c);

}  // namespace program
