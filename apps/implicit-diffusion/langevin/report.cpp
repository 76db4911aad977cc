#include "langevin/report.hpp"

#include "experiment/registry.hpp"
#include "figures/curves.hpp"
#include "figures/law_pictures.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/report/chart.hpp"
#include "implicit_diffusion/report/page.hpp"
#include "langevin/comparison/comparison.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

namespace program {
namespace {

using namespace implicit_diffusion;

// The name of a run's folder, however it was written.
std::string folder_name(const RunFiles& run) { return (run.folder / "").parent_path().filename().string(); }

// The same, for one of several repeats with the name of the folder that holds them.
std::string run_name(const RunFiles& run, bool with_parent) {
  const std::string name = folder_name(run), parent = run.folder.parent_path().filename().string();
  return with_parent && name.starts_with("seed-") && !parent.empty() ? parent + "/" + name : name;
}

// The law and the samples at the start and at the end, and the law to be learnt where there is one.
void add_law(report::Page& page, const RunFiles& run, const std::string& more = "") {
  if (!has_law(run)) return;
  const LawPictures pictures(run);
  report::Section section{.heading = "The law and its samples", .text = pictures.text()};
  if (!more.empty()) section.text += " " + more;
  section.figures = {pictures.start(), pictures.end()};
  section.three_in_a_row = pictures.three_in_a_row();
  if (auto reference = pictures.reference()) section.figures.push_back(std::move(*reference));
  page.sections.push_back(std::move(section));
}

// Numbers that share an axis, with their names: parameters, or figures of the law.
struct Quantities {
  std::string title, y_label;
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;  // for each name a value for each row of metrics.csv

  void add(std::string name, std::vector<double> v) {
    names.push_back(std::move(name));
    values.push_back(std::move(v));
  }
};

report::Figure draw(const Quantities& q, const std::vector<double>& step) {
  constexpr std::size_t most = 12;  // curves that can be told apart
  report::LineChart chart{.title = q.title, .x_label = "step", .y_label = q.y_label, .series = {}};
  for (std::size_t i = 0; i < std::min(q.names.size(), most); ++i)
    chart.series.push_back({q.names[i], step, q.values[i]});
  return {report::to_svg(chart), q.names.size() > most ? fmt::format("The first {} of {}.", most, q.names.size()) : ""};
}

bool has_wells(const PotentialSpec& p) {
  return p.kind == PotentialKind::wells || p.kind == PotentialKind::logistic_wells;
}

// The laws at all rows, and their parameters as curves.
std::vector<Quantities> quantities(const RunFiles& run, const std::vector<GaussianMixture>& laws) {
  const PotentialSpec& p = run.configuration.potential;
  const auto over_laws = [&](auto&& figure) {
    std::vector<double> v;
    for (const GaussianMixture& law : laws) v.push_back(figure(law));
    return v;
  };
  std::vector<Quantities> all;
  const std::size_t n = laws.front().weights.size(), d = laws.front().dimension();
  if (n > 1) {
    Quantities weights{has_wells(p) ? "Weights of the wells" : "Weights of the components", "weight", {}, {}};
    for (std::size_t i = 0; i < n; ++i)
      weights.add(fmt::format("{} {}", has_wells(p) ? "well" : "weight", i + 1),
                  over_laws([&](const GaussianMixture& law) { return law.weights[i]; }));
    all.push_back(std::move(weights));
  }
  if (has_wells(p)) {  // the centres are fixed
    Quantities theta{"θ, a parameter for each well", "θ", {}, {}};
    for (std::size_t i = 0; i < n; ++i) {
      theta.add(fmt::format("well {}", i + 1), {});
      for (const auto& row : run.theta) theta.values.back().push_back(row[i]);
    }
    all.push_back(std::move(theta));
    return all;
  }
  const auto of = [&](std::size_t i) { return n > 1 ? fmt::format(" {}", i + 1) : ""; };
  Quantities means{n > 1 ? "Means of the components" : "Mean of π*(θ)", "mean", {}, {}};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t a = 0; a < d; ++a)
      means.add(fmt::format("mean{}, {}", of(i), coordinate_name(a, d)),
                over_laws([&](const GaussianMixture& law) { return law.components[i].mean[a]; }));
  all.push_back(std::move(means));
  if (p.kind == PotentialKind::quadratic) return all;  // the covariance is fixed
  Quantities covariances{"Covariances of the components", "variance, covariance", {}, {}};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = a; b < d; ++b)
        covariances.add(a == b ? fmt::format("var{}, {}", of(i), coordinate_name(a, d))
                               : fmt::format("cov{}, {}{}", of(i), coordinate_name(a, d), coordinate_name(b, d)),
                        over_laws([&](const GaussianMixture& law) { return law.components[i].covariance[a * d + b]; }));
  all.push_back(std::move(covariances));
  return all;
}

