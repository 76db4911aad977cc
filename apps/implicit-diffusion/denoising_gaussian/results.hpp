// The results of a denoising-gaussian run: to and from summary.json.
#pragma once

#include "denoising_gaussian/experiment.hpp"
#include "experiment/json.hpp"

namespace program {

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

// The rate at which the delay equation's theta(2T) comes to the target as T grows.
double fitted_rate(const DenoisingGaussianConfiguration& c, double eta);

Json json_of(const DenoisingGaussianConfiguration& c, const GaussianResults& r);
GaussianResults read_results(const std::filesystem::path& summary);

}  // namespace program
