#include "experiment/summary.hpp"
#include "figures/opening.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/report/chart.hpp"
#include "rates/experiment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

std::vector<RateCurve> read_curves(const std::filesystem::path& file) {
  const SummaryFile summary(file);
  std::vector<RateCurve> curves;
  for (const Json& row : summary.rows("results")) {
    const double exponent = summary.number(row, "exponent");
    const std::string kind = row.contains("kind") && row["kind"] == "flow" ? "flow" : "discrete";
    if (curves.empty() || curves.back().kind != kind || curves.back().exponent != exponent)
      curves.push_back({kind, exponent, {}});
    curves.back().rows.push_back(
        {summary.number(row, "steps"), summary.number(row, "worst_average"), summary.number(row, "worst_target")});
  }
  return curves;
}

// A number as a fraction where it is one that people know.
std::string as_fraction(double v) {
  for (const int denominator : {1, 2, 3, 4, 5, 6}) {
    const double numerator = v * denominator;
    if (std::abs(numerator - std::round(numerator)) > 1e-9) continue;
    const std::string text = fmt::format("{:.0f}", std::round(numerator) + 0.0);
    return minus(denominator == 1 ? text : fmt::format("{}/{}", text, denominator));
  }
  return four_digits(v);
}

// The curves of one kind with the promised powers beside them, through their first points.
report::Figure draw(const std::vector<RateCurve>& curves, const std::string& kind, const std::string& title,
                    const std::string& x_label) {
  report::LineChart chart{.title = title,
                          .x_label = x_label,
                          .y_label = "worst average of |∇ℓ|² / (ℓ(θ₀) − inf ℓ)",
                          .log_x = true,
                          .log_y = true};
  std::string caption;
  for (const RateCurve& c : curves) {
    if (c.kind != kind) continue;
    const double power = promised_exponent(c);
    report::Series measured{label_of(c)},
        bound{power == 0 ? "constant" : fmt::format("{}^({})", kind == "flow" ? "T" : "K", as_fraction(power))};
    for (const RateRow& row : c.rows) {
      measured.add(row.horizon, row.worst_average);
      bound.add(row.horizon, c.rows.front().worst_average * std::pow(row.horizon / c.rows.front().horizon, power));
    }
    chart.series.push_back(std::move(measured));
    chart.series.push_back(std::move(bound));
    caption += fmt::format("{}{}: the slope is {}, and the exponent of the theorem is {}.", caption.empty() ? "" : " ",
                           label_of(c), four_digits(fitted_slope(c.rows)), as_fraction(power));
  }
  return {report::to_svg(chart), caption};
}

// What was done, whether it worked, and how one can tell. The bounds hold up to logarithms, which make a fitted slope
// flatter on a finite range: 0.05 is allowed.
std::string rates_opening(const RatesConfiguration& c, const std::vector<RateCurve>& curves) {
  constexpr double allowed = 0.05;
  std::vector<std::string> slopes;
  std::size_t agree = 0;
  for (const RateCurve& curve : curves) {
    if (curve.rows.size() < 2) continue;  // no slope
    const double slope = fitted_slope(curve.rows), bound = promised_exponent(curve);
    if (slope <= bound + allowed) ++agree;
    slopes.push_back(fmt::format("{} for {}, where the theorem promises {}", four_digits(slope), label_of(curve),
                                 as_fraction(bound)));
  }
  std::vector<std::string> text{
      "This run followed the single loop without noise, on a family of problems for which it is a recursion of three "
      "numbers, and measured how fast the average squared gradient falls in the worst case."};
  if (const std::size_t wanted = c.exponents.size() + 1; curves.size() < wanted)
    text.push_back(fmt::format("It was interrupted: {} of {} curves are here.", curves.size(), wanted));
  if (slopes.empty()) {
    text.emplace_back("There are too few horizons for a slope, so nothing can be said about the theorems.");
  } else {
    text.push_back(fmt::format("{}: {} of {} fitted slopes are at least as steep as the theorem’s exponent, within {}.",
                               agree == slopes.size() ? "The measurements agree with the theorems"
                                                      : "Not all measurements agree with the theorems",
                               agree, slopes.size(), allowed));
    text.push_back(fmt::format("The slopes are {}.", fmt::join(slopes, "; ")));
    text.emplace_back(
        "You can tell from the charts: on logarithmic axes, a measured curve falls no more slowly than the "
        "line of its exponent.");
  }
  return paragraph(text);
}

}  // namespace

std::string label_of(const RateCurve& c) {
  return c.kind == "flow" ? "the flow" : fmt::format("a = b = {}", as_fraction(c.exponent));
}

std::string RatesExperiment::report(const std::filesystem::path& folder) const {
  const RatesConfiguration& c = configuration();
  const std::vector<RateCurve> curves = read_curves(folder / "summary.json");
  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}: {} targets, up to {} steps and time {:.0f}", c.experiment,
                                            c.targets.size(), c.steps.back(), c.times.back()),
                    .opening = rates_opening(c, curves),
                    .footer = footer};
  report::Table table{{"", "horizon", "worst average", "at c ="}};
  for (const RateCurve& curve : curves) {
    page.facts.push_back({label_of(curve), four_digits(fitted_slope(curve.rows)),
                          fmt::format("fitted slope; the bound has {}", as_fraction(promised_exponent(curve)))});
    for (const RateRow& row : curve.rows)
      table.rows.push_back({label_of(curve), fmt::format("{:.0f}", row.horizon),
                            fmt::format("{:.5f}", row.worst_average), fmt::format("{:.4g}", row.worst_target)});
  }
  report::Section section{
      .heading = "Worst-case averages of the squared gradient",
      .text =
          "The model is V(x, θ) = (x − θ)²/2 with the reward −|x − c|. If the population starts as a Gaussian, it "
          "stays "
          "Gaussian, so the loop can be followed without noise: it is a recursion of the mean, the variance and θ. The "
          "theorems bound the average of |∇ℓ|² over K steps by a constant times a power of K, for all problems at "
          "once. "
          "On a single problem the average falls faster as soon as θ has converged. The power is therefore tested on "
          "the "
          "worst case over the targets c, divided by ℓ(θ₀) − inf ℓ, to which the bound is proportional. The theorems "
          "give upper bounds, so a slope that is at least as steep as the bound agrees with it.\n\n"
          "For steps γₖ = c₁ k^(−a), εₖ = k^(−b), the bound is K^max(a+b−1, −a, −b), up to logarithms. It is best for "
          "a = b = 1/3, where it is K^(−1/3). For a = b = 1/2, the pair in the paper’s statement, it is K^0: no decay "
          "at "
          "all. (The proof in the paper has a = b = 1/3.) For the flow with εₜ = min(1, 1/√t) it is T^(−1/2)."};
  section.figures.push_back(draw(curves, "discrete", "In steps", "steps K"));
  if (std::any_of(curves.begin(), curves.end(), [](const RateCurve& k) { return k.kind == "flow"; }))
    section.figures.push_back(draw(curves, "flow", "In continuous time", "time T"));
  section.tables = {std::move(table)};
  page.sections = {std::move(section), repeat_section(c.resolved.text(), folder, "")};
  return report::to_html(page);
}

}  // namespace program
