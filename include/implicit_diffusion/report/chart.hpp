// Curves over a common axis, as SVG.
//
// A curve is drawn at the resolution of the picture: of the points that fall into one of 300 columns only the lowest
// and the highest are kept, so that a spike of a single step is still there and a million steps cost no more than six
// hundred points. Up to twelve curves are told apart by colour and dash; they are named at their right end where there
// is room, in a legend otherwise.
//
// What cannot be drawn leaves a gap: values that are not finite (an empty field of a metrics file is NaN), beyond
// 1e300, or not positive on a logarithmic axis. A value with gaps on both sides is a dot.
//
// The SVG carries classes and no colours; see theme.hpp.
#pragma once

#include <string>
#include <vector>

namespace implicit_diffusion::report {

struct Series {
  std::string label;
  std::vector<double> x = {};  // ascending
  std::vector<double> y = {};
  std::vector<double> low =
      {};  // a band around the curve, for example quantiles over seeds: both empty, or both as long as x
  std::vector<double> high = {};

  void add(double at, double value) {
    x.push_back(at);
    y.push_back(value);
  }
};

// A horizontal line to compare with: a threshold, a known optimum.
struct ReferenceLine {
  double y;
  std::string label;
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series = {};
  std::vector<ReferenceLine> reference_lines = {};
  bool log_x = false;
  bool log_y = false;
  std::vector<double> also_y = {};  // the axis reaches these too: charts that have them in common can be compared
};

// Throws a usage Error where the lengths of a series differ.
std::string to_svg(const LineChart& chart);

}  // namespace implicit_diffusion::report
