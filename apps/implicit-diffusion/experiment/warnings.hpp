// What a run that has come to its end warns of: a result that cannot be trusted, though nothing failed.
//
// Each warning has a kind, which scripts can rely on, and a message with the numbers and what may help:
//
//     step-size       the step of the Langevin chain is so large that its law is another
//     still-moving    the objective still changed as the run ended
//     worse           the objective ended worse than it began
//     mixing          the samples are not spread over the modes as the law is
//     heavy-tails     the gradient rests on a few samples
//
// They are measured once, at the end of a run.
#pragma once

#include "experiment/summary.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace program {

namespace warning_kind {
inline constexpr const char* step_size = "step-size";
inline constexpr const char* still_moving = "still-moving";
inline constexpr const char* worse = "worse";
inline constexpr const char* mixing = "mixing";
inline constexpr const char* heavy_tails = "heavy-tails";
}  // namespace warning_kind

// A warning if the series (named `what` in its message; one value for each row of metrics.csv) still has a trend at its
// end.
std::optional<Warning> warn_if_moving(std::string_view what, std::span<const double> series);

// Those of several runs as one list: each kind once, as the first run that has it says it, and how many have it.
struct NamedWarnings {
  std::string run;
  std::vector<Warning> warnings;
};
std::vector<Warning> warnings_over(std::span<const NamedWarnings> runs);

// A line on stderr for each.
void print_warnings(std::span<const Warning> warnings);

// As the page of a report has them.
std::vector<std::string> messages_of(std::span<const Warning> warnings);

}  // namespace program
