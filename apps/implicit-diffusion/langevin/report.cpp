#include "langevin/experiment.hpp"

#include "experiment/warnings.hpp"
#include "figures/run_tables.hpp"
#include "figures/tables.hpp"
#include "langevin/curves.hpp"
#include "langevin/diverged.hpp"
#include "langevin/match_components.hpp"
#include "langevin/opening.hpp"
#include "langevin/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

// Numbers that share an axis, with their names: parameters, or figures of the law.
struct Quantities {
  std::string title, y_label;
  std::vector<std::string> names = {};
  std::vector<std::vector<double>> values = {};  // for each name a value for each row of metrics.csv

  // value(row) for each of the rows, which are thetas or laws.
  template <class Rows, class Value>
  void add(std::string name, const Rows& rows, Value&& value) {
    names.push_back(std::move(name));
    values.emplace_back();
    for (const auto& row : rows) values.back().push_back(value(row));
  }
};

report::Figure draw(const Quantities& q, const std::vector<double>& step) {
  constexpr std::size_t most = 12;  // curves that can be told apart
  report::LineChart chart{.title = q.title, .x_label = "step", .y_label = q.y_label, .series = {}};
  for (std::size_t i = 0; i < std::min(q.names.size(), most); ++i)
    chart.series.push_back({q.names[i], step, q.values[i]});
  return {report::to_svg(chart),
          q.names.size() > most ? fmt::format("This chart shows the first {} of {}.", most, q.names.size()) : ""};
}

// theta, a curve for each parameter.
Quantities theta_quantities(const RunFiles& run, const char* title, const char* name) {
  Quantities theta{title, "θ"};
  for (std::size_t j = 0; j < run.theta.front().size(); ++j)
    theta.add(fmt::format("{}{}", name, j + 1), run.theta, [j](const auto& row) { return row[j]; });
  return theta;
}

// The parameters of the laws at all rows, as curves.
std::vector<Quantities> quantities(const RunFiles& run, const std::vector<GaussianMixture>& laws) {
  const ThetaDescription theta_is = run.configuration.potential.describe();
  std::vector<Quantities> all;
  const std::size_t n = laws.front().weights.size(), d = laws.front().dimension();
  if (n > 1) {
    Quantities& weights =
        all.emplace_back(Quantities{theta_is.by_well ? "Weights of the wells" : "Weights of the components", "weight"});
    for (std::size_t i = 0; i < n; ++i)
      weights.add(fmt::format("{} {}", theta_is.by_well ? "well" : "weight", i + 1), laws,
                  [i](const GaussianMixture& law) { return law.weights[i]; });
  }
  if (theta_is.by_well) {  // the centres are fixed
    all.push_back(theta_quantities(run, "θ, one parameter for each well", "well "));
    return all;
  }
  const auto of = [&](std::size_t i) { return n > 1 ? fmt::format(" {}", i + 1) : ""; };
  Quantities means{n > 1 ? "Means of the components" : "Mean of π*(θ)", "mean"};
  Quantities covariances{"Covariances of the components", "variance, covariance"};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t a = 0; a < d; ++a) {
      const std::string x = coordinate_name(a, d);
      means.add(fmt::format("mean{}, {}", of(i), x), laws,
                [=](const GaussianMixture& law) { return law.components[i].mean[a]; });
      for (std::size_t b = a; b < d; ++b)
        covariances.add(
            a == b ? fmt::format("var{}, {}", of(i), x) : fmt::format("cov{}, {}{}", of(i), x, coordinate_name(b, d)),
            laws, [=](const GaussianMixture& law) { return law.components[i].covariance[a * d + b]; });
    }
  all.push_back(std::move(means));
  if (theta_is.covariances) all.push_back(std::move(covariances));
  return all;
}

// A column with value(i) for row i of the table.
template <class Value>
void add_column(report::Table& table, const std::string& name, Value&& value) {
  std::vector<double> values;
  for (std::size_t i = 0; i < table.rows.size(); ++i) values.push_back(value(i));
  table.header.push_back(name);
  const std::vector<std::string> text = column_text(values);
  for (std::size_t i = 0; i < text.size(); ++i) table.rows[i].push_back(text[i]);
}

constexpr std::size_t most_components = 30;  // in a table

