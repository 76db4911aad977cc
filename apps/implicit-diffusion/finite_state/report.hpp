// The report of a finite-state run, from its folder.
#pragma once

#include "finite_state/configuration.hpp"

#include <filesystem>
#include <string>

namespace program {

std::string finite_state_report(const FiniteStateConfiguration& c, const std::filesystem::path& folder);

}  // namespace program
