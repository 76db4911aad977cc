#include "rates/rates.hpp"

#include "experiment/finished_parts.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/run_directory.hpp"
#include "experiment/table_reader.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/langevin/rates.hpp"
#include "implicit_diffusion/report/chart.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
using Json = nlohmann::ordered_json;

constexpr double flow_exponent = 0.5;  // eps_t = min(1, t^-1/2)

// What the theorem promises: the exponent of K, or of T.
double promised(const std::string& kind, double exponent) {
  return kind == "flow" ? -flow_exponent : std::max({2 * exponent - 1, -exponent});
}

struct Curve {
  std::string kind;  // discrete, flow
  double exponent;   // of the schedule
  std::vector<RateRow> rows;
};

// An exponent as a fraction where it is one that people know.
std::string as_fraction(double v) {
  for (const int denominator : {1, 2, 3, 4, 5, 6}) {
    const double numerator = v * denominator;
    if (std::abs(numerator - std::round(numerator)) > 1e-9) continue;
    const std::string text = fmt::format("{:.0f}", std::round(numerator) + 0.0);
    return minus(denominator == 1 ? text : fmt::format("{}/{}", text, denominator));
  }
  return rounded(v);
}

std::string label(const Curve& c) {
  return c.kind == "flow" ? "the flow" : fmt::format("a = b = {}", as_fraction(c.exponent));
}

std::string to_json(const std::vector<Curve>& curves) {
  Json results = Json::array(), slopes = Json::array();
  for (const Curve& c : curves) {
    for (const RateRow& row : c.rows)
      results.push_back({{"kind", c.kind},
                         {"exponent", c.exponent},
                         {"steps", c.kind == "discrete" ? Json(std::llround(row.horizon)) : Json(row.horizon)},
                         {"worst_average", row.worst_average},
                         {"worst_target", row.worst_target}});
    slopes.push_back({{"kind", c.kind},
                      {"exponent", c.exponent},
                      {"slope", fitted_slope(c.rows)},
                      {"bound", promised(c.kind, c.exponent)}});
  }
  return Json{{"results", std::move(results)}, {"slopes", std::move(slopes)}}.dump();
}

std::vector<Curve> read_curves(const std::filesystem::path& file) {
  const std::string where = io::display(file);
  const Json j = Json::parse(io::read_file(file), nullptr, false);
  if (!j.is_object() || !j.contains("results") || !j["results"].is_array())
    throw Error(ErrorKind::data, where, "results: missing, or not an array");
  std::vector<Curve> curves;
  for (const Json& row : j["results"]) {
    const auto number = [&](const char* key) {
      if (!row.is_object() || !row.contains(key) || !row[key].is_number())
        throw Error(ErrorKind::data, where, fmt::format("results: a row has no number {}", key));
      return row[key].get<double>();
    };
    const std::string kind = row.is_object() && row.contains("kind") && row["kind"] == "flow" ? "flow" : "discrete";
    const double exponent = number("exponent");
    if (curves.empty() || curves.back().kind != kind || curves.back().exponent != exponent)
      curves.push_back({kind, exponent, {}});
    curves.back().rows.push_back({number("steps"), number("worst_average"), number("worst_target")});
  }
  return curves;
}

// The curves of one kind with the promised powers beside them, through their first points.
report::Figure draw(const std::vector<Curve>& curves, const std::string& kind, const std::string& title,
                    const std::string& x_label) {
  report::LineChart chart{.title = title,
                          .x_label = x_label,
                          .y_label = "worst average of |∇ℓ|² / (ℓ(θ₀) − inf ℓ)",
                          .series = {},
                          .log_x = true,
                          .log_y = true};
  std::string caption;
  for (const Curve& c : curves) {
    if (c.kind != kind) continue;
    report::Series measured{label(c), {}, {}};
    const double power = promised(kind, c.exponent);
    report::Series bound{
        power == 0 ? "constant" : fmt::format("{}^({})", kind == "flow" ? "T" : "K", as_fraction(power)), {}, {}};
    for (const RateRow& row : c.rows) {
      measured.x.push_back(row.horizon);
      measured.y.push_back(row.worst_average);
      bound.x.push_back(row.horizon);
      bound.y.push_back(c.rows.front().worst_average * std::pow(row.horizon / c.rows.front().horizon, power));
    }
    chart.series.push_back(std::move(measured));
    chart.series.push_back(std::move(bound));
    caption += fmt::format("{}{}: slope {}, the theorem’s exponent is {}.", caption.empty() ? "" : " ", label(c),
                           rounded(fitted_slope(c.rows)), as_fraction(power));
  }
  return {report::to_svg(chart), caption};
}

}  // namespace

