// The command `check`: problems with known answers, each compared with what the library makes of them, in one table.
#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/registry.hpp"
#include "experiment/run_directory.hpp"
#include "experiment/task_pool.hpp"
#include "implicit_diffusion/error.hpp"
#include "networks/environment.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace program {
namespace {

using namespace implicit_diffusion;

// Experiments beside those of `list`: every potential, every term of an objective, every reward that E[R] is known of.
const Experiments fixed_experiments{
    {"quadratic", R"(step_size = 0.2
normaliser = "n"
potential = {kind = "quadratic", precision = [[2.0, 0.5], [0.5, 1.0]]}
reward = {kind = "quadratic", centre = [1.0, -1.0], lambda = 0.7}
reference = {theta = [-0.5, 0.5], beta = 1.5}
base = {theta = [0.0, 1.0], beta = 0.5}
start = {theta = [0.4, -0.3]}
)"},
    {"logistic-wells", R"(order = "authors"
step_size = 0.1
reward = {kind = "bump", centre = [1.0, 0.5], width = 2.0}
smooth_reward = {kind = "bump", centre = [1.0, 0.5], width = 2.0}
base = {theta = [0.5, -1.0, 2.0], beta = 0.3}
start = {theta = [0.5, -1.0, 2.0]}
[potential]
kind = "logistic-wells"
centres = [[2.0, 0.0], [-1.0, 1.7320508], [-1.0, -1.7320508]]
width = 1.0
floor = 0.1
)"},
    {"double-well", R"(step_size = 0.01
potential = {kind = "double-well", dimension = 2, half_distance = 1.2, variance = 0.5}
reward = {kind = "radius", centre = [0.0, 0.0], radius = 1.0, width = 0.5}
base = {theta = [1.5]}
start = {theta = [1.0]}
)"},
    {"mixture-cholesky", R"(step_size = 0.05
potential = {kind = "mixture", components = 2, covariance = "cholesky"}
reward = {kind = "smooth", centre = [1.0, 0.0], width = 8.0, denominator = 1.0}
smooth_reward = {kind = "smooth", centre = [1.0, 0.0], width = 8.0, denominator = 1.0}
[reference]
logits = [1.5, 0.0]
means = [[-2.0, 0.0], [1.0, -1.5]]
covariances = [[[0.75, -0.5], [-0.5, 1.5]], [[0.75, 0.5], [0.5, 1.25]]]
[start]
logits = [0.0, 0.5]
means = [[2.0, 0.0], [-1.0, 1.5]]
covariances = [[[1.0, 0.3], [0.3, 1.0]], [[0.5, 0.0], [0.0, 1.0]]]
)"},
};

std::vector<Problem> problems(const ExperimentOptions& o) {
  const Overrides overrides = overrides_of(o);
  if (!o.experiment.empty()) {
    const std::unique_ptr<Experiment> experiment = load_experiment(o.experiment, overrides);
    if (experiment->needs_networks()) become_networks(experiment->common().experiment);
    return experiment->checks();
  }
  if (!o.set.empty()) throw Error(ErrorKind::usage, "--set", "needs an experiment to change: check NAME --set ...");
  Experiments experiments = built_in_experiments();
  experiments.insert(experiments.end(), fixed_experiments.begin(), fixed_experiments.end());
  std::vector<Problem> all;
  for (const auto& experiment : read_experiments(experiments, overrides)) {
    if (experiment->needs_networks() && !has_networks()) {
      if (networks_were_built()) become_networks("check");
      print_error(
          fmt::format("{} is not checked: it needs networks, which were not built\n", experiment->common().experiment));
      continue;
    }
    for (Problem& p : experiment->standard_checks()) all.push_back(std::move(p));
  }
  return all;
}

}  // namespace

int check(const ExperimentOptions& o) {
  choose_isa(o.isa);
  const std::vector<Problem> all = problems(o);
  std::vector<CheckedProblem> checked(all.size());
  // Problems are independent, so they are spread over the cores.
  run_tasks(all.size(), thread_count({}), [&](std::size_t i) { checked[i] = {all[i].name, all[i].check()}; });
  print(check_table(checked));
  const std::optional<std::string> off = what_is_off(checked);
  if (!off) return 0;
  complain("check: " + *off);
  return exit_off;
}

}  // namespace program
