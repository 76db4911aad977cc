// The files of a Langevin run, read back for a report.
#pragma once

#include "experiment/runs.hpp"
#include "langevin/recorder.hpp"

namespace program {

// A run as its files tell it.
struct RunFiles : RunTable {
  LangevinConfiguration configuration;
  std::vector<std::vector<double>> theta = {};                             // a row for each row of metrics.csv
  Population<float> samples = {};                                          // empty where the run diverged
  std::vector<std::pair<std::int64_t, Population<float>>> snapshots = {};  // after those steps
};
// The seed may be another than the configuration's.
RunFiles read_run(const std::filesystem::path& folder, LangevinConfiguration configuration, std::uint64_t seed);

}  // namespace program
