// The kind `rates`: how fast the single loop converges in the worst case, against the exponents of the theorems
// (langevin/rates.hpp), for steps k^-a of both schedules and for the flow in continuous time.
#pragma once

#include "experiment/experiment.hpp"
#include "implicit_diffusion/langevin/rates.hpp"

namespace program {

struct RatesConfiguration : Common {
  std::vector<double> exponents;     // a = b of gamma_k = scale k^-a, eps_k = k^-b
  double scale = 0.25;               // c_1
  std::vector<std::int64_t> steps;   // K
  std::vector<double> targets;       // c
  std::vector<double> times;         // T of the flow
  double largest_target = 400;       // of the flow: c from 1 to this,
  double target_ratio = 1.1;         // each so many times the one before
  std::int64_t steps_per_time = 16;  // of the flow's integration
};
RatesConfiguration read_rates_configuration(const Document& d);

class RatesExperiment final : public ExperimentOf<RatesConfiguration> {
 public:
  using ExperimentOf::ExperimentOf;
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  Repeats repeats() const override {
    return {.key = {}, .refusal = "nothing in this experiment is random: all runs would be the same"};
  }
};

inline constexpr double flow_exponent = 0.5;  // eps_t = min(1, t^-1/2)

struct RateCurve {
  std::string kind;  // discrete, flow
  double exponent;   // of the schedule
  std::vector<implicit_diffusion::RateRow> rows;
};

// What the theorem promises: the exponent of K, or of T.
double promised_exponent(const RateCurve& c);
std::string label_of(const RateCurve& c);
// The rows' numbers, row by row.
std::vector<double> numbers_of(const std::vector<implicit_diffusion::RateRow>& rows);

}  // namespace program
