// The kind `denoising-mixture`: a diffusion of a mixture is finetuned to a linear reward with the path KL as the price.
// The optimum is known: the law p_base exp(lambda R / beta), again a mixture. All loops of finite horizon can be
// compared. The score is the exact one, whose parameters are the mixture's, or a network that has learnt it first. The
// runs of a network need LibTorch.
#pragma once

#include "experiment/experiment.hpp"
#include "implicit_diffusion/denoising/mixture_model.hpp"
#include "networks/training_keys.hpp"

namespace program {

using implicit_diffusion::GaussianMixture;

enum class LoopKind { nested, queue, queue_cold, double_queue };
enum class NoiseSchedule { ornstein_uhlenbeck, cosine };
std::string_view to_string(LoopKind loop);
std::string_view to_string(implicit_diffusion::Dynamics dynamics);

// A network in the place of the exact score.
struct ScoreNetworkKeys {
  std::vector<std::int64_t> widths{64, 64, 64};
  std::int64_t time_features = 32, shard = 250;
  std::int64_t samples = 100'000;  // that the result is judged by
  TrainingKeys training{3000, 1000, 100, 250, 2e-3, true, 0.9, 0.999, 1e-8, 0, 0.999};
};

struct DenoisingConfiguration : Common {
  LoopKind loop = LoopKind::queue;  // nested: the same as slots = 1
  implicit_diffusion::Dynamics dynamics = implicit_diffusion::Dynamics::euler_sde;
  NoiseSchedule schedule = NoiseSchedule::ornstein_uhlenbeck;
  double horizon = 3;  // of the Ornstein-Uhlenbeck schedule; the first time, below 1, of the cosine
  std::int64_t steps_per_sample = 256, slots = 64, keep_every = 1, batch = 500;  // T, M
  std::int64_t steps = 600, log_every = 10, checkpoint_every = 0;
  double learning_rate = 0.01, lambda = 1, beta = 1;
  std::string optimizer = "adam";  // its name
  implicit_diffusion::Spread spread = implicit_diffusion::Spread::isotropic;
  GaussianMixture base;
  std::vector<double> direction;                 // R(x) = direction . x
  std::optional<ScoreNetworkKeys> network = {};  // none: the exact score

  implicit_diffusion::MixtureModel model() const { return {spread, base.weights.size(), base.dimension()}; }
  implicit_diffusion::TimeGrid grid(std::size_t times) const;
  // The law that is the optimum, in the limit of a long horizon and small steps.
  GaussianMixture tilted() const;
  double mean_reward(const GaussianMixture& law) const;
};

// One run, or several settings of the same problem, each with a folder of its own.
struct DenoisingComparison : Common {
  DenoisingConfiguration single;
  struct Setting {
    std::string folder;
    DenoisingConfiguration configuration;
  };
  std::vector<Setting> settings;  // empty: the single run alone
};
DenoisingComparison read_denoising_configuration(const Document& d);

class DenoisingMixtureExperiment final : public ExperimentOf<DenoisingComparison> {
 public:
  using ExperimentOf::ExperimentOf;
  bool needs_networks() const override { return configuration().single.network.has_value(); }
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  Repeats repeats() const override;
  bool is_shared() const override { return configuration().settings.empty(); }
};

}  // namespace program
