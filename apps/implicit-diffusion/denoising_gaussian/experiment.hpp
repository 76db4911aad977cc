// The kind `denoising-gaussian`: the denoising diffusion that can be solved (denoising/gaussian_theory.hpp). theta
// after twice the horizon, by the delay equation, by the recursion of the means and by a queue of samples, as the
// horizon grows and for eta in the three regimes.
#pragma once

#include "experiment/experiment.hpp"
#include "implicit_diffusion/denoising/gaussian_theory.hpp"
#include "implicit_diffusion/loop/state.hpp"

#include <cmath>
#include <stop_token>

namespace program {

struct DenoisingGaussianConfiguration : Common {
  std::vector<double> horizons;      // T
  std::vector<double> etas;          // theta moves by eta times the gradient in a unit of time
  double theta_0 = 0.5, target = 2;  // the reward is -(x - target)^2
  std::int64_t steps_per_time = 16;  // M / T: slots of the queue, and steps of the chain
  std::int64_t batch = 256;          // samples in a slot
  std::int64_t repeats = 16;         // independent loops, for the standard error
  double path_horizon = 3;           // the horizon of which theta is kept at every step

  implicit_diffusion::GaussianDenoising model(double eta, double horizon) const {
    return {.horizon = horizon, .eta = eta, .theta_0 = theta_0, .target = target};
  }
  int slots(double horizon) const {
    return static_cast<int>(std::lround(horizon * static_cast<double>(steps_per_time)));
  }
  // The rate at which the delay equation's theta(2T) comes to the target as T grows.
  double fitted_rate(double eta) const { return fit_decay(model(eta, 1), implicit_diffusion::decay_horizons()).rate; }
};
DenoisingGaussianConfiguration read_denoising_gaussian_configuration(const Document& d);

class DenoisingGaussianExperiment final : public ExperimentOf<DenoisingGaussianConfiguration> {
 public:
  using ExperimentOf::ExperimentOf;
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  std::vector<Problem> standard_checks() const override;
  // It repeats each of its loops already.
  Repeats repeats() const override { return {.key = "repeats", .refusal = {}}; }
  bool is_shared() const override { return true; }
};

// A queue of samples without warm start (Algorithm 7), for 2 M steps.
struct SampledQueue {
  std::vector<double> theta;  // after 0, 1, ... steps
  implicit_diffusion::Outcome outcome;
  std::int64_t evaluations = 0;  // of the score, each of a batch
};
// Each repeat of each setting has a seed of its own: loops are independent of each other.
SampledQueue sampled_queue(const DenoisingGaussianConfiguration& c, const implicit_diffusion::GaussianDenoising& model,
                           std::size_t setting, std::size_t repeat, std::stop_token stop = {},
                           const std::function<void(std::int64_t step)>& observe = {});

// A row of the results.
struct GaussianRow {
  double horizon, eta;
  double theta;           // of the sampled queues, their mean
  double standard_error;  // from the repeats
  double expected_error;  // the same, in theory
  double mean_field;      // the recursion
  double delay_equation;
};

// theta over time, at the horizon whose path is kept.
struct GaussianPath {
  double eta;
  std::vector<double> theta, standard_error;  // at the steps 0, ..., 2 M
};

struct GaussianResults {
  std::vector<GaussianRow> rows;
  std::vector<GaussianPath> paths;
};

}  // namespace program
