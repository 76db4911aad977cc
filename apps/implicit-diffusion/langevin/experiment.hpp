// The kind `langevin`: one method on one problem.
#pragma once

#include "experiment/experiment.hpp"
#include "experiment/runs.hpp"
#include "langevin/configuration.hpp"

namespace program {

class LangevinExperiment final : public ExperimentOf<LangevinConfiguration> {
 public:
  using ExperimentOf::ExperimentOf;
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  Repeats repeats() const override { return {}; }
  bool is_shared() const override { return true; }
};

// What a comparison needs of it. Throws an Error where a file that the run reads is bad, or is one that the run would
// remove.
void check_inputs(const LangevinConfiguration& c, const RunOptions& o);
FinishedRun run_langevin(const LangevinConfiguration& c, const RunContext& context);
// The page of the runs in these folders, or of the repeats in them, side by side. Those with the same configuration but
// for the seed are one curve with a band.
std::string side_by_side_report(const std::vector<std::filesystem::path>& folders);
// What there is to check, by a name of its own.
Problem langevin_problem(const std::string& name, LangevinConfiguration c);

// The gradient estimators of its objective against closed forms, at the theta of the probes.
struct ProbePoints;
void check_gradients(const LangevinConfiguration& c, const ProbePoints& probes, std::vector<CheckRow>& rows);

}  // namespace program
