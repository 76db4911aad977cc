#include "langevin/run.hpp"
#include "commands/commands.hpp"
#include "experiment/registry.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "langevin/comparison/comparison.hpp"

#include <fmt/format.h>

namespace program {

using namespace implicit_diffusion;

Overrides overrides_of(const std::vector<std::string>& set, const std::optional<std::string>& seed) {
  Overrides overrides;
  for (const std::string& s : set) {
    const std::size_t equals = s.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorKind::usage, "--set", fmt::format("{} is not of the form key=value", io::excerpt(s)));
    overrides.set.push_back({s.substr(0, equals), s.substr(equals + 1), "--set " + s.substr(0, equals)});
  }
  if (seed) overrides.set.push_back({"seed", *seed, "--seed"});
  return overrides;
}

namespace {

void only_once(const RunOptions& o) {
  if (o.repeats != 1) throw Error(ErrorKind::usage, "--repeats", "is for Langevin experiments");
}

int run_experiment(const Configuration& c, const RunOptions& o) { return run_langevin(c, o); }
int run_experiment(const Comparison& c, const RunOptions& o) { return run_comparison(c, o); }
int run_experiment(const FiniteStateConfiguration& c, const RunOptions& o) {
  only_once(o);
  return run_finite_state(c, o);
}
int run_experiment(const RatesConfiguration& c, const RunOptions& o) {
  only_once(o);
  return run_rates(c, o);
}
int run_experiment(const DenoisingGaussianConfiguration& c, const RunOptions& o) {
  only_once(o);
  return run_denoising_gaussian(c, o);
}
int run_experiment(const DenoisingExperiment& e, const RunOptions& o) {
  only_once(o);
  return run_denoising(e, o);
}

}  // namespace

int run(const RunOptions& o) {
  if (o.resume && o.overwrite)
    throw Error(ErrorKind::usage, "--resume", "goes on with a run, --overwrite replaces it: one of them");
  if (o.isa) use_level(*o.isa);
  Overrides overrides = overrides_of(o.set, o.seed);
  overrides.quick = o.quick;
  if (o.steps) overrides.set.push_back({"steps", *o.steps, "--steps"});
  Experiment experiment = load_experiment(o.experiment, overrides);
  if (std::holds_alternative<Comparison>(experiment) && o.repeats != 1) {  // there its seeds are meant
    overrides.set.push_back({"comparison.seeds", fmt::format("{}", o.repeats), "--repeats"});
    experiment = load_experiment(o.experiment, overrides);
  }
  if (o.print_config) {
    print(common(experiment).resolved);
    return 0;
  }
  return std::visit([&](const auto& e) { return run_experiment(e, o); }, experiment);
}

}  // namespace program
