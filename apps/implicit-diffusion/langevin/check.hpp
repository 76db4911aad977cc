// What `check` compares of a Langevin experiment. All noise is a function of the seed.
#pragma once

#include "experiment/check_rows.hpp"
#include "langevin/configuration.hpp"

#include <vector>

namespace program {

// Derivatives, the sampling step, the gradient estimators of its objective, its baselines. Reads the files the experiment names, and throws the
// Error that a run would.
std::vector<CheckRow> check_langevin(const LangevinConfiguration& c);

// The gradient estimators of its objective alone.
std::vector<CheckRow> check_gradients(const LangevinConfiguration& c);

}  // namespace program
