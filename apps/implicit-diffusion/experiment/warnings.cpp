#include "experiment/warnings.hpp"

#include "experiment/console.hpp"
#include "implicit_diffusion/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

using namespace implicit_diffusion;

std::optional<Warning> warn_if_moving(std::string_view what, std::span<const double> series) {
  constexpr double much = 0.05, standard_errors = 4;
  const std::optional<Trend> t = final_trend(series);
  if (!t || !t->steady || std::abs(t->change) <= much * t->total ||
      std::abs(t->change) <= standard_errors * t->standard_error)
    return std::nullopt;
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
