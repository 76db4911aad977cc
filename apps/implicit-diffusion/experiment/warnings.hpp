// What a run that has come to its end warns of: a result that cannot be trusted, though nothing failed.
//
// Each warning has a kind, which scripts can rely on, and a message with the numbers and what may help:
//
//     step-size       the step of the Langevin chain is so large that its law is another
//     still-moving    the objective still changed as the run ended
//     worse           the objective ended worse than it began
//     mixing          the samples are not spread over the modes as the law is
//     heavy-tails     the gradient rests on a few samples
//     kl-runaway      the price of leaving the base is higher than what was gained
//     class-collapse  most samples of images are of few classes
//     population-only the reward rose for the training population alone
//     weak-judge      the classifier that samples are judged by is often wrong
//
// They are measured once, at the end of a run.
#pragma once

#include "experiment/summary.hpp"
#include "implicit_diffusion/diagnostics.hpp"

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
inline constexpr const char* kl_runaway = "kl-runaway";
inline constexpr const char* class_collapse = "class-collapse";
inline constexpr const char* population_only = "population-only";
inline constexpr const char* weak_judge = "weak-judge";
}  // namespace warning_kind

// Whether a figure, a value for each row of metrics.csv, still goes somewhere at the end of a run: the one rule, for
// warnings and for reports. From the last tenth but one to the last its mean changed, as it did all through the second
// half, by more than
//
//     3 % of its total change,    4 standard errors of its noise,    0.1 % of its largest value
//
// and, if it is in nats, by more than 0.001: less is no reason to go on. Then it has a trend.
std::optional<implicit_diffusion::Trend> still_moving(std::span<const double> series, bool in_nats);
// Whether a column of metrics.csv is a divergence or a log-likelihood.
bool in_nats(std::string_view column);

// A warning, in which the figure is called `what`, if it does.
std::optional<Warning> warn_if_moving(std::string_view what, std::span<const double> series, bool in_nats);

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
