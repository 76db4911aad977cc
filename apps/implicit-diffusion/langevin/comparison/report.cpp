#include "langevin/comparison/experiment.hpp"

#include "figures/opening.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "langevin/comparison/claims.hpp"
#include "langevin/curves.hpp"
#include "langevin/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

namespace {

// The runs of one setting, as they are in the folder.
struct SettingRuns {
  const Setting* setting;
  std::vector<RunFiles> runs;
};

// Of the settings of a method the one with the most inner steps, or with the least.
const SettingRuns* find(const std::vector<SettingRuns>& all, Method m, bool most = true) {
  const SettingRuns* best = nullptr;
  const auto steps = [](const SettingRuns& s) { return s.setting->configuration.inner_steps; };
  for (const SettingRuns& s : all)
    if (s.setting->configuration.method == m && s.setting->variant.empty())
      if (!best || (most ? steps(s) > steps(*best) : steps(s) < steps(*best))) best = &s;
  return best;
}

// The settings whose curves are drawn: each method once, the nested and unrolled ones with few and with many inner
// steps.
std::vector<const SettingRuns*> drawn(const std::vector<SettingRuns>& all) {
  constexpr std::int64_t usual = 10;  // nested with one inner step is the single loop
  const SettingRuns* middle = nullptr;
  for (const SettingRuns& s : all)
    if (s.setting->configuration.method == Method::nested && s.setting->configuration.inner_steps == usual) middle = &s;
  std::vector<const SettingRuns*> chosen;
  // The seventh curve and those after it have the first colours again, dashed: these are of flat curves, not of ours.
  for (const SettingRuns* s :
       {find(all, Method::langevin_initial), find(all, Method::langevin_optimised), find(all, Method::implicit),
        find(all, Method::guided), middle, find(all, Method::nested), find(all, Method::unrolled, false),
        find(all, Method::unrolled)})
    if (s && std::ranges::count(chosen, s) == 0) chosen.push_back(s);
  return chosen;
}

report::Section law_section(const std::vector<SettingRuns>& all) {
  report::Section section{.heading = "Where the samples end", .three_in_a_row = true};
  for (const auto& [method, name] : {std::pair{Method::langevin_initial, "Langevin at θ₀"},
                                     {Method::unrolled, "Unrolled"},
                                     {Method::implicit, "Implicit Diffusion"}}) {
    const SettingRuns* s = find(all, method);
    if (!s || !has_law(s->runs.front())) continue;
    std::string title = name;
    if (has_inner_steps(method)) title += fmt::format(", T = {}", s->setting->configuration.inner_steps);
    section.figures.push_back(LawPictures(s->runs.front()).end(title, true));
  }
  if (!section.figures.empty())
    section.text = fmt::format("The contours show {} at the end, with the samples of seed {}.", the_law,
                               all.front().runs.front().configuration.seed);
  return section;
}

// Evaluations, or outer steps, to the thresholds against T.
std::optional<report::Figure> threshold_figure(const std::vector<ComparisonRow>& rows, bool steps) {
  const auto cost_of = [&](const ComparisonRow::Threshold& t) { return steps ? t.step : t.gradient_evaluations; };
  report::LineChart chart{
      .title = steps ? "Outer steps to reach a log-likelihood" : "Gradient evaluations to reach a log-likelihood",
      .x_label = "inner steps T",
      .y_label = steps ? "outer steps" : "batch gradient evaluations",
      .series = {},
      .log_x = true,
      .log_y = true};
  std::string missing;
  for (const Method m : {Method::nested, Method::unrolled}) {
    std::vector<const ComparisonRow*> mine;
    for (const ComparisonRow& r : rows)
      if (r.method() == m && !r.is_variant()) mine.push_back(&r);
    if (mine.empty()) continue;
    for (std::size_t k = 0; k < mine.front()->reached.size(); ++k) {
      const std::string threshold = minus(mine.front()->reached[k].value);
      report::Series s{fmt::format("{} to {}", to_string(m), threshold), {}, {}};
      for (const ComparisonRow* r : mine) {
        s.x.push_back(static_cast<double>(r->inner_steps()));
        s.y.push_back(cost_of(r->reached[k]));
      }
      if (std::ranges::none_of(s.y, [](double v) { return std::isfinite(v); }))
        missing += fmt::format(" {} was never reached by {}.", threshold, to_string(m));
      else
        chart.series.push_back(std::move(s));
    }
  }
  if (const ComparisonRow* implicit = find_row(rows, Method::implicit))
    for (const auto& t : implicit->reached)
      if (std::isfinite(cost_of(t))) chart.reference_lines.push_back({cost_of(t), "implicit to " + minus(t.value)});
  if (chart.series.empty()) return std::nullopt;
  std::string caption =
      "Medians over the seeds; smaller is better. In a gap, more than half of the seeds never reached the value.";
  if (!chart.reference_lines.empty()) caption += " Dotted lines show Implicit Diffusion, which has T = 1.";
  return report::Figure{report::to_svg(chart), caption + missing};
}

report::Section dynamics_section(const std::vector<SettingRuns>& all) {
  report::Section section{.heading = "How the samples get there"};
  report::PictureTable table{.slider = "step", .columns = {}, .rows = {}, .pictures = {}};
  for (const Method method : {Method::langevin_initial, Method::implicit, Method::nested, Method::unrolled,
                              Method::guided, Method::langevin_optimised}) {
    const SettingRuns* s = find(all, method);
    if (!s || !has_law(s->runs.front()) || s->runs.front().snapshots.empty()) continue;
    const RunFiles& run = s->runs.front();
    if (run.samples.dimension() < 2) continue;
    const LawPictures pictures(run);
    const std::vector<double>& steps = *column(run, "step");
    std::vector<std::string> row, names;
    const std::string label = label_of(*s->setting);
    for (const auto& [step, samples] : run.snapshots) {
      const auto at = std::ranges::upper_bound(steps, static_cast<double>(step)) - steps.begin();
      names.push_back(fmt::format("{}", step));
      row.push_back(pictures.thumbnail(fmt::format("{} after step {}", label, step),
                                       run.theta[static_cast<std::size_t>(std::max<std::ptrdiff_t>(at, 1) - 1)],
                                       samples));
    }
    if (!table.columns.empty() && names != table.columns) continue;
    table.columns = names;
    table.rows.push_back(label);
    table.pictures.push_back(std::move(row));
  }
  if (table.rows.empty()) return section;
  section.text = fmt::format(
      "These pictures show the samples of seed {1} after a number of outer steps, and the contours of {0} at the θ of "
      "the "
      "same step. The samples move fast and θ moves slowly. In the method guided θ stays fixed, so the contours are "
      "not "
      "those of the distribution that it samples.",
      the_law, all.front().runs.front().configuration.seed);
  section.picture_tables.push_back(std::move(table));
  return section;
}

report::Table results_table(const std::vector<ComparisonRow>& rows) {
  report::Table t{{"setting", "exact reward", "reward", "log-likelihood"}, {}};
  const auto figure = [](double v, int digits) { return std::isfinite(v) ? minus(figure_text(v, digits)) : "–"; };
  for (const auto& r : rows.front().reached) t.header.push_back("evaluations to " + minus(r.value));
  for (const ComparisonRow& r : rows) {
    t.rows.push_back(
        {label_of(*r.setting), figure(r.exact_reward, 4), figure(r.reward, 4), figure(r.log_likelihood, 3)});
    for (const auto& x : r.reached) t.rows.back().push_back(count_or_never(x.gradient_evaluations));
  }
  return t;
}

// What was done, whether it worked, and how one can tell.
std::string comparison_opening(const LangevinComparison& c, const std::vector<ComparisonRow>& rows,
                               const std::vector<Claim>& claims, std::size_t found, std::size_t wanted) {
  std::vector<std::string> text{
      fmt::format("This comparison ran {} settings of sampling and optimisation methods on the same problem, with {} "
                  "seeds and {} steps each.",
                  c.settings.size(), c.seeds, c.settings.front().configuration.steps)};
  if (found < wanted) text.push_back(fmt::format("It is not complete: {} of {} runs have ended.", found, wanted));
  if (const ComparisonRow* implicit = find_row(rows, Method::implicit)) {
    const ComparisonRow* start = find_row(rows, Method::langevin_initial);
    if (start && std::isfinite(start->exact_reward) && std::isfinite(implicit->exact_reward))
      text.push_back(fmt::format("{}: with Implicit Diffusion, the single loop, the exact mean reward {}.",
                                 implicit->exact_reward > start->exact_reward
                                     ? "The optimisation raised the reward"
                                     : "The optimisation did not raise the reward",
                                 change_text(start->exact_reward, implicit->exact_reward)));
  }
  std::size_t confirmed = 0, refuted = 0, open = 0;
  for (const Claim& claim : claims) {
    if (claim.verdict.starts_with("confirmed")) ++confirmed;
    if (claim.verdict.starts_with("not confirmed")) ++refuted;
    if (claim.verdict.starts_with("not decided")) ++open;
  }
  if (claims.empty())
    text.emplace_back("The runs do not bear on the paper’s claims about these methods.");
  else
    text.push_back(fmt::format(
        "Of the paper’s {} claims about these methods, the runs confirm {} and do not confirm {}; {} depend on a "
        "constant that the paper does not give, and {} remain undecided. The table below says for each claim what was "
        "measured; the figures are "
        "medians over the seeds.",
        claims.size(), confirmed, refuted, claims.size() - confirmed - refuted - open, open));
  return paragraph(text);
}

// The run of a setting with a seed; nothing where it has not come to its end.
std::optional<RunFiles> read_finished(const fs::path& folder, const Setting& setting, std::uint64_t seed) {
  const fs::path place = folder_of(folder, setting, seed);
  std::error_code error;
  if (!fs::exists(place / "summary.json", error)) return std::nullopt;
  RunFiles run = read_run(place, setting.configuration, seed);
  if (run.summary.status == "interrupted") return std::nullopt;
  // In the order of the configuration, which summary.json need not keep.
  std::vector<Reached> reached;
  for (const double t : run.configuration.thresholds) {
    const auto entry = std::ranges::find(run.summary.reached, toml_number(t), &Reached::threshold);
    if (entry == run.summary.reached.end())
      throw Error(ErrorKind::data, io::display(place / "summary.json"),
                  fmt::format("first_step_at: has no threshold {}", toml_number(t)));
    if (entry->step) entry->gradient_evaluations = *entry->step * gradient_evaluations_per_step(run.configuration);
    reached.push_back(*entry);
  }
  run.summary.reached = std::move(reached);
  return run;
}

}  // namespace