void add_column(report::Table& table, const std::string& name, const std::vector<double>& values) {
  table.header.push_back(name);
  const std::vector<std::string> text = column_text(values);
  for (std::size_t i = 0; i < text.size(); ++i) table.rows[i].push_back(text[i]);
}

constexpr std::size_t most_components = 30;  // in a table

// A row for each well: where it is, and its parameter and weight at the start and at the end.
report::Table wells_table(const RunFiles& run, const GaussianMixture& start, const GaussianMixture& end,
                          const std::optional<GaussianMixture>& reference) {
  const std::size_t n = std::min(start.weights.size(), most_components),
                    d = std::min<std::size_t>(start.dimension(), 3);
  report::Table table{{"well"}, {}};
  for (std::size_t i = 0; i < n; ++i) table.rows.push_back({fmt::format("{}", i + 1)});
  const auto add = [&](const std::string& name, auto&& value) {
    std::vector<double> values;
    for (std::size_t i = 0; i < n; ++i) values.push_back(value(i));
    add_column(table, name, values);
  };
  for (std::size_t a = 0; a < d; ++a)
    add("centre, " + coordinate_name(a, start.dimension()), [&](std::size_t i) { return start.components[i].mean[a]; });
  add("θ at the start", [&](std::size_t i) { return run.theta.front()[i]; });
  add("θ at the end", [&](std::size_t i) { return run.theta.back()[i]; });
  add("weight at the start", [&](std::size_t i) { return start.weights[i]; });
  add("weight at the end", [&](std::size_t i) { return end.weights[i]; });
  if (reference) add("in the reference", [&](std::size_t i) { return reference->weights[i]; });
  return table;
}

// Rows for each component at the start and at the end, then those of the reference.
report::Table components_table(const GaussianMixture& start, const GaussianMixture& end,
                               const std::optional<GaussianMixture>& reference) {
  struct Row {
    const GaussianMixture* law;
    std::size_t component;
  };
  const std::size_t n = start.weights.size(), d = std::min<std::size_t>(start.dimension(), 3);
  std::vector<Row> rows;
  report::Table table{n > 1 ? std::vector<std::string>{"component", ""} : std::vector<std::string>{""}, {}};
  const auto add_row = [&](const char* when, const GaussianMixture& law, std::size_t i) {
    rows.push_back({&law, i});
    table.rows.emplace_back();
    if (n > 1) table.rows.back().push_back(fmt::format("{}", i + 1));
    table.rows.back().emplace_back(when);
  };
  for (std::size_t i = 0; i < std::min(n, most_components); ++i) {
    add_row("start", start, i);
    add_row("end", end, i);
  }
  if (reference)
    for (std::size_t i = 0; i < std::min(n, most_components); ++i) add_row("reference", *reference, i);

  const auto add = [&](const std::string& name, auto&& value) {
    std::vector<double> values;
    for (const Row& row : rows) values.push_back(value(*row.law, row.component));
    add_column(table, name, values);
  };
  const auto x = [&](std::size_t a) { return coordinate_name(a, start.dimension()); };
  if (n > 1) add("weight", [](const GaussianMixture& law, std::size_t i) { return law.weights[i]; });
  for (std::size_t a = 0; a < d; ++a)
    add("mean " + x(a), [&](const GaussianMixture& law, std::size_t i) { return law.components[i].mean[a]; });
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = a; b < d; ++b)
      add(a == b ? "var " + x(a) : "cov " + x(a) + x(b), [&](const GaussianMixture& law, std::size_t i) {
        return law.components[i].covariance[a * law.dimension() + b];
      });
  return table;
}

// Components have no order of their own: to which of the reference each has come nearest.
std::string nearest_components(const GaussianMixture& end, const GaussianMixture& reference) {
  std::string text;
  for (std::size_t i = 0; i < std::min(end.weights.size(), most_components); ++i) {
    std::size_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < reference.weights.size(); ++k) {
      double square = 0;
      for (std::size_t a = 0; a < end.dimension(); ++a)
        square += std::pow(end.components[i].mean[a] - reference.components[k].mean[a], 2);
      if (square < least) {
        least = square;
        nearest = k;
      }
    }
    text += fmt::format("{}component {} to {}", i ? ", " : "", i + 1, nearest + 1);
  }
  return "Nearest to each other at the end, by their means, in the learnt law and in the reference: " + text + ".";
}

