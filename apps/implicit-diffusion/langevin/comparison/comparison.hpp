// The experiment `langevin-comparison`: section 5.1 of the paper in one run. Every method, with several numbers of inner
// steps where it has any, with several seeds; what came of each, and whether the paper's claims hold here.
#pragma once

#include "commands/commands.hpp"
#include "langevin/configuration.hpp"

#include <filesystem>
#include <string>

namespace program {

int run_comparison(const Comparison& c, const RunOptions& o);
// The report of a run, from its folder.
std::string comparison_report(const Comparison& c, const std::filesystem::path& folder);

}  // namespace program
