#include "svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "../require.hpp"
#include "implicit_diffusion/report/text.hpp"

namespace implicit_diffusion::report::svg {
namespace {

constexpr double largest = 1e300;  // beyond it differences and margins overflow
constexpr double columns_of_a_curve = 300;

std::string from_tenths(long tenths) {
  std::string out = tenths < 0 ? "-" : "";
  const long magnitude = std::labs(tenths);
  if (magnitude >= 10 || magnitude == 0) out += std::to_string(magnitude / 10);
  if (magnitude % 10 != 0) out += '.' + std::to_string(magnitude % 10);
  return out;
}

std::vector<Tick> ticks(const Range& range, bool log, std::size_t most) {
  return log ? log_ticks(range.low, range.high, most) : linear_ticks(range.low, range.high, most);
}

// As many ticks as fit side by side.
std::vector<Tick> ticks_below(const Axis& axis) {
  constexpr double space = 12;
  for (std::size_t most = 8; most > 1; --most) {
    const std::vector<Tick> candidate = ticks(axis.range, axis.log, most);
    double occupied = -largest;
    bool fits = true;
    for (const Tick& tick : candidate) {
      const double half = 0.5 * text_width(tick.label, small_text);
      fits = fits && axis(tick.value) - half >= occupied;
      occupied = axis(tick.value) + half + space;
    }
    if (fits) return candidate;
  }
  return ticks(axis.range, axis.log, 1);
}

struct LegendPlace {
  LegendEntry entry;
  double x, row;
};

double mark_width(Mark mark) { return mark == Mark::line ? 22 : 12; }

// In one row if that is enough, in columns otherwise.
std::vector<LegendPlace> place_legend(const std::vector<LegendEntry>& legend, double available) {
  constexpr double space = 16;
  std::vector<LegendPlace> places;
  double x = 0, widest = 0;
  for (LegendEntry entry : legend) {
    if (entry.label.empty()) continue;
    const double mark = mark_width(entry.mark) + 6;
    entry.label = shorten(entry.label, available - mark, small_text);
    const double width = mark + text_width(entry.label, small_text) + space;
    places.push_back({std::move(entry), x, 0});
    x += width;
    widest = std::max(widest, width);
  }
  if (x - space <= available) return places;
  const auto columns = static_cast<std::size_t>(std::max(1.0, std::floor((available + space) / widest)));
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i].x = available / static_cast<double>(columns) * static_cast<double>(i % columns);
    places[i].row = std::floor(static_cast<double>(i) / static_cast<double>(columns));
  }
  return places;
}

// The sign of a legend entry, in the middle of a line at this height.
std::string draw_mark(const LegendEntry& entry, double x, double y) {
  const auto key = [](const std::string& classes, double from_x, double from_y, std::string_view data) {
    return fmt::format("<path class=\"{}\" d=\"M{} {}{}\"/>", classes, coordinate(from_x), coordinate(from_y), data);
  };
  switch (entry.mark) {
    case Mark::line:
      return key("swatch " + series_class(entry.series), x, y, "h22");
    case Mark::dot:
      return key("dot-key", x + 6, y, "h0");
    case Mark::cross: {
      Path path;
      add_cross(path, x + 6, y);
      return fmt::format("<path class=\"cross-key\" d=\"{}\"/>", path.take());
    }
    case Mark::bar:
      return key("bar-key", x, y + 4.5, "h12v-9h-12z");
    case Mark::stairs:
      return key("stairs-key", x, y + 4.5, "v-5h6v-4h6v9");
  }
  return {};
}

std::string axis_attribute(const char* name, const Axis& axis) {
  return fmt::format(" data-{}=\"{} {} {:.9g} {:.9g} {}\"", name, coordinate(axis.begin), coordinate(axis.end),
                     axis.range.low, axis.range.high, axis.log ? "log" : "linear");
}

bool inside(double value, const Axis& axis) {
  return drawable(value, axis.log) && value >= axis.range.low && value <= axis.range.high;
}

