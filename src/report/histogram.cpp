#include "implicit_diffusion/report/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../require.hpp"
#include "svg.hpp"

namespace implicit_diffusion::report {
namespace {

// Freedman and Diaconis: bars of twice the interquartile range over the cube root of the count.
std::size_t automatic_bins(std::vector<double> samples, double window) {
  constexpr double fewest = 8, most = 80;
  std::erase_if(samples, [](double x) { return !std::isfinite(x); });
  if (samples.size() < 4) return static_cast<std::size_t>(fewest);
  const auto quantile = [&](double q) {
    const auto place = samples.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(samples.size() - 1));
    std::nth_element(samples.begin(), place, samples.end());
    return *place;
  };
  const double width = 2 * (quantile(0.75) - quantile(0.25)) / std::cbrt(static_cast<double>(samples.size()));
  const double bins = width > 0 ? std::ceil(window / width) : most;
  return static_cast<std::size_t>(std::clamp(bins, fewest, most));
}

// Values counted in bars over the window, as a density.
struct Bars {
  std::vector<double> heights;
  std::size_t inside = 0;
};

Bars count(const std::vector<double>& values, double from, double to, std::size_t bins) {
  Bars bars{std::vector<double>(bins, 0.0)};
  const auto finite = std::count_if(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
  const double share = static_cast<double>(bins) / (static_cast<double>(finite) * (to - from));
  for (const double x : values) {
    if (!(x >= from && x <= to)) continue;
    ++bars.inside;
    const auto bin = static_cast<std::size_t>((x - from) / (to - from) * static_cast<double>(bins));
    bars.heights[std::min(bin, bins - 1)] += share;
  }
  return bars;
}

// Bars of equal width over [from, to], and their outline.
std::string bars_of(const std::vector<double>& heights, const svg::Frame& frame, double from, double to) {
  svg::Path bars;
  const double width = (to - from) / static_cast<double>(heights.size());
  for (std::size_t i = 0; i < heights.size(); ++i) {
    if (heights[i] == 0) continue;
    const double left = frame.x(from + width * static_cast<double>(i));
    const double right = frame.x(from + width * static_cast<double>(i + 1));
    bars.add(left, frame.y(0));
    bars.add(left, frame.y(heights[i]));
    bars.add(right, frame.y(heights[i]));
    bars.add(right, frame.y(0));
    bars.close();
  }
  return svg::path_element("bars", bars.take());
}
std::string stairs_of(const std::vector<double>& heights, const svg::Frame& frame, double from, double to) {
  svg::Path stairs;
  stairs.add(frame.x.begin, frame.y(0));
  for (std::size_t i = 0; i < heights.size(); ++i)
    for (const std::size_t edge : {i, i + 1})
      stairs.add(frame.x(from + (to - from) * static_cast<double>(edge) / static_cast<double>(heights.size())),
                 frame.y(heights[i]));
  stairs.add(frame.x.end, frame.y(0));
  return svg::path_element("stairs", stairs.take());
}

}  // namespace

std::string to_svg(const HistogramPlot& plot) {
  require(svg::is_window(plot.x_min, plot.x_max), fmt::format("histogram '{}'", plot.title), "[{}, {}] is not a window",
          plot.x_min, plot.x_max);
  for (const Series& curve : plot.curves) svg::require_equal_lengths(curve);

  const double window = plot.x_max - plot.x_min;
  std::size_t bins = plot.bins;
  if (bins == 0) {
    bins = automatic_bins(plot.samples.empty() ? plot.data : plot.samples, window);
    if (!plot.data.empty()) bins = std::min(bins, automatic_bins(plot.data, window));
  }
  const Bars samples = count(plot.samples, plot.x_min, plot.x_max, bins);
  const Bars data = count(plot.data, plot.x_min, plot.x_max, bins);

  svg::Range y;
  y.add(0);
  for (const double height : samples.heights) y.add(height);
  for (const double height : data.heights) y.add(height);
  for (const Series& curve : plot.curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (!(curve.x[i] >= plot.x_min && curve.x[i] <= plot.x_max)) continue;
      y.add(curve.y[i]);
      if (!curve.high.empty()) y.add(curve.high[i]);
    }
  }
  // Bars stand on zero, so there is space above only.
  const double top = y.high > 0 ? 1.06 * y.high : 1;

  std::string note = svg::describe_count(plot.samples.size(), samples.inside, samples.inside, "sample");
  const std::string data_note =
      svg::describe_count(plot.data.size(), data.inside, data.inside, "point", " of the " + plot.data_label);
  if (!data_note.empty()) note += (note.empty() ? "" : " ") + data_note;
  std::vector<svg::LegendEntry> legend;
  for (std::size_t k = 0; k < plot.curves.size(); ++k) legend.push_back({plot.curves[k].label, svg::Mark::line, k});
  if (!plot.samples.empty()) legend.push_back({"samples", svg::Mark::bar});
  if (!plot.data.empty()) legend.push_back({plot.data_label, svg::Mark::stairs});
  const svg::Frame frame = svg::make_frame({.title = plot.title,
                                            .description = "Histogram of samples and density. " + note,
                                            .x_label = plot.x_label,
                                            .y_label = "density",
                                            .x = {plot.x_min, plot.x_max},
                                            .y = {std::min(y.low, 0.0), top},
                                            .legend = legend,
                                            .notes = {note}});
  return frame.head + bars_of(samples.heights, frame, plot.x_min, plot.x_max) +
         (plot.data.empty() ? "" : stairs_of(data.heights, frame, plot.x_min, plot.x_max)) +
         svg::draw_series(plot.curves, frame.x, frame.y) + "</svg>\n";
}

std::string to_svg(const ClassPlot& plot) {
  const std::string where = fmt::format("classes '{}'", plot.title);
  require(!plot.shares.empty(), where, "there are none");
  require(plot.outline.empty() || plot.outline.size() == plot.shares.size(), where, "{} and {} of them",
          plot.shares.size(), plot.outline.size());
  svg::Range y;
  y.add(0);
  for (const double share : plot.shares) y.add(share);
  for (const double share : plot.outline) y.add(share);
  // Each bar is around its number.
  const double from = -0.5, to = static_cast<double>(plot.shares.size()) - 0.5;
  std::vector<svg::LegendEntry> legend{{plot.label, svg::Mark::bar}};
  if (!plot.outline.empty()) legend.push_back({plot.outline_label, svg::Mark::stairs});
  const svg::Frame frame = svg::make_frame({.title = plot.title,
                                            .description = "Shares of classes.",
                                            .x_label = plot.x_label,
                                            .y_label = plot.y_label,
                                            .x = {from, to},
                                            .y = {std::min(y.low, 0.0), y.high > 0 ? 1.06 * y.high : 1},
                                            .legend = legend});
  return frame.head + bars_of(plot.shares, frame, from, to) +
         (plot.outline.empty() ? "" : stairs_of(plot.outline, frame, from, to)) + "</svg>\n";
}

}  // namespace implicit_diffusion::report
