#include "figures/run_tables.hpp"

#include "experiment/warnings.hpp"
#include "figures/curves.hpp"
#include "figures/opening.hpp"
#include "figures/tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace program {

using namespace implicit_diffusion;

std::string folder_name(const RunTable& run) { return (run.folder / "").parent_path().filename().string(); }

namespace {

std::string run_name(const RunTable& run, bool with_parent) {
  const std::string name = folder_name(run), parent = run.folder.parent_path().filename().string();
  return with_parent && name.starts_with("seed-") && !parent.empty() ? parent + "/" + name : name;
}

// Whether there would have been more repeats: one that never began has no folder, so only the summary over all knows.
bool repeats_are_missing(std::span<const RunTable* const> runs) {
  const std::filesystem::path file = runs.front()->folder.parent_path() / "summary.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return false;
  const auto over = Json::parse(io::read_file(file), nullptr, false);
  const bool interrupted = over.is_object() && over.contains("status") && over["status"] == "interrupted";
  return interrupted && std::ranges::all_of(runs, [](const auto* r) { return r->summary.status == "completed"; });
}

}  // namespace

std::string runs_notice(std::span<const RunTable* const> runs, bool with_parents) {
  std::string text;
  for (const char* status : {"diverged", "interrupted"}) {
    std::vector<std::string> names;
    for (const RunTable* run : runs)
      if (run->summary.status == status)
        names.push_back(fmt::format("{} after step {}", run_name(*run, with_parents), run->summary.steps));
    if (!names.empty())
      text += fmt::format("{}{} of {} runs {}: {}.", text.empty() ? "" : " ", names.size(), runs.size(), status,
                          fmt::join(names, ", "));
  }
  return text;
}

std::vector<std::string> runs_warnings(std::span<const RunTable* const> runs, bool with_parents) {
  std::vector<NamedWarnings> all;
  for (const RunTable* run : runs) all.push_back({run_name(*run, with_parents), run->summary.warnings});
  return messages_of(warnings_over(all));
}

report::Section runs_section(std::span<const RunTable* const> runs, bool with_parents) {
  report::Table t{{"run", "method", "seed", "status", "steps"}, {}};
  for (const RunTable* run : runs)
    t.rows.push_back({run_name(*run, with_parents), run->summary.method, fmt::format("{}", run->summary.seed),
                      run->summary.status, fmt::format("{}", run->summary.steps)});
  const auto add = [&](const std::string& name, const auto& cell) {
    std::vector<std::string> cells;
    for (const RunTable* run : runs) cells.push_back(cell(run->summary));
    if (std::ranges::all_of(cells, &std::string::empty)) return;
    t.header.push_back(name);
    for (std::size_t i = 0; i < cells.size(); ++i) t.rows[i].push_back(std::move(cells[i]));
  };
  const auto text = [](double v, int digits) { return std::isfinite(v) ? minus(figure_text(v, digits)) : ""; };
  for (const FigureName& f : figure_names)
    add(f.label, [&](const Summary& s) { return text(s.figures.*f.value, f.digits); });
  std::vector<std::string> thresholds;
  for (const RunTable* run : runs)
    for (const Reached& r : run->summary.reached)
      if (std::ranges::count(thresholds, r.threshold) == 0) thresholds.push_back(r.threshold);
  for (const std::string& threshold : thresholds)
    add("at " + minus(threshold), [&](const Summary& s) {
      for (const Reached& r : s.reached)
        if (r.threshold == threshold) return r.step ? fmt::format("{}", *r.step) : "never";
      return std::string();
    });
  add("seconds", [&](const Summary& s) { return text(s.seconds, 2); });
  report::Section section{.heading = "All runs", .tables = {t}};
  if (!thresholds.empty())
    section.text =
        "The columns “at” give the first step at which the log-likelihood, averaged over 20 steps, reached that value.";
  return section;
}

report::Page repeats_page(const Common& c, const std::string& what, std::span<const RunTable* const> runs,
                          bool with_reward) {
  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}, {} seeds from {}", what, runs.size(), c.seed),
                    .notice = runs_notice(runs, false),
                    .warnings = runs_warnings(runs, false),
                    .opening = repeats_opening(runs),
                    .footer = footer};
  if (repeats_are_missing(runs)) page.notice = "The run was interrupted before all seeds were run.";
  for (const FigureName& f : figure_names) {
    if (f.value == &Figures::reward && !with_reward) continue;
    std::vector<double> v;
    for (const RunTable* run : runs) v.push_back(run->summary.figures.*f.value);
    const double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
    const auto text = [&](double number) { return minus(figure_text(number, f.digits)); };
    if (std::isfinite(mean))
      page.facts.push_back({f.title, text(mean),
                            fmt::format("mean of {} runs, {} to {}", runs.size(), text(std::ranges::min(v)),
                                        text(std::ranges::max(v)))});
  }
  return page;
}

std::string repeats_report(const Common& c, const std::filesystem::path& folder) {
  std::vector<RunTable> tables;
  for (const auto& f : repeats_of(folder)) tables.push_back(read_run_table(f, {"step"}));
  Group all{"", {}};
  for (const RunTable& t : tables) all.runs.push_back(&t);
  std::vector<CurveSpec> curves;
  for (const std::string& name : tables.front().header) {
    if (name == "step" || name == "gradient_evaluations" || name == "seconds") continue;
    std::string title = name;
    std::replace(title.begin(), title.end(), '_', ' ');
    curves.push_back({.column = name, .title = title, .y_label = title});
  }
  report::Page page = repeats_page(c, c.experiment, all.runs, true);
  add_curves(page, {all}, Axis::steps, curves);
  page.sections.push_back(runs_section(all.runs, false));
  page.sections.push_back(repeat_section(c.resolved.text(), folder, fmt::format(" --repeats {}", tables.size())));
  return report::to_html(page);
}

}  // namespace program
