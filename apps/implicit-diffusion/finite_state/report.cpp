#include "experiment/warnings.hpp"
#include "figures/opening.hpp"
#include "figures/run_tables.hpp"
#include "figures/tables.hpp"
#include "finite_state/experiment.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/report/chart.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <numbers>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

// Density on [0, 2 pi) of a law on the ring, or of shares put into `bins`.
report::Series density(const std::string& label, std::span<const double> p, std::size_t bins) {
  report::Series s{label};
  const std::size_t n = p.size();
  bins = std::min(bins, n);
  for (std::size_t b = 0; b < bins; ++b) {
    const std::size_t first = b * n / bins, last = (b + 1) * n / bins;
    double mass = 0;
    for (std::size_t i = first; i < last; ++i) mass += p[i];
    const double h = 2 * std::numbers::pi / static_cast<double>(n);
    s.add(h * (static_cast<double>(first + last - 1) / 2), mass / (h * static_cast<double>(last - first)));
  }
  return s;
}

// How far the other loops went, each in a few words.
std::string other_loops(const Json& loops, double start, double best) {
  std::vector<std::string> parts;
  for (const auto& [name, label] :
       {std::pair{"law", "with the exact distribution"}, {"gibbs", "with samples of a Gibbs distribution"}})
    for (const Json& loop : loops)
      if (loop.is_object() && loop.value("loop", "") == name)
        parts.push_back(fmt::format("{} went {} of the way", label,
                                    percent(share_of_way(start, number_or_nan(loop, "objective"), best))));
  return parts.empty() ? "" : fmt::format("Of the other loops, the one {}.", fmt::join(parts, ", the one "));
}

// What was done, whether it worked, and how one can tell. `objective` is that of the loop with samples, at its rows.
std::string finite_state_opening(const FiniteStateConfiguration& c, const Json& summary, const Json& results,
                                 const Json& loops, const std::vector<double>& objective) {
  const std::string status = summary.value("status", "");
  const std::int64_t steps = summary.value("steps", std::int64_t{0});
  std::vector<std::string> text{
      fmt::format(
          "This run tuned a Markov chain on {} states with the single loop, so that its stationary distribution "
          "earns a reward and stays near to the uniform one. It did so three times, with {} steps of θ each: "
          "with the exact distribution, and with {} samples and two kinds of gradients.",
          c.ring.states, steps, c.particles),
      how_it_ended(status, steps, c.steps)};
  const double best = number_or_nan(summary, "best_objective");
  if (const auto ends = ends_of(&objective); ends && ends->first > best) {
    const double share = share_of_way(ends->first, ends->last, best);
    text.push_back(fmt::format(
        "{}: with samples and the linear system, the objective {}. Its optimum is known, {}, so the run went {} of the "
        "way; the KL divergence of its distribution from the best one is {:.1e} nats.",
        verdict_of(share), change_text(*ends), four_digits(best), percent(share), number_or_nan(summary, "exact_kl")));
    text.push_back(other_loops(loops, ends->first, best));
  } else if (ends) {
    text.push_back(fmt::format("It started at the optimum, and the objective {}.", change_text(*ends)));
  }
  text.emplace_back("The objective is that of the exact stationary distribution at θ, so it has no sampling noise.");
  double largest = 0;
  for (const Json& row : results) largest = std::max(largest, number_or_nan(row, "gradient_error"));
  if (!results.empty())
    text.push_back(fmt::format(
        "Gradients by the linear system were also compared with exact ones: their largest relative error is {:.0e}.",
        largest));
  return paragraph(text);
}

}  // namespace

