#include "langevin/experiment.hpp"

#include "experiment/registry.hpp"
#include "figures/run_tables.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "langevin/curves.hpp"
#include "langevin/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {
namespace {

using namespace implicit_diffusion;

RunFiles read_langevin_run(const std::filesystem::path& folder) {
  require_run(folder);
  const std::unique_ptr<Experiment> experiment = load_experiment((folder / "config.toml").string(), {});
  const auto* langevin = dynamic_cast<const LangevinExperiment*>(experiment.get());
  if (!langevin)
    throw Error(ErrorKind::usage, io::display(folder),
                "is not the folder of a single Langevin run, so it cannot be compared");
  return read_run(folder, langevin->configuration(), langevin->configuration().seed);
}

}  // namespace

std::string side_by_side_report(const std::vector<std::filesystem::path>& folders) {
  std::vector<RunFiles> runs;
  for (const auto& folder : folders) {
    std::vector<std::filesystem::path> singles = repeats_of(folder);
    if (singles.empty()) singles.push_back(folder);
    for (const auto& single : singles) runs.push_back(read_langevin_run(single));
  }
  const LangevinConfiguration& first = runs.front().configuration;
  const bool one_experiment =
      std::ranges::all_of(runs, [&](const RunFiles& r) { return r.configuration.experiment == first.experiment; });
  std::vector<const RunTable*> all;
  // Runs with the same configuration but for the seed are one curve with a band.
  std::vector<Group> groups;
  std::vector<const RunFiles*> firsts;  // of each group
  std::vector<std::string> keys;
  for (const RunFiles& run : runs) {
    const LangevinConfiguration& c = run.configuration;
    ResolvedConfiguration but_seed = c.resolved;
    but_seed.erase("seed");
    const std::string key = but_seed.text();
    const auto at = static_cast<std::size_t>(std::ranges::find(keys, key) - keys.begin());
    if (at == keys.size()) {
      std::string label = one_experiment ? "" : c.experiment + " ";
      label += to_string(c.method);
      if (gradient_evaluations_per_step(c) > 1) label += fmt::format(" T={}", c.inner_steps);
      keys.push_back(key);
      groups.push_back({label, {}});
      firsts.push_back(&run);
    }
    groups[at].runs.push_back(&run);
    all.push_back(&run);
  }
  // Labels that do not tell groups apart get the folder's name.
  for (Group& g : groups)
    if (std::ranges::count(groups, g.label, &Group::label) > 1)
      g.label += fmt::format(" ({})", folder_name(*g.runs.front()));
  report::Page page{.title = "Comparison of runs",
                    .subtitle = fmt::format("{}{} runs", one_experiment ? first.experiment + ", " : "", runs.size()),
                    .notice = runs_notice(all, true),
                    .warnings = runs_warnings(all, true),
                    .footer = footer};
  add_langevin_curves(page, groups, first);
  const std::int64_t cost = gradient_evaluations_per_step(first);
  if (std::ranges::any_of(runs, [&](const auto& r) { return gradient_evaluations_per_step(r.configuration) != cost; }))
    add_langevin_curves(page, groups, first, Axis::gradient_evaluations);
  page.sections.push_back(runs_section(all, true));
  report::Section laws{.heading = "The distributions and their samples at the end"};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!has_law(*firsts[i])) continue;
    std::string title = groups[i].label;
    if (groups[i].runs.size() > 1) title += fmt::format(", seed {}", firsts[i]->configuration.seed);
    laws.figures.push_back(LawPictures(*firsts[i]).end(title, false));
  }
  if (!laws.figures.empty()) page.sections.push_back(std::move(laws));
  return report::to_html(page);
}

}  // namespace program
