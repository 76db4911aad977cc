#include "denoising_gaussian/experiment.hpp"
#include "experiment/summary.hpp"
#include "experiment/table_reader.hpp"
#include "figures/opening.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/report/chart.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {
namespace {

using namespace implicit_diffusion;

GaussianResults read_results(const std::filesystem::path& file) {
  const SummaryFile summary(file);
  const auto number = [&](const Json& row, const char* key) { return summary.number(row, key); };
  GaussianResults r;
  for (const Json& row : summary.rows("results"))
    r.rows.push_back({number(row, "horizon"), number(row, "eta"), number(row, "theta"), number(row, "standard_error"),
                      number(row, "expected_error"), number(row, "mean_field"), number(row, "delay_equation")});
  for (const Json& row : summary.rows("paths"))
    r.paths.push_back({number(row, "eta"), summary.numbers(row, "theta"), summary.numbers(row, "standard_error")});
  return r;
}

// The distance from the mean, in standard errors of the theory.
double standard_errors_off(const GaussianRow& row) { return (row.theta - row.mean_field) / row.expected_error; }

std::string shown_eta(double eta) { return fmt::format("η = {}", four_digits(eta)); }

void add_point(report::Series& s, double x, double y, double low, double high) {
  s.add(x, y);
  s.low.push_back(low);
  s.high.push_back(high);
}

// Points that are not joined, each a short bar with two standard errors around it.
void add_bar(report::Series& s, double x, double width, double y, double error) {
  constexpr double gap = Figures::none;
  if (!s.x.empty()) add_point(s, (s.x.back() + x - width / 2) / 2, gap, gap, gap);
  const double low = std::min(y, std::max(y - 2 * error, error / 5));  // above 0: the axis is logarithmic
  for (const double share : {-0.5, 0.0, 0.5}) add_point(s, x + share * width, y, low, y + 2 * error);
}

const EnumNames<DecayRegime> headings{
    {"4η < 1", DecayRegime::exponential}, {"4η = 1", DecayRegime::critical}, {"4η > 1", DecayRegime::oscillating}};
std::string_view heading(double eta) { return name_of(decay_regime(eta), headings); }

std::string form(double eta) {
  const DecayRegime regime = decay_regime(eta);
  if (regime == DecayRegime::exponential) return fmt::format("e^(−{} T)", four_digits(decay_rate(eta)));
  return regime == DecayRegime::critical ? "T e^(−T)" : "e^(−T), oscillating";
}

// The gap over the horizon: the two theories as curves, the samples as bars.
report::Figure draw_gaps(const DenoisingGaussianConfiguration& c, const std::vector<GaussianRow>& rows) {
  const double eta = rows.front().eta, first = rows.front().horizon, last = rows.back().horizon;
  report::LineChart chart{.title = fmt::format("{}: {}", shown_eta(eta), form(eta)),
                          .x_label = "horizon T",
                          .y_label = "|θ(2T) − target|",
                          .log_y = true};
  constexpr int points = 240;
  report::Series delay{"theory"}, recursion{"recursion"}, sampled{"sampled"};
  for (int i = 0; i <= points; ++i) {
    const double horizon = first + (last - first) * i / points;
    delay.add(horizon, std::abs(final_gap(c.model(eta, horizon))));
  }
  const int low = c.slots(first), high = c.slots(last), stride = std::max((high - low) / points, 1);
  for (int m = low; m <= high; m += stride) {
    const double horizon = m / static_cast<double>(c.steps_per_time);
    recursion.add(horizon, std::abs(queue_recursion(c.model(eta, horizon), m, 2 * m).back() - c.target));
  }
  const double width = last > first ? (last - first) / 50 : 0.05;
  for (const GaussianRow& row : rows)
    add_bar(sampled, row.horizon, width, std::abs(row.theta - c.target), row.standard_error);
  chart.series = {std::move(delay), std::move(recursion), std::move(sampled)};
  return {report::to_svg(chart),
          fmt::format("{}: the rate is {} in theory, and {} fitted to the delay equation.", heading(eta),
                      four_digits(decay_rate(eta)), four_digits(c.fitted_rate(eta)))};
}

// theta over time in three ways.
report::Figure draw_path(const DenoisingGaussianConfiguration& c, const GaussianPath& p) {
  report::LineChart chart{.title = fmt::format("{}, {}", heading(p.eta), shown_eta(p.eta)),
                          .x_label = "time t",
                          .y_label = "θ",
                          .reference_lines = {{c.target, "target"}}};
  const GaussianDenoising model = c.model(p.eta, c.path_horizon);
  const int m = c.slots(c.path_horizon);
  const double h = c.path_horizon / m;
  report::Series delay{"theory", {0}, {c.theta_0}}, recursion{"recursion"}, sampled{"sampled"};
  constexpr int points = 150;
  for (int i = 0; i <= points; ++i) {
    const double t = c.path_horizon * (1 + static_cast<double>(i) / points);
    delay.add(t, delay_solution(model, std::min(t, 2 * c.path_horizon)).theta);
  }
  recursion.y = queue_recursion(model, m, 2 * m);
  for (int k = 0; k <= 2 * m; ++k) recursion.x.push_back(k * h);
  for (std::size_t k = 0; k < std::min({p.theta.size(), p.standard_error.size(), recursion.x.size()}); ++k)
    add_point(sampled, recursion.x[k], p.theta[k], p.theta[k] - 2 * p.standard_error[k],
              p.theta[k] + 2 * p.standard_error[k]);
  chart.series = {std::move(delay), std::move(recursion), std::move(sampled)};
  return {report::to_svg(chart), fmt::format("At time 2T, θ is {} in theory and {} in the samples.",
                                             four_digits(delay_solution(model, 2 * c.path_horizon).theta),
                                             four_digits(p.theta.empty() ? NAN : p.theta.back()))};
}

// How far the furthest row is off, in standard errors, and how often that is so by chance.
struct Furthest {
  double standard_errors, chance;
};
Furthest furthest_of(const GaussianResults& r) {
  double furthest = 0;
  for (const GaussianRow& row : r.rows) furthest = std::max(furthest, std::abs(standard_errors_off(row)));
  const double beyond = std::erfc(furthest / std::sqrt(2.0));
  return {furthest, -std::expm1(static_cast<double>(r.rows.size()) * std::log1p(-beyond))};
}
std::string chance(const GaussianResults& r) {
  const Furthest f = furthest_of(r);
  return fmt::format(
      "The largest of the {} differences is {:.2f} standard errors; by chance alone, one that large or larger occurs "
      "in "
      "{:.2g} % of runs.",
      r.rows.size(), f.standard_errors, 100 * f.chance);
}

// What was done, whether it worked, and how one can tell.
std::string gaussian_opening(const DenoisingGaussianConfiguration& c, const GaussianResults& r,
                             const std::string& status) {
  std::vector<std::string> text{fmt::format(
      "This run finetuned a one-dimensional denoising diffusion with a queue of samples, for {} settings of the "
      "horizon "
      "T and the learning rate η, and compared θ after the time 2T with its theory. Each setting was run {} times.",
      r.rows.size(), c.repeats)};
  if (const std::size_t wanted = c.horizons.size() * c.etas.size(); r.rows.size() < wanted)
    text.push_back(fmt::format("It {}: {} of {} settings are here.",
                               status == "diverged" ? "failed, because a loop diverged" : "was interrupted",
                               r.rows.size(), wanted));
  if (r.rows.empty()) return paragraph(text);
  constexpr double surprising = 0.001;  // how often chance may do as much before it is not believed
  const Furthest f = furthest_of(r);
  text.push_back(fmt::format(
      "{}: θ(2T) differs from the recursion that its mean obeys by at most {:.2f} standard errors, and chance alone "
      "produces a difference that large in {:.2g} % of runs.",
      f.chance > surprising ? "The samples agree with the theory" : "The samples do not agree with the theory",
      f.standard_errors, 100 * f.chance));
  double off = 0;
  for (const double eta : c.etas) off = std::max(off, std::abs(c.fitted_rate(eta) / decay_rate(eta) - 1));
  text.push_back(fmt::format(
      "The rates at which θ(2T) approaches the target, fitted to the delay equation, are within {:.1f} % of the "
      "theoretical ones.",
      100 * off));
  return paragraph(text);
}

}  // namespace

