// What the paper's section 5.1 says of its methods, and what our figures say to it.
#pragma once

#include "experiment/summary.hpp"
#include "langevin/comparison/experiment.hpp"

#include <optional>
#include <string>
#include <vector>

namespace program {

// One setting over its seeds: medians. A threshold that a seed never reached counts as infinitely late.
struct ComparisonRow {
  Method method = Method::implicit;
  std::int64_t inner_steps = 1;
  std::string variant;  // as in Setting
  std::size_t seeds = 0;
  double exact_reward = Figures::none, reward = Figures::none, log_likelihood = Figures::none;
  struct Threshold {
    std::string value;  // as summary.json has it
    std::optional<double> step, gradient_evaluations;
  };
  std::vector<Threshold> reached;
};
// The changes of a variant but for the method and its inner steps, which a label names already.
std::string changes_of(const std::string& variant);
ComparisonRow median_row(const Setting& setting, const std::vector<Summary>& runs);

// How people call a setting, and a count that may be none.
std::string label_of(Method method, std::int64_t inner_steps, const std::string& variant);
std::string label_of(const ComparisonRow& r);
std::string count_or_never(const std::optional<double>& v);

struct Claim {
  std::string text, measured, verdict;
};
// Those that the rows have something to say to. One that concerns a method of which runs are missing, of `seeds` for
// each of the settings, is not decided.
std::vector<Claim> judge_claims(const LangevinComparison& c, const std::vector<ComparisonRow>& rows);

}  // namespace program
