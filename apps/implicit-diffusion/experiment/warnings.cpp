#include "experiment/warnings.hpp"

#include "experiment/console.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

using namespace implicit_diffusion;

std::optional<Trend> still_moving(std::span<const double> series, bool in_nats) {
  constexpr double much = 0.03, standard_errors = 4, of_largest = 1e-3, nats = 1e-3;
  const std::optional<Trend> t = final_trend(series);
  if (!t || !t->steady) return std::nullopt;
  double largest = 0;
  for (const double v : series)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  const double least =
      std::max({much * t->total, standard_errors * t->standard_error, of_largest * largest, in_nats ? nats : 0});
  return std::abs(t->change) > least ? t : std::nullopt;
}

bool in_nats(std::string_view column) { return column.ends_with("kl") || column.ends_with("likelihood"); }

std::optional<Warning> warn_if_moving(std::string_view what, std::span<const double> series, bool in_nats) {
  const std::optional<Trend> t = still_moving(series, in_nats);
  if (!t) return std::nullopt;
  return Warning{
      warning_kind::still_moving,
      fmt::format("the run ended before theta had settled: over its last tenth the {} changed by {:.3g}, {:.0f} "
                  "% of its total change; more steps (--steps) or a larger learning_rate may help",
                  what, t->change, 100 * std::abs(t->change) / t->total)};
}

std::vector<Warning> warnings_over(std::span<const NamedWarnings> runs) {
  std::vector<Warning> all;
  for (const NamedWarnings& r : runs)
    for (const Warning& w : r.warnings) {
      if (std::ranges::count(all, w.kind, &Warning::kind) > 0) continue;
      const auto having = std::ranges::count_if(runs, [&](const NamedWarnings& other) {
        return std::ranges::count(other.warnings, w.kind, &Warning::kind) > 0;
      });
      all.push_back({w.kind, runs.size() == 1
                                 ? w.message
                                 : fmt::format("{} of {} runs, here {}: {}", having, runs.size(), r.run, w.message)});
    }
  return all;
}

void print_warnings(std::span<const Warning> warnings) {
  for (const Warning& w : warnings) complain("warning: " + w.message);
}

std::vector<std::string> messages_of(std::span<const Warning> warnings) {
  std::vector<std::string> messages;
  for (const Warning& w : warnings) messages.push_back(w.message);
  return messages;
}

}  // namespace program