// A row for each well: where it is, and its parameter and weight at the start and at the end.
report::Table wells_table(const RunFiles& run, const GaussianMixture& start, const GaussianMixture& end,
                          const std::optional<GaussianMixture>& reference) {
  report::Table table{{"well"}, {}};
  for (std::size_t i = 0; i < std::min(start.weights.size(), most_components); ++i)
    table.rows.push_back({fmt::format("{}", i + 1)});
  for (std::size_t a = 0; a < std::min<std::size_t>(start.dimension(), 3); ++a)
    add_column(table, "centre, " + coordinate_name(a, start.dimension()),
               [&](std::size_t i) { return start.components[i].mean[a]; });
  const auto add = [&](const std::string& name, const std::vector<double>& values) {
    add_column(table, name, [&](std::size_t i) { return values[i]; });
  };
  add("θ at the start", run.theta.front());
  add("θ at the end", run.theta.back());
  add("weight at the start", start.weights);
  add("weight at the end", end.weights);
  if (reference) add("in the reference", reference->weights);
  return table;
}

// Rows for each component at the start and at the end, then those of the reference.
report::Table components_table(const GaussianMixture& start, const GaussianMixture& end,
                               const std::optional<GaussianMixture>& reference) {
  const std::size_t n = start.weights.size(), shown = std::min(n, most_components);
  std::vector<std::pair<const GaussianMixture*, std::size_t>> rows;  // a component of a law each
  report::Table table{n > 1 ? std::vector<std::string>{"component", ""} : std::vector<std::string>{""}, {}};
  const auto add_row = [&](const char* when, const GaussianMixture& law, std::size_t i) {
    rows.emplace_back(&law, i);
    table.rows.emplace_back();
    if (n > 1) table.rows.back().push_back(fmt::format("{}", i + 1));
    table.rows.back().emplace_back(when);
  };
  for (std::size_t i = 0; i < shown; ++i) {
    add_row("start", start, i);
    add_row("end", end, i);
  }
  for (std::size_t i = 0; reference && i < shown; ++i) add_row("reference", *reference, i);

  const std::size_t d = start.dimension(), axes = std::min<std::size_t>(d, 3);
  const auto component = [&](std::size_t r) -> const Gaussian& { return rows[r].first->components[rows[r].second]; };
  if (n > 1) add_column(table, "weight", [&](std::size_t r) { return rows[r].first->weights[rows[r].second]; });
  for (std::size_t a = 0; a < axes; ++a)
    add_column(table, "mean " + coordinate_name(a, d), [&](std::size_t r) { return component(r).mean[a]; });
  for (std::size_t a = 0; a < axes; ++a)
    for (std::size_t b = a; b < axes; ++b)
      add_column(table, (a == b ? "var " : "cov " + coordinate_name(a, d)) + coordinate_name(b, d),
                 [&](std::size_t r) { return component(r).covariance[a * d + b]; });
  return table;
}

std::string matched_components(const GaussianMixture& end, const GaussianMixture& reference) {
  const std::vector<std::size_t> order = match_components(end, reference);
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), most_components); ++i)
    text += fmt::format("{}component {} to {}", i ? ", " : "", i + 1, order[i] + 1);
  return "At the end, these components of the learnt distribution and of the reference are nearest to each other, by "
         "their means: " +
         text + ".";
}

report::Section parameters_section(const RunFiles& run) {
  report::Section section{.heading = "Parameters"};
  const std::vector<double>& step = *column(run, "step");
  if (!has_law(run)) {
    section.figures.push_back(draw(theta_quantities(run, "θ over the run", "θ"), step));
    return section;
  }
  const Potential<float> potential = run.configuration.potential.make();
  std::vector<GaussianMixture> laws;
  for (const auto& row : run.theta) laws.push_back(*potential.law(row));
  for (const Quantities& q : quantities(run, laws)) section.figures.push_back(draw(q, step));

  std::optional<GaussianMixture> reference;
  if (const auto& r = run.configuration.reference; r && !r->theta.empty()) reference = potential.law(r->theta);
  if (run.configuration.potential.describe().by_well) {
    section.tables.push_back(wells_table(run, laws.front(), laws.back(), reference));
  } else {
    section.tables.push_back(components_table(laws.front(), laws.back(), reference));
    if (reference && reference->weights.size() > 1) section.text = matched_components(laws.back(), *reference);
  }
  const std::size_t n = laws.front().weights.size(), d = laws.front().dimension();
  std::string shortened;
  if (n > most_components) shortened = fmt::format("the first {} of {} components", most_components, n);
  if (d > 3) shortened += fmt::format("{}the first three of {} coordinates", shortened.empty() ? "" : ", ", d);
  if (!shortened.empty()) section.text += (section.text.empty() ? "" : " ") + ("The table shows " + shortened + ".");
  return section;
}

