// Running a diffusion of a mixture: one loop, or those of all settings of a comparison.
#pragma once

#include "denoising_mixture/results.hpp"
#include "experiment/runs.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace program {

FinishedRun run_denoising(const DenoisingConfiguration& c, const RunContext& context);

int run_denoising_settings(const DenoisingComparison& e, const RunOptions& o,
                           const std::function<std::string(const std::filesystem::path& folder)>& report);

}  // namespace program
