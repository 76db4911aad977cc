#include "experiment/summary.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/report/chart.hpp"
#include "rates/experiment.hpp"

#include <fmt/format.h>

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
    caption += fmt::format("{}{}: slope {}, the theorem’s exponent is {}.", caption.empty() ? "" : " ", label_of(c),
                           four_digits(fitted_slope(c.rows)), as_fraction(power));
  }
  return {report::to_svg(chart), caption};
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
                    .footer = footer};
  report::Table table{{"", "horizon", "worst average", "at c ="}};
  for (const RateCurve& curve : curves) {
    page.facts.push_back({label_of(curve), four_digits(fitted_slope(curve.rows)),
                          fmt::format("slope; the bound’s is {}", as_fraction(promised_exponent(curve)))});
    for (const RateRow& row : curve.rows)
      table.rows.push_back({label_of(curve), fmt::format("{:.0f}", row.horizon),
                            fmt::format("{:.5f}", row.worst_average), fmt::format("{:.4g}", row.worst_target)});
  }
  report::Section section{
      .heading = "Worst-case averages of the squared gradient",
      .text =
          "The model is V(x, θ) = (x − θ)²/2 with the reward −|x − c|, followed without noise: from a Gaussian the "
          "population stays one, and the loop is a recursion of its mean, its variance and θ. The theorems bound "
          "the average of |∇ℓ|² over the steps by a constant times a power of their number, over all problems at "
          "once; on a single problem the average falls faster as soon as θ has arrived. Bounds are from above: a slope "
          "that is as steep as the bound’s, or steeper, agrees with it. What tests the power is the worst case over "
          "the "
          "targets c, divided by ℓ(θ₀) − inf ℓ, which the bound is proportional to.\n\n"
          "The bound for steps γₖ = c₁ k^(−a), εₖ = k^(−b) is K^max(a+b−1, −a, −b), up to logarithms: −1/3 at best, "
          "for a = b = 1/3, and K^0, no decay at all, for a = b = 1/2, the pair that the paper’s statement names (its "
          "proof has the other one). For the flow with εₜ = min(1, 1/√t) it is T^(−1/2)."};
  section.figures.push_back(draw(curves, "discrete", "In steps", "steps K"));
  if (std::any_of(curves.begin(), curves.end(), [](const RateCurve& k) { return k.kind == "flow"; }))
    section.figures.push_back(draw(curves, "flow", "In continuous time", "time T"));
  section.tables = {std::move(table)};
  page.sections = {std::move(section), repeat_section(c.resolved.text(), folder, "")};
  return report::to_html(page);
}

}  // namespace program
