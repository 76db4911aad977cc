// Curves of runs: the columns of their metrics.csv over the steps, or over what they cost.
#pragma once

#include "experiment/run_directory.hpp"
#include "implicit_diffusion/report/chart.hpp"
#include "implicit_diffusion/report/page.hpp"

#include <functional>
#include <span>

namespace program {

// Runs that are one curve: the mean, with a band from the least to the greatest where there are several.
struct Group {
  std::string label;
  std::vector<const RunTable*> runs;
};

// A column of metrics.csv that is drawn, and how.
struct CurveSpec {
  std::string column, title, y_label;
  std::string second = {}, second_label = {};  // a second column in the same chart, or empty
  bool log_y = false;
  std::string meaning = {};
  std::string first_label = "samples";  // of the first column, where there is a second
};

// A section with a chart for each column that has something to show. `decorate` may add to a chart and to its caption.
enum class Axis { steps, gradient_evaluations };
using Decorate =
    std::function<void(const CurveSpec& spec, implicit_diffusion::report::LineChart& chart, std::string& caption)>;
void add_curves(implicit_diffusion::report::Page& page, const std::vector<Group>& groups, Axis axis,
                std::span<const CurveSpec> specs, const Decorate& decorate = {});

}  // namespace program
