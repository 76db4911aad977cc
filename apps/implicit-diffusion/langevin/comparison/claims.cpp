#include "langevin/comparison/claims.hpp"

#include "figures/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace program {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

std::optional<double> finite(double v) { return std::isfinite(v) ? std::optional(v) : std::nullopt; }

const ComparisonRow* find(const std::vector<ComparisonRow>& rows, Method m, std::optional<std::int64_t> inner = {}) {
  for (const ComparisonRow& r : rows)
    if (r.method == m && r.variant.empty() && (!inner || r.inner_steps == *inner)) return &r;
  return nullptr;
}

// The highest threshold, the one that says that the optimum is near.
const ComparisonRow::Threshold* highest(const ComparisonRow& r) {
  const ComparisonRow::Threshold* best = nullptr;
  for (const ComparisonRow::Threshold& t : r.reached)
    if (!best || std::stod(t.value) > std::stod(best->value)) best = &t;
  return best;
}
double steps_to(const ComparisonRow& r) { return highest(r) ? highest(r)->step.value_or(never) : never; }
double evaluations_to(const ComparisonRow& r) {
  return highest(r) ? highest(r)->gradient_evaluations.value_or(never) : never;
}
std::string count(double v) { return std::isfinite(v) ? fmt::format("{:.0f}", v) : "never"; }
// When a threshold was reached, in words.
std::string when(double step) { return std::isfinite(step) ? fmt::format("at step {:.0f}", step) : "never"; }

std::string three(double v) { return minus(fmt::format("{:.3f}", v)); }

std::string verdict(bool holds) { return holds ? "confirmed" : "not confirmed"; }

}  // namespace

std::string changes_of(const std::string& variant) {
  std::string changes;
  for (std::size_t at = 0; at < variant.size();) {
    const std::size_t end = std::min(variant.find(' ', at), variant.size());
    const std::string word = variant.substr(at, end - at);
    const std::size_t dot = std::min(word.find('.'), word.find('='));  // the table's name is no news
    if (!word.empty() && !word.starts_with("method=") && !word.starts_with("inner_steps="))
      changes +=
          (changes.empty() ? "" : " ") + (word[std::min(dot, word.size() - 1)] == '.' ? word.substr(dot + 1) : word);
    at = end + 1;
  }
  return changes;
}

std::string label_of(Method method, std::int64_t inner_steps, const std::string& variant) {
  std::string label(to_string(method));
  if (has_inner_steps(method)) label += fmt::format(" T={}", inner_steps);
  if (!variant.empty()) label += ", " + changes_of(variant);
  return label;
}
std::string label_of(const ComparisonRow& r) { return label_of(r.method, r.inner_steps, r.variant); }

std::string count_or_never(const std::optional<double>& v) { return v ? fmt::format("{:.0f}", *v) : "never"; }

ComparisonRow median_row(const Setting& setting, const std::vector<Summary>& runs) {
  ComparisonRow row;
  row.method = setting.configuration.method;
  row.inner_steps = setting.configuration.inner_steps;
  row.variant = setting.variant;
  row.seeds = runs.size();
  const auto over = [&](auto&& figure) {
    std::vector<double> v;
    for (const Summary& r : runs) v.push_back(figure(r));
    const bool all = std::all_of(v.begin(), v.end(), [](double x) { return !std::isnan(x); });
    return all && !v.empty() ? median(v) : Figures::none;
  };
  row.exact_reward = over([](const Summary& s) { return s.figures.exact_reward; });
  row.reward = over([](const Summary& s) { return s.figures.reward; });
  row.log_likelihood = over([](const Summary& s) { return s.figures.log_likelihood; });
  if (runs.empty()) return row;
  for (std::size_t k = 0; k < runs.front().reached.size(); ++k) {
    const auto late = [&](const std::optional<std::int64_t>& v) { return v ? static_cast<double>(*v) : never; };
    row.reached.push_back({runs.front().reached[k].threshold,
                           finite(over([&](const Summary& s) { return late(s.reached[k].step); })),
                           finite(over([&](const Summary& s) { return late(s.reached[k].gradient_evaluations); }))});
  }
  return row;
}

