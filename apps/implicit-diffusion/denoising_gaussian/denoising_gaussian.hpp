// The experiment `denoising-gaussian`: the denoising diffusion that can be solved (denoising/gaussian_theory.hpp). theta after twice the
// horizon, by the delay equation, by the recursion of the means and by a queue of samples, as the horizon grows and for eta in the three regimes.
#pragma once

#include "commands/commands.hpp"
#include "experiment/common.hpp"
#include "implicit_diffusion/denoising/gaussian_theory.hpp"
#include "implicit_diffusion/loop/state.hpp"

#include <cmath>
#include <cstddef>
#include <filesystem>
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
};
DenoisingGaussianConfiguration read_denoising_gaussian(const Document& d);

// One queue of samples without warm start (Algorithm 7), for 2 M steps.
struct SampledQueue {
  std::vector<double> theta;  // after 0, 1, ... steps
  implicit_diffusion::Outcome outcome;
  std::int64_t evaluations = 0;  // of the score, each of a batch
};
SampledQueue sampled_queue(const implicit_diffusion::GaussianDenoising& model, int slots, std::int64_t batch,
                           std::uint64_t seed, std::stop_token stop = {});
// A seed for each loop of an experiment: loops are independent of each other.
std::uint64_t loop_seed(std::uint64_t seed, std::size_t setting, std::size_t repeat);

int run_denoising_gaussian(const DenoisingGaussianConfiguration& c, const RunOptions& o);
// The report of a run, from its folder.
std::string denoising_gaussian_report(const DenoisingGaussianConfiguration& c, const std::filesystem::path& folder);

}  // namespace program
