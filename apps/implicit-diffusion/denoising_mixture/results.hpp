// What a run of `denoising-mixture` leaves behind, for the program and for its report.
#pragma once

#include "denoising_mixture/experiment.hpp"
#include "experiment/summary.hpp"
#include "implicit_diffusion/denoising/model_calls.hpp"

#include <array>
#include <optional>
#include <span>

namespace program {

// The columns of metrics.csv.
inline constexpr std::array denoising_header{
    "step",      "gradient_evaluations", "seconds",   "reward", "exact_reward", "exact_kl", "log_likelihood", "path_kl",
    "objective", "weight_error",         "mean_error"};

// One setting at its end, or where an interrupt came.
struct DenoisingRow {
  const DenoisingConfiguration* configuration;
  std::string status;
  std::int64_t steps = 0;
  GaussianMixture law;
  std::vector<double> theta;
  Figures figures;
  double path_kl = 0, seconds = 0;
  implicit_diffusion::DenoisingCost cost, step_cost;  // all of it, and that of the last step
  std::size_t memory_bytes = 0;                       // populations, queue and paths
  std::vector<Warning> warnings = {};
};
using DenoisingRows = std::vector<std::optional<DenoisingRow>>;  // one is missing where an interrupt came before it

// A row as a message to another process, and back.
std::string pack(const DenoisingRow& row);
DenoisingRow unpack_row(const DenoisingConfiguration& configuration, const std::string& message);

// How far a law is from the tilted one: the largest differences of its weights and of the coordinates of its means.
struct LawDistance {
  double weights = 0, means = 0;
};
LawDistance distance(const GaussianMixture& a, const GaussianMixture& b);

// The summary of a run, or of a comparison whose first run that is, with the rows of all.
Summary summary_of(const DenoisingConfiguration& c, const DenoisingRows& rows, std::size_t threads);

// `single` is the problem without the changes of the settings, of which each has its row.
std::string closing_table(const DenoisingConfiguration& single, std::span<const DenoisingComparison::Setting> settings,
                          const DenoisingRows& rows, const std::string& status, double seconds);

// A run that diverged, in words.
std::string describe_divergence(const DenoisingRow& row);

}  // namespace program
