#include "implicit_diffusion/report/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "svg.hpp"

namespace implicit_diffusion::report {
namespace {

using svg::Axis;
using svg::coordinate;
using svg::drawable;
using svg::small_text;

constexpr double lead = 18;  // from the end of a curve to its name

// The points of a series that have a place on both axes.
std::vector<std::size_t> drawable_points(const LineChart& chart, const Series& s) {
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < s.x.size(); ++i)
    if (drawable(s.x[i], chart.log_x) && drawable(s.y[i], chart.log_y)) points.push_back(i);
  return points;
}

struct Extent {
  svg::Range x;
  svg::Range y;
};

Extent extent(const LineChart& chart) {
  Extent e;
  for (const Series& s : chart.series) {
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!drawable(s.x[i], chart.log_x)) continue;
      bool seen = e.y.add(s.y[i], chart.log_y);
      if (!s.low.empty())
        for (const double y : {s.low[i], s.high[i]}) seen = e.y.add(y, chart.log_y) || seen;
      if (seen) e.x.add(s.x[i]);
    }
  }
  for (const ReferenceLine& level : chart.reference_lines) e.y.add(level.y, chart.log_y);
  for (const double value : chart.also_y) e.y.add(value, chart.log_y);
  return e;
}

// Names stand at the ends of the curves if they are short, few, and the curves reach the right edge; a legend says it
// otherwise.
bool named_at_the_end(const LineChart& chart, const svg::Range& x) {
  if (chart.series.size() > 8) return false;
  const Axis axis{x.padded(0, chart.log_x), chart.log_x, 0, 1};
  for (const Series& s : chart.series) {
    if (svg::text_width(s.label, small_text) > 120) return false;
    const std::vector<std::size_t> points = drawable_points(chart, s);
    if (!points.empty() && axis(s.x[points.back()]) < 0.95) return false;
  }
  return true;
}

