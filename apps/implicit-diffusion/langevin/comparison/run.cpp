#include "langevin/comparison/experiment.hpp"

#include "experiment/console.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/launch.hpp"
#include "experiment/runs.hpp"
#include "langevin/comparison/claims.hpp"
#include "langevin/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

Json json_of(const ComparisonRow& r) {
  Json first = Json::object(), evaluations = Json::object();
  for (const ComparisonRow::Threshold& t : r.reached) {
    first[t.value] = json_number(t.step);
    evaluations[t.value] = json_number(t.gradient_evaluations);
  }
  Json row{{"method", to_string(r.method())},
           {"inner_steps", r.inner_steps()},
           {"exact_reward", json_number(r.exact_reward)},
           {"reward", json_number(r.reward)},
           {"log_likelihood", json_number(r.log_likelihood)},
           {"first_step_at", std::move(first)},
           {"gradient_evaluations_at", std::move(evaluations)}};
  if (r.is_variant()) row["variant"] = r.setting->variant;
  return row;
}

std::string closing_table(const LangevinComparison& c, const std::vector<ComparisonRow>& rows,
                          const std::vector<Claim>& claims, const std::string& status, double seconds) {
  std::string text =
      fmt::format("{} ({} seeds from {}): {} in {:.1f} s\n", c.experiment, c.seeds, c.seed, status, seconds);
  text += fmt::format("  {:<44}{:>13}{:>9}{:>15}", "medians", "exact reward", "reward", "log-likelihood");
  for (const auto& t : rows.front().reached) text += fmt::format("{:>22}", "evaluations to " + t.value);
  text += "\n";
  for (const ComparisonRow& r : rows) {
    const bool all = r.seeds == static_cast<std::size_t>(c.seeds);
    text += fmt::format("  {:<44}{:>13}{:>9}{:>15}",
                        label_of(*r.setting) + (all ? "" : fmt::format(" ({} of {} seeds)", r.seeds, c.seeds)),
                        figure_text(r.exact_reward, 4), figure_text(r.reward, 4), figure_text(r.log_likelihood, 3));
    for (const auto& t : r.reached) text += fmt::format("{:>22}", count_or_never(t.gradient_evaluations));
    text += "\n";
  }
  for (const Claim& claim : claims) text += fmt::format("  {}\n      {}\n", claim.text, claim.verdict);
  return text;
}

// The runs of all settings and seeds.
struct Task {
  LangevinConfiguration configuration;
  std::size_t setting;
};
std::vector<Task> tasks_of(const LangevinComparison& c) {
  const auto evaluations = [&](std::size_t i) {
    return static_cast<double>(gradient_evaluations_per_step(c.settings[i].configuration));
  };
  std::vector<Task> tasks;
  for (const std::size_t i : longest_first(c.settings.size(), evaluations))
    for (std::int64_t k = 0; k < c.seeds; ++k) {
      tasks.push_back({c.settings[i].configuration, i});
      tasks.back().configuration.set_seed(c.seed + static_cast<std::uint64_t>(k));
    }
  return tasks;
}

}  // namespace

NamedWarnings warnings_of(const Setting& setting, const Summary& run) {
  NamedWarnings n{fmt::format("{} with seed {}", setting.folder, run.seed), run.warnings};
  std::erase_if(n.warnings, [](const Warning& w) {
    return w.kind == warning_kind::still_moving || w.kind == warning_kind::mixing;
  });
  return n;
}

std::unique_ptr<Experiment> read_langevin_comparison(const Document& d) {
  return std::make_unique<ComparisonExperiment>(read_langevin_comparison_configuration(d));
}

// Each method once, whatever its inner steps, and the variants.
std::vector<Problem> ComparisonExperiment::checks() const {
  std::vector<Problem> all;
  std::vector<Method> seen;
  for (const Setting& s : configuration().settings) {
    if (s.variant.empty() && std::count(seen.begin(), seen.end(), s.configuration.method) > 0) continue;
    if (s.variant.empty()) seen.push_back(s.configuration.method);
    all.push_back(langevin_problem(s.folder, s.configuration));
  }
  return all;
}