report::Section parameters_section(const RunFiles& run) {
  report::Section section{.heading = "Parameters"};
  const std::vector<double>& step = *column(run, "step");
  if (!has_law(run)) {
    Quantities theta{"θ over the run", "θ", {}, {}};
    for (std::size_t j = 0; j < run.theta.front().size(); ++j) {
      theta.add(fmt::format("θ{}", j + 1), {});
      for (const auto& row : run.theta) theta.values.back().push_back(row[j]);
    }
    section.figures.push_back(draw(theta, step));
    return section;
  }
  const Potential<float> potential = make_potential(run.configuration.potential);
  std::vector<GaussianMixture> laws;
  for (const auto& row : run.theta) laws.push_back(*potential.law(row));
  for (const Quantities& q : quantities(run, laws)) section.figures.push_back(draw(q, step));

  std::optional<GaussianMixture> reference;
  if (const auto& r = run.configuration.reference; r && !r->theta.empty()) reference = potential.law(r->theta);
  if (has_wells(run.configuration.potential)) {
    section.tables.push_back(wells_table(run, laws.front(), laws.back(), reference));
  } else {
    section.tables.push_back(components_table(laws.front(), laws.back(), reference));
    if (reference && reference->weights.size() > 1) section.text = nearest_components(laws.back(), *reference);
  }
  const std::size_t n = laws.front().weights.size(), d = laws.front().dimension();
  std::string shortened;
  if (n > most_components) shortened = fmt::format("the first {} of {} components", most_components, n);
  if (d > 3) shortened += fmt::format("{}the first three of {} coordinates", shortened.empty() ? "" : ", ", d);
  if (!shortened.empty()) section.text += (section.text.empty() ? "" : " ") + ("The table has " + shortened + ".");
  return section;
}

std::vector<report::Fact> facts(const RunFiles& run) {
  const Summary& s = run.summary;
  std::vector<report::Fact> f;
  const auto add = [&](double value, const char* label, int digits, const char* note) {
    if (std::isfinite(value)) f.push_back({label, minus(shown(value, digits)), note});
  };
  if (run.configuration.reward) add(s.figures.reward, "Reward", 4, "mean over the samples");
  add(s.figures.exact_reward, "Exact reward", 4, "under π*(θ), in closed form");
  add(s.figures.exact_kl, "KL divergence", 5, "nats, from the reference, by quadrature");
  add(s.figures.log_likelihood, "Log-likelihood", 3, "nats, mean of −V(x,\u00a0θ_opt)");
  add(s.figures.data_log_likelihood, "Data log-likelihood", 4, "nats, mean of log π*(θ)");
  for (const Reached& r : s.reached)
    f.push_back({"Reached " + minus(r.threshold), r.step ? fmt::format("step {}", *r.step) : "never",
                 "log-likelihood, mean of 20 steps"});
  return f;
}

// What is to be known of a run that did not come to its end; empty where it did.
std::string notice(const RunFiles& run) {
  const Configuration& c = run.configuration;
  const Summary& s = run.summary;
  if (s.status == "interrupted")
    return fmt::format("Interrupted after step {} of {}: what follows is the state at that step.", s.steps, c.steps);
  if (s.status != "diverged") return {};
  std::string text = fmt::format(
      "Diverged at step {} of {}: a sample or the gradient was no longer finite, or θ left the domain of the "
      "potential. "
      "What follows is the last θ before it; there are no samples.",
      s.steps + 1, c.steps);
  Potential<float> potential = make_potential(c.potential);
  potential.prepare(run.theta.back());
  const auto stable = potential.largest_stable_step();
  if (stable && c.step_size >= *stable)
    return text + fmt::format(" The step_size is {}, and at this θ the chain is stable below {:.4g} only.", c.step_size,
                              *stable);
  return text + fmt::format(" A step_size smaller than {} or a learning_rate smaller than {} may help.", c.step_size,
                            c.learning_rate);
}

// The same for several: which of them did not come to their end.
std::string notice(const std::vector<RunFiles>& runs, bool with_parents) {
  std::string text;
  for (const char* status : {"diverged", "interrupted"}) {
    std::string names;
    std::size_t count = 0;
    for (const RunFiles& run : runs) {
      if (run.summary.status != status) continue;
      names += (count++ ? ", " : "") + run_name(run, with_parents) + fmt::format(" after step {}", run.summary.steps);
    }
    if (count)
      text += fmt::format("{}{} of {} runs {}: {}.", text.empty() ? "" : " ", count, runs.size(), status, names);
  }
  return text;
}

