#include "implicit_diffusion/report/density_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/report/contour.hpp"
#include "implicit_diffusion/report/text.hpp"
#include "svg.hpp"

namespace implicit_diffusion::report {
namespace {

using svg::coordinate;

constexpr std::array<double, 6> fractions{0.99, 0.9, 0.7, 0.5, 0.3, 0.1};
constexpr std::size_t most_points = 2000;

void require_valid(const DensityPlot& plot) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorKind::usage, fmt::format("density plot '{}'", plot.title), what);
  };
  if (!(plot.x_min < plot.x_max) || !(plot.y_min < plot.y_max) || !std::isfinite(plot.x_max - plot.x_min) ||
      !std::isfinite(plot.y_max - plot.y_min))
    fail(fmt::format("[{}, {}] x [{}, {}] is not a window", plot.x_min, plot.x_max, plot.y_min, plot.y_max));
  if (plot.density.size() != plot.rows * plot.columns || (!plot.density.empty() && (plot.rows < 2 || plot.columns < 2)))
    fail(fmt::format("{} densities on a grid of {} rows and {} columns", plot.density.size(), plot.rows, plot.columns));
  if (plot.point_x.size() != plot.point_y.size())
    fail(fmt::format("{} x and {} y of samples", plot.point_x.size(), plot.point_y.size()));
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
    const std::string region = path_of(rings, frame);
    if (!region.empty()) fills += fmt::format("<path class=\"region{}\" d=\"{}\"/>\n", same ? " contour" : "", region);
    const std::string line = same ? "" : path_of(contours, frame);
    if (!line.empty()) lines += fmt::format("<path class=\"contour\" d=\"{}\"/>\n", line);
  }
  return fills + lines;
}

struct Points {
  std::vector<std::size_t> inside;
  std::size_t outside = 0;
};

Points points_of(const DensityPlot& plot) {
  Points points;
  for (std::size_t i = 0; i < plot.point_x.size(); ++i) {
    const double x = plot.point_x[i], y = plot.point_y[i];
    if (x >= plot.x_min && x <= plot.x_max && y >= plot.y_min && y <= plot.y_max)
      points.inside.push_back(i);
    else
      ++points.outside;
  }
  return points;
}

// A path is painted once however often it overlaps itself; several paths let dots darken where they gather.
std::string draw_points(const DensityPlot& plot, const Points& points, const svg::Frame& frame) {
  constexpr std::size_t layers = 10;
  const std::size_t count = points.inside.size(), drawn = std::min(count, most_points);
  std::string out;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    svg::Path path;
    for (std::size_t k = layer; k < drawn; k += layers) {
      const std::size_t i = points.inside[k * count / drawn];
      path.add(frame.x(plot.point_x[i]), frame.y(plot.point_y[i]));
      path.gap();
    }
    const std::string data = path.take();
    if (!data.empty()) out += fmt::format("<path class=\"dots\" d=\"{}\"/>\n", data);
  }
  return out;
}

std::string draw_markers(const DensityPlot& plot, const svg::Frame& frame) {
  std::string out;
  for (const Marker& marker : plot.markers) {
    if (!(marker.x >= plot.x_min && marker.x <= plot.x_max && marker.y >= plot.y_min && marker.y <= plot.y_max))
      continue;
    const double x = frame.x(marker.x), y = frame.y(marker.y);
    const std::string cross = fmt::format("M{} {}h12m-6-6v12", coordinate(x - 6), coordinate(y));
    out += fmt::format("<path class=\"marker-halo\" d=\"{}\"/><path class=\"marker\" d=\"{}\"/>", cross, cross);
    if (!marker.label.empty()) {
      const bool to_the_left = x + 10 + svg::text_width(marker.label, svg::small_text) > frame.x.end;
      out += fmt::format("<text class=\"halo\" text-anchor=\"{}\" x=\"{}\" y=\"{}\">{}</text>",
                         to_the_left ? "end" : "start", coordinate(to_the_left ? x - 8 : x + 8),
                         coordinate(std::max(y - 6, frame.y.end + 12)), escape(marker.label));
    }
    out += '\n';
  }
  return out;
}

std::vector<std::string> notes_of(const DensityPlot& plot, const Points& points) {
  std::vector<std::string> notes;
  if (!plot.density.empty()) notes.emplace_back("Contours hold 10, 30, 50, 70, 90, 99 % of the mass.");
  const std::size_t count = plot.point_x.size();
  if (count == 0) return notes;
  std::string samples = count == 1 ? "1 sample" : fmt::format("{} samples", count);
  if (points.inside.size() > most_points) samples += fmt::format(", {} drawn", most_points);
  if (points.outside > 0) samples += fmt::format(", {} outside", points.outside);
  notes.push_back(samples + '.');
  return notes;
}

}  // namespace

std::string to_svg(const DensityPlot& plot) {
  require_valid(plot);
  const Points points = points_of(plot);
  const std::vector<std::string> notes = notes_of(plot, points);
  std::string description = "Contours of a density and samples.";
  for (const std::string& note : notes) description += ' ' + note;
  for (const Marker& marker : plot.markers)
    if (std::isfinite(marker.x) && std::isfinite(marker.y))
      description += fmt::format(" {} at ({}, {}).", marker.label, svg::number(marker.x), svg::number(marker.y));
  const svg::Frame frame = svg::make_frame({.title = plot.title,
                                            .description = description,
                                            .x_label = plot.x_label,
                                            .y_label = plot.y_label,
                                            .x = {plot.x_min, plot.x_max},
                                            .y = {plot.y_min, plot.y_max},
                                            .equal_scale = true,
                                            .plot_height = 420,
                                            .right_margin = 12,
                                            .notes = notes});
  return frame.head + draw_contours(plot, frame) + draw_points(plot, points, frame) + draw_markers(plot, frame) +
         "</svg>\n";
}

}  // namespace implicit_diffusion::report
