// The curves of Langevin runs.
#pragma once

#include "figures/curves.hpp"
#include "langevin/configuration.hpp"

namespace program {

// The configuration is that of the first run.
void add_langevin_curves(implicit_diffusion::report::Page& page, const std::vector<Group>& groups,
                         const LangevinConfiguration& c, Axis axis = Axis::steps);

}  // namespace program
