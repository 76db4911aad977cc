// Running a finite-state experiment: the single loop with the law itself and with samples, and gradients of chains of many sizes.
#pragma once

#include "experiment/runs.hpp"
#include "finite_state/configuration.hpp"

namespace program {

FinishedRun run_finite_state(const FiniteStateConfiguration& c, const RunContext& context);

}  // namespace program
