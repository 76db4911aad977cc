#include "images/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

std::vector<Warning> warnings_of(const FinetuningFigures& f) {
  std::vector<Warning> all;
  constexpr double errors = 4, far = 100;  // nats
  const double gain = f.lambda * (f.reward.mean - f.reward_before.mean), cost = f.beta * f.path_kl.mean,
               noise = errors * std::hypot(f.lambda * f.reward.standard_error, f.beta * f.path_kl.standard_error);
  if (cost > gain + noise || f.path_kl.mean > far)
    all.push_back({warning_kind::kl_runaway,
                   fmt::format("the path KL is {:.3g}, and lambda times the change of the reward {:.3g}: the model "
                               "left its base for less than it costs; a smaller learning_rate or lambda, or a larger "
                               "beta, may help",
                               f.path_kl.mean, gain)});

  if (f.entropy < f.entropy_before / 2 && !(f.entropy >= f.oracle_entropy / 2))
    all.push_back({warning_kind::class_collapse,
                   fmt::format("the entropy of classes fell from {:.2f} to {:.2f}{}: most samples are of few classes",
                               f.entropy_before, f.entropy,
                               std::isfinite(f.oracle_entropy)
                                   ? fmt::format(", where the tilted data has {:.2f}", f.oracle_entropy)
                                   : "")});

  if (f.judge_accuracy < 0.5)
    all.push_back(
        {warning_kind::weak_judge,
         fmt::format("the classifier is right for {:.0f} % of test images: what it tells of samples (classes, "
                     "features, Frechet distance) means little",
                     100 * f.judge_accuracy)});

  std::vector<double> own = f.population_reward;
  std::erase_if(own, [](double r) { return !std::isfinite(r); });
  if (own.empty()) return all;
  const double wanted = f.lambda < 0 ? -1 : 1;
  const double of_evaluation = errors * std::hypot(f.reward.standard_error, f.reward_before.standard_error),
               of_population = of_evaluation / std::sqrt(f.population_share);
  if (wanted * (own.back() - own.front()) > of_population &&
      wanted * (f.reward.mean - f.reward_before.mean) < of_evaluation)
    all.push_back({warning_kind::population_only,
                   fmt::format("the reward of the training population went from {:.4f} to {:.4f}, that of the "
                               "evaluation samples from {:.4f} to {:.4f}",
                               own.front(), own.back(), f.reward_before.mean, f.reward.mean)});
  return all;
}

}  // namespace program
