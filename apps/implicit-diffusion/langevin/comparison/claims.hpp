// What the paper's section 5.1 says of its methods, and what our figures say to it.
#pragma once

#include "experiment/summary.hpp"
#include "langevin/comparison/experiment.hpp"

namespace program {

// One setting over its seeds: medians. A threshold that a seed never reached counts as infinitely late.
struct ComparisonRow : Figures {
  const Setting* setting;
  std::size_t seeds;
  struct Threshold {
    std::string value;  // as summary.json has it
    double step, gradient_evaluations;
  };
  std::vector<Threshold> reached = {};

  Method method() const { return setting->configuration.method; }
  std::int64_t inner_steps() const { return setting->configuration.inner_steps; }
  bool is_variant() const { return !setting->variant.empty(); }
};
// Of one run at least.
ComparisonRow median_row(const Setting& setting, const std::vector<Summary>& runs);

// The row of a method that is no variant, the first where there are several; null where there is none.
const ComparisonRow* find_row(const std::vector<ComparisonRow>& rows, Method m);

// How people call a setting, and a count that may be infinite.
std::string label_of(const Setting& setting);
std::string count_or_never(double v);

struct Claim {
  std::string text, measured, verdict;
};
// Those that the rows have something to say to. One that concerns a method of which runs are missing, of `seeds` for
// each of the settings, is not decided.
std::vector<Claim> judge_claims(const LangevinComparison& c, const std::vector<ComparisonRow>& rows);

}  // namespace program
