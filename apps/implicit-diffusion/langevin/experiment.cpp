#include "langevin/experiment.hpp"

#include "langevin/check.hpp"
#include "langevin/report.hpp"
#include "langevin/run.hpp"

namespace program {

std::unique_ptr<Experiment> read_langevin(const Document& d) {
  return std::make_unique<LangevinExperiment>(read_langevin_configuration(d));
}

int LangevinExperiment::run(const RunOptions& o) const {
  check_inputs(c_, o);  // before anything is written: a bad file leaves no folder behind
  return run_or_repeat(c_, o, run_langevin, [this](const std::filesystem::path& folder) { return report(folder); });
}

std::string LangevinExperiment::report(const std::filesystem::path& folder) const {
  return langevin_report(c_, folder);
}

std::vector<Problem> LangevinExperiment::checks() const { return {langevin_problem(c_.experiment, c_)}; }

Problem langevin_problem(const std::string& name, LangevinConfiguration c) {
  c.seed = problem_seed(c.seed, name);
  return {name, [c = std::move(c)] { return check_langevin(c); }};
}

}  // namespace program
