// The kind `langevin-comparison`: section 5.1 of the paper in one run. Every method, with several numbers of inner steps where it has any, with
// several seeds; what came of each, and whether the paper's claims hold here.
#include "langevin/experiment.hpp"
#include "langevin/comparison/report.hpp"
#include "langevin/comparison/run.hpp"

#include <algorithm>

namespace program {
namespace {

class ComparisonExperiment final : public Experiment {
 public:
  explicit ComparisonExperiment(LangevinComparison c) : c_(std::move(c)) {}

  const Common& common() const override { return c_; }
  int run(const RunOptions& o) const override {
    return run_comparison(c_, o, [this](const std::filesystem::path& folder) { return report(folder); });
  }
  std::string report(const std::filesystem::path& folder) const override { return comparison_report(c_, folder); }

  // Each method once, whatever its inner steps, and the variants.
  std::vector<Problem> checks() const override {
    std::vector<Problem> all;
    std::vector<Method> seen;
    for (const Setting& s : c_.settings) {
      if (s.variant.empty() && std::count(seen.begin(), seen.end(), s.configuration.method) > 0) continue;
      if (s.variant.empty()) seen.push_back(s.configuration.method);
      all.push_back(langevin_problem(s.folder, s.configuration));
    }
    return all;
  }
  std::vector<Problem> standard_checks() const override { return {}; }  // the single experiments have them
  Repeats repeats() const override { return {.key = "comparison.seeds", .refusal = {}}; }

 private:
  LangevinComparison c_;
};

}  // namespace

std::unique_ptr<Experiment> read_langevin_comparison(const Document& d) {
  return std::make_unique<ComparisonExperiment>(read_langevin_comparison_configuration(d));
}

}  // namespace program
