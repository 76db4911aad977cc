#include "rates/curves.hpp"

#include "figures/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

using namespace implicit_diffusion;

double promised_exponent(const RateCurve& c) {
  return c.kind == "flow" ? -flow_exponent : std::max({2 * c.exponent - 1, -c.exponent});
}

std::string as_fraction(double v) {
  for (const int denominator : {1, 2, 3, 4, 5, 6}) {
    const double numerator = v * denominator;
    if (std::abs(numerator - std::round(numerator)) > 1e-9) continue;
    const std::string text = fmt::format("{:.0f}", std::round(numerator) + 0.0);
    return minus(denominator == 1 ? text : fmt::format("{}/{}", text, denominator));
  }
  return four_digits(v);
}

std::string label_of(const RateCurve& c) {
  return c.kind == "flow" ? "the flow" : fmt::format("a = b = {}", as_fraction(c.exponent));
}

std::vector<double> numbers_of(const std::vector<RateRow>& rows) {
  std::vector<double> numbers;
  for (const RateRow& r : rows) numbers.insert(numbers.end(), {r.horizon, r.worst_average, r.worst_target});
  return numbers;
}

Json json_of(const std::vector<RateCurve>& curves) {
  Json results = Json::array(), slopes = Json::array();
  for (const RateCurve& c : curves) {
    for (const RateRow& row : c.rows)
      results.push_back({{"kind", c.kind},
                         {"exponent", c.exponent},
                         {"steps", c.kind == "discrete" ? Json(std::llround(row.horizon)) : Json(row.horizon)},
                         {"worst_average", row.worst_average},
                         {"worst_target", row.worst_target}});
    slopes.push_back(
        {{"kind", c.kind}, {"exponent", c.exponent}, {"slope", fitted_slope(c.rows)}, {"bound", promised_exponent(c)}});
  }
  return {{"results", std::move(results)}, {"slopes", std::move(slopes)}};
}

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

}  // namespace program
