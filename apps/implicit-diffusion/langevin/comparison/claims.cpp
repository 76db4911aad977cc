#include "langevin/comparison/claims.hpp"

#include "figures/tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace program {
namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// The highest threshold, the one that says that the optimum is near. All settings have the same.
const ComparisonRow::Threshold& highest(const ComparisonRow& r) {
  return *std::ranges::max_element(r.reached, {}, [](const auto& t) { return std::stod(t.value); });
}
double steps_to(const ComparisonRow& r) { return highest(r).step; }
double evaluations_to(const ComparisonRow& r) { return highest(r).gradient_evaluations; }
// When a threshold was reached, in words.
std::string when(double step) { return std::isfinite(step) ? fmt::format("at step {:.0f}", step) : "never"; }

std::string three(double v) { return minus(fmt::format("{:.3f}", v)); }
std::string two(double v) { return minus(fmt::format("{:.2f}", v)); }

std::string verdict(bool holds) { return holds ? "confirmed" : "not confirmed"; }

// The changes of a variant but for the method and its inner steps, which a label names already.
std::string changes_of(const std::string& variant) {
  std::vector<std::string> changes;
  for (const Override& o : read_changes(variant, {}))
    if (o.key != "method" && o.key != "inner_steps")
      changes.push_back(o.key.substr(o.key.find('.') + 1) + "=" + o.value);  // the table's name is no news
  return fmt::format("{}", fmt::join(changes, " "));
}

}  // namespace

const ComparisonRow* find_row(const std::vector<ComparisonRow>& rows, Method m) {
  const auto at = std::ranges::find_if(rows, [m](const auto& r) { return r.method() == m && !r.is_variant(); });
  return at == rows.end() ? nullptr : &*at;
}

std::string label_of(const Setting& setting) {
  const LangevinConfiguration& c = setting.configuration;
  std::string label(to_string(c.method));
  if (has_inner_steps(c.method)) label += fmt::format(" T={}", c.inner_steps);
  if (!setting.variant.empty()) label += ", " + changes_of(setting.variant);
  return label;
}

std::string count_or_never(double v) { return std::isfinite(v) ? fmt::format("{:.0f}", v) : "never"; }

ComparisonRow median_row(const Setting& setting, const std::vector<Summary>& runs) {
  ComparisonRow row{{}, &setting, runs.size()};
  const auto over = [&](auto&& figure) {
    std::vector<double> v;
    for (const Summary& r : runs) v.push_back(figure(r));
    return std::ranges::any_of(v, [](double x) { return std::isnan(x); }) ? Figures::none : median(v);
  };
  for (const FigureName& f : figure_names) row.*f.value = over([&](const Summary& s) { return s.figures.*f.value; });
  constexpr double never = std::numeric_limits<double>::infinity();
  const auto late = [](const std::optional<std::int64_t>& v) { return v ? static_cast<double>(*v) : never; };
  for (std::size_t k = 0; k < runs.front().reached.size(); ++k)
    row.reached.push_back({runs.front().reached[k].threshold,
                           over([&](const Summary& s) { return late(s.reached[k].step); }),
                           over([&](const Summary& s) { return late(s.reached[k].gradient_evaluations); })});
  return row;
}