// Calls draw(first, last) for every run of points that share a column; every point is its own run where there are few.
// Points without a place on the axis are in no run, so they make no gap: they have no x at which it could be.
template <class Draw>
void for_each_column(const std::vector<double>& xs, const Axis& x, Draw&& draw) {
  std::vector<std::size_t> run;
  double column = 0;
  const bool few = static_cast<double>(xs.size()) <= 2 * columns_of_a_curve;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (!inside(xs[i], x)) continue;
    const double share = (x(xs[i]) - x.begin) / (x.end - x.begin);
    const double here = std::clamp(std::floor(share * columns_of_a_curve), 0.0, columns_of_a_curve - 1);
    if (!run.empty() && (here != column || few)) {
      draw(run);
      run.clear();
    }
    run.push_back(i);
    column = here;
  }
  if (!run.empty()) draw(run);
}

std::string curve_path(const Series& s, const Axis& x, const Axis& y) {
  std::optional<std::size_t> first, last;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    if (!inside(s.x[i], x) || !inside(s.y[i], y)) continue;
    if (!first) first = i;
    last = i;
  }
  Path path;
  for_each_column(s.x, x, [&](const std::vector<std::size_t>& run) {
    std::optional<std::size_t> lowest, highest;
    for (const std::size_t i : run) {
      if (!inside(s.y[i], y)) continue;
      if (!lowest || s.y[i] < s.y[*lowest]) lowest = i;
      if (!highest || s.y[i] > s.y[*highest]) highest = i;
    }
    if (!lowest) return path.gap();
    // The ends of the curve are kept whatever they are: the reader looks there.
    std::set<std::size_t> kept{*lowest, *highest};
    for (const std::size_t end : {*first, *last})
      if (run.front() <= end && end <= run.back()) kept.insert(end);
    for (const std::size_t i : kept) path.add(x(s.x[i]), y(s.y[i]));
  });
  return path.take();
}

std::string band_path(const Series& s, const Axis& x, const Axis& y) {
  struct Slice {
    double place, low, high;
  };
  Path path;
  std::vector<Slice> slices;
  const auto end_piece = [&] {
    if (slices.size() > 1) {
      for (const Slice& slice : slices) path.add(slice.place, y(slice.high));
      for (auto slice = slices.rbegin(); slice != slices.rend(); ++slice) path.add(slice->place, y(slice->low));
      path.close();
    }
    slices.clear();
  };
  for_each_column(s.x, x, [&](const std::vector<std::size_t>& run) {
    Slice slice{0, largest, -largest};
    double count = 0;
    for (const std::size_t i : run) {
      if (!drawable(s.low[i], false) || !drawable(s.high[i], y.log)) continue;
      // A band may reach below zero where the curve does not: on a logarithmic axis it then ends at the lower edge.
      slice.low = std::min(slice.low, std::clamp(s.low[i], y.range.low, y.range.high));
      slice.high = std::max(slice.high, std::clamp(s.high[i], y.range.low, y.range.high));
      slice.place += x(s.x[i]);
      count += 1;
    }
    if (count == 0) return end_piece();
    slice.place /= count;
    slices.push_back(slice);
  });
  end_piece();
  return path.take();
}

}  // namespace

std::string coordinate(double value) { return from_tenths(std::lround(10 * value)); }

void Path::add(double x, double y) {
  const long next_x = std::lround(10 * x), next_y = std::lround(10 * y);
  if (points_in_piece_ == 0) {
    data_ += 'M' + from_tenths(next_x) + ' ' + from_tenths(next_y);
  } else if (next_x == x_ && next_y == y_) {
    return;
  } else {
    // A minus separates as well as a space.
    if (points_in_piece_ == 1)
      data_ += 'l';
    else if (next_x >= x_)
      data_ += ' ';
    data_ += from_tenths(next_x - x_);
    if (next_y >= y_) data_ += ' ';
    data_ += from_tenths(next_y - y_);
  }
  x_ = next_x;
  y_ = next_y;
  ++points_in_piece_;
}

void Path::add_segment(double from_x, double from_y, double to_x, double to_y) {
  add(from_x, from_y);
  add(to_x, to_y);
  gap();
}

void Path::gap() {
  if (points_in_piece_ == 1) data_ += "h0";
  points_in_piece_ = 0;
}

