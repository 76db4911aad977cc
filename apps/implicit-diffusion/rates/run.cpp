#include "experiment/checkpoints.hpp"
#include "experiment/runs.hpp"
#include "rates/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {
namespace {

using namespace implicit_diffusion;

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

FinishedRun run_once(const RatesConfiguration& c, const RunContext& context) {
  FinishedParts parts(c, context, c.steps.back());
  std::vector<RateCurve> curves;
  // A curve that was finished before, if it has these horizons: with --resume there may be others.
  const auto add_curve = [&](const char* kind, double exponent, const auto& horizons, auto&& make) {
    const std::string part = fmt::format("{}-{}", kind, exponent);
    RateCurve found{kind, exponent, {}};
    const std::vector<double> numbers = parts.find(part).value_or(std::vector<double>{});
    if (numbers.size() % 3 != 0) parts.refuse(part, "is not made of whole rows");
    for (std::size_t i = 0; i < numbers.size(); i += 3)
      found.rows.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
    if (!std::equal(found.rows.begin(), found.rows.end(), horizons.begin(), horizons.end(),
                    [](const RateRow& row, auto h) { return row.horizon == static_cast<double>(h); })) {
      found.rows = make();
      parts.keep(part, numbers_of(found.rows));
    }
    context.progress->say(label_of(found) + " done");
    curves.push_back(std::move(found));
    return !context.stop.stop_requested();
  };
  const bool all = std::ranges::all_of(c.exponents, [&](double a) {
    return add_curve("discrete", a, c.steps, [&] { return discrete_rates(a, c.scale, c.targets, c.steps); });
  });
  if (all)  // a signal during the last one has interrupted nothing
    add_curve("flow", flow_exponent, c.times, [&] {
      return flow_rates(rate_targets(c.largest_target, c.target_ratio), c.times, static_cast<int>(c.steps_per_time));
    });

  Summary s = summary_of(c, 1);
  s.steps = c.steps.back();
  s.gradient_evaluations = -1;  // there are none
  s.status = all ? "completed" : "interrupted";
  s.seconds = parts.seconds();
  s.more = json_of(curves);
  io::write_file(context.folder / "summary.json", to_json(s));

  std::string text = fmt::format("{}: {} in {:.2f} s\n", c.experiment, s.status, s.seconds);
  text += fmt::format("  {:<12}{:>14}{:>16}{:>12}{:>18}\n", "", "horizon", "worst average", "slope", "the theorem's");
  for (const RateCurve& curve : curves)
    for (const RateRow& row : curve.rows) {
      const bool last = &row == &curve.rows.back();
      text +=
          fmt::format("  {:<12}{:>14.0f}{:>16.4f}{:>12}{:>18}\n", &row == &curve.rows.front() ? label_of(curve) : "",
                      row.horizon, row.worst_average, last ? fmt::format("{:.3f}", fitted_slope(curve.rows)) : "",
                      last ? fmt::format("{:.3f}", promised_exponent(curve)) : "");
    }
  return {std::move(s), std::move(text), {}};
}

}  // namespace

double promised_exponent(const RateCurve& c) {
  return c.kind == "flow" ? -flow_exponent : std::max({2 * c.exponent - 1, -c.exponent});
}

std::vector<double> numbers_of(const std::vector<RateRow>& rows) {
  std::vector<double> numbers;
  for (const RateRow& r : rows) numbers.insert(numbers.end(), {r.horizon, r.worst_average, r.worst_target});
  return numbers;
}

std::unique_ptr<Experiment> read_rates(const Document& d) {
  return std::make_unique<RatesExperiment>(read_rates_configuration(d));
}

int RatesExperiment::run(const RunOptions& o) const {
  const Common* const one[] = {&configuration()};
  return run_or_repeat(
      one, 1, o, [&](std::size_t, const RunContext& context) { return run_once(configuration(), context); }, *this);
}

}  // namespace program