int ComparisonExperiment::run(const RunOptions& o) const {
  const LangevinComparison& c = configuration();
  const std::size_t threads = thread_count(o);
  for (const Setting& s : c.settings) check_inputs(s.configuration, o);
  const Interrupt interrupt;
  const OpenFolder folder(o, c);
  const auto begin = std::chrono::steady_clock::now();
  const double seconds_before = o.resume ? seconds_so_far(folder.path) : 0;

  const std::vector<Task> tasks = tasks_of(c);
  std::vector<FolderRun> folders;
  double work = 0;
  for (const Task& t : tasks) {
    const auto each = static_cast<double>(gradient_evaluations_per_step(t.configuration));
    folders.push_back({&t.configuration, folder_of(folder.path, c.settings[t.setting], t.configuration.seed), each});
    work += each * static_cast<double>(t.configuration.steps);
  }
  Progress progress(c.experiment, tasks.size(), work, o.quiet);
  if (o.resume) {
    std::error_code error;
    const auto finished =
        std::ranges::count_if(folders, [&](const auto& f) { return fs::exists(f.folder / "summary.json", error); });
    progress.say(fmt::format("{} of {} runs have ended already; the others continue from their checkpoints or start",
                             finished, tasks.size()));
  }
  std::vector<std::optional<FinishedRun>> results(tasks.size());
  run_in_folders(
      folders, threads, o.resume, interrupt.token(), &progress,
      [&](std::size_t i, const RunContext& context) { results[i] = run_langevin(tasks[i].configuration, context); },
      finished_runs(results));
  progress.finish();
  const int signal = interrupt.signal(processes());
  if (!is_first()) return 0;
  if (o.resume) write_configuration(folder.path, c);

  Summary s = summary_of(c, threads);
  if (processes()) s.processes = processes()->ranks();
  s.steps = c.settings.front().configuration.steps;
  s.status = "completed";
  std::vector<std::vector<Summary>> runs(c.settings.size());
  const FinishedRun* diverged = nullptr;
  std::vector<NamedWarnings> warnings;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& r = results[i];
    s.steps = std::min(s.steps, r ? r->summary.steps : 0);
    if (!r || r->summary.status == "interrupted") {
      s.status = "interrupted";
      continue;
    }
    if (!r->complaints.empty()) diverged = &*r;
    runs[tasks[i].setting].push_back(r->summary);
    warnings.push_back(warnings_of(c.settings[tasks[i].setting], r->summary));
    s.gradient_evaluations += r->summary.gradient_evaluations;
  }
  if (diverged && s.status == "completed") s.status = "diverged";
  s.warnings = warnings_over(warnings);
  std::vector<ComparisonRow> rows;
  for (std::size_t i = 0; i < c.settings.size(); ++i)
    if (!runs[i].empty()) rows.push_back(median_row(c.settings[i], runs[i]));
  const std::vector<Claim> claims = judge_claims(c, rows);

  s.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() + seconds_before;
  for (const char* key : {"seeds", "results", "variants", "claims"}) s.more[key] = Json::array();
  for (std::int64_t k = 0; k < c.seeds; ++k) s.more["seeds"].push_back(c.seed + static_cast<std::uint64_t>(k));
  for (const ComparisonRow& r : rows) s.more[r.is_variant() ? "variants" : "results"].push_back(json_of(r));
  for (const Claim& claim : claims)
    s.more["claims"].push_back({{"claim", claim.text}, {"measured", claim.measured}, {"verdict", claim.verdict}});
  io::write_file(folder.path / "summary.json", to_json(s));

  const int code = diverged ? exit_diverged : exit_code(s.status, signal);
  if (rows.empty()) {
    print(fmt::format("{}: interrupted before a run had ended; continue with --resume\n", c.experiment));
    return code;
  }
  close_run(folder.path, closing_table(c, rows, claims, s.status, s.seconds), o, *this);
  print_warnings(s.warnings);
  if (diverged)
    complain(fmt::format("{}: {}: {}", c.experiment, diverged->summary.method, diverged->complaints.front()));
  return code;
}

}  // namespace program