// Whether there would have been more repeats: one that never began has no folder, so only the summary over all knows.
bool repeats_are_missing(const std::vector<RunFiles>& runs) {
  const std::filesystem::path file = runs.front().folder.parent_path() / "summary.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return false;
  const auto over = nlohmann::json::parse(io::read_file(file), nullptr, false);
  const bool interrupted = over.is_object() && over.contains("status") && over["status"] == "interrupted";
  return interrupted &&
         std::all_of(runs.begin(), runs.end(), [](const RunFiles& r) { return r.summary.status == "completed"; });
}

std::string subtitle(const RunFiles& run) {
  const Configuration& c = run.configuration;
  std::string text = fmt::format("{}, method {}, seed {}: {}, {} steps", c.experiment, to_string(c.method), c.seed,
                                 run.summary.status, run.summary.steps);
  if (std::isfinite(run.summary.seconds)) text += fmt::format(" in {:.2f} s", run.summary.seconds);
  return text;
}

// A row for each run, with the columns in which one of them has something.
report::Section table_section(const std::vector<RunFiles>& runs, bool with_parents) {
  report::Table t{{"run", "method", "seed", "status", "steps"}, {}};
  for (const RunFiles& run : runs)
    t.rows.push_back({run_name(run, with_parents), std::string(to_string(run.configuration.method)),
                      fmt::format("{}", run.configuration.seed), run.summary.status,
                      fmt::format("{}", run.summary.steps)});
  const auto add = [&](const std::string& name, const auto& cell) {
    std::vector<std::string> cells;
    for (const RunFiles& run : runs) cells.push_back(cell(run.summary));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& c) { return c.empty(); })) return;
    t.header.push_back(name);
    for (std::size_t i = 0; i < cells.size(); ++i) t.rows[i].push_back(std::move(cells[i]));
  };
  const auto add_figure = [&](const char* name, double Figures::*figure, int digits) {
    add(name, [&](const Summary& s) {
      return std::isfinite(s.figures.*figure) ? minus(shown(s.figures.*figure, digits)) : std::string();
    });
  };
  add_figure("reward", &Figures::reward, 4);
  add_figure("exact reward", &Figures::exact_reward, 4);
  add_figure("exact KL", &Figures::exact_kl, 5);
  add_figure("log-likelihood", &Figures::log_likelihood, 3);
  add_figure("data log-likelihood", &Figures::data_log_likelihood, 4);
  std::vector<std::string> thresholds;
  for (const RunFiles& run : runs)
    for (const Reached& r : run.summary.reached)
      if (std::find(thresholds.begin(), thresholds.end(), r.threshold) == thresholds.end())
        thresholds.push_back(r.threshold);
  for (const std::string& threshold : thresholds)
    add("at " + minus(threshold), [&](const Summary& s) {
      for (const Reached& r : s.reached)
        if (r.threshold == threshold) return r.step ? fmt::format("{}", *r.step) : "never";
      return std::string();
    });
  add("seconds", [](const Summary& s) { return std::isfinite(s.seconds) ? shown(s.seconds, 2) : std::string(); });
  return {.heading = "All runs",
          .text = thresholds.empty()
                      ? ""
                      : "“At” is the first step at which the log-likelihood, a mean of 20 steps, was there.",
          .figures = {},
          .tables = {t}};
}

}  // namespace

std::string run_report(const RunFiles& run) {
  report::Page page{.title = run.configuration.title,
                    .subtitle = subtitle(run),
                    .notice = notice(run),
                    .facts = facts(run),
                    .sections = {},
                    .footer = footer};
  add_law(page, run);
  add_curves(page, {Group{"", {&run}}});
  page.sections.push_back(parameters_section(run));
  page.sections.push_back(repeat_section(run.configuration.resolved, run.folder, ""));
  return report::to_html(page);
}

