// Several runs on one page: with different seeds, or any.
#pragma once

#include "experiment/run_directory.hpp"
#include "implicit_diffusion/report/page.hpp"

#include <span>

namespace program {

// The name of a run's folder, however it was written.
std::string folder_name(const RunTable& run);

// Which of them did not come to their end. With parents, repeats are called by the folder that holds them too.
std::string runs_notice(std::span<const RunTable* const> runs, bool with_parents);
// What they warn of.
std::vector<std::string> runs_warnings(std::span<const RunTable* const> runs, bool with_parents);
// A row for each run, with the columns in which one of them has something.
implicit_diffusion::report::Section runs_section(std::span<const RunTable* const> runs, bool with_parents);

// The beginning of a page of runs that differ in their seeds alone: `what` was repeated. Without the reward where that
// is no figure of its own.
implicit_diffusion::report::Page repeats_page(const Common& c, const std::string& what,
                                              std::span<const RunTable* const> runs, bool with_reward);

// The page of the repeats in a folder, for kinds that have nothing of their own to show: bands of all columns of
// metrics.csv.
std::string repeats_report(const Common& c, const std::filesystem::path& folder);

}  // namespace program
