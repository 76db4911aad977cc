// The pieces that figures are drawn with: text of known width, paths, axes, and the frame with title and labels around
// a plot.
//
// Figures are 480 units wide, or 360 where three stand side by side. On a telephone a unit is about three quarters of a
// pixel, so that text of 12.5 units and more stays legible.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "implicit_diffusion/report/chart.hpp"
#include "implicit_diffusion/report/ticks.hpp"

namespace implicit_diffusion::report::svg {

inline constexpr double figure_width = 480;
inline constexpr double narrow_width = 360;
inline constexpr double small_text = 12.5;
inline constexpr double title_text = 14.5;
inline constexpr double line_height = 17;
inline constexpr std::string_view centred_label = " class=\"label\" text-anchor=\"middle\"";

// An estimate on the wide side, as the reader's font is not known.
double text_width(std::string_view text, double size);

// The text cut to the width, with an ellipsis where something is missing.
std::string shorten(std::string_view text, double width, double size);

// The text in lines of at most the width, broken at spaces; what the last line cannot hold is cut.
std::vector<std::string> wrap(std::string_view text, double width, double size, std::size_t lines);

// A coordinate with one decimal: a tenth of a unit is below what a screen shows. The value must be finite.
std::string coordinate(double value);

// The data of a <path> through the points. Steps are relative to save space, but between rounded points, so that errors
// do not add up.
class Path {
 public:
  void add(double x, double y);
  // A piece of two points.
  void add_segment(double from_x, double from_y, double to_x, double to_y);
  // Ends a piece. A piece of one point becomes a dot under round line caps.
  void gap();
  // Ends a piece by a line to its first point.
  void close();
  // The data; ends the last piece.
  std::string take();

 private:
  std::string data_;
  std::size_t points_in_piece_ = 0;
  long x_ = 0;  // the last point, in tenths
  long y_ = 0;
};

// A <path> with these classes, nothing where it has no data; a <text>, with what its tag has besides the place.
std::string path_element(const std::string& classes, const std::string& data);
std::string text_element(double x, double y, std::string_view text, std::string_view attributes = {});

// Least and greatest of the values seen.
struct Range {
  double low = 1;
  double high = 0;

  bool empty() const { return low > high; }
  double length() const { return high - low; }
  // Whether it has a place on a (logarithmic) axis; otherwise it is passed over.
  bool add(double value, bool log = false);
  // The range with some space around it; one that is empty or a single point becomes one that can be an axis.
  Range padded(double share, bool log) const;
};

// Whether the two can be the ends of an axis.
bool is_window(double from, double to);

// Whether the value has a place on a (logarithmic) axis.
bool drawable(double value, bool log);

// From values to coordinates.
struct Axis {
  Range range;
  bool log = false;
  double begin = 0;
  double end = 1;

  double operator()(double value) const;
};

// Colour and dash of the k-th curve, as classes.
std::string series_class(std::size_t k);

// What stands beside a name in a legend.
enum class Mark { line, dot, cross, bar, stairs };

struct LegendEntry {
  std::string label;       // empty: left out
  Mark mark = Mark::line;  //
  std::size_t series = 0;  // of a line: which curve
};

// A cross that stands for a point of the data.
void add_cross(Path& path, double x, double y);

// How the axes are to each other. The last two are those of a plane, which has a box instead of a grid.
enum class Scale {
  free,
  equal,  // one unit of x is as long as one of y
  square  // each axis has its own unit, both have the same length
};

// What is around a plot. Lengths are in units, values in those of the data.
struct Layout {
  std::string title;
  std::string description;
  std::string x_label;
  std::string y_label;
  Range x;
  Range y;
  bool log_x = false;
  bool log_y = false;
  Scale scale = Scale::free;
  double width = figure_width;
  double plot_height = 212;  // of a plane: the greatest height
  double right_margin = 16;
  std::vector<LegendEntry> legend = {};
  std::vector<std::string> notes = {};  // lines under the plot
};

struct Frame {
  Axis x;
  Axis y;
  std::string
      head;  // <svg ...> up to and with the axes; the figure goes on with what is in the plot and ends with </svg>
};

Frame make_frame(const Layout& layout);

// A short number for running text: up to four significant digits.
std::string number(double value);

// "5003 samples, 2000 drawn, 3 outside.", nothing where there are none at all. `more` stands behind the noun.
std::string describe_count(std::size_t all, std::size_t inside, std::size_t drawn, const std::string& noun,
                           const std::string& more = {});

// The curves with their bands, thinned to the resolution of the plot.
std::string draw_series(const std::vector<Series>& series, const Axis& x, const Axis& y);

// Throws a usage Error unless the lengths agree.
void require_equal_lengths(const Series& series);

}  // namespace implicit_diffusion::report::svg
