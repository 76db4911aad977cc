// The kind `rates`: how fast the single loop converges in the worst case, against the exponents of the theorems (langevin/rates.hpp), for steps
// k^-a of both schedules and for the flow in continuous time.
#include "experiment/experiment.hpp"
#include "rates/check.hpp"
#include "rates/report.hpp"
#include "rates/run.hpp"

namespace program {
namespace {

class RatesExperiment final : public Experiment {
 public:
  explicit RatesExperiment(RatesConfiguration c) : c_(std::move(c)) {}

  const Common& common() const override { return c_; }
  int run(const RunOptions& o) const override {
    return run_rates(c_, o, [this](const std::filesystem::path& folder) { return report(folder); });
  }
  std::string report(const std::filesystem::path& folder) const override { return rates_report(c_, folder); }
  std::vector<Problem> checks() const override { return {{c_.experiment, check_rates}}; }
  Repeats repeats() const override {
    return {.key = {}, .refusal = "nothing in this experiment is random: all runs would be the same"};
  }

 private:
  RatesConfiguration c_;
};

}  // namespace

std::unique_ptr<Experiment> read_rates(const Document& d) {
  return std::make_unique<RatesExperiment>(read_rates_configuration(d));
}

}  // namespace program
