// The kind `langevin`: one method on one problem.
#pragma once

#include "experiment/experiment.hpp"
#include "langevin/configuration.hpp"

namespace program {

class LangevinExperiment final : public Experiment {
 public:
  explicit LangevinExperiment(LangevinConfiguration c) : c_(std::move(c)) {}

  const LangevinConfiguration& configuration() const { return c_; }
  const Common& common() const override { return c_; }
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  Repeats repeats() const override { return {}; }

 private:
  LangevinConfiguration c_;
};

// What there is to check of it, by a name of its own. The noise of each name is its own too, so that rows of different problems are independent.
Problem langevin_problem(const std::string& name, LangevinConfiguration c);

}  // namespace program