std::string repeats_report(const std::vector<RunFiles>& runs) {
  const Configuration& c = runs.front().configuration;
  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}, method {}, {} seeds from {}", c.experiment, to_string(c.method),
                                            runs.size(), c.seed),
                    .notice = notice(runs, false),
                    .facts = {},
                    .sections = {},
                    .footer = footer};
  if (repeats_are_missing(runs)) page.notice = "Interrupted: further seeds were not run.";
  Group all{"", {}};
  for (const RunFiles& run : runs) all.runs.push_back(&run);
  for (const auto& [figure, label, digits] : {std::tuple{&Figures::reward, "Reward", 4},
                                              {&Figures::exact_reward, "Exact reward", 4},
                                              {&Figures::exact_kl, "KL divergence", 5},
                                              {&Figures::log_likelihood, "Log-likelihood", 3},
                                              {&Figures::data_log_likelihood, "Data log-likelihood", 4}}) {
    if (figure == &Figures::reward && !c.reward) continue;
    double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    for (const RunFiles& run : runs) {
      const double v = run.summary.figures.*figure;
      sum += v;
      low = std::min(low, v);
      high = std::max(high, v);
    }
    if (std::isfinite(sum))
      page.facts.push_back({label, minus(shown(sum / static_cast<double>(runs.size()), digits)),
                            fmt::format("mean of {} runs, {} to {}", runs.size(), minus(shown(low, digits)),
                                        minus(shown(high, digits)))});
  }
  add_curves(page, {all});
  add_law(page, runs.front(), fmt::format("These are of seed {}.", c.seed));
  page.sections.push_back(table_section(runs, false));
  page.sections.push_back(
      repeat_section(c.resolved, runs.front().folder.parent_path(), fmt::format(" --repeats {}", runs.size())));
  return report::to_html(page);
}

std::string side_by_side_report(const std::vector<RunFiles>& runs) {
  const std::string& experiment = runs.front().configuration.experiment;
  const bool one_experiment = std::all_of(runs.begin(), runs.end(),
                                          [&](const RunFiles& r) { return r.configuration.experiment == experiment; });
  report::Page page{.title = "Comparison of runs",
                    .subtitle = fmt::format("{}{} runs", one_experiment ? experiment + ", " : "", runs.size()),
                    .notice = notice(runs, true),
                    .facts = {},
                    .sections = {},
                    .footer = footer};
  // Runs with the same configuration but for the seed are one curve with a band.
  std::vector<Group> groups;
  std::vector<std::string> keys;
  for (const RunFiles& run : runs) {
    const Configuration& c = run.configuration;
    std::string label = one_experiment ? "" : c.experiment + " ";
    label += to_string(c.method);
    if (gradient_evaluations_per_step(c) > 1) label += fmt::format(" T={}", c.inner_steps);
    std::string key = c.resolved;
    if (const auto at = key.find("\nseed = "); at != std::string::npos) key.erase(at, key.find('\n', at + 1) - at);
    const auto known = std::find(keys.begin(), keys.end(), key);
    if (known == keys.end()) {
      keys.push_back(key);
      groups.push_back({label, {&run}});
    } else {
      groups[static_cast<std::size_t>(known - keys.begin())].runs.push_back(&run);
    }
  }
  // Labels that do not tell groups apart get the folder's name.
  for (Group& g : groups)
    if (std::count_if(groups.begin(), groups.end(), [&](const Group& other) { return other.label == g.label; }) > 1)
      g.label += fmt::format(" ({})", folder_name(*g.runs.front()));
  add_curves(page, groups);
  const auto cost = [](const Group& g) { return gradient_evaluations_per_step(g.runs.front()->configuration); };
  if (std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return cost(g) != cost(groups.front()); }))
    add_curves(page, groups, Axis::gradient_evaluations);
  page.sections.push_back(table_section(runs, true));
  report::Section laws{.heading = "The laws and their samples at the end"};
  for (const Group& g : groups) {
    if (!has_law(*g.runs.front())) continue;
    const LawPictures pictures(*g.runs.front());
    std::string title = g.label;
    if (g.runs.size() > 1) title += fmt::format(", seed {}", g.runs.front()->configuration.seed);
    laws.figures.push_back(pictures.end(title, false));
  }
  if (!laws.figures.empty()) page.sections.push_back(std::move(laws));
  return report::to_html(page);
}

void write_report(const std::filesystem::path& folder, const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::exists(folder / "config.toml", none)) {
    const Experiment e = load_experiment((folder / "config.toml").string(), {});
    std::string page;
    if (const auto* c = std::get_if<Comparison>(&e)) page = comparison_report(*c, folder);
    if (const auto* c = std::get_if<FiniteStateConfiguration>(&e)) page = finite_state_report(*c, folder);
    if (const auto* c = std::get_if<RatesConfiguration>(&e)) page = rates_report(*c, folder);
    if (const auto* c = std::get_if<DenoisingGaussianConfiguration>(&e)) page = denoising_gaussian_report(*c, folder);
    if (const auto* d = std::get_if<DenoisingExperiment>(&e)) page = denoising_report(*d, folder);
    if (!page.empty()) return io::write_file(file, page);
  }
  const auto repeats = repeats_of(folder);
  std::vector<RunFiles> runs;
  for (const auto& r : repeats) runs.push_back(read_run(r));
  io::write_file(file, runs.empty() ? run_report(read_run(folder)) : repeats_report(runs));
}

}  // namespace program
