// Running a comparison: every setting with every seed, each in a folder of its own.
#pragma once

#include "experiment/run_options.hpp"
#include "langevin/comparison/configuration.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace program {

int run_comparison(const LangevinComparison& c, const RunOptions& o,
                   const std::function<std::string(const std::filesystem::path& folder)>& report);

}  // namespace program
