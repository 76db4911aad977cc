#include "svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/report/text.hpp"

namespace implicit_diffusion::report::svg {
namespace {

constexpr double largest = 1e300;  // beyond it differences and margins overflow
constexpr std::size_t columns_of_a_curve = 300;
constexpr std::size_t points_of_a_curve = 2 * columns_of_a_curve;

std::string from_tenths(long tenths) {
  std::string out = tenths < 0 ? "-" : "";
  const long magnitude = std::labs(tenths);
  if (magnitude >= 10 || magnitude == 0) out += std::to_string(magnitude / 10);
  if (magnitude % 10 != 0) {
    out += '.';
    out += static_cast<char>('0' + magnitude % 10);
  }
  return out;
}

// Widths relative to the size of the font, rounded up from common sans-serif faces.
double relative_width(std::string_view sign) {
  if (sign.size() > 1) return sign.size() == 2 ? 0.64 : 0.75;
  constexpr std::string_view narrow = " .,:;'|!ijl()[]";
  constexpr std::string_view wide = "mwMW@%";
  if (narrow.find(sign[0]) != std::string_view::npos) return 0.37;
  if (wide.find(sign[0]) != std::string_view::npos) return 0.98;
  return sign[0] >= 'A' && sign[0] <= 'Z' ? 0.72 : 0.63;
}

// The text in lines of at most the width, broken at spaces; what the last line cannot hold is cut.
std::vector<std::string> wrap(std::string_view text, double width, double size, std::size_t lines) {
  std::vector<std::string> out;
  while (!text.empty() && out.size() + 1 < lines && text_width(text, size) > width) {
    std::size_t end = std::string_view::npos;
    for (std::size_t space = text.find(' '); space != std::string_view::npos; space = text.find(' ', space + 1))
      if (text_width(text.substr(0, space), size) <= width) end = space;
    if (end == std::string_view::npos) break;
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) out.push_back(shorten(text, width, size));
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
  double x;
  double row;
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
    const std::size_t row = i / columns;
    places[i].row = static_cast<double>(row);
  }
  return places;
}

// The sign of a legend entry, in the middle of a line at this height.
std::string draw_mark(const LegendEntry& entry, double x, double y) {
  const double width = mark_width(entry.mark), middle = x + 0.5 * width;
  switch (entry.mark) {
    case Mark::line:
      return fmt::format("<path class=\"swatch {}\" d=\"M{} {}h{}\"/>", series_class(entry.series), coordinate(x),
                         coordinate(y), width);
    case Mark::dot:
      return fmt::format("<path class=\"dot-key\" d=\"M{} {}h0\"/>", coordinate(middle), coordinate(y));
    case Mark::cross: {
      Path path;
      add_cross(path, middle, y);
      return fmt::format("<path class=\"cross-key\" d=\"{}\"/>", path.take());
    }
    case Mark::bar:
      return fmt::format("<path class=\"bar-key\" d=\"M{} {}h{}v-9h-{}z\"/>", coordinate(x), coordinate(y + 4.5), width,
                         width);
    case Mark::stairs:
      return fmt::format("<path class=\"stairs-key\" d=\"M{} {}v-5h6v-4h6v9\"/>", coordinate(x), coordinate(y + 4.5));
  }
  return {};
}

std::string axis_attribute(const char* name, const Axis& axis) {
  return fmt::format(" data-{}=\"{} {} {:.9g} {:.9g} {}\"", name, coordinate(axis.begin), coordinate(axis.end),
                     axis.range.low, axis.range.high, axis.log ? "log" : "linear");
}

std::size_t column_of(double place, const Axis& x) {
  const double share = (place - x.begin) / (x.end - x.begin);
  const double column = std::floor(share * static_cast<double>(columns_of_a_curve));
  return static_cast<std::size_t>(std::clamp(column, 0.0, static_cast<double>(columns_of_a_curve - 1)));
}

bool inside(double value, const Axis& axis) {
  return drawable(value, axis.log) && value >= axis.range.low && value <= axis.range.high;
}

// Calls draw(first, last) for every run of points that share a column; every point is its own run where there are few.
// Points without a place on the axis are in no run, so they make no gap: they have no x at which it could be.
template <class Draw>
void for_each_column(const std::vector<double>& xs, const Axis& x, Draw&& draw) {
  std::vector<std::size_t> run;
  std::size_t column = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (!inside(xs[i], x)) continue;
    const std::size_t here = column_of(x(xs[i]), x);
    if (!run.empty() && (here != column || xs.size() <= points_of_a_curve)) {
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
    if (!lowest) {
      path.gap();
      return;
    }
    // The ends of the curve are kept whatever they are: the reader looks there.
    std::array<std::size_t, 4> kept{*lowest, *highest, *lowest, *lowest};
    if (run.front() <= *first && *first <= run.back()) kept[2] = *first;
    if (run.front() <= *last && *last <= run.back()) kept[3] = *last;
    std::sort(kept.begin(), kept.end());
    const auto end = std::unique(kept.begin(), kept.end());
    for (auto i = kept.begin(); i != end; ++i) path.add(x(s.x[*i]), y(s.y[*i]));
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
    if (count == 0) {
      end_piece();
      return;
    }
    slice.place /= count;
    slices.push_back(slice);
  });
  end_piece();
  return path.take();
}

}  // namespace

