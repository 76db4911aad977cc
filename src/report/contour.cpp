#include "implicit_diffusion/report/contour.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "../require.hpp"
#include "svg.hpp"

namespace implicit_diffusion::report {
namespace {

// A grid whose nodes may be anywhere along the axes, also on top of each other.
struct Nodes {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> values;

  double value(std::size_t row, std::size_t column) const { return values[row * x.size() + column]; }
};

void require_valid(const Grid& grid) {
  require(grid.columns >= 2 && grid.rows >= 2 && grid.values.size() == grid.columns * grid.rows, "contour",
          "{} values on a grid of {} rows and {} columns", grid.values.size(), grid.rows, grid.columns);
  require(svg::is_window(grid.x_min, grid.x_max) && svg::is_window(grid.y_min, grid.y_max), "contour",
          "[{}, {}] x [{}, {}] is not a window", grid.x_min, grid.x_max, grid.y_min, grid.y_max);
}

std::vector<double> evenly(double from, double to, std::size_t count) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = from + (to - from) * static_cast<double>(i) / static_cast<double>(count - 1);
  return out;
}

Nodes nodes_of(const Grid& grid) {
  require_valid(grid);
  return {evenly(grid.x_min, grid.x_max, grid.columns),
          evenly(grid.y_min, grid.y_max, grid.rows),
          {grid.values.begin(), grid.values.end()}};
}

// The same grid inside a border of cells of no width whose outer nodes are below every level: there every contour
// closes.
Nodes nodes_with_border(const Grid& grid) {
  Nodes nodes = nodes_of(grid);
  const std::size_t columns = grid.columns + 2;
  nodes.values.assign(columns * (grid.rows + 2), std::numeric_limits<double>::lowest());
  for (std::size_t k = 0; k < grid.values.size(); ++k)
    nodes.values[(k / grid.columns + 1) * columns + k % grid.columns + 1] = grid.values[k];
  nodes.x.insert(nodes.x.begin(), grid.x_min);
  nodes.x.push_back(grid.x_max);
  nodes.y.insert(nodes.y.begin(), grid.y_min);
  nodes.y.push_back(grid.y_max);
  return nodes;
}

// Every contour crosses edges of the grid, and enters a cell through one edge and leaves it through another. So a
// contour is a chain of edges, and each edge has at most two neighbours in it, one in each of its cells.
class Tracer {
 public:
  Tracer(const Nodes& nodes, double level)
      : nodes_(nodes), level_(level), columns_(nodes.x.size()), neighbours_(2 * nodes.values.size(), {none, none}) {}

