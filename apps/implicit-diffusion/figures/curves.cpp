#include "figures/curves.hpp"

#include "experiment/warnings.hpp"
#include "figures/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace program {
namespace {

using namespace implicit_diffusion;

// True if there is anything in the column to draw.
bool has(const RunTable& run, std::string_view name) {
  const auto* c = column(run, name);
  return c && std::ranges::any_of(*c, [](double v) { return std::isfinite(v); });
}

// From where to where the first curve went, if it is one alone, and what that means.
std::string curve_caption(const report::LineChart& chart, bool alone, const CurveSpec& spec) {
  const std::string& meaning = spec.meaning;
  if (!alone) return meaning;
  std::vector<double> y = chart.series.front().y;
  std::erase_if(y, [&](double v) { return !std::isfinite(v) || (v <= 0 && chart.log_y); });
  if (y.size() < 2) return meaning;
  std::string text = fmt::format("It went from {} to {}. {}", four_digits(y.front()), four_digits(y.back()), meaning);
  if (still_moving(y, in_nats(spec.column))) text += " It was still changing at the end, so more steps may help.";
  return text;
}

std::optional<report::Series> curve(const Group& group, const std::string& label, std::string_view name,
                                    std::string_view axis) {
  report::Series s{label, {}, {}};
  const RunTable* longest = nullptr;
  for (const RunTable* run : group.runs)
    if (has(*run, name) && (!longest || run->columns.front().size() > longest->columns.front().size())) longest = run;
  if (!longest) return std::nullopt;
  s.x = *column(*longest, axis);
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    std::vector<double> v;
    for (const RunTable* run : group.runs)
      if (const auto* c = column(*run, name); c && i < c->size() && std::isfinite((*c)[i])) v.push_back((*c)[i]);
    if (v.empty()) v.push_back(std::numeric_limits<double>::quiet_NaN());  // a gap
    s.y.push_back(std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size()));
    if (group.runs.size() > 1) {
      s.low.push_back(std::ranges::min(v));
      s.high.push_back(std::ranges::max(v));
    }
  }
  return s;
}

}  // namespace

void add_curves(report::Page& page, const std::vector<Group>& groups, Axis axis, std::span<const CurveSpec> specs,
                const Decorate& decorate) {
  const bool cost = axis == Axis::gradient_evaluations, alone = groups.size() == 1;
  report::Section section{.heading = cost ? "Curves over the number of gradient evaluations" : "Curves"};
  const char* x = cost ? "gradient_evaluations" : "step";
  for (const CurveSpec& spec : specs) {
    report::LineChart chart{.title = spec.title,
                            .x_label = cost ? "gradient evaluations of a batch" : "step",
                            .y_label = spec.y_label,
                            .series = {},
                            .log_x = cost,
                            .log_y = spec.log_y};
    for (const Group& g : groups) {
      const std::string label = alone ? (spec.second.empty() ? "" : spec.first_label) : g.label;
      if (auto s = curve(g, label, spec.column, x)) chart.series.push_back(std::move(*s));
      if (!spec.second.empty() && alone)
        if (auto s = curve(g, spec.second_label, spec.second, x)) chart.series.push_back(std::move(*s));
    }
    if (chart.series.empty()) continue;
    std::string caption = curve_caption(chart, alone, spec);
    if (decorate) decorate(spec, chart, caption);
    section.figures.push_back({report::to_svg(chart), caption});
  }
  if (std::ranges::any_of(groups, [](const Group& g) { return g.runs.size() > 1; }))
    section.text = "Lines are means over the seeds, and bands reach from the smallest value to the largest.";
  if (!section.figures.empty()) page.sections.push_back(std::move(section));
}

}  // namespace program
