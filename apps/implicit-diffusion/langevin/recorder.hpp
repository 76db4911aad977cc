// What is measured along a Langevin run: the rows of metrics.csv and theta.npy, and the steps at which the
// log-likelihood crosses its thresholds.
#pragma once

#include "experiment/recorder.hpp"
#include "experiment/summary.hpp"
#include "implicit_diffusion/langevin/means.hpp"
#include "langevin/method.hpp"

namespace program {

// The mean over points of the log of a law's density.
double mean_log_density(const Population<float>& x, const GaussianMixture& law);

// E R over laws whose components are often those of the law before: what each is worth is then known.
class ExactReward {
 public:
  std::optional<double> operator()(const Reward<float>& reward, const GaussianMixture& law);

 private:
  std::vector<implicit_diffusion::Gaussian> components_;
  std::vector<double> worth_;
};

class Measures {
 public:
  Measures(const LangevinConfiguration& c, Workers* workers);

  // x is null where there is no population to speak of; its log-likelihood is not computed again where it is known.
  Figures figures(const Population<float>* x, std::span<const double> theta,
                  std::optional<double> log_likelihood_of_x = {});
  double log_likelihood(const Population<float>& x);
  std::vector<FigureName> columns() const;  // those that have a place in metrics.csv

 private:
  Potential<float> potential_;
  bool samples_its_law_ = true;              // guided samples another one than pi*(theta)
  std::optional<Potential<float>> optimal_;  // prepared at theta_opt
  std::optional<Reward<float>> reward_;
  ExactReward exact_reward_;
  std::optional<implicit_diffusion::MixtureDivergence> divergence_;
  bool has_base_;
  std::optional<GaussianMixture> base_;      // where there is one and its law is known
  const Population<float>* data_ = nullptr;  // of the configuration, which must live as long
  implicit_diffusion::SampleMeans means_;
};

struct Crossing {
  double threshold;
  std::optional<std::int64_t> step;
};

// An observer: looks at every state, writes a row down at each log_every-th.
class Recorder {
 public:
  Recorder(const LangevinConfiguration& c, Workers* workers);

  // A state that it has seen already, as the first after a resumption, is passed by.
  void operator()(const RunState& state);
  // The row of the last state, unless it is there already. A diverged state has figures of theta alone.
  void finish(const RunState& state, bool diverged);

  const std::vector<Crossing>& crossings() const { return crossings_; }
  const std::vector<float>& snapshots() const { return snapshots_; }  // population after population, row by row
  const Figures& last() const { return last_; }
  const RowRecorder& rows() const { return rows_; }

  // All it has written down, to and from a checkpoint, which is of a step and of so many parameters.
  void save(implicit_diffusion::io::CheckpointWriter& c) const;
  void restore(const implicit_diffusion::io::CheckpointReader& c, std::int64_t step, std::size_t parameters);

 private:
  std::vector<double> measure(const RunState& state, bool diverged, std::optional<double> log_likelihood = {});
  // Returns the log-likelihood of the samples, where there is a threshold left that it has not crossed.
  std::optional<double> watch_thresholds(const RunState& state);

  Measures measures_;
  std::int64_t evaluations_per_step_;
  std::vector<FigureName> columns_;
  RowRecorder rows_;
  std::vector<std::int64_t> snapshot_steps_;
  std::vector<float> snapshots_;
  std::vector<Crossing> crossings_;
  std::vector<double> recent_;  // the last 20 log-likelihoods, in a ring
  Figures last_{}, last_logged_{};
  std::int64_t seen_ = -1;
};

}  // namespace program
