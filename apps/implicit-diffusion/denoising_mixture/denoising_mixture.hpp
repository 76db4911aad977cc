// The experiment `denoising-mixture`: a mixture with its exact score is finetuned to a linear reward with the path KL as the
// price. The optimum is known: the law p_base exp(lambda R / beta), again a mixture. All loops of finite horizon can be compared.
#pragma once

#include "commands/commands.hpp"
#include "experiment/common.hpp"
#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "implicit_diffusion/langevin/law.hpp"
#include "langevin/configuration.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace program {

enum class LoopKind { queue, queue_cold, double_queue };
enum class NoiseSchedule { ornstein_uhlenbeck, cosine };
std::string_view to_string(LoopKind loop);
std::string_view to_string(implicit_diffusion::Dynamics dynamics);

// The score of a mixture, in whichever form its spreads have.
class MixtureModel {
 public:
  MixtureModel(implicit_diffusion::Spread form, std::size_t components, std::size_t dimension);

  std::size_t dimension() const;
  std::size_t parameters() const;
  GaussianMixture law(std::span<const double> theta) const;
  std::vector<double> parameters_of(const GaussianMixture& law) const;
  template <class Real>
  implicit_diffusion::ScoreModel<Real> score() const {
    return std::visit([](const auto& m) { return implicit_diffusion::ScoreModel<Real>(m); }, model_);
  }
  template <class Use>
  auto with(Use&& use) const {
    return std::visit(use, model_);
  }

 private:
  std::variant<implicit_diffusion::MixtureScore<implicit_diffusion::Spread::isotropic>,
               implicit_diffusion::MixtureScore<implicit_diffusion::Spread::diagonal>,
               implicit_diffusion::MixtureScore<implicit_diffusion::Spread::cholesky>>
      model_;
};

// R(x) = direction . x.
struct LinearReward {
  static constexpr bool any_number = true;
  std::vector<double> direction;

  template <class N>
  N operator()(const N* x) const {
    using Real = implicit_diffusion::Scalar<N>;
    N sum = x[0] * static_cast<Real>(direction[0]);
    for (std::size_t j = 1; j < direction.size(); ++j) sum = sum + x[j] * static_cast<Real>(direction[j]);
    return sum;
  }
};

struct DenoisingConfiguration : Common {
  LoopKind loop = LoopKind::queue;
  implicit_diffusion::Dynamics dynamics = implicit_diffusion::Dynamics::euler_sde;
  NoiseSchedule schedule = NoiseSchedule::ornstein_uhlenbeck;
  double horizon = 3;  // of the Ornstein-Uhlenbeck schedule; the first time, below 1, of the cosine
  std::int64_t steps_per_sample = 256, slots = 64, keep_every = 1, batch = 500;  // T, M
  std::int64_t steps = 600, log_every = 10, checkpoint_every = 0;
  double learning_rate = 0.01, lambda = 1, beta = 1;
  OptimizerKind optimizer = OptimizerKind::adam;
  implicit_diffusion::Spread spread = implicit_diffusion::Spread::isotropic;
  GaussianMixture base;
  std::vector<double> direction;  // R(x) = direction . x

  MixtureModel model() const { return {spread, base.weights.size(), base.dimension()}; }
  implicit_diffusion::TimeGrid grid() const;
  GaussianMixture tilted() const;
  // Its mean reward.
  double tilted_reward() const;
};

// One run, or several settings of the same problem, each with a folder of its own.
struct DenoisingExperiment : Common {
  DenoisingConfiguration single;
  struct Setting {
    std::string folder;
    DenoisingConfiguration configuration;
  };
  std::vector<Setting> settings;  // empty: the single run alone
};
DenoisingExperiment read_denoising(const Document& d);

int run_denoising(const DenoisingExperiment& e, const RunOptions& o);
// The report of a run, from its folder.
std::string denoising_report(const DenoisingExperiment& e, const std::filesystem::path& folder);

}  // namespace program
