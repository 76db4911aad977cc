// Curves of runs: the columns of their metrics.csv over the steps, or over what they cost.
#pragma once

#include "experiment/run_directory.hpp"
#include "implicit_diffusion/report/chart.hpp"
#include "implicit_diffusion/report/page.hpp"

#include <optional>
#include <string>
#include <vector>

namespace program {

// The column of that name; null where there is none.
const std::vector<double>* column(const RunFiles& run, std::string_view name);

// Runs that are one curve: the mean, with a band from the least to the greatest where there are several.
struct Group {
  std::string label;
  std::vector<const RunFiles*> runs;
};
std::optional<implicit_diffusion::report::Series> curve(const Group& group, const std::string& label,
                                                        std::string_view name, std::string_view axis);

// A section with a chart for each column that has something to show.
enum class Axis { steps, gradient_evaluations };
void add_curves(implicit_diffusion::report::Page& page, const std::vector<Group>& groups, Axis axis = Axis::steps);

}  // namespace program