std::string FiniteStateExperiment::report(const fs::path& folder) const {
  const FiniteStateConfiguration& c = configuration();
  if (!repeats_of(folder).empty()) return repeats_report(c, folder);
  const SummaryFile summary(folder / "summary.json");
  const Json &j = summary.json(), &loops = summary.rows("loops"), &results = summary.rows("results");
  const io::CsvTable metrics = io::read_csv(folder / "metrics.csv", io::EmptyCell::nan);
  io::Array samples;
  if (std::error_code none; fs::exists(folder / "samples.npy", none)) samples = io::read_npy(folder / "samples.npy");
  const RingProblem ring = ring_problem(c.ring, c.reward, c.beta);
  const auto column = [&](const std::string& name) -> const std::vector<double>& {
    for (std::size_t i = 0; i < metrics.header.size(); ++i)
      if (metrics.header[i] == name) return metrics.columns[i];
    throw Error(ErrorKind::data, io::display(folder / "metrics.csv"), fmt::format("has no column {}", name));
  };

  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}, seed {}: {} states, {} samples, {} steps", c.experiment, c.seed,
                                            c.ring.states, c.particles, c.steps),
                    .warnings = messages_of(read_warnings(j)),
                    .opening = finite_state_opening(c, j, results, loops, column("objective_particles")),
                    .footer = footer};
  const double best = number_or_nan(j, "best_objective"), best_reward = number_or_nan(j, "best_reward");
  page.facts = {
      {"Exact reward", fixed(number_or_nan(j, "exact_reward"), 4), "under the stationary distribution"},
      {"Best reward", fixed(best_reward, 4), "of the optimum, in closed form"},
      {"KL divergence", fmt::format("{:.2e}", number_or_nan(j, "exact_kl")), "from the best distribution, in nats"}};

  report::Section laws{
      .heading = "The distribution on the ring",
      .text =
          "A chain jumps among states on a circle: P(i, i+s) = σ(Vᵢ − Vᵢ₊ₛ + c h s)/(2w). V is a sum of harmonics, and "
          "c is a drift around the ring; θ consists of c and the coefficients of V. The objective is "
          "−E[R] + β KL(p ‖ uniform): the stationary distribution p should have a large mean reward and stay near to "
          "the "
          "uniform distribution. The best of all distributions is exp(R/β)/Z, and the chain can reach it, with c = 0 "
          "and "
          "V = −R/β."};
  report::LineChart law{.title = "The stationary distribution", .x_label = "place on the ring", .y_label = "density"};
  constexpr std::size_t curve_points = 400, bins = 60;
  ChainGradient gradient(ring.chain, ring.objective);
  std::vector<double> g(ring.start.size()), theta, shares(c.ring.states);
  const io::Array thetas = io::read_npy(folder / "theta.npy");
  if (thetas.shape.size() != 2 || thetas.shape[1] != g.size() || thetas.shape[0] == 0)
    throw Error(ErrorKind::data, io::display(folder / "theta.npy"), "has another shape");
  theta.assign(thetas.values.end() - static_cast<std::ptrdiff_t>(g.size()), thetas.values.end());
  try {
    gradient.exact(theta, g);
    law.series.push_back(density("learnt from samples", gradient.law(), curve_points));
  } catch (const Error&) {
    page.notice = "The run diverged: at its last θ the chain is disconnected, so it has no stationary distribution.";
  }
  for (const double state : samples.values) {
    if (!(state >= 0 && state < static_cast<double>(c.ring.states)))
      throw Error(ErrorKind::data, io::display(folder / "samples.npy"), "has a state that is not on the ring");
    shares[static_cast<std::size_t>(state)] += 1 / static_cast<double>(samples.values.size());
  }
  if (!samples.values.empty()) law.series.push_back(density("samples", shares, bins));
  gradient.exact(c.start, g);
  law.series.push_back(density("at the start", gradient.law(), curve_points));
  // Dashes, as it may lie upon the learnt one.
  report::Series optimum = density("best distribution", ring.best_law, curve_points);
  constexpr std::size_t period = 8;
  for (std::size_t i = 0; i < optimum.y.size(); ++i)
    if (i % period >= period / 2) optimum.y[i] = Figures::none;
  law.series.push_back(std::move(optimum));
  const std::span<const double> r = ring.objective.reward();
  report::Series rewards{""};
  for (std::size_t i = 0; i < r.size(); ++i)
    rewards.add(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(r.size()), r[i]);
  const report::LineChart earned{
      .title = "The reward", .x_label = "place on the ring", .y_label = "R", .series = {std::move(rewards)}};
  laws.figures = {{report::to_svg(law),
                   "The distribution was learnt in a single loop, in which one move of every sample alternates with "
                   "one step of θ."},
                  {report::to_svg(earned), "The reward of each state."}};
  page.sections.push_back(std::move(laws));

  report::Section curves{
      .heading = "The single loop, three times",
      .text =
          "The first loop advances the distribution itself, p ← p P(θ), without noise. If θ moves faster than the "
          "chain "
          "mixes, the distribution oscillates around the optimum before it settles. The second loop advances samples "
          "and takes the gradient from the same linear system, evaluated at the shares of the samples in each state. "
          "The third uses a Gibbs distribution, for which the gradient is a covariance."};
  report::LineChart gap{.title = "Distance of the objective from its optimum",
                        .x_label = "step",
                        .y_label = "F(π*(θ)) − min F",
                        .log_y = true};
  report::LineChart reward{.title = "Reward",
                           .x_label = "step",
                           .y_label = "mean of R",
                           .reference_lines = {{best_reward, "best distribution"}}};
  const std::array names{std::pair{"law", "the distribution itself"}, std::pair{"particles", "samples, linear system"},
                         std::pair{"gibbs", "samples, covariance"}};
  for (const auto& [name, label] : names) {
    report::Series s{label, column("step")};
    for (const double v : column(fmt::format("objective_{}", name))) s.y.push_back(v - best);
    gap.series.push_back(std::move(s));
    reward.series.push_back({label, column("step"), column(fmt::format("reward_{}", name))});
  }
  curves.figures = {
      {report::to_svg(gap),
       "The objective of the exact stationary distribution at θ. Near the optimum, its slope is the same in all "
       "states, "
       "so the noise of the samples cancels in the gradient. The loop without noise takes its slope from a "
       "distribution "
       "that lags behind θ."},
      {report::to_svg(reward), "The mean reward of the samples, or of the distribution that the loop advances."}};
  report::Table table{{"loop", "reward", "exact reward", "objective", "KL"}};
  for (const Json& row : loops) {
    std::string label = row.is_object() && row.contains("loop") && row["loop"].is_string() ? row["loop"] : "";
    for (const auto& [name, text] : names)
      if (label == name) label = text;
    table.rows.push_back({label, fixed(number_or_nan(row, "reward"), 5), fixed(number_or_nan(row, "exact_reward"), 5),
                          fixed(number_or_nan(row, "objective"), 6),
                          fmt::format("{:.2e}", number_or_nan(row, "exact_kl"))});
  }
  table.rows.push_back({"the optimum", "", fixed(best_reward, 5), fixed(best, 6), "0"});
  curves.tables.push_back(std::move(table));
  page.sections.push_back(std::move(curves));

  if (!results.empty()) {
    report::Section sizes{
        .heading = "Gradients by the linear system",
        .text =
            "The gradient of a stationary distribution takes one solve with I − P: by dense LU, or by "
            "sparse LU if each state has few neighbours. These chains are heat baths, whose stationary "
            "distribution is a Gibbs distribution, so the exact gradient is known: it is a "
            "covariance."};
    report::LineChart error{.title = "Error of the gradient",
                            .x_label = "states",
                            .y_label = "relative error",
                            .log_x = true,
                            .log_y = true};
    report::LineChart time{
        .title = "Time of a gradient", .x_label = "states", .y_label = "seconds", .log_x = true, .log_y = true};
    report::Table rows{{"form", "states", "relative error", "seconds"}};
    for (const char* form : {"dense", "banded"}) {
      report::Series e{form}, t{form};
      for (const Json& row : results) {
        if (!row.is_object() || !row.contains("form") || row["form"] != form) continue;
        e.add(number_or_nan(row, "states"), number_or_nan(row, "gradient_error"));
        t.add(e.x.back(), number_or_nan(row, "seconds"));
        rows.rows.push_back({form, fmt::format("{:.0f}", e.x.back()), fmt::format("{:.1e}", e.y.back()),
                             fmt::format("{:.2g}", t.y.back())});
      }
      if (e.x.empty()) continue;
      error.series.push_back(std::move(e));
      time.series.push_back(std::move(t));
    }
    sizes.figures = {
        {report::to_svg(error), "The difference from the covariance, relative to its largest entry."},
        {report::to_svg(time), "The median of three gradients, including the probabilities and the factorisation."}};
    sizes.tables.push_back(std::move(rows));
    page.sections.push_back(std::move(sizes));
  }

  report::Table values{{"parameter", "start", "learnt from samples", "optimum"}};
  for (std::size_t k = 0; k < ring.optimum.size() && j["theta"].is_array() && k < j["theta"].size(); ++k)
    values.rows.push_back({k == 0 ? "drift c" : fmt::format("{}{}", k % 2 == 1 ? "a" : "b", (k + 1) / 2),
                           fixed(c.start[k], 4), j["theta"][k].is_number() ? fixed(j["theta"][k].get<double>(), 4) : "",
                           fixed(ring.optimum[k], 4)});
  page.sections.push_back({.heading = "Parameters", .tables = {std::move(values)}});
  page.sections.push_back(repeat_section(c.resolved.text(), folder, ""));
  return report::to_html(page);
}

}  // namespace program
