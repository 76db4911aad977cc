// The kind `finite-state`: a ring of states whose chain is tuned to a reward, in the single loop with the law itself
// and with samples; and gradients of chains of many sizes against the exact ones.
#pragma once

#include "experiment/experiment.hpp"
#include "implicit_diffusion/finite/gibbs.hpp"
#include "implicit_diffusion/finite/ring.hpp"

namespace program {

struct FiniteStateConfiguration : Common {
  implicit_diffusion::RingOptions ring;
  std::vector<double> reward;  // coefficients of its harmonics
  double beta = 0.5;
  implicit_diffusion::Rule rule = implicit_diffusion::Rule::metropolis;  // of the moves on the Gibbs law
  std::int64_t particles = 10'000, steps = 1000, log_every = 10;
  double learning_rate = 1;
  std::vector<double> start;                          // theta: drift, then two for each harmonic
  std::vector<std::int64_t> dense_sizes, band_sizes;  // of the chains whose gradients are timed
};
FiniteStateConfiguration read_finite_state_configuration(const Document& d);

class FiniteStateExperiment final : public ExperimentOf<FiniteStateConfiguration> {
 public:
  using ExperimentOf::ExperimentOf;
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  std::vector<Problem> standard_checks() const override;
  Repeats repeats() const override { return {}; }
  bool is_shared() const override { return true; }
};

}  // namespace program
