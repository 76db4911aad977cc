// What is measured along a run: the rows of metrics.csv and theta.npy, and the steps at which the log-likelihood
// crosses its thresholds.
#pragma once

#include "experiment/summary.hpp"
#include "implicit_diffusion/io/checkpoint.hpp"
#include "langevin/problem.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace program {

class Measures {
 public:
  Measures(const Configuration& c, Workers* workers);

  // x is null where there is no population to speak of.
  Figures figures(const Population<float>* x, std::span<const double> theta) const;
  double log_likelihood(const Population<float>& x) const;
  bool has_data() const { return data_.has_value(); }

 private:
  Potential<float> potential_;
  bool samples_its_law_ = true;              // guided samples another one than pi*(theta)
  std::optional<Potential<float>> optimal_;  // prepared at theta_opt
  std::optional<Reward<float>> reward_;
  std::optional<implicit_diffusion::MixtureDivergence> divergence_;
  std::optional<Population<float>> data_;
  Workers* workers_;
};

struct Crossing {
  double threshold;
  std::optional<std::int64_t> step;
};

// An observer: looks at every state, writes a row down at each log_every-th.
class Recorder {
 public:
  Recorder(const Configuration& c, Workers* workers);

  // A state that it has seen already, as the first after a resumption, is passed by.
  void operator()(const RunState& state);
  // The row of the last state, unless it is there already. A diverged state has figures of theta alone.
  void finish(const RunState& state, bool diverged);

  const std::vector<std::string>& header() const { return header_; }
  const std::vector<std::vector<double>>& rows() const { return rows_; }
  const std::vector<double>& theta() const { return theta_; }  // row by row
  const std::vector<Crossing>& crossings() const { return crossings_; }
  const std::vector<float>& snapshots() const { return snapshots_; }  // population after population, row by row
  const Figures& last() const { return last_; }
  double seconds() const;

  // All it has written down, to and from a checkpoint.
  void save(implicit_diffusion::io::Checkpoint& c) const;
  void restore(const implicit_diffusion::io::Checkpoint& c);

 private:
  void add_row(const RunState& state, bool diverged = false);
  void watch_thresholds(const RunState& state);

  Measures measures_;
  std::int64_t log_every_, evaluations_per_step_;
  std::vector<std::string> header_;
  std::vector<std::vector<double>> rows_;
  std::vector<double> theta_;
  std::vector<std::int64_t> snapshot_steps_;
  std::vector<float> snapshots_;
  std::vector<Crossing> crossings_;
  std::vector<double> recent_;  // the last 20 log-likelihoods, in a ring
  Figures last_{};
  std::int64_t last_step_ = -1, seen_ = -1;
  double seconds_before_ = 0;                                   // of the runs that this one goes on from
  std::optional<std::chrono::steady_clock::time_point> begin_;  // of the loop: the first state it shows
};

}  // namespace program