std::string ComparisonExperiment::report(const fs::path& folder) const {
  const LangevinComparison& c = configuration();
  std::vector<SettingRuns> all;
  std::vector<ComparisonRow> rows;
  std::vector<NamedWarnings> warnings;
  std::size_t found = 0;
  for (const Setting& setting : c.settings) {
    SettingRuns s{&setting, {}};
    std::vector<Summary> summaries;
    for (std::int64_t k = 0; k < c.seeds; ++k)
      if (auto run = read_finished(folder, setting, c.seed + static_cast<std::uint64_t>(k))) {
        summaries.push_back(run->summary);
        warnings.push_back(warnings_of(setting, run->summary));
        s.runs.push_back(std::move(*run));
      }
    if (s.runs.empty()) continue;
    found += s.runs.size();
    rows.push_back(median_row(setting, summaries));
    all.push_back(std::move(s));
  }
  if (all.empty()) throw Error(ErrorKind::missing, io::display(folder), "has no finished run to report");

  const std::size_t wanted = c.settings.size() * static_cast<std::size_t>(c.seeds);
  const std::vector<Claim> claims = judge_claims(c, rows);
  report::Page page{
      .title = c.title,
      .subtitle = fmt::format("{}: {} setting{}, {} seeds from {}, {} steps", c.experiment, all.size(),
                              all.size() == 1 ? "" : "s", c.seeds, c.seed, c.settings.front().configuration.steps),
      .notice = found < wanted ? fmt::format("Only {} of {} runs have ended.", found, wanted) : "",
      .warnings = messages_of(warnings_over(warnings)),
      .opening = comparison_opening(c, rows, claims, found, wanted),
      .footer = footer};
  if (const ComparisonRow* r = find_row(rows, Method::implicit)) {
    page.facts.push_back({"Exact reward", minus(figure_text(r->exact_reward, 4)), "Implicit Diffusion, median"});
    page.facts.push_back({"Log-likelihood", minus(figure_text(r->log_likelihood, 3)), "Implicit Diffusion, median"});
    const auto evaluations = [](const ComparisonRow& row) { return row.reached.back().gradient_evaluations; };
    if (!r->reached.empty())
      page.facts.push_back({"Reached " + minus(r->reached.back().value), count_or_never(evaluations(*r)),
                            "gradient evaluations, median"});
    for (const ComparisonRow& n : rows)
      if (n.method() == Method::nested && !n.is_variant() && (n.inner_steps() == 10 || n.inner_steps() == 100) &&
          !r->reached.empty() && std::isfinite(evaluations(n)) && std::isfinite(evaluations(*r)))
        page.facts.push_back({fmt::format("Nested, T = {}", n.inner_steps()),
                              fmt::format("{:.1f} ×", evaluations(n) / evaluations(*r)),
                              "as many evaluations to reach the same"});
  }

  report::Table verdicts{.header = {"claim", "measured", "verdict"}, .rows = {}, .wrap = true};
  for (const Claim& claim : claims) verdicts.rows.push_back({claim.text, claim.measured, claim.verdict});
  if (!verdicts.rows.empty())
    page.sections.push_back({.heading = "The paper’s claims and our figures",
                             .text =
                                 "The figures are medians over the seeds. The log-likelihood is the mean of "
                                 "−V(x, θ_opt) over the samples. A threshold counts as reached when the mean of the "
                                 "log-likelihood over 20 steps reaches it.",
                             .tables = {verdicts}});
  if (report::Section laws = law_section(all); !laws.figures.empty()) page.sections.push_back(std::move(laws));
  std::vector<Group> groups;
  const std::vector<const SettingRuns*> shown = drawn(all);
  for (const SettingRuns* s : shown) {
    groups.push_back({label_of(*s->setting), {}});
    for (const RunFiles& run : s->runs) groups.back().runs.push_back(&run);
  }
  if (!groups.empty()) {
    const LangevinConfiguration& first = shown.front()->runs.front().configuration;
    add_langevin_curves(page, groups, first);
    add_langevin_curves(page, groups, first, Axis::gradient_evaluations);
  }
  report::Section costs{.heading = "What inner steps cost", .tables = {results_table(rows)}};
  for (const bool steps : {false, true})
    if (auto figure = threshold_figure(rows, steps)) costs.figures.push_back(std::move(*figure));
  page.sections.push_back(std::move(costs));
  if (report::Section dynamics = dynamics_section(all); !dynamics.picture_tables.empty())
    page.sections.push_back(std::move(dynamics));
  page.sections.push_back(repeat_section(c.resolved.text(), folder, ""));
  return report::to_html(page);
}

}  // namespace program