void Path::close() {
  if (points_in_piece_ > 0) data_ += 'z';
  points_in_piece_ = 0;
}

std::string Path::take() {
  gap();
  return std::move(data_);
}

std::string path_element(const std::string& classes, const std::string& data) {
  return data.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", classes, data);
}

std::string text_element(double x, double y, std::string_view text, std::string_view attributes) {
  return fmt::format("<text{} x=\"{}\" y=\"{}\">{}</text>\n", attributes, coordinate(x), coordinate(y), escape(text));
}

bool Range::add(double value, bool on_log_axis) {
  if (!drawable(value, on_log_axis)) return false;
  *this = empty() ? Range{value, value} : Range{std::min(low, value), std::max(high, value)};
  return true;
}

Range Range::padded(double share, bool on_log_axis) const {
  if (empty()) return on_log_axis ? Range{1, 10} : Range{0, 1};
  if (on_log_axis) {
    double from = std::log10(low), to = std::log10(high);
    if (to - from < 1e-9) {
      from -= 0.5;
      to += 0.5;
    }
    const double margin = share * (to - from);
    return {std::pow(10, std::max(from - margin, -305.0)), std::pow(10, std::min(to + margin, 305.0))};
  }
  const double magnitude = std::max(std::abs(low), std::abs(high));
  // Less than this the digits of a double do not resolve into ticks.
  if (length() <= 1e-12 * magnitude || length() < 1e-290) {
    const double half = magnitude < 1e-280 ? 1 : 0.1 * magnitude;
    return {low - half, high + half};
  }
  const double margin = share * length();
  return {low - margin, high + margin};
}

bool is_window(double from, double to) { return from < to && std::isfinite(to - from); }

bool drawable(double value, bool log) {
  return std::isfinite(value) && std::abs(value) <= largest && (!log || value >= 1 / largest);
}

double Axis::operator()(double value) const {
  const double share =
      log ? (std::log10(value) - std::log10(range.low)) / (std::log10(range.high) - std::log10(range.low))
          : (value - range.low) / range.length();
  return begin + share * (end - begin);
}

void add_cross(Path& path, double x, double y) {
  constexpr double arm = 2;
  path.add_segment(x - arm, y - arm, x + arm, y + arm);
  path.add_segment(x - arm, y + arm, x + arm, y - arm);
}

std::string series_class(std::size_t k) { return fmt::format("s{} d{}", k % 6, k / 6 % 3); }

