// The report of a comparison, from its folder.
#pragma once

#include "langevin/comparison/configuration.hpp"

#include <filesystem>
#include <string>

namespace program {

std::string comparison_report(const LangevinComparison& c, const std::filesystem::path& folder);

}  // namespace program
