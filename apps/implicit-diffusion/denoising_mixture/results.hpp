// What a run of `denoising-mixture` leaves behind, for the program and for its report.
#pragma once

#include "denoising_mixture/experiment.hpp"
#include "experiment/json.hpp"
#include "experiment/summary.hpp"
#include "implicit_diffusion/denoising/cost.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace program {

// The columns of metrics.csv.
inline constexpr std::array denoising_header{
    "step",      "gradient_evaluations", "seconds",   "reward", "exact_reward", "exact_kl", "log_likelihood", "path_kl",
    "objective", "weight_error",         "mean_error"};

// One setting at its end.
struct DenoisingRow {
  std::string loop, dynamics, status;
  std::int64_t slots = 0, steps_per_sample = 0, steps = 0;
  GaussianMixture law;
  std::vector<double> theta;
  double reward = 0, exact_reward = 0, exact_kl = 0, path_kl = 0, seconds = 0;
  implicit_diffusion::DenoisingCost cost, step_cost;  // all of it, and that of the last step
  std::size_t memory_bytes = 0;                       // populations, queue and paths
};

// How far a law is from the tilted one: the largest differences of its weights and of the coordinates of its means.
struct LawDistance {
  double weights = 0, means = 0;
};
LawDistance distance(const GaussianMixture& a, const GaussianMixture& b);

// The summary of a run, or of a comparison whose first run that is, with the rows of all.
Summary summary_of(const DenoisingConfiguration& c, const std::vector<const DenoisingRow*>& rows, std::size_t threads);

// One line of the closing table: a setting, what people call it, and its row, which is missing where an interrupt came
// before.
struct DenoisingResult {
  const DenoisingConfiguration* configuration;
  std::string name;
  const DenoisingRow* row;
};
// `single` is the problem without the changes of the settings.
std::string closing_table(const DenoisingConfiguration& single, std::span<const DenoisingResult> results,
                          const std::string& status, double seconds);

// A run that diverged, in words.
std::string describe_divergence(const DenoisingConfiguration& c, std::int64_t steps);

}  // namespace program
