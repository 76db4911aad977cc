// The report of a Langevin run, made from its folder.
#pragma once

#include "langevin/configuration.hpp"

#include <filesystem>
#include <string>

namespace program {

// One run: its curves, its law and samples at the start and at the end, its parameters, and how to repeat it. Of repeats: bands over them.
std::string langevin_report(const LangevinConfiguration& c, const std::filesystem::path& folder);

}  // namespace program
