// The kind `finite-state`: a ring of states whose chain is tuned to a reward, in the single loop with the law itself and with samples; and
// gradients of chains of many sizes against the exact ones.
#include "experiment/experiment.hpp"
#include "figures/run_tables.hpp"
#include "finite_state/check.hpp"
#include "finite_state/report.hpp"
#include "finite_state/run.hpp"

namespace program {
namespace {

class FiniteStateExperiment final : public Experiment {
 public:
  explicit FiniteStateExperiment(FiniteStateConfiguration c) : c_(std::move(c)) {}

  const Common& common() const override { return c_; }
  int run(const RunOptions& o) const override {
    return run_or_repeat(c_, o, run_finite_state,
                         [this](const std::filesystem::path& folder) { return report(folder); });
  }
  std::string report(const std::filesystem::path& folder) const override {
    return repeats_of(folder).empty() ? finite_state_report(c_, folder) : repeats_report(c_, folder);
  }
  std::vector<Problem> checks() const override {
    return {{c_.experiment, [c = c_] { return check_finite_state(c); }}};
  }
  std::vector<Problem> standard_checks() const override {
    return {{"finite Gibbs law", [seed = problem_seed(c_.seed, "gibbs")] { return check_gibbs(seed); }},
            {"softmax chain", [seed = problem_seed(c_.seed, "softmax")] { return check_softmax_chain(seed); }},
            {"ring chain", [seed = problem_seed(c_.seed, "ring")] { return check_ring(seed); }}};
  }
  Repeats repeats() const override { return {}; }

 private:
  FiniteStateConfiguration c_;
};

}  // namespace

std::unique_ptr<Experiment> read_finite_state(const Document& d) {
  return std::make_unique<FiniteStateExperiment>(read_finite_state_configuration(d));
}

}  // namespace program
