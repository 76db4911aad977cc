// Running one Langevin experiment: its loop, with what is measured along it, its checkpoints and its files.
#pragma once

#include "experiment/runs.hpp"
#include "langevin/configuration.hpp"

namespace program {

// Throws an Error where a file that the run reads is bad, or is one that the run would remove.
void check_inputs(const LangevinConfiguration& c, const RunOptions& o);

FinishedRun run_langevin(const LangevinConfiguration& c, const RunContext& context);

}  // namespace program
