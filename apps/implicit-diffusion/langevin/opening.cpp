#include "langevin/opening.hpp"

#include "figures/law_pictures.hpp"
#include "figures/opening.hpp"
#include "figures/tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

std::string goal(const LangevinConfiguration& c) {
  std::vector<std::string> parts;
  if (c.reward) parts.emplace_back(c.reward->lambda < 0 ? "lower the mean reward" : "raise the mean reward");
  if (c.reference) parts.emplace_back(c.reference->data ? "fit the data" : "match a reference distribution");
  if (c.base) parts.emplace_back("stay close to a base distribution");
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::string langevin_steps(std::int64_t n) {
  return n == 1 ? "one Langevin step" : fmt::format("{} Langevin steps", n);
}

std::string what_was_done(const LangevinConfiguration& c, std::int64_t steps) {
  const std::string inner = langevin_steps(c.inner_steps), all = langevin_steps(steps);
  switch (c.method) {
    case Method::implicit:
      return fmt::format(
          "This run optimised θ with the single loop, to {}: in each of {} steps, {} samples took one Langevin step "
          "and "
          "θ took one gradient step.",
          goal(c), steps, c.particles);
    case Method::nested:
      return fmt::format(
          "This run optimised θ with the nested loop, to {}: in each of {} steps, {} samples took {}, and then θ took "
          "one gradient step.",
          goal(c), steps, c.particles, inner);
    case Method::unrolled:
      return fmt::format(
          "This run optimised θ by unrolling, to raise the mean of the smooth reward: in each of {} steps, {} samples "
          "took {}, and θ moved along the gradient through the last of these.",
          steps, c.particles, inner);
    case Method::guided:
      return fmt::format(
          "This run sampled with guidance: {} samples took {} towards the density exp(−V + λR), and θ stayed "
          "fixed.",
          c.particles, all);
    case Method::langevin_initial:
      break;
    case Method::langevin_optimised:
      return fmt::format("This run only sampled: {} samples took {} at θ_opt, which stayed fixed.", c.particles, all);
  }
  return fmt::format("This run only sampled: {} samples took {} at the starting θ, which stayed fixed.", c.particles,
                     all);
}

// The largest mean reward that weights of wells can reach: the wells with the largest rewards have weight 1, the others
// the smallest that the potential allows. Nothing for other potentials.
std::optional<double> best_mean_reward(const LangevinConfiguration& c) {
  double smallest = 0;  // of softmax, which comes as close as one likes
  if (const auto* logistic = std::get_if<LogisticWellsSpec>(&c.potential.part))
    smallest = logistic->floor;
  else if (!std::holds_alternative<WellsSpec>(c.potential.part))
    return std::nullopt;
  const GaussianMixture law = *c.potential.make().law(c.start.theta);
  const Reward<float> reward = c.reward->make();
  std::vector<double> of_well;
  for (const Gaussian& well : law.components) {
    const std::optional<double> mean = reward.expectation(GaussianMixture{{1.0}, {well}});
    if (!mean) return std::nullopt;
    of_well.push_back(*mean);
  }
  std::ranges::sort(of_well, std::greater());
  double best = of_well.back(), heavy = 0, light = 0;
  for (const double r : of_well) light += r;
  const auto n = static_cast<double>(of_well.size());
  for (std::size_t k = 0; k < of_well.size(); ++k) {
    heavy += of_well[k];
    light -= of_well[k];
    const auto count = static_cast<double>(k + 1);
    best = std::max(best, (heavy + smallest * light) / (count + smallest * (n - count)));
  }
  return best;
}

// The mean reward of the samples at the end and its standard error.
struct SampledReward {
  double mean, standard_error;
};
std::optional<SampledReward> sampled_reward(const RunFiles& run) {
  if (!run.configuration.reward || run.samples.size() < 2) return std::nullopt;
  const Reward<float> reward = run.configuration.reward->make();
  double sum = 0, squares = 0;
  for (std::size_t b = 0; b < run.samples.blocks(); ++b) {
    const Block<const float> block = run.samples.block(b);
    BlockArray<float> values;
    reward.values(block, values.data());
    for (std::size_t i = 0; i < block.size; ++i) {
      const auto r = static_cast<double>(values[i]);
      sum += r;
      squares += r * r;
    }
  }
  const auto n = static_cast<double>(run.samples.size());
  const double mean = sum / n;
  return SampledReward{mean, std::sqrt(std::max(squares / n - mean * mean, 0.0) / (n - 1))};
}

// Whether the samples earn what the distribution pi*(theta) earns. The steps of a chain are finite, which spreads its
// samples wider than pi* and moves a mean by a few percent.
std::string judge_samples(const RunFiles& run, double exact) {
  const std::optional<SampledReward> sampled = sampled_reward(run);
  if (!sampled) return {};
  const double off = std::abs(sampled->mean - exact);
  const char* const judgement =
      off <= 2 * sampled->standard_error ? "The samples agree: their mean reward is"
      : off <= std::max(0.1 * std::abs(exact), 4 * sampled->standard_error)
          ? "The samples nearly agree, and differ a little because the steps of the chain are finite: their mean "
            "reward is"
          : "The samples do not follow that distribution: their mean reward is";
  return fmt::format("{} {}, with a standard error of {}.", judgement, four_digits(sampled->mean),
                     minus(fmt::format("{:.2g}", sampled->standard_error)));
}

// The beginning of a sentence that tells how far a run has come. One that diverged has its verdict already.
std::string begin_with(const RunFiles& run, const std::string& verdict) {
  return run.summary.status == "diverged" ? "Until then, " : verdict + ": ";
}

std::string levelled(const Ends& e) {
  return e.moving ? "It was still changing at the end, so more steps may help." : "";
}

std::string judge_reward(const RunFiles& run) {
  const LangevinConfiguration& c = run.configuration;
  const auto exact = ends_of(column(run, "exact_reward")), sampled = ends_of(column(run, "reward"));
  if (!exact && !sampled) return {};
  const Ends& e = exact ? *exact : *sampled;
  const std::string what = exact ? fmt::format("the mean reward under {}", the_law) : "the mean reward of the samples";
  const bool alone = !c.base && !c.reference, raised = e.last > e.first;
  std::vector<std::string> text;
  const std::optional<double> best = exact && alone && c.reward->lambda > 0 ? best_mean_reward(c) : std::nullopt;
  if (best && *best > e.first) {
    const double share = share_of_way(e.first, e.last, *best);
    text.push_back(fmt::format("{}{} {}.", begin_with(run, verdict_of(share)), what, change_text(e)));
    text.push_back(share >= 0 ? fmt::format("No θ earns more than {}, so the run made {} of the possible gain.",
                                            four_digits(*best), percent(share))
                              : fmt::format("Some θ earns {}.", four_digits(*best)));
  } else if (c.reward->lambda > 0 && !raised && run.summary.steps > 0) {
    text.push_back(fmt::format("It did not raise the reward: {} {}.", what, change_text(e)));
  } else {
    std::string change = fmt::format("{} {}.", what, change_text(e));
    change[0] = 'T';
    text.push_back(std::move(change));
    text.emplace_back(alone ? "The best possible value is not known here, so judge by the curve."
                            : "The objective has other terms too, so the reward alone does not decide.");
  }
  text.push_back(levelled(e));
  if (exact) {
    text.emplace_back("These figures are exact: they follow from θ in closed form, without the noise of samples.");
    text.push_back(judge_samples(run, e.last));
  }
  return paragraph(text);
}

std::string judge_divergence(const RunFiles& run) {
  const auto kl = ends_of(column(run, "exact_kl"), true);
  if (!kl) return {};
  const bool alone = !run.configuration.base && !run.configuration.reward;
  const std::string change =
      fmt::format("the KL divergence of {} from the reference {} nats", the_law, change_text(*kl));
  const double share = kl->first > 0 ? share_of_way(kl->first, kl->last, 0) : 0;
  constexpr double at_the_optimum = 0.01;  // nats: there is nothing to gain
  const std::string verdict = kl->first > at_the_optimum ? begin_with(run, verdict_of_divergence(kl->first, kl->last))
                              : kl->last > 2 * at_the_optimum ? "It started at the optimum and left it: "
                                                              : "It started at the optimum and stayed there: ";
  return paragraph(
      {alone ? fmt::format("{}{}.", verdict, change) : "T" + change.substr(1) + ".",
       fmt::format("A perfect match has 0{}.",
                   share > 0 ? fmt::format(", so the run removed {} of the divergence", percent(share)) : ""),
       levelled(*kl), "These figures are computed from θ by quadrature, without the noise of samples."});
}

std::string judge_data(const RunFiles& run) {
  const auto ends = ends_of(column(run, "data_log_likelihood"), true);
  if (!ends) return {};
  const std::string change =
      fmt::format("the mean log-likelihood of the data under {} {} nats", the_law, change_text(*ends));
  return paragraph({ends->last > ends->first || run.summary.steps == 0
                        ? "T" + change.substr(1) + "."
                        : "It did not fit the data better: " + change + ".",
                    ends->moving ? levelled(*ends) : "",
                    "The best possible value is not known here; the pictures below show the samples beside the data."});
}

// Of a method that only samples.
std::string judge_sampling(const RunFiles& run) {
  const LangevinConfiguration& c = run.configuration;
  const std::optional<SampledReward> sampled = sampled_reward(run);
  const std::optional<GaussianMixture> law = c.potential.make().law(run.theta.back());
  if (!sampled || !law) return {};
  const std::optional<double> exact = c.reward->make().expectation(*law);
  if (!exact) return fmt::format("The mean reward of the samples is {}.", four_digits(sampled->mean));
  if (c.method != Method::guided)
    return fmt::format("The mean reward under {} is {}, in closed form. {}", the_law, four_digits(*exact),
                       judge_samples(run, *exact));
  const bool raised = sampled->mean > *exact + 4 * sampled->standard_error;
  return fmt::format(
      "{}: the mean reward of the samples is {}, with a standard error of {}, and that of {}, which they would follow "
      "without guidance, is {}. Guidance buys the reward by leaving {}, which is why the log-likelihood matters too.",
      raised ? "It raised the reward" : "It did not raise the reward", four_digits(sampled->mean),
      minus(fmt::format("{:.2g}", sampled->standard_error)), the_law, four_digits(*exact), the_law);
}

}  // namespace

std::string langevin_opening(const RunFiles& run) {
  const LangevinConfiguration& c = run.configuration;
  const Summary& s = run.summary;
  std::vector<std::string> text{what_was_done(c, s.steps), how_it_ended(s.status, s.steps, c.steps)};
  if (!moves_theta(c.method)) {
    text.push_back(judge_sampling(run));
  } else {
    const std::string judged = paragraph({c.reward ? judge_reward(run) : "", judge_divergence(run), judge_data(run)});
    text.push_back(judged.empty() ? "No figure with a known best value tells whether it worked: judge by the pictures."
                                  : judged);
  }
  return paragraph(text);
}

}  // namespace program
