// What a run of `denoising-mixture` leaves behind, for the program and for its report.
#pragma once

#include "denoising_mixture/denoising_mixture.hpp"
#include "implicit_diffusion/denoising/cost.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
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
nlohmann::ordered_json json_of(const DenoisingRow& r);

}  // namespace program
