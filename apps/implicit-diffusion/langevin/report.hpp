// The report of a run, or of several side by side, made from their folders alone.
#pragma once

#include "experiment/run_directory.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace program {

// One run: its curves, its law and samples at the start and at the end, its parameters, and how to repeat it.
std::string run_report(const RunFiles& run);

// Runs that differ in their seeds only: bands over them.
std::string repeats_report(const std::vector<RunFiles>& runs);

// Any runs, compared.
std::string side_by_side_report(const std::vector<RunFiles>& runs);

// Makes the report of the run in a folder, with or without repeats.
void write_report(const std::filesystem::path& folder, const std::filesystem::path& file);

}  // namespace program