  std::vector<Contour> trace() {
    for (std::size_t i = 0; i + 1 < nodes_.y.size(); ++i)
      for (std::size_t j = 0; j + 1 < columns_; ++j) join_in_cell(i, j);
    std::vector<Contour> contours;
    // An edge with one neighbour is an end at the border; what is left after these are rings.
    for (std::size_t e = 0; e < neighbours_.size(); ++e)
      if (neighbours_[e][0] != none && neighbours_[e][1] == none) contours.push_back(follow(e, false));
    for (std::size_t e = 0; e < neighbours_.size(); ++e)
      if (neighbours_[e][0] != none) contours.push_back(follow(e, true));
    return contours;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::size_t edge_right_of(std::size_t i, std::size_t j) const { return 2 * (i * columns_ + j); }
  std::size_t edge_above(std::size_t i, std::size_t j) const { return 2 * (i * columns_ + j) + 1; }
  bool inside(std::size_t i, std::size_t j) const { return nodes_.value(i, j) >= level_; }

  void join(std::size_t a, std::size_t b) {
    neighbours_[a][neighbours_[a][0] == none ? 0 : 1] = b;
    neighbours_[b][neighbours_[b][0] == none ? 0 : 1] = a;
  }

  void join_in_cell(std::size_t i, std::size_t j) {
    const bool south_west = inside(i, j), south_east = inside(i, j + 1);
    const bool north_west = inside(i + 1, j), north_east = inside(i + 1, j + 1);
    const std::size_t south = edge_right_of(i, j), north = edge_right_of(i + 1, j);
    const std::size_t west = edge_above(i, j), east = edge_above(i, j + 1);

    std::array<std::size_t, 4> crossed{};
    std::size_t count = 0;
    if (south_west != south_east) crossed[count++] = south;
    if (south_east != north_east) crossed[count++] = east;
    if (north_west != north_east) crossed[count++] = north;
    if (south_west != north_west) crossed[count++] = west;
    if (count == 2) join(crossed[0], crossed[1]);
    if (count == 4) {
      const double mean = 0.25 * nodes_.value(i, j) + 0.25 * nodes_.value(i, j + 1) + 0.25 * nodes_.value(i + 1, j) +
                          0.25 * nodes_.value(i + 1, j + 1);
      // The contour cuts off the two corners that differ from the middle.
      const bool like_south_west = (mean >= level_) == south_west;
      join(south, like_south_west ? east : west);
      join(north, like_south_west ? west : east);
    }
  }

  Vertex vertex(std::size_t edge) const {
    const std::size_t i = edge / 2 / columns_, j = edge / 2 % columns_;
    const std::size_t k = edge % 2 == 1 ? i + 1 : i, l = edge % 2 == 1 ? j : j + 1;
    const double a = nodes_.value(i, j), b = nodes_.value(k, l);
    double share = (level_ - a) / (b - a);
    if (!(share >= 0 && share <= 1)) share = 0.5;  // next to a NaN, or where b - a overflows
    return {nodes_.x[j] + share * (nodes_.x[l] - nodes_.x[j]), nodes_.y[i] + share * (nodes_.y[k] - nodes_.y[i])};
  }

  // Removes the chain from the neighbours as it goes.
  Contour follow(std::size_t edge, bool closed) {
    Contour contour{{}, closed};
    while (edge != none) {
      const Vertex v = vertex(edge);
      if (contour.vertices.empty() || v.x != contour.vertices.back().x || v.y != contour.vertices.back().y)
        contour.vertices.push_back(v);
      const std::size_t next = neighbours_[edge][0] != none ? neighbours_[edge][0] : neighbours_[edge][1];
      neighbours_[edge] = {none, none};
      if (next != none)
        if (const auto back = std::ranges::find(neighbours_[next], edge); back != neighbours_[next].end()) *back = none;
      edge = next;
    }
    return contour;
  }

  const Nodes& nodes_;
  double level_;
  std::size_t columns_;
  std::vector<std::array<std::size_t, 2>> neighbours_;
};

}  // namespace

std::vector<Contour> contour_lines(const Grid& grid, double level) {
  const Nodes nodes = nodes_of(grid);
  return Tracer(nodes, level).trace();
}

std::vector<Contour> contour_regions(const Grid& grid, double level) {
  const Nodes nodes = nodes_with_border(grid);
  return Tracer(nodes, level).trace();
}

std::vector<double> mass_levels(std::span<const double> values, std::span<const double> fractions) {
  std::vector<double> sorted;
  for (const double value : values)
    if (std::isfinite(value) && value > 0) sorted.push_back(value);
  if (sorted.empty()) return {};
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  // Relative to the greatest, so that the sum cannot overflow.
  std::vector<double> mass(sorted.size());
  double total = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) mass[i] = total += sorted[i] / sorted[0];

  std::vector<double> levels;
  for (const double fraction : fractions) {
    const auto enough = std::lower_bound(mass.begin(), mass.end(), fraction * total);
    const auto last = std::min(static_cast<std::size_t>(enough - mass.begin()), sorted.size() - 1);
    const double value = sorted[last];
    const auto lower = std::upper_bound(sorted.begin(), sorted.end(), value, std::greater<>());
    const double next = lower != sorted.end() ? *lower : sorted.size() < values.size() ? 0 : value;
    levels.push_back(value - 0.5 * (value - next));
  }
  return levels;
}

}  // namespace implicit_diffusion::report
