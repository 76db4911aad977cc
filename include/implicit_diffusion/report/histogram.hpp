// Histograms, as SVG: samples of a law on the line against its density and against data, and shares of classes.
//
// Samples are bars, data the outline of bars; both have the same width. They are normalised by the number of all finite
// samples, also of those outside the window, so that bars and densities are on one scale: where the law is right, the
// curve runs through the tops of the bars. How many samples are outside is written under the plot.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "implicit_diffusion/report/chart.hpp"

namespace implicit_diffusion::report {

struct HistogramPlot {
  std::string title;
  std::string x_label;
  double x_min;
  double x_max;
  std::vector<double> samples;
  std::vector<Series> curves = {};  // densities; bands as in a chart
  std::size_t bins = 0;             // 0: from the number of samples and their spread, between 8 and 80
  std::vector<double> data = {};
  std::string data_label = "data";
};

// Throws a usage Error unless x_min < x_max, both finite, and the lengths of each curve agree.
std::string to_svg(const HistogramPlot& plot);

// The share of each class: bars, and the outline of other bars to compare them with. Classes are 0, 1, ...
struct ClassPlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<double> shares;
  std::string label;                 // of the bars
  std::vector<double> outline = {};  // as many, or none
  std::string outline_label = {};
};

// Throws a usage Error where there are no classes, or the outline has another number of them.
std::string to_svg(const ClassPlot& plot);

}  // namespace implicit_diffusion::report
