// The kind `langevin-comparison`: section 5.1 of the paper in one run. Every method, with several numbers of inner
// steps where it has any, with several seeds; what came of each, and whether the paper's claims hold here.
#pragma once

#include "experiment/experiment.hpp"
#include "experiment/warnings.hpp"
#include "langevin/configuration.hpp"

namespace program {

// One of the settings that a comparison runs.
struct Setting {
  LangevinConfiguration configuration;
  std::string variant;  // the changes that make it, KEY=VALUE ...; empty: a method of the comparison itself
  std::string folder;
};

struct LangevinComparison : Common {
  std::int64_t seeds = 10;
  std::vector<Setting> settings;
};
// Where a comparison keeps the run of a setting.
std::filesystem::path folder_of(const std::filesystem::path& folder, const Setting& setting, std::uint64_t seed);

// What the run of a setting warns of here. That theta still moves, or that samples lag behind it, is no news: all
// methods have the same number of steps, so that it is seen which is slower.
NamedWarnings warnings_of(const Setting& setting, const Summary& run);

LangevinComparison read_langevin_comparison_configuration(const Document& d);

class ComparisonExperiment final : public ExperimentOf<LangevinComparison> {
 public:
  using ExperimentOf::ExperimentOf;
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  std::vector<Problem> standard_checks() const override { return {}; }  // the single experiments have them
  Repeats repeats() const override { return {.key = "comparison.seeds", .refusal = {}}; }
};

}  // namespace program
