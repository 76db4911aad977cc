#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/launch.hpp"
#include "experiment/registry.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "networks/environment.hpp"

#include <fmt/format.h>

namespace program {

using namespace implicit_diffusion;

void choose_isa(const ChosenIsa& isa) {
  if (isa) try {
      implicit_diffusion::use_isa(*isa);
    } catch (const Error& e) {
      throw Error(e.kind(), "--isa", e.reason());
    }
}

Overrides overrides_of(const ExperimentOptions& o) {
  Overrides overrides;
  for (const std::string& s : o.set) {
    const std::size_t equals = s.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorKind::usage, "--set", fmt::format("{} is not of the form key=value", io::excerpt(s)));
    overrides.set.push_back({s.substr(0, equals), s.substr(equals + 1), "--set " + s.substr(0, equals)});
  }
  if (o.seed) overrides.set.push_back({"seed", *o.seed, "--seed"});
  return overrides;
}

int run(const RunOptions& o) { return run_changed(o, {}); }

int run_changed(const RunOptions& o, const std::vector<Override>& changes, const std::string& prefix) {
  if (o.resume && o.overwrite)
    throw Error(ErrorKind::usage, "--resume", "continues a run and --overwrite replaces it: give only one of them");
  choose_isa(o.isa);
  Overrides overrides = overrides_of(o);
  overrides.quick = o.quick;
  overrides.set.insert(overrides.set.end(), changes.begin(), changes.end());
  if (o.steps) overrides.set.push_back({prefix + "steps", *o.steps, "--steps"});
  std::unique_ptr<Experiment> experiment = load_experiment(o.experiment, overrides);
  if (o.repeats != 1) {
    const Experiment::Repeats repeats = experiment->repeats();
    if (!repeats.refusal.empty()) throw Error(ErrorKind::usage, "--repeats", repeats.refusal);
    if (!repeats.key.empty()) {
      overrides.set.push_back({repeats.key, fmt::format("{}", o.repeats), "--repeats"});
      experiment = load_experiment(o.experiment, overrides);
    }
  }
  if (o.print_config) {
    print(experiment->common().resolved.text());
    return 0;
  }
  if (experiment->needs_networks()) become_networks(experiment->common().experiment);
  start_processes({prefix.empty() ? "run" : prefix.substr(0, prefix.size() - 1),
                   {{"--output", o.output},
                    {"--repeats", to_toml(static_cast<std::int64_t>(o.repeats))},
                    {"--overwrite", to_toml(o.overwrite)},
                    {"--resume", to_toml(o.resume)},
                    {"--quick", to_toml(o.quick)},
                    {"--portable-bits", to_toml(o.portable_bits)}},
                   experiment->common().resolved.text()});
  if (prefix.empty() || !o.output.empty()) return experiment->run(o);
  RunOptions named = o;
  const Common& c = experiment->common();
  named.output = fmt::format("runs/{}-{}-{}", prefix.substr(0, prefix.size() - 1), c.experiment, c.seed);
  return experiment->run(named);
}

}  // namespace program
