#include "implicit_diffusion/report/density_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "../require.hpp"
#include "implicit_diffusion/report/contour.hpp"
#include "implicit_diffusion/report/text.hpp"
#include "svg.hpp"

namespace implicit_diffusion::report {
namespace {

using svg::coordinate;

constexpr std::array<double, 6> fractions{0.99, 0.9, 0.7, 0.5, 0.3, 0.1};
constexpr std::size_t most_points = 2000;
constexpr std::size_t most_data = 1000;

void require_valid(const DensityPlot& plot) {
  const std::string where = fmt::format("density plot '{}'", plot.title);
  require(svg::is_window(plot.x_min, plot.x_max) && svg::is_window(plot.y_min, plot.y_max), where,
          "[{}, {}] x [{}, {}] is not a window", plot.x_min, plot.x_max, plot.y_min, plot.y_max);
  require(plot.density.size() == plot.rows * plot.columns &&
              (plot.density.empty() || (plot.rows >= 2 && plot.columns >= 2)),
          where, "{} densities on a grid of {} rows and {} columns", plot.density.size(), plot.rows, plot.columns);
  require(plot.point_x.size() == plot.point_y.size(), where, "{} x and {} y of samples", plot.point_x.size(),
          plot.point_y.size());
  require(plot.data_x.size() == plot.data_y.size(), where, "{} x and {} y of data", plot.data_x.size(),
          plot.data_y.size());
}

// Keeps the vertices that matter at a tenth of a unit (Douglas and Peucker), so that the size of the file does not grow
// with the grid.
void simplify(const std::vector<Vertex>& v, std::size_t from, std::size_t to, std::vector<bool>& keep) {
  constexpr double tolerance = 0.1;
  if (to <= from + 1) return;
  const double dx = v[to].x - v[from].x, dy = v[to].y - v[from].y;
  const double length = std::hypot(dx, dy);
  double farthest = 0;
  std::size_t at = from;
  for (std::size_t i = from + 1; i < to; ++i) {
    const double ex = v[i].x - v[from].x, ey = v[i].y - v[from].y;
    const double distance = length > 0 ? std::abs(ex * dy - ey * dx) / length : std::hypot(ex, ey);
    if (distance > farthest) {
      farthest = distance;
      at = i;
    }
  }
  if (farthest <= tolerance) return;
  keep[at] = true;
  simplify(v, from, at, keep);
  simplify(v, at, to, keep);
}

std::string path_of(const std::vector<Contour>& contours, const svg::Frame& frame) {
  svg::Path path;
  for (const Contour& contour : contours) {
    std::vector<Vertex> v;
    for (const Vertex& vertex : contour.vertices) v.push_back({frame.x(vertex.x), frame.y(vertex.y)});
    if (v.size() < 2) continue;
    std::vector<bool> keep(v.size(), false);
    keep.front() = keep.back() = true;
    simplify(v, 0, v.size() - 1, keep);
    for (std::size_t i = 0; i < v.size(); ++i)
      if (keep[i]) path.add(v[i].x, v[i].y);
    if (contour.closed)
      path.close();
    else
      path.gap();
  }
  return path.take();
}

std::string draw_contours(const DensityPlot& plot, const svg::Frame& frame) {
  if (plot.density.empty()) return {};
  std::vector<double> levels = mass_levels(plot.density, fractions);
  // Regions of a flat law coincide.
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  const Grid grid{plot.x_min, plot.x_max, plot.y_min, plot.y_max, plot.columns, plot.rows, plot.density};
  std::string fills, lines;
  for (const double level : levels) {
    const std::vector<Contour> rings = contour_regions(grid, level);
    const std::vector<Contour> contours = contour_lines(grid, level);
    // Where no line meets the border, the edge of the region is the line, and one path serves for both.
    const bool same = rings.size() == contours.size() &&
                      std::all_of(contours.begin(), contours.end(), [](const Contour& c) { return c.closed; });
    fills += svg::path_element(same ? "region contour" : "region", path_of(rings, frame));
    if (!same) lines += svg::path_element("contour", path_of(contours, frame));
  }
  return fills + lines;
}

bool in_window(const DensityPlot& plot, double x, double y) {
  return x >= plot.x_min && x <= plot.x_max && y >= plot.y_min && y <= plot.y_max;
}

// Points of the plane, those of them that are in the window, and how many of these are drawn.
struct Points {
  const std::vector<double>&x, &y;
  std::vector<std::size_t> inside = {};
  std::size_t drawn = 0;

  Points(const DensityPlot& plot, const std::vector<double>& all_x, const std::vector<double>& all_y, std::size_t most)
      : x(all_x), y(all_y) {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (in_window(plot, x[i], y[i])) inside.push_back(i);
    drawn = std::min(inside.size(), most);
  }

  // Calls draw(x, y) with the coordinates of every stride-th point that is drawn.
  template <class Draw>
  void for_each(const svg::Frame& frame, std::size_t first, std::size_t stride, Draw&& draw) const {
    for (std::size_t k = first; k < drawn; k += stride) {
      const std::size_t i = inside[k * inside.size() / drawn];
      draw(frame.x(x[i]), frame.y(y[i]));
    }
  }