std::string DenoisingGaussianExperiment::report(const std::filesystem::path& folder) const {
  const DenoisingGaussianConfiguration& c = configuration();
  const GaussianResults r = read_results(folder / "summary.json");
  const std::string status = read_summary(io::read_file(folder / "summary.json"), io::display(folder)).status;
  report::Page page{
      .title = c.title,
      .subtitle = fmt::format("{}, seed {}: {} horizons, {} values of η, {} loops of each with batches of {}",
                              c.experiment, c.seed, c.horizons.size(), c.etas.size(), c.repeats, c.batch),
      .opening = gaussian_opening(c, r, status),
      .footer = footer};
  if (status != "completed")
    page.notice = fmt::format("The run was {}: the report covers {} of {} settings.",
                              status == "diverged" ? "ended by a loop that diverged" : status, r.rows.size(),
                              c.horizons.size() * c.etas.size());
  for (const double eta : c.etas)
    page.facts.push_back({shown_eta(eta), four_digits(c.fitted_rate(eta)),
                          fmt::format("fitted rate; the theory has {}", four_digits(decay_rate(eta)))});
  const double rest = c.target / euler_chain(c.horizons.back(), c.slots(c.horizons.back())).gain;
  report::Section gaps{
      .heading = "How far θ is from the target after 2T",
      .text =
          "The reverse diffusion of N(θ, 1) turns noise into samples in the time T, and θ should maximise the reward "
          "−(x − target)². A queue holds batches at all stages of this process. In each iteration every batch makes "
          "one "
          "step, and θ makes one step along the gradient of the batch that has just been finished. That batch was made "
          "with the values of θ during the last time T, so θ follows a delay equation. It does not move until T, when "
          "the first batch is ready, and the question is where it is at 2T.\n\n"
          "According to the theory, a longer horizon brings θ(2T) closer to the target, exponentially. How fast "
          "depends "
          "on η, the speed of θ per unit of time. The rate e^(−T) holds only for 4η > 1, where θ also oscillates "
          "around "
          "the target. For 4η = 1 the gap is T e^(−T). For 4η < 1 it is e^(−rT) with r = 1 − √(1 − 4η), which is about "
          "2η for small η: θ is too slow to reach the target in time, and a larger η is better. The paper’s "
          "Proposition 4.8 states O(e^(−T)) for every η > 0.\n\n" +
          fmt::format(
              "The curve “theory” is the delay equation, in closed form. The queue makes steps of length 1/{}, and its "
              "mean obeys a recursion. For long horizons the recursion ends near {} instead of at the target, so its "
              "curve levels off while that of the theory continues to fall; the difference is proportional to the "
              "length "
              "of a step. Sampled points are means over {} independent loops, whose expected value is the recursion.",
              c.steps_per_time, four_digits(rest), c.repeats)};
  for (const double eta : c.etas) {
    std::vector<GaussianRow> rows;
    for (const GaussianRow& row : r.rows)
      if (row.eta == eta) rows.push_back(row);
    if (!rows.empty()) gaps.figures.push_back(draw_gaps(c, rows));
  }
  page.sections.push_back(std::move(gaps));

  report::Section paths{
      .heading = fmt::format("θ over time, T = {}", four_digits(c.path_horizon)),
      .text = fmt::format("These are the largest η of each regime. The band around the sampled curve is two "
                          "standard errors of the mean of {} loops.",
                          c.repeats)};
  for (const auto& [words, regime] : headings) {
    const GaussianPath* largest = nullptr;
    for (const GaussianPath& p : r.paths)
      if (decay_regime(p.eta) == regime) largest = &p;
    if (largest) paths.figures.push_back(draw_path(c, *largest));
  }
  if (!paths.figures.empty()) page.sections.push_back(std::move(paths));

  report::Table rates{{"η", "4η", "θ(2T) − target falls as", "rate, fitted to the closed form", "rate, theory"}};
  for (const double eta : c.etas)
    rates.rows.push_back(
        {four_digits(eta), four_digits(4 * eta), form(eta), fixed(c.fitted_rate(eta), 4), fixed(decay_rate(eta), 4)});
  page.sections.push_back(
      {.heading = "Rates",
       .text =
           "The rates are fitted to θ(2T) − target of the delay equation at the horizons 3, 3.25, ..., 8, in the form "
           "that the theory gives. Terms that this form leaves out, such as θ₀ e^(−2T), change a rate by 1 % or less, "
           "and by more near 4η = 1. The samples follow the recursion, which levels off earlier.",
       .tables = {std::move(rates)}});
  report::Table all{{"η", "T", "sampled θ(2T)", "standard error", "recursion", "theory", "off, standard errors"}};
  for (const GaussianRow& row : r.rows)
    all.rows.push_back({four_digits(row.eta), four_digits(row.horizon), fixed(row.theta, 4),
                        fixed(row.standard_error, 4), fixed(row.mean_field, 4), fixed(row.delay_equation, 4),
                        fixed(standard_errors_off(row), 2)});
  if (!r.rows.empty())
    page.sections.push_back({.heading = "All settings",
                             .text = "The last column is the difference between the samples and the recursion, in "
                                     "standard errors. The standard error is known from theory, because the noise of "
                                     "the loop is Gaussian with a known size. " +
                                     chance(r),
                             .tables = {std::move(all)}});
  page.sections.push_back(repeat_section(c.resolved.text(), folder, ""));
  return report::to_html(page);
}

}  // namespace program
