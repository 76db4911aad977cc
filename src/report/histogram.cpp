#include "implicit_diffusion/report/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "implicit_diffusion/error.hpp"
#include "svg.hpp"

namespace implicit_diffusion::report {
namespace {

// Freedman and Diaconis: bars of twice the interquartile range over the cube root of the count.
std::size_t automatic_bins(std::vector<double> samples, double window) {
  constexpr double fewest = 8, most = 80;
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

}  // namespace

std::string to_svg(const HistogramPlot& plot) {
  if (!(plot.x_min < plot.x_max) || !std::isfinite(plot.x_max - plot.x_min))
    throw Error(ErrorKind::usage, fmt::format("histogram '{}'", plot.title),
                fmt::format("[{}, {}] is not a window", plot.x_min, plot.x_max));
  for (const Series& curve : plot.curves) svg::require_equal_lengths(curve);

  std::vector<double> finite;
  std::copy_if(plot.samples.begin(), plot.samples.end(), std::back_inserter(finite),
               [](double x) { return std::isfinite(x); });
  const double window = plot.x_max - plot.x_min;
  const std::size_t bins = plot.bins > 0 ? plot.bins : automatic_bins(finite, window);
  std::vector<double> heights(bins, 0.0);
  const double share = static_cast<double>(bins) / (static_cast<double>(finite.size()) * window);
  std::size_t outside = plot.samples.size() - finite.size();
  for (const double x : finite) {
    if (x < plot.x_min || x > plot.x_max) {
      ++outside;
      continue;
    }
    const auto bin = static_cast<std::size_t>((x - plot.x_min) / window * static_cast<double>(bins));
    heights[std::min(bin, bins - 1)] += share;
  }

  svg::Range y;
  y.add(0);
  for (const double height : heights) y.add(height);
  for (const Series& curve : plot.curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (!(curve.x[i] >= plot.x_min && curve.x[i] <= plot.x_max)) continue;
      if (svg::drawable(curve.y[i], false)) y.add(curve.y[i]);
      if (!curve.high.empty() && svg::drawable(curve.high[i], false)) y.add(curve.high[i]);
    }
  }
  // Bars stand on zero, so there is space above only.
  const double top = y.high > 0 ? 1.06 * y.high : 1;

  std::string note;
  if (!plot.samples.empty()) {
    note = plot.samples.size() == 1 ? "1 sample" : fmt::format("{} samples", plot.samples.size());
    if (outside > 0) note += fmt::format(", {} outside", outside);
    note += '.';
  }
  std::vector<std::string> legend;
  for (const Series& curve : plot.curves) legend.push_back(curve.label);
  const svg::Frame frame = svg::make_frame({.title = plot.title,
                                            .description = "Histogram of samples and density. " + note,
                                            .x_label = plot.x_label,
                                            .y_label = "density",
                                            .x = {plot.x_min, plot.x_max},
                                            .y = {std::min(y.low, 0.0), top},
                                            .legend = legend,
                                            .notes = {note}});
  svg::Path bars;
  for (std::size_t i = 0; i < bins; ++i) {
    if (heights[i] == 0) continue;
    const double width = window / static_cast<double>(bins);
    const double left = frame.x(plot.x_min + width * static_cast<double>(i));
    const double right = frame.x(plot.x_min + width * static_cast<double>(i + 1));
    bars.add(left, frame.y(0));
    bars.add(left, frame.y(heights[i]));
    bars.add(right, frame.y(heights[i]));
    bars.add(right, frame.y(0));
    bars.close();
  }
  const std::string data = bars.take();
  std::string out = frame.head;
  if (!data.empty()) out += fmt::format("<path class=\"bars\" d=\"{}\"/>\n", data);
  return out + svg::draw_series(plot.curves, frame.x, frame.y) + "</svg>\n";
}

}  // namespace implicit_diffusion::report