std::vector<Claim> judge_claims(const LangevinComparison& c, const std::vector<ComparisonRow>& rows) {
  std::vector<Claim> claims;
  const ComparisonRow* implicit = find(rows, Method::implicit);
  if (!implicit || implicit->reached.empty()) return claims;
  // Whether all runs of a method are there, and of the single loop.
  const auto complete = [&](Method method) {
    std::size_t wanted = 0, found = 0;
    for (const Setting& s : c.settings)
      if (s.configuration.method == method || s.configuration.method == Method::implicit)
        wanted += static_cast<std::size_t>(c.seeds);
    for (const ComparisonRow& r : rows)
      if (r.method == method || r.method == Method::implicit) found += r.seeds;
    return found >= wanted;
  };
  // A claim about figures that are not all there, or that stands on a threshold that the single loop never came to, is
  // not decided.
  const bool arrived = std::isfinite(steps_to(*implicit));
  const auto decide = [&](Method method, bool needs_threshold, std::initializer_list<double> figures,
                          const std::string& said) -> std::string {
    if (!complete(method)) return "not decided: runs are missing";
    if (std::any_of(figures.begin(), figures.end(), [](double v) { return std::isnan(v); }))
      return "not decided: figures are missing";
    if (needs_threshold && !arrived) return "not decided: the single loop did not come to the threshold";
    return said;
  };
  const std::string threshold = minus(highest(*implicit)->value);

  if (const ComparisonRow* start = find(rows, Method::langevin_initial))
    claims.push_back(
        {"Implicit Diffusion optimises through sampling: the reward and the log-likelihood rise.",
         fmt::format("exact reward {} instead of {}, log-likelihood {} instead of {}; {} reached {}",
                     three(implicit->exact_reward), three(start->exact_reward), three(implicit->log_likelihood),
                     three(start->log_likelihood), threshold, when(steps_to(*implicit))),
         decide(Method::langevin_initial, false,
                {implicit->exact_reward, start->exact_reward, implicit->log_likelihood, start->log_likelihood},
                verdict(implicit->exact_reward - start->exact_reward > 0.1 * std::abs(start->exact_reward) &&
                        implicit->log_likelihood > start->log_likelihood && arrived))});

  if (const ComparisonRow* after = find(rows, Method::langevin_optimised))
    claims.push_back(
        {"Sampling afterwards, with the learnt parameters, is fast.",
         fmt::format("from the Gaussian to {} in {} sampling steps; learning took {}", threshold,
                     count(steps_to(*after)), count(steps_to(*implicit))),
         decide(Method::langevin_optimised, true, {}, verdict(steps_to(*after) < steps_to(*implicit) / 10))});

  if (const ComparisonRow* guided = find(rows, Method::guided)) {
    std::string measured = fmt::format("reward {} at log-likelihood {}, against {} at {}", three(guided->reward),
                                       minus(fmt::format("{:.2f}", guided->log_likelihood)), three(implicit->reward),
                                       minus(fmt::format("{:.2f}", implicit->log_likelihood)));
    bool every = guided->log_likelihood < implicit->log_likelihood;
    for (const ComparisonRow& r : rows)
      if (r.method == Method::guided && !r.variant.empty()) {
        measured += fmt::format("; {}: {} at {}", changes_of(r.variant), three(r.reward),
                                minus(fmt::format("{:.2f}", r.log_likelihood)));
        every = every && r.log_likelihood < implicit->log_likelihood;
      }
    claims.push_back(
        {"Adding the reward to the potential is less good: it overfits the reward, outside the family.", measured,
         decide(Method::guided, false,
                {guided->reward, implicit->reward, guided->log_likelihood, implicit->log_likelihood},
                every ? "confirmed for every strength of the guidance; how much depends on it" : "not confirmed")});
  }

  if (const ComparisonRow* unrolled = find(rows, Method::unrolled)) {
    std::string measured =
        fmt::format("{} reached {}, implicit {}; exact reward {}, implicit {}", threshold, when(steps_to(*unrolled)),
                    when(steps_to(*implicit)), three(unrolled->exact_reward), three(implicit->exact_reward));
    const bool slower = steps_to(*unrolled) > 2 * steps_to(*implicit);
    std::optional<bool> otherwise;
    for (const ComparisonRow& r : rows)
      if (r.method == Method::unrolled && !r.variant.empty()) {
        measured +=
            fmt::format("; {}: {}, exact reward {}", changes_of(r.variant), when(steps_to(r)), three(r.exact_reward));
        otherwise = otherwise.value_or(true) && steps_to(r) > 2 * steps_to(*implicit);
      }
    std::string said = verdict(slower);
    if (otherwise && *otherwise != slower)
      said = slower
                 ? "depends on the reward’s scale: confirmed where both methods see the same scale, not confirmed with "
                   "the variant’s"
                 : "depends on the reward’s scale: confirmed with the variant’s only";
    claims.push_back({"Unrolling through the last step of sampling leads to much slower optimisation.", measured,
                      decide(Method::unrolled, true, {}, said)});
  }

  std::vector<const ComparisonRow*> nested;
  for (const ComparisonRow& r : rows)
    if (r.method == Method::nested && r.variant.empty() && r.inner_steps > 1) nested.push_back(&r);
  std::sort(nested.begin(), nested.end(), [](auto* a, auto* b) { return a->inner_steps < b->inner_steps; });
  if (!nested.empty()) {
    const ComparisonRow& most = *nested.back();
    claims.push_back(
        {"The nested loop makes each step T times as costly and barely improves what a number of steps reaches.",
         fmt::format("T = {}: exact reward {}, implicit {}; {} reached {}, implicit {}", most.inner_steps,
                     three(most.exact_reward), three(implicit->exact_reward), threshold, when(steps_to(most)),
                     when(steps_to(*implicit))),
         decide(
             Method::nested, true, {most.exact_reward, implicit->exact_reward},
             verdict(std::abs(most.exact_reward - implicit->exact_reward) < 0.05 * std::abs(implicit->exact_reward) &&
                     steps_to(most) > 0.7 * steps_to(*implicit)))});
    std::string measured = fmt::format("gradient evaluations to {}: {}", threshold, count(evaluations_to(*implicit)));
    bool best = true;
    for (const ComparisonRow* r : nested) {
      const double ratio = evaluations_to(*r) / evaluations_to(*implicit);
      measured += fmt::format("; T = {}: {}", r->inner_steps,
                              std::isfinite(ratio) ? fmt::format("{:.1f} times as many", ratio) : "never");
      best = best && evaluations_to(*r) > evaluations_to(*implicit);
    }
    claims.push_back({"For a given budget of gradient evaluations, T = 1 is best.", measured,
                      decide(Method::nested, true, {}, verdict(best))});
  }
  return claims;
}

}  // namespace program
