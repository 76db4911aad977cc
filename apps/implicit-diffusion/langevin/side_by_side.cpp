#include "langevin/side_by_side.hpp"

#include "experiment/registry.hpp"
#include "figures/run_tables.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "langevin/curves.hpp"
#include "langevin/experiment.hpp"
#include "langevin/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {

using namespace implicit_diffusion;

namespace {

RunFiles read_langevin_run(const std::filesystem::path& folder) {
  require_run(folder);
  const std::unique_ptr<Experiment> experiment = load_experiment((folder / "config.toml").string(), {});
  const auto* langevin = dynamic_cast<const LangevinExperiment*>(experiment.get());
  if (!langevin)
    throw Error(ErrorKind::usage, io::display(folder),
                "is not the folder of a single Langevin run: it cannot be compared");
  return read_run(folder, langevin->configuration());
}

}  // namespace

std::string side_by_side_report(const std::vector<std::filesystem::path>& folders) {
  std::vector<RunFiles> runs;
  for (const auto& folder : folders) {
    const auto repeats = repeats_of(folder);
    for (const auto& r : repeats) runs.push_back(read_langevin_run(r));
    if (repeats.empty()) runs.push_back(read_langevin_run(folder));
  }
  std::vector<const RunTable*> all;
  for (const RunFiles& run : runs) all.push_back(&run);
  const std::string& experiment = runs.front().configuration.experiment;
  const bool one_experiment = std::all_of(runs.begin(), runs.end(),
                                          [&](const RunFiles& r) { return r.configuration.experiment == experiment; });
  report::Page page{.title = "Comparison of runs",
                    .subtitle = fmt::format("{}{} runs", one_experiment ? experiment + ", " : "", runs.size()),
                    .notice = runs_notice(all, true),
                    .facts = {},
                    .sections = {},
                    .footer = footer};
  // Runs with the same configuration but for the seed are one curve with a band.
  std::vector<Group> groups;
  std::vector<const RunFiles*> firsts;  // of each group
  std::vector<std::string> keys;
  for (const RunFiles& run : runs) {
    const LangevinConfiguration& c = run.configuration;
    std::string label = one_experiment ? "" : c.experiment + " ";
    label += to_string(c.method);
    if (gradient_evaluations_per_step(c) > 1) label += fmt::format(" T={}", c.inner_steps);
    ResolvedConfiguration but_seed = c.resolved;
    but_seed.erase("seed");
    const std::string key = but_seed.text();
    const auto known = std::find(keys.begin(), keys.end(), key);
    if (known == keys.end()) {
      keys.push_back(key);
      groups.push_back({label, {&run}});
      firsts.push_back(&run);
    } else {
      groups[static_cast<std::size_t>(known - keys.begin())].runs.push_back(&run);
    }
  }
  // Labels that do not tell groups apart get the folder's name.
  for (Group& g : groups)
    if (std::count_if(groups.begin(), groups.end(), [&](const Group& other) { return other.label == g.label; }) > 1)
      g.label += fmt::format(" ({})", folder_name(*g.runs.front()));
  const LangevinConfiguration& first = runs.front().configuration;
  add_langevin_curves(page, groups, first);
  const auto cost = [](const LangevinConfiguration& c) { return gradient_evaluations_per_step(c); };
  if (std::any_of(firsts.begin(), firsts.end(),
                  [&](const RunFiles* run) { return cost(run->configuration) != cost(first); }))
    add_langevin_curves(page, groups, first, Axis::gradient_evaluations);
  page.sections.push_back(runs_section(all, true));
  report::Section laws{.heading = "The laws and their samples at the end"};
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