std::vector<Claim> judge_claims(const LangevinComparison& c, const std::vector<ComparisonRow>& rows) {
  std::vector<Claim> claims;
  const ComparisonRow* implicit = find_row(rows, Method::implicit);
  if (!implicit || implicit->reached.empty()) return claims;
  // Whether all runs of a method are there, and of the single loop.
  const auto complete = [&](Method method) {
    std::size_t wanted = 0, found = 0;
    for (const Setting& s : c.settings)
      if (s.configuration.method == method || s.configuration.method == Method::implicit)
        wanted += static_cast<std::size_t>(c.seeds);
    for (const ComparisonRow& r : rows)
      if (r.method() == method || r.method() == Method::implicit) found += r.seeds;
    return found >= wanted;
  };
  // A claim about figures that are not all there, or that stands on a threshold that the single loop never came to, is
  // not decided.
  const double steps = steps_to(*implicit);
  const bool arrived = std::isfinite(steps);
  const auto decide = [&](Method method, bool needs_threshold, std::initializer_list<double> figures,
                          const std::string& said) -> std::string {
    if (!complete(method)) return "not decided: runs are missing";
    if (std::ranges::any_of(figures, [](double v) { return std::isnan(v); })) return "not decided: figures are missing";
    if (needs_threshold && !arrived) return "not decided: the single loop did not reach the threshold";
    return said;
  };
  const std::string threshold = minus(highest(*implicit).value);

  if (const ComparisonRow* start = find_row(rows, Method::langevin_initial))
    claims.push_back(
        {"Implicit Diffusion optimises through sampling: the reward and the log-likelihood rise.",
         fmt::format("exact reward {} instead of {}, log-likelihood {} instead of {}; {} reached {}",
                     three(implicit->exact_reward), three(start->exact_reward), three(implicit->log_likelihood),
                     three(start->log_likelihood), threshold, when(steps)),
         decide(Method::langevin_initial, false,
                {implicit->exact_reward, start->exact_reward, implicit->log_likelihood, start->log_likelihood},
                verdict(implicit->exact_reward - start->exact_reward > 0.1 * std::abs(start->exact_reward) &&
                        implicit->log_likelihood > start->log_likelihood && arrived))});

  if (const ComparisonRow* after = find_row(rows, Method::langevin_optimised))
    claims.push_back({"Sampling afterwards, with the learnt parameters, is fast.",
                      fmt::format("from the Gaussian to {} in {} sampling steps; learning took {}", threshold,
                                  count_or_never(steps_to(*after)), count_or_never(steps)),
                      decide(Method::langevin_optimised, true, {}, verdict(steps_to(*after) < steps / 10))});

  if (const ComparisonRow* guided = find_row(rows, Method::guided)) {
    std::string measured =
        fmt::format("reward {} at log-likelihood {}, against {} at {}", three(guided->reward),
                    two(guided->log_likelihood), three(implicit->reward), two(implicit->log_likelihood));
    bool every = guided->log_likelihood < implicit->log_likelihood;
    for (const ComparisonRow& r : rows)
      if (r.method() == Method::guided && r.is_variant()) {
        measured +=
            fmt::format("; {}: {} at {}", changes_of(r.setting->variant), three(r.reward), two(r.log_likelihood));
        every = every && r.log_likelihood < implicit->log_likelihood;
      }
    claims.push_back(
        {"Adding the reward to the potential works less well: it overfits the reward and leaves the family.", measured,
         decide(Method::guided, false,
                {guided->reward, implicit->reward, guided->log_likelihood, implicit->log_likelihood},
                every ? "confirmed for every strength of the guidance; the amount depends on it" : "not confirmed")});
  }

  if (const ComparisonRow* unrolled = find_row(rows, Method::unrolled)) {
    std::string measured =
        fmt::format("{} reached {}, implicit {}; exact reward {}, implicit {}", threshold, when(steps_to(*unrolled)),
                    when(steps), three(unrolled->exact_reward), three(implicit->exact_reward));
    const bool slower = steps_to(*unrolled) > 2 * steps;
    std::optional<bool> otherwise;
    for (const ComparisonRow& r : rows)
      if (r.method() == Method::unrolled && r.is_variant()) {
        measured += fmt::format("; {}: {}, exact reward {}", changes_of(r.setting->variant), when(steps_to(r)),
                                three(r.exact_reward));
        otherwise = otherwise.value_or(true) && steps_to(r) > 2 * steps;
      }
    std::string said = verdict(slower);
    if (otherwise && *otherwise != slower)
      said =
          slower
              ? "depends on the scale of the reward: confirmed if both methods use the same scale, not confirmed with "
                "that of the variant"
              : "depends on the scale of the reward: confirmed only with that of the variant";
    claims.push_back({"Unrolling through the last step of sampling leads to much slower optimisation.", measured,
                      decide(Method::unrolled, true, {}, said)});
  }

  std::vector<const ComparisonRow*> nested;
  for (const ComparisonRow& r : rows)
    if (r.method() == Method::nested && !r.is_variant() && r.inner_steps() > 1) nested.push_back(&r);
  std::sort(nested.begin(), nested.end(), [](auto* a, auto* b) { return a->inner_steps() < b->inner_steps(); });
  if (!nested.empty()) {
    const ComparisonRow& most = *nested.back();
    claims.push_back(
        {"The nested loop makes each step T times as costly and barely improves the result of a number of steps.",
         fmt::format("T = {}: exact reward {}, implicit {}; {} reached {}, implicit {}", most.inner_steps(),
                     three(most.exact_reward), three(implicit->exact_reward), threshold, when(steps_to(most)),
                     when(steps)),
         decide(
             Method::nested, true, {most.exact_reward, implicit->exact_reward},
             verdict(std::abs(most.exact_reward - implicit->exact_reward) < 0.05 * std::abs(implicit->exact_reward) &&
                     steps_to(most) > 0.7 * steps))});
    const double evaluations = evaluations_to(*implicit);
    std::string measured = fmt::format("gradient evaluations to {}: {}", threshold, count_or_never(evaluations));
    bool best = true;
    for (const ComparisonRow* r : nested) {
      const double ratio = evaluations_to(*r) / evaluations;
      measured += fmt::format("; T = {}: {}", r->inner_steps(),
                              std::isfinite(ratio) ? fmt::format("{:.1f} times as many", ratio) : "never");
      best = best && evaluations_to(*r) > evaluations;
    }
    claims.push_back({"For a given budget of gradient evaluations, T = 1 is best.", measured,
                      decide(Method::nested, true, {}, verdict(best))});
  }
  return claims;
}

}  // namespace program
