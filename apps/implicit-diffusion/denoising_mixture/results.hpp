// What a run of `denoising-mixture` leaves behind, for the program and for its report.
#pragma once

#include "denoising_mixture/experiment.hpp"
#include "experiment/runs.hpp"
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

// How far a law is from the tilted one: the largest differences of its weights and of the coordinates of its means.
struct LawDistance {
  double weights = 0, means = 0;
};
LawDistance distance(const GaussianMixture& a, const GaussianMixture& b);

// One setting at its end, or where an interrupt came.
struct DenoisingRow {
  const DenoisingConfiguration* configuration;
  std::string status = {};
  std::int64_t steps = 0;
  GaussianMixture law = {};        // of a network: as its samples are counted
  LawDistance off = {};            // from the tilted law
  std::vector<double> theta = {};  // of a network: none
  Figures figures = {};
  double path_kl = 0, seconds = 0;
  implicit_diffusion::DenoisingCost cost = {}, step_cost = {};  // all of it, and that of the last step
  std::size_t memory_bytes = 0;                                 // populations, queue and paths
  std::vector<Warning> warnings = {};
  bool trained = true;  // false: it ended while its network was trained
};
using DenoisingRows = std::vector<std::optional<DenoisingRow>>;  // one is missing where an interrupt came before it

// A row as a message to another process, and back.
std::string pack(const DenoisingRow& row);
DenoisingRow unpack_row(const DenoisingConfiguration& configuration, const std::string& message);

// Exact samples of the tilted law, counted to its components (langevin/law.hpp): what samples of a network are compared
// with. They are so many that their own errors do not count beside those of the network's.
GaussianMixture counted_tilted(const DenoisingConfiguration& c);

// The summary of a run, or of a comparison whose first run that is, with the rows of all.
Summary summary_of(const DenoisingConfiguration& c, const DenoisingRows& rows, std::size_t threads);

// `single` is the problem without the changes of the settings, of which each has its row.
std::string closing_table(const DenoisingConfiguration& single, std::span<const DenoisingComparison::Setting> settings,
                          const DenoisingRows& rows, const std::string& status, double seconds);

// These need LibTorch: the executable with networks has them.
//
// Trains the network of a run in a folder, or goes on with that. Returns the status of the training; all processes have
// come to its end.
std::string train_score_network(const DenoisingConfiguration& c, const RunContext& context,
                                const std::filesystem::path& folder);
// Finetunes the network that was trained in a folder.
DenoisingRow run_score_network(const DenoisingConfiguration& c, const RunContext& context,
                               const std::filesystem::path& training);
std::vector<Problem> check_score_network(const DenoisingConfiguration& c);
// The work of a training in steps of finetuning.
double training_work(const DenoisingConfiguration& c);

// A run that diverged, in words.
std::string describe_divergence(const DenoisingRow& row);

}  // namespace program
