// The paragraph that opens the report of a Langevin run.
#pragma once

#include "langevin/files.hpp"

namespace program {

std::string langevin_opening(const RunFiles& run);

}  // namespace program