  std::string count(const std::string& noun, const std::string& more = {}) const {
    return svg::describe_count(x.size(), inside.size(), drawn, noun, more);
  }
};

// A path is painted once however often it overlaps itself; several paths let dots darken where they gather.
std::string draw_samples(const Points& samples, const svg::Frame& frame) {
  constexpr std::size_t layers = 10;
  std::string out;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    svg::Path path;
    samples.for_each(frame, layer, layers, [&](double x, double y) {
      path.add(x, y);
      path.gap();
    });
    out += svg::path_element("dots", path.take());
  }
  return out;
}

std::string draw_data(const Points& data, const svg::Frame& frame) {
  svg::Path path;
  data.for_each(frame, 0, 1, [&](double x, double y) { svg::add_cross(path, x, y); });
  return svg::path_element("crosses", path.take());
}

std::string draw_markers(const DensityPlot& plot, const svg::Frame& frame) {
  std::string out;
  for (const Marker& marker : plot.markers) {
    if (!in_window(plot, marker.x, marker.y)) continue;
    const double x = frame.x(marker.x), y = frame.y(marker.y);
    const std::string cross = fmt::format("M{} {}h12m-6-6v12", coordinate(x - 6), coordinate(y));
    out += fmt::format("<path class=\"marker-halo\" d=\"{}\"/><path class=\"marker\" d=\"{}\"/>", cross, cross);
    const bool to_the_left = x + 10 + svg::text_width(marker.label, svg::small_text) > frame.x.end;
    out += marker.label.empty()
               ? "\n"
               : svg::text_element(to_the_left ? x - 8 : x + 8, std::max(y - 6, frame.y.end + 12), marker.label,
                                   fmt::format(" class=\"halo\" text-anchor=\"{}\"", to_the_left ? "end" : "start"));
  }
  return out;
}

bool has_equal_scale(const DensityPlot& plot) {
  constexpr double most = 4;
  const double ratio = (plot.y_max - plot.y_min) / (plot.x_max - plot.x_min);
  return ratio <= most && 1 / ratio <= most;
}

}  // namespace

std::string to_svg(const DensityPlot& plot) {
  require_valid(plot);
  const Points samples(plot, plot.point_x, plot.point_y, most_points);
  const Points data(plot, plot.data_x, plot.data_y, most_data);
  std::vector<std::string> notes;
  if (!plot.density.empty()) notes.emplace_back("Contours: 10, 30, 50, 70, 90, 99 % of the mass.");
  if (!plot.point_x.empty()) notes.push_back(samples.count("sample"));
  if (!plot.data_x.empty()) notes.push_back(data.count("point", " of the " + plot.data_label));
  std::string description = "Contours of a density and samples.";
  for (const std::string& note : notes) description += ' ' + note;
  for (const Marker& marker : plot.markers)
    if (std::isfinite(marker.x) && std::isfinite(marker.y))
      description += fmt::format(" {} at ({}, {}).", marker.label, svg::number(marker.x), svg::number(marker.y));
  std::vector<svg::LegendEntry> legend;
  if (data.drawn > 0) {
    if (samples.drawn > 0) legend.push_back({"samples", svg::Mark::dot});
    legend.push_back({plot.data_label, svg::Mark::cross});
  }
  const svg::Frame frame = svg::make_frame({.title = plot.title,
                                            .description = description,
                                            .x_label = plot.x_label,
                                            .y_label = plot.y_label,
                                            .x = {plot.x_min, plot.x_max},
                                            .y = {plot.y_min, plot.y_max},
                                            .scale = has_equal_scale(plot) ? svg::Scale::equal : svg::Scale::square,
                                            .width = plot.narrow ? svg::narrow_width : svg::figure_width,
                                            .plot_height = 420,
                                            .right_margin = 12,
                                            .legend = legend,
                                            .notes = notes});
  return frame.head + draw_contours(plot, frame) + draw_data(data, frame) + draw_samples(samples, frame) +
         draw_markers(plot, frame) + "</svg>\n";
}

std::string to_thumbnail(const DensityPlot& plot) {
  require_valid(plot);
  constexpr std::size_t few = 400;
  constexpr double width = 200;
  const Points samples(plot, plot.point_x, plot.point_y, few);
  const double height = has_equal_scale(plot) ? width * (plot.y_max - plot.y_min) / (plot.x_max - plot.x_min) : width;
  svg::Frame frame{{{plot.x_min, plot.x_max}, false, 0, width}, {{plot.y_min, plot.y_max}, false, height, 0}, {}};
  frame.head = fmt::format(
      "<svg class=\"figure thumbnail\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\" "
      "xmlns=\"http://www.w3.org/2000/svg\"><path class=\"axis\" d=\"M0 0h{}v{}H0z\"/>\n",
      escape(plot.title), coordinate(width), coordinate(height), coordinate(width), coordinate(height));
  return frame.head + draw_contours(plot, frame) + draw_samples(samples, frame) + "</svg>\n";
}

}  // namespace implicit_diffusion::report
