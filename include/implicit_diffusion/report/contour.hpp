// Contours of a function on a grid, by marching squares, and the levels at which a density is worth a contour.
//
// The function is given at the nodes of a rectangular grid whose outer nodes lie on the border of the window, and is
// taken to be linear along the edges between them. A vertex of a contour is therefore off by O(h^2), h the spacing: for
// f = x^2 + y^2 at level r^2 it lies inside the circle by at most h^2 / (8 r), to first order. In a cell where two
// opposite corners are above the level and two below, the mean of the four decides which pair is joined.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace implicit_diffusion::report {

// Node (row i, column j) is at x = x_min + j (x_max - x_min) / (columns - 1), y likewise, and has the value
// values[i * columns + j]. Rows go up from y_min.
struct Grid {
  double x_min;
  double x_max;
  double y_min;
  double y_max;
  std::size_t columns;
  std::size_t rows;
  std::span<const double> values;
};

struct Vertex {
  double x;
  double y;
};

// A closed contour does not repeat its first vertex at the end; an open one ends at the border of the grid.
struct Contour {
  std::vector<Vertex> vertices;
  bool closed;
};

// The lines { f = level }, each joined from border to border or into a ring. Nodes that are NaN count as below the
// level. Throws a usage Error unless the grid has at least two rows and two columns, as many values as nodes, and
// x_min < x_max, y_min < y_max.
std::vector<Contour> contour_lines(const Grid& grid, double level);

// The set { f >= level } as closed rings, to be filled by the even-odd rule: the same lines, those that end at the
// border joined along it.
std::vector<Contour> contour_regions(const Grid& grid, double level);

// For each fraction q, the level whose region { f >= level } is the smallest that holds the fraction q of the total
// mass, nodes having equal weight. So a peaked and a flat law are both shown where their mass is. The level is taken
// halfway to the next lower value of the grid, so that the region has an inside even if it consists of a single node.
// Values that are not finite or not positive hold no mass; without any mass the result is empty.
std::vector<double> mass_levels(std::span<const double> values, std::span<const double> fractions);

}  // namespace implicit_diffusion::report
