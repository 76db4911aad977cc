#include "figures/curves.hpp"

#include "figures/law_pictures.hpp"
#include "figures/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

namespace program {

using namespace implicit_diffusion;

const std::vector<double>* column(const RunFiles& run, std::string_view name) {
  for (std::size_t i = 0; i < run.header.size(); ++i)
    if (run.header[i] == name) return &run.columns[i];
  return nullptr;
}

namespace {

// True if there is anything in the column to draw.
bool has(const RunFiles& run, std::string_view name) {
  const auto* c = column(run, name);
  return c && std::any_of(c->begin(), c->end(), [](double v) { return std::isfinite(v); });
}

struct ChartSpec {
  const char *column, *title, *y_label, *second, *second_label;
  bool log_y;
  const char* meaning;
};
// Which columns of metrics.csv are drawn, and how.
constexpr std::array chart_specs{
    ChartSpec{"reward", "Reward", "reward", "exact_reward", "under π*(θ)", false, "More is better."},
    ChartSpec{"log_likelihood", "Log-likelihood of the samples under θ_opt", "mean of −V(x, θ_opt), nats", nullptr,
              nullptr, false, "How likely the samples are at the parameters θ_opt of the configuration."},
    ChartSpec{"exact_kl", "KL divergence from the reference", "KL(reference ‖ π*(θ)), nats", nullptr, nullptr, true,
              "Less is better; 0 is the reference itself."},
    ChartSpec{"data_log_likelihood", "Log-likelihood of the data", "mean of log π*(θ), nats", nullptr, nullptr, false,
              "More is better."}};

// Whether the values still go one way at the end. The mean of the last tenth is compared with that of the tenth before:
// a steady slope moves it by 3.5 standard deviations within a tenth, noise around a level by less than 2. And a move
// below a hundredth of the whole range is none.
bool still_moving(std::vector<double> y, bool log) {
  const std::size_t tenth = y.size() / 10;
  if (tenth < 5) return false;
  if (log)
    for (double& v : y) v = std::log(v);
  const auto [least, greatest] = std::minmax_element(y.begin(), y.end());
  const auto mean = [&](std::size_t from) {
    double sum = 0;
    for (std::size_t i = from; i < from + tenth; ++i) sum += y[i];
    return sum / static_cast<double>(tenth);
  };
  const double last = mean(y.size() - tenth), move = std::abs(last - mean(y.size() - 2 * tenth));
  double square = 0;
  for (std::size_t i = y.size() - tenth; i < y.size(); ++i) square += (y[i] - last) * (y[i] - last);
  const double deviation = std::sqrt(square / static_cast<double>(tenth));
  return move > 2.5 * deviation && move > 0.01 * (*greatest - *least);
}

// From where to where the first curve went, if it is one alone, and what that means.
std::string curve_caption(const report::LineChart& chart, bool alone, const char* meaning) {
  if (!alone) return meaning;
  std::vector<double> y;
  std::copy_if(chart.series.front().y.begin(), chart.series.front().y.end(), std::back_inserter(y),
               [&](double v) { return std::isfinite(v) && (v > 0 || !chart.log_y); });
  if (y.size() < 2) return meaning;
  std::string text = fmt::format("From {} to {}. {}", rounded(y.front()), rounded(y.back()), meaning);
  if (still_moving(y, chart.log_y)) text += " It was still moving at the end: more steps may help.";
  return text;
}

// The log-likelihood that points of the reference have, where it is a law: samples that follow it have the same.
double reference_log_likelihood(Configuration c) {
  if (!c.reference || c.reference->theta.empty() || c.theta_opt.empty()) return Figures::none;
  const Potential<float> potential = make_potential(c.potential);
  Population<float> points(20'000, potential.dimension());
  MixtureSampler(*potential.law(c.reference->theta), Noise(c.seed)).draw(points, 0);
  c.reference.reset();  // nothing of it is needed, and its figures are costly
  return Measures(c, nullptr).log_likelihood(points);
}

}  // namespace

std::optional<report::Series> curve(const Group& group, const std::string& label, std::string_view name,
                                    std::string_view axis) {
  report::Series s{label, {}, {}};
  const RunFiles* longest = nullptr;
  for (const RunFiles* run : group.runs)
    if (has(*run, name) && (!longest || run->columns.front().size() > longest->columns.front().size())) longest = run;
  if (!longest) return std::nullopt;
  s.x = *column(*longest, axis);
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    std::size_t count = 0;
    for (const RunFiles* run : group.runs) {
      const auto* c = column(*run, name);
      if (!c || i >= c->size() || !std::isfinite((*c)[i])) continue;
      sum += (*c)[i];
      low = std::min(low, (*c)[i]);
      high = std::max(high, (*c)[i]);
      ++count;
    }
    constexpr double gap = std::numeric_limits<double>::quiet_NaN();
    s.y.push_back(count ? sum / static_cast<double>(count) : gap);
    if (group.runs.size() > 1) {
      s.low.push_back(count ? low : gap);
      s.high.push_back(count ? high : gap);
    }
  }
  return s;
}

void add_curves(report::Page& page, const std::vector<Group>& groups, Axis axis) {
  const bool cost = axis == Axis::gradient_evaluations;
  report::Section section{.heading = cost ? "Curves over the work" : "Curves"};
  const char* x = cost ? "gradient_evaluations" : "step";
  const Configuration& c = groups.front().runs.front()->configuration;
  for (const ChartSpec& spec : chart_specs) {
    // -KL is the reward of an energy-based model: one picture of it is enough.
    if (std::string_view(spec.column) == "reward" && !c.reward) continue;
    report::LineChart chart{.title = spec.title,
                            .x_label = cost ? "gradient evaluations of a batch" : "step",
                            .y_label = spec.y_label,
                            .series = {},
                            .log_x = cost,
                            .log_y = spec.log_y};
    for (const Group& g : groups) {
      const bool alone = groups.size() == 1;
      if (auto s = curve(g, alone ? (spec.second ? "of the samples" : "") : g.label, spec.column, x))
        chart.series.push_back(std::move(*s));
      if (spec.second && alone)
        if (auto s = curve(g, spec.second_label, spec.second, x)) chart.series.push_back(std::move(*s));
    }
    if (chart.series.empty()) continue;
    std::string caption = curve_caption(chart, groups.size() == 1, spec.meaning);
    if (chart.series.size() > 1 && groups.size() == 1)
      caption += fmt::format(" Where the samples follow {}, the two agree.", the_law);
    if (std::string_view(spec.column) == "log_likelihood") {
      for (const double t : c.thresholds) chart.levels.push_back({t, minus(written(t))});
      if (!c.thresholds.empty()) caption += " Dotted: its thresholds.";
      if (const double level = reference_log_likelihood(c); groups.size() == 1 && std::isfinite(level))
        chart.levels.push_back({level, "of the reference"});
    }
    section.figures.push_back({report::to_svg(chart), caption});
  }
  if (std::any_of(groups.begin(), groups.end(), [](const Group& g) { return g.runs.size() > 1; }))
    section.text = "Lines are means over the seeds, bands reach from the least to the greatest.";
  if (!section.figures.empty()) page.sections.push_back(std::move(section));
}

}  // namespace program