Frame make_frame(const Layout& layout) {
  constexpr double narrowest_plot = 60;
  const std::vector<std::string> title = wrap(layout.title, layout.width, title_text, 2);
  const std::vector<LegendPlace> legend = place_legend(layout.legend, layout.width);
  const double title_height = title.empty() ? 0 : 19 * static_cast<double>(title.size()) + 3;
  const double legend_height = legend.empty() ? 0 : 18 * (legend.back().row + 1) + 4;
  const double top = title_height + legend_height + (layout.y_label.empty() ? 9 : 28);

  double height = layout.plot_height;
  const auto y_ticks_at = [&](double h) {
    return ticks(layout.y, layout.log_y, std::max<std::size_t>(2, static_cast<std::size_t>(h / 32)));
  };
  std::vector<Tick> y_ticks = y_ticks_at(height);
  double widest = 0;
  for (const Tick& tick : y_ticks) widest = std::max(widest, text_width(tick.label, small_text));
  const double left = std::min(widest + 11, 0.4 * layout.width);
  double width = layout.width - left - layout.right_margin;
  const bool plane = layout.scale != Scale::free;
  if (plane) {
    const double ratio = layout.scale == Scale::equal ? layout.y.length() / layout.x.length() : 1;
    width = std::max(narrowest_plot, std::min(width, height / ratio));
    height = std::clamp(width * ratio, narrowest_plot, height);
    y_ticks = y_ticks_at(height);
  }

  Frame frame;
  frame.x = {layout.x, layout.log_x, left, left + width};
  frame.y = {layout.y, layout.log_y, top + height, top};
  const double bottom = top + height;
  const double x_label_line = bottom + 18 + (layout.x_label.empty() ? 0 : line_height);
  std::vector<std::string> note;
  for (const std::string& text : layout.notes)
    for (std::string& line : wrap(text, layout.width, small_text, 2)) note.push_back(std::move(line));
  const double note_height = note.empty() ? 0 : 3 + line_height * static_cast<double>(note.size());
  const double total_height = std::ceil(x_label_line + note_height + 6);

  std::string& out = frame.head;
  const std::string title_escaped = escape(layout.title);
  out += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\"{}{} data-x-label=\"{}\">\n",
      layout.width, total_height, title_escaped, axis_attribute("x", frame.x), axis_attribute("y", frame.y),
      escape(layout.x_label));
  out += fmt::format("<title>{}</title>\n<desc>{}</desc>\n", title_escaped, escape(layout.description));

  for (std::size_t i = 0; i < title.size(); ++i)
    out += text_element(0, 15 + 19 * static_cast<double>(i), title[i], " class=\"title\"");
  for (const LegendPlace& place : legend) {
    const double line = title_height + 12 + 18 * place.row;
    out += draw_mark(place.entry, place.x, line - 4);
    out += text_element(place.x + mark_width(place.entry.mark) + 6, line, place.entry.label);
  }
  if (!layout.y_label.empty())
    out += text_element(0, top - 14, shorten(layout.y_label, layout.width, small_text), " class=\"label\"");

  Path grid, axis;
  std::string labels;
  for (const Tick& tick : y_ticks) {
    const double place = frame.y(tick.value);
    if (plane)
      axis.add_segment(left - 4, place, left, place);
    else
      grid.add_segment(left, place, left + width, place);
    labels += text_element(left - 7, place + 4.4, tick.label, " class=\"tick\" text-anchor=\"end\"");
  }
  axis.add(left, bottom);
  axis.add(left + width, bottom);
  if (plane) {
    axis.add(left + width, top);
    axis.add(left, top);
    axis.close();
  }
  axis.gap();
  for (const Tick& tick : ticks_below(frame.x)) {
    const double place = frame.x(tick.value);
    axis.add_segment(place, bottom, place, bottom + 4);
    const bool at_the_edge = place + 0.5 * text_width(tick.label, small_text) > layout.width;
    labels += text_element(at_the_edge ? layout.width : place, bottom + 18, tick.label,
                           fmt::format(" class=\"tick\" text-anchor=\"{}\"", at_the_edge ? "end" : "middle"));
  }
  out += fmt::format("<path class=\"grid\" d=\"{}\"/>\n<path class=\"axis\" d=\"{}\"/>\n", grid.take(), axis.take());
  out += labels;
  if (!layout.x_label.empty())
    out +=
        text_element(left + 0.5 * width, x_label_line, shorten(layout.x_label, 1.6 * width, small_text), centred_label);
  for (std::size_t i = 0; i < note.size(); ++i)
    out += text_element(0, x_label_line + 3 + line_height * static_cast<double>(i + 1), note[i], " class=\"note\"");
  return frame;
}

std::string draw_series(const std::vector<Series>& series, const Axis& x, const Axis& y) {
  std::string out;
  for (std::size_t k = 0; k < series.size(); ++k)
    if (!series[k].low.empty()) out += path_element("band " + series_class(k), band_path(series[k], x, y));
  for (std::size_t k = 0; k < series.size(); ++k)
    if (const std::string curve = curve_path(series[k], x, y); !curve.empty())
      out += fmt::format("<path class=\"line {}\" data-label=\"{}\" d=\"{}\"/>\n", series_class(k),
                         escape(series[k].label), curve);
  return out;
}

void require_equal_lengths(const Series& series) {
  const std::size_t n = series.x.size();
  const bool band = !series.low.empty() || !series.high.empty();
  require(series.y.size() == n && (!band || (series.low.size() == n && series.high.size() == n)),
          fmt::format("series '{}'", series.label), "{} x, {} y, {} low and {} high values: the lengths must agree", n,
          series.y.size(), series.low.size(), series.high.size());
}

}  // namespace implicit_diffusion::report::svg