RatesConfiguration read_rates(const Document& d) {
  using Sign = Section::Sign;
  RatesConfiguration c;
  Section top(d);
  top.text("kind", "rates");
  read_common(top, d, c);
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));  // nothing is random here; it names the folder
  Section discrete = top.section("discrete"), flow = top.section("flow");
  const auto ascending = [](const Section& s, const char* key, const auto& v) {
    if (v.size() < 2) s.fail(key, "two numbers at least are needed for a slope");
    for (std::size_t i = 0; i < v.size(); ++i)
      if (!(v[i] > (i ? v[i - 1] : 0))) s.fail(key, "the numbers must be positive and ascend");
  };
  c.exponents = discrete.numbers("exponents", {1.0 / 3, 0.5});
  if (c.exponents.empty()) discrete.fail("exponents", "empty: one at least is needed");
  for (const double a : c.exponents) {
    if (a < 0 || a > 1) discrete.fail("exponents", fmt::format("{} must be between 0 and 1", a));
    if (std::count(c.exponents.begin(), c.exponents.end(), a) > 1)
      discrete.fail("exponents", fmt::format("{} is there twice", a));
  }
  c.scale = discrete.number("scale", c.scale, Sign::positive);
  if (c.scale >= 1) discrete.fail("scale", fmt::format("{} must be below 1, or the chain is not stable", c.scale));
  constexpr std::int64_t most_steps = 100'000'000;
  c.steps = discrete.integers("steps", {100, 1000, 10'000, 100'000}, 1, most_steps);
  ascending(discrete, "steps", c.steps);
  c.targets = discrete.numbers("targets", {1, 1.5, 2.2, 3.3, 5, 7, 10, 15, 22, 33, 50});
  if (c.targets.empty()) discrete.fail("targets", "empty: one at least is needed");
  for (const double t : c.targets)
    if (!(t >= 1e-3 && t <= 1e6)) discrete.fail("targets", fmt::format("{} must be between 0.001 and 1000000", t));
  // A run cannot be stopped within a recursion: none is longer than some ten seconds.
  constexpr double most_work = 2e8;
  if (static_cast<double>(c.steps.back()) * static_cast<double>(c.targets.size()) > most_work)
    discrete.fail("steps", fmt::format("{} steps for {} targets take too long", c.steps.back(), c.targets.size()));
  c.times = flow.numbers("times", {10, 30, 100, 300, 1000, 3000, 10'000});
  ascending(flow, "times", c.times);
  constexpr double longest = 1e6;
  if (c.times.back() > longest) flow.fail("times", fmt::format("{} is more than {}", c.times.back(), longest));
  c.largest_target = flow.number("largest_target", c.largest_target, Sign::positive);
  c.target_ratio = flow.number("target_ratio", c.target_ratio, Sign::positive);
  if (c.target_ratio < 1.001) flow.fail("target_ratio", fmt::format("{} must be at least 1.001", c.target_ratio));
  if (c.largest_target < 1) flow.fail("largest_target", fmt::format("{} must be at least 1", c.largest_target));
  c.steps_per_time = flow.integer("steps_per_time", c.steps_per_time, 1, 10'000);
  if (c.times.front() * static_cast<double>(c.steps_per_time) < 1)
    flow.fail("times", fmt::format("{} is shorter than a step of the integration", c.times.front()));
  if (const double work = c.times.back() * static_cast<double>(c.steps_per_time) *
                          (1 + std::log(c.largest_target) / std::log(c.target_ratio));
      work > most_work)
    flow.fail("times", fmt::format("{} with so many targets and steps takes too long", c.times.back()));
  finish(c, d, {&top, &discrete, &flow});
  return c;
}

int run_rates(const RatesConfiguration& c, const RunOptions& o) {
  const Interrupt interrupt;
  const OpenFolder folder = open_folder(o, c);
  FinishedParts parts(c, folder.path, o);
  if (o.resume) write_configuration(folder.path, c);
  std::vector<Curve> curves;
  // A curve that was finished before, if it has these horizons: with --resume there may be others.
  const auto add_curve = [&](const char* kind, double exponent, const auto& horizons, auto&& make) {
    const std::string part = fmt::format("{}-{}", kind, exponent);
    Curve found{kind, exponent, {}};
    const std::vector<double> numbers = parts.find(part).value_or(std::vector<double>{});
    if (numbers.size() % 3 != 0) parts.refuse(part, "is not made of whole rows");
    for (std::size_t i = 0; i < numbers.size(); i += 3)
      found.rows.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
    if (!std::equal(found.rows.begin(), found.rows.end(), horizons.begin(), horizons.end(),
                    [](const RateRow& row, auto h) { return row.horizon == static_cast<double>(h); })) {
      found.rows = make();
      std::vector<double> rows;
      for (const RateRow& row : found.rows) rows.insert(rows.end(), {row.horizon, row.worst_average, row.worst_target});
      parts.keep(part, rows);
    }
    curves.push_back(std::move(found));
    if (!o.quiet) print_error(fmt::format("{}: {} done\n", c.experiment, label(curves.back())));
    return !interrupt.token().stop_requested();
  };
  bool all = true;
  for (const double a : c.exponents)
    if (!(all = add_curve("discrete", a, c.steps, [&] { return discrete_rates(a, c.scale, c.targets, c.steps); })))
      break;
  if (all)  // a signal during the last one has interrupted nothing
    add_curve("flow", flow_exponent, c.times, [&] {
      return flow_rates(rate_targets(c.largest_target, c.target_ratio), c.times, static_cast<int>(c.steps_per_time));
    });

  Summary s = summary_of(c);
  s.steps = c.steps.back();
  s.gradient_evaluations = -1;  // there are none
  s.status = all ? "completed" : "interrupted";
  s.seconds = parts.seconds();
  s.isa = to_string(active_level());
  s.more = to_json(curves);
  io::write_file(folder.path / "summary.json", to_json(s));

  std::string text = fmt::format("{}: {} in {:.2f} s\n", c.experiment, s.status, s.seconds);
  text += fmt::format("  {:<12}{:>14}{:>16}{:>12}{:>18}\n", "", "horizon", "worst average", "slope", "the theorem's");
  for (const Curve& curve : curves) {
    for (const RateRow& row : curve.rows) {
      const bool last = &row == &curve.rows.back();
      text += fmt::format("  {:<12}{:>14.0f}{:>16.4f}{:>12}{:>18}\n", &row == &curve.rows.front() ? label(curve) : "",
                          row.horizon, row.worst_average, last ? fmt::format("{:.3f}", fitted_slope(curve.rows)) : "",
                          last ? fmt::format("{:.3f}", promised(curve.kind, curve.exponent)) : "");
    }
  }
  return close_run(folder.path, text, o, all ? 0 : 128 + interrupt.signal(),
                   [&] { return rates_report(c, folder.path); });
}

std::string rates_report(const RatesConfiguration& c, const std::filesystem::path& folder) {
  const std::vector<Curve> curves = read_curves(folder / "summary.json");
  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}: {} targets, up to {} steps and time {:.0f}", c.experiment,
                                            c.targets.size(), c.steps.back(), c.times.back()),
                    .facts = {},
                    .sections = {},
                    .footer = footer};
  report::Table table{{"", "horizon", "worst average", "at c ="}, {}};
  for (const Curve& curve : curves) {
    page.facts.push_back({label(curve), rounded(fitted_slope(curve.rows)),
                          fmt::format("slope; the bound’s is {}", as_fraction(promised(curve.kind, curve.exponent)))});
    for (const RateRow& row : curve.rows)
      table.rows.push_back({label(curve), fmt::format("{:.0f}", row.horizon), fmt::format("{:.5f}", row.worst_average),
                            fmt::format("{:.4g}", row.worst_target)});
  }
  report::Section section{
      .heading = "Worst-case averages of the squared gradient",
      .text =
          "The model is V(x, θ) = (x − θ)²/2 with the reward −|x − c|, followed without noise: from a Gaussian the "
          "population stays one, and the loop is a recursion of its mean, its variance and θ. The theorems bound "
          "the average of |∇ℓ|² over the steps by a constant times a power of their number, over all problems at "
          "once; on a single problem the average falls faster as soon as θ has arrived. Bounds are from above: a slope "
          "that is as steep as the bound’s, or steeper, agrees with it. What tests the power is "
          "the worst case over the targets c, divided by ℓ(θ₀) − inf ℓ, which the bound is proportional to.\n\n"
          "The bound for steps γₖ = c₁ k^(−a), εₖ = k^(−b) is K^max(a+b−1, −a, −b), up to logarithms: −1/3 at best, "
          "for a = b = 1/3, and K^0, no decay at all, for a = b = 1/2, the pair that the paper’s "
          "statement names (its proof has the other one). For the "
          "flow with εₜ = min(1, 1/√t) it is T^(−1/2).",
      .figures = {}};
  section.figures.push_back(draw(curves, "discrete", "In steps", "steps K"));
  if (std::any_of(curves.begin(), curves.end(), [](const Curve& k) { return k.kind == "flow"; }))
    section.figures.push_back(draw(curves, "flow", "In continuous time", "time T"));
  section.tables = {table};
  page.sections.push_back(std::move(section));
  page.sections.push_back(repeat_section(c.resolved, folder, ""));
  return report::to_html(page);
}

}  // namespace program
