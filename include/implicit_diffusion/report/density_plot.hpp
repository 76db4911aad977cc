// A density in the plane with samples and data over it, as SVG.
//
// Contours enclose the smallest regions that hold 10, 30, 50, 70, 90 and 99 % of the mass in the window, the regions
// are shaded, the samples are translucent dots, and the data crosses; a legend tells them apart where there are data.
// Both axes have the same scale, unless the window is more than four times as long as wide: then each has its own. At
// most 2000 samples and 1000 data are drawn, evenly spaced in the given order; those outside the window are counted
// under the plot instead.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace implicit_diffusion::report {

// A place worth pointing at, such as the centre of a reward.
struct Marker {
  double x;
  double y;
  std::string label;
};

struct DensityPlot {
  std::string title;
  double x_min;
  double x_max;
  double y_min;
  double y_max;
  std::size_t columns = 0;  // the nodes of the grid, the outer ones on the border of the window
  std::size_t rows = 0;     //
  std::vector<double> density =
      {};  // row-major, rows going up from y_min; need not be normalised; empty: samples alone
  std::vector<double> point_x = {};  // the samples
  std::vector<double> point_y = {};
  std::vector<double> data_x = {};
  std::vector<double> data_y = {};
  std::string data_label = "data";
  std::vector<Marker> markers = {};
  std::string x_label = {};
  std::string y_label = {};
  bool narrow = false;  // one of three side by side
};

// Throws a usage Error unless the window is finite and not empty, the density has rows * columns values (two of each at
// least, or none at all), and samples and data have as many x as y.
std::string to_svg(const DensityPlot& plot);

// The same for a picture that is one of many: no axes, no words, at most 400 samples.
std::string to_thumbnail(const DensityPlot& plot);

}  // namespace implicit_diffusion::report