// The places nearest to the wanted ones (in the sense of least squares) that keep the order, a distance between
// neighbours, and within [from, to]: isotonic regression of wanted[i] - i * distance by pooling neighbours that are out
// of order.
std::vector<double> spread(const std::vector<double>& wanted, double distance, double from, double to) {
  struct Pool {
    double sum;
    double count;
    double mean() const { return sum / count; }
  };
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    pools.push_back({wanted[i] - distance * static_cast<double>(i), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() >= pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  const double highest = std::max(from, to - distance * (static_cast<double>(wanted.size()) - 1));
  std::vector<double> places;
  for (const Pool& pool : pools)
    for (double i = 0; i < pool.count; ++i)
      places.push_back(std::clamp(pool.mean(), from, highest) + distance * static_cast<double>(places.size()));
  return places;
}

std::string draw_names(const LineChart& chart, const Axis& x, const Axis& y) {
  std::vector<std::pair<double, std::size_t>> names;  // where the curve ends, and which it is
  for (std::size_t k = 0; k < chart.series.size(); ++k) {
    const std::vector<std::size_t> points = drawable_points(chart, chart.series[k]);
    if (!points.empty() && !chart.series[k].label.empty()) names.emplace_back(y(chart.series[k].y[points.back()]), k);
  }
  std::sort(names.begin(), names.end());
  std::vector<double> wanted;
  for (const auto& [end, series] : names) wanted.push_back(end);
  const std::vector<double> places = spread(wanted, 16, y.end + 2, y.begin - 2);

  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [end, series] = names[i];
    out += fmt::format("<path class=\"lead {}\" d=\"M{} {}L{} {}h4\"/>", svg::series_class(series),
                       coordinate(x.end + 2), coordinate(end), coordinate(x.end + lead - 6), coordinate(places[i]));
    out += svg::text_element(x.end + lead + 1, places[i] + 4.4, chart.series[series].label);
  }
  return out;
}

struct Box {
  double left, right, top, bottom;
  bool meets(const Box& b) const { return left < b.right && b.left < right && top < b.bottom && b.top < bottom; }
};

// How many pieces of curves run through the box.
int crossings(const LineChart& chart, const Axis& x, const Axis& y, const Box& box) {
  int count = 0;
  for (const Series& s : chart.series) {
    double x0 = 0, y0 = 0;
    std::size_t following = s.x.size();  // the place behind the point before
    for (const std::size_t i : drawable_points(chart, s)) {
      const double x1 = x(s.x[i]), y1 = y(s.y[i]);
      if (i != following) x0 = x1, y0 = y1;
      // The part of the piece that is above or below the box in its width.
      if (x1 >= box.left && x0 <= box.right) {
        const auto at = [&](double place) {
          return x1 > x0 ? y0 + (y1 - y0) * std::clamp((place - x0) / (x1 - x0), 0.0, 1.0) : y1;
        };
        const double a = at(box.left), b = at(box.right);
        if (std::max(a, b) >= box.top && std::min(a, b) <= box.bottom) ++count;
      }
      x0 = x1, y0 = y1;
      following = i + 1;
    }
  }
  return count;
}

std::string draw_levels(const LineChart& chart, const Axis& x, const Axis& y) {
  std::string lines, labels;
  std::vector<Box> taken;
  for (const ReferenceLine& level : chart.reference_lines) {
    if (!drawable(level.y, chart.log_y)) continue;
    const double line = y(level.y);
    lines += fmt::format("<path class=\"level\" d=\"M{} {}H{}\"/>\n", coordinate(x.begin), coordinate(line),
                         coordinate(x.end));
    if (level.label.empty()) continue;
    const std::string label = svg::shorten(level.label, x.end - x.begin - 8, small_text);
    const double width = svg::text_width(label, small_text);
    // Of the six places along the line the first that hides the least.
    Box best{};
    double least = std::numeric_limits<double>::infinity();
    for (const double share : {1.0, 0.0, 0.5}) {
      for (const double top : {line - 17, line + 3}) {
        const double left = x.begin + 4 + share * (x.end - x.begin - 8 - width);
        const Box box{left, left + width, top, top + 14};
        double cost = crossings(chart, x, y, box);
        for (const Box& other : taken) cost += box.meets(other) ? 1e6 : 0;
        for (const ReferenceLine& other : chart.reference_lines)
          if (&other != &level && drawable(other.y, chart.log_y) && y(other.y) > box.top && y(other.y) < box.bottom)
            cost += 20;
        if (box.top < y.end - 8 || box.bottom > y.begin) cost += 1e5;
        if (cost >= least) continue;
        least = cost;
        best = box;
      }
    }
    taken.push_back(best);
    labels += svg::text_element(best.left, best.top + 11.5, label, " class=\"halo\"");
  }
  return lines + labels;
}

std::string describe(const LineChart& chart) {
  std::string out = fmt::format("{} against {}.", chart.y_label.empty() ? "Values" : chart.y_label,
                                chart.x_label.empty() ? "the horizontal axis" : chart.x_label);
  for (const Series& s : chart.series) {
    const std::vector<std::size_t> points = drawable_points(chart, s);
    svg::Range range;
    for (const std::size_t i : points) range.add(s.y[i]);
    out += ' ' + (s.label.empty() ? "Curve" : s.label);
    out += points.empty()
               ? ": no values."
               : fmt::format(": from {} to {}, least {}, greatest {}.", svg::number(s.y[points.front()]),
                             svg::number(s.y[points.back()]), svg::number(range.low), svg::number(range.high));
  }
  for (const ReferenceLine& level : chart.reference_lines)
    if (drawable(level.y, chart.log_y)) out += fmt::format(" Level {} at {}.", level.label, svg::number(level.y));
  return out;
}

}  // namespace

std::string to_svg(const LineChart& chart) {
  for (const Series& s : chart.series) svg::require_equal_lengths(s);
  const Extent e = extent(chart);
  svg::Layout layout{.title = chart.title,
                     .description = describe(chart),
                     .x_label = chart.x_label,
                     .y_label = chart.y_label,
                     .x = e.x.padded(0, chart.log_x),
                     .y = e.y.padded(0.04, chart.log_y),
                     .log_x = chart.log_x,
                     .log_y = chart.log_y};
  const bool at_the_end = named_at_the_end(chart, e.x);
  if (at_the_end) {
    double widest = 0;
    for (const Series& s : chart.series) widest = std::max(widest, svg::text_width(s.label, small_text));
    if (widest > 0) layout.right_margin = lead + 2 + widest;
  } else {
    for (std::size_t k = 0; k < chart.series.size(); ++k)
      layout.legend.push_back({chart.series[k].label, svg::Mark::line, k});
  }

  svg::Frame frame = svg::make_frame(layout);
  std::string out = std::move(frame.head);
  const std::string curves = svg::draw_series(chart.series, frame.x, frame.y);
  const std::string levels = draw_levels(chart, frame.x, frame.y);
  out += curves + levels;
  if (curves.empty())
    out += svg::text_element(0.5 * (frame.x.begin + frame.x.end), 0.5 * (frame.y.begin + frame.y.end), "no values",
                             svg::centred_label);
  if (at_the_end) out += draw_names(chart, frame.x, frame.y);
  return out + "</svg>\n";
}

}  // namespace implicit_diffusion::report