std::size_t code_point_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer forms than needed, surrogates, and what is beyond U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf0 && byte(1) < 0x90) ||
      (lead == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, code_point_length(text));
    width += relative_width(text.substr(0, length));
    text.remove_prefix(length);
  }
  return width * size;
}

std::string shorten(std::string_view text, double width, double size) {
  if (text_width(text, size) <= width) return std::string(text);
  double used = size;  // of the ellipsis
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t length = std::max<std::size_t>(1, code_point_length(text.substr(end)));
    used += relative_width(text.substr(end, length)) * size;
    if (used > width) break;
    end += length;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string coordinate(double value) { return from_tenths(std::lround(10 * value)); }

void Path::add(double x, double y) {
  const long next_x = std::lround(10 * x);
  const long next_y = std::lround(10 * y);
  if (points_in_piece_ == 0) {
    data_ += 'M';
    data_ += from_tenths(next_x);
    data_ += ' ';
    data_ += from_tenths(next_y);
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

void Range::add(double value) {
  if (empty()) {
    low = high = value;
  } else {
    low = std::min(low, value);
    high = std::max(high, value);
  }
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
  if (high - low <= 1e-12 * magnitude || high - low < 1e-290) {
    const double half = magnitude < 1e-280 ? 1 : 0.1 * magnitude;
    return {low - half, high + half};
  }
  const double margin = share * (high - low);
  return {low - margin, high + margin};
}

bool drawable(double value, bool log) {
  return std::isfinite(value) && std::abs(value) <= largest && (!log || value >= 1 / largest);
}

double Axis::operator()(double value) const {
  const double share =
      log ? (std::log10(value) - std::log10(range.low)) / (std::log10(range.high) - std::log10(range.low))
          : (value - range.low) / (range.high - range.low);
  return begin + share * (end - begin);
}

void add_cross(Path& path, double x, double y) {
  constexpr double arm = 2;
  path.add(x - arm, y - arm);
  path.add(x + arm, y + arm);
  path.gap();
  path.add(x - arm, y + arm);
  path.add(x + arm, y - arm);
  path.gap();
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
  const auto label_margin = [&](const std::vector<Tick>& labels) {
    double widest = 0;
    for (const Tick& tick : labels) widest = std::max(widest, text_width(tick.label, small_text));
    return std::min(widest + 11, 0.4 * layout.width);
  };
  const auto y_ticks_at = [&](double h) {
    return ticks(layout.y, layout.log_y, std::max<std::size_t>(2, static_cast<std::size_t>(h / 32)));
  };
  std::vector<Tick> y_ticks = y_ticks_at(height);
  const double left = label_margin(y_ticks);
  double width = layout.width - left - layout.right_margin;
  const bool plane = layout.scale != Scale::free;
  if (plane) {
    const double ratio =
        layout.scale == Scale::equal ? (layout.y.high - layout.y.low) / (layout.x.high - layout.x.low) : 1;
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
      "aria-label=\"{}\"{}{} "
      "data-x-label=\"{}\">\n",
      layout.width, total_height, title_escaped, axis_attribute("x", frame.x), axis_attribute("y", frame.y),
      escape(layout.x_label));
  out += fmt::format("<title>{}</title>\n<desc>{}</desc>\n", title_escaped, escape(layout.description));

  for (std::size_t i = 0; i < title.size(); ++i)
    out += fmt::format("<text class=\"title\" x=\"0\" y=\"{}\">{}</text>\n", 15 + 19 * i, escape(title[i]));
  for (const LegendPlace& place : legend) {
    const double line = title_height + 12 + 18 * place.row;
    out += draw_mark(place.entry, place.x, line - 4);
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", coordinate(place.x + mark_width(place.entry.mark) + 6),
                       coordinate(line), escape(place.entry.label));
  }
  if (!layout.y_label.empty())
    out += fmt::format("<text class=\"label\" x=\"0\" y=\"{}\">{}</text>\n", coordinate(top - 14),
                       escape(shorten(layout.y_label, layout.width, small_text)));

  Path grid, axis;
  std::string labels;
  for (const Tick& tick : y_ticks) {
    const double place = frame.y(tick.value);
    Path& path = plane ? axis : grid;
    path.add(plane ? left - 4 : left, place);
    path.add(plane ? left : left + width, place);
    path.gap();
    labels += fmt::format("<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n",
                          coordinate(left - 7), coordinate(place + 4.4), escape(tick.label));
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
    axis.add(place, bottom);
    axis.add(place, bottom + 4);
    axis.gap();
    const bool at_the_edge = place + 0.5 * text_width(tick.label, small_text) > layout.width;
    labels += fmt::format("<text class=\"tick\" text-anchor=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n",
                          at_the_edge ? "end" : "middle", coordinate(at_the_edge ? layout.width : place),
                          coordinate(bottom + 18), escape(tick.label));
  }
  out += fmt::format("<path class=\"grid\" d=\"{}\"/>\n<path class=\"axis\" d=\"{}\"/>\n", grid.take(), axis.take());
  out += labels;
  if (!layout.x_label.empty())
    out += fmt::format("<text class=\"label\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n",
                       coordinate(left + 0.5 * width), coordinate(x_label_line),
                       escape(shorten(layout.x_label, 1.6 * width, small_text)));
  for (std::size_t i = 0; i < note.size(); ++i)
    out += fmt::format("<text class=\"note\" x=\"0\" y=\"{}\">{}</text>\n",
                       coordinate(x_label_line + 3 + line_height * static_cast<double>(i + 1)), escape(note[i]));
  return frame;
}

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string draw_series(const std::vector<Series>& series, const Axis& x, const Axis& y) {
  std::string out;
  for (std::size_t k = 0; k < series.size(); ++k) {
    if (series[k].low.empty()) continue;
    const std::string band = band_path(series[k], x, y);
    if (!band.empty()) out += fmt::format("<path class=\"band {}\" d=\"{}\"/>\n", series_class(k), band);
  }
  for (std::size_t k = 0; k < series.size(); ++k) {
    const std::string curve = curve_path(series[k], x, y);
    if (!curve.empty())
      out += fmt::format("<path class=\"line {}\" data-label=\"{}\" d=\"{}\"/>\n", series_class(k),
                         escape(series[k].label), curve);
  }
  return out;
}

void require_equal_lengths(const Series& series) {
  const std::size_t n = series.x.size();
  const bool band = !series.low.empty() || !series.high.empty();
  if (series.y.size() != n || (band && (series.low.size() != n || series.high.size() != n)))
    throw Error(ErrorKind::usage, fmt::format("series '{}'", series.label),
                fmt::format("{} x, {} y, {} low and {} high values: the lengths must agree", n, series.y.size(),
                            series.low.size(), series.high.size()));
}

}  // namespace implicit_diffusion::report::svg
