// A density in the plane with samples over it, as SVG.
//
// Contours enclose the smallest regions that hold 10, 30, 50, 70, 90 and 99 % of the mass in the window, the regions
// are shaded, and the samples are translucent dots. Both axes have the same scale. At most 2000 samples are drawn,
// evenly spaced in the given order; those outside the window are counted under the plot instead.
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
  std::vector<double> point_x = {};
  std::vector<double> point_y = {};
  std::vector<Marker> markers = {};
  std::string x_label = {};
  std::string y_label = {};
};

// Throws a usage Error unless the window is finite and not empty, the density has rows * columns values (two of each at
// least, or none at all), and there are as many x as y.
std::string to_svg(const DensityPlot& plot);

}  // namespace implicit_diffusion::report
