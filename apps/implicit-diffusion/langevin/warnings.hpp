// What a Langevin run that has come to its end warns of (experiment/warnings.hpp).
#pragma once

#include "experiment/recorder.hpp"
#include "experiment/summary.hpp"
#include "langevin/method.hpp"

namespace program {

// A run that was shortened on purpose is not told that it is too short.
std::vector<Warning> langevin_warnings(const LangevinConfiguration& c, const RunState& state, const RowRecorder& rows);

}  // namespace program