std::vector<report::Fact> facts(const RunFiles& run) {
  std::vector<report::Fact> all;
  for (const FigureName& f : figure_names)
    if (const double value = run.summary.figures.*f.value;
        std::isfinite(value) && (run.configuration.reward || f.value != &Figures::reward))
      all.push_back({f.title, minus(figure_text(value, f.digits)), f.note});
  for (const Reached& r : run.summary.reached)
    all.push_back({"Reached " + minus(r.threshold), r.step ? fmt::format("step {}", *r.step) : "never",
                   "by the log-likelihood, averaged over 20 steps"});
  return all;
}

// What is to be known of a run that did not come to its end; empty where it did.
std::string notice(const RunFiles& run) {
  const LangevinConfiguration& c = run.configuration;
  const Summary& s = run.summary;
  if (s.status == "interrupted")
    return fmt::format("The run was interrupted after step {} of {}; this report shows the state at that step.",
                       s.steps, c.steps);
  if (s.status != "diverged") return {};
  return fmt::format(
      "The run diverged at step {} of {}: a sample or the gradient was no longer finite, or θ left the domain of the "
      "potential. This report shows the last θ before that; there are no samples. Advice: {}.",
      s.steps + 1, c.steps, divergence_advice(c, std::nullopt));
}

std::string subtitle(const RunFiles& run) {
  const LangevinConfiguration& c = run.configuration;
  std::string text = fmt::format("{}, method {}, seed {}: {}, {} steps", c.experiment, to_string(c.method), c.seed,
                                 run.summary.status, run.summary.steps);
  if (std::isfinite(run.summary.seconds)) text += fmt::format(" in {:.2f} s", run.summary.seconds);
  return text;
}

std::string run_report(const RunFiles& run) {
  report::Page page{.title = run.configuration.title,
                    .subtitle = subtitle(run),
                    .notice = notice(run),
                    .warnings = messages_of(run.summary.warnings),
                    .opening = langevin_opening(run),
                    .facts = facts(run),
                    .footer = footer};
  if (has_law(run)) page.sections.push_back(LawPictures(run).section());
  add_langevin_curves(page, {Group{"", {&run}}}, run.configuration);
  page.sections.push_back(parameters_section(run));
  page.sections.push_back(repeat_section(run.configuration.resolved.text(), run.folder, ""));
  return report::to_html(page);
}

std::string langevin_repeats_report(const LangevinConfiguration& c, const std::vector<RunFiles>& runs) {
  Group all{"", {}};
  for (const RunFiles& run : runs) all.runs.push_back(&run);
  report::Page page =
      repeats_page(c, fmt::format("{}, method {}", c.experiment, to_string(c.method)), all.runs, c.reward.has_value());
  add_langevin_curves(page, {all}, c);
  if (has_law(runs.front())) {
    page.sections.push_back(LawPictures(runs.front()).section());
    page.sections.back().text += fmt::format(" They belong to seed {}.", c.seed);
  }
  page.sections.push_back(runs_section(all.runs, false));
  page.sections.push_back(
      repeat_section(c.resolved.text(), runs.front().folder.parent_path(), fmt::format(" --repeats {}", runs.size())));
  return report::to_html(page);
}

}  // namespace

std::string LangevinExperiment::report(const std::filesystem::path& folder) const {
  const LangevinConfiguration& c = configuration();
  std::vector<RunFiles> runs;
  for (const auto& f : repeats_of(folder)) runs.push_back(read_run(f, c, seed_of_repeat(f)));
  return runs.empty() ? run_report(read_run(folder, c, c.seed)) : langevin_repeats_report(c, runs);
}

}  // namespace program
