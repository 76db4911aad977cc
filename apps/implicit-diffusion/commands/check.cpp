// The command `check`: problems with known answers, each compared with what the library makes of them, in one table.
#include "commands/commands.hpp"
#include "experiment/checks.hpp"
#include "experiment/registry.hpp"
#include "experiment/table_reader.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/parallel.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <variant>

namespace program {
namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;
using implicit_diffusion::Workers;

struct Problem {
  std::string name;
  std::function<std::vector<CheckRow>()> check;
};

Problem langevin_problem(std::string name, const Configuration& c) {
  return {std::move(name), [c] { return check_langevin(c); }};
}

// Experiments beside those of `list`: every potential, every term of an objective, every reward that E[R] is known of.
constexpr std::pair<const char*, const char*> fixed_experiments[] = {
    {"quadratic", R"(step_size = 0.2
normaliser = "n"
[potential]
kind = "quadratic"
precision = [[2.0, 0.5], [0.5, 1.0]]
[reward]
kind = "quadratic"
centre = [1.0, -1.0]
lambda = 0.7
[reference]
theta = [-0.5, 0.5]
beta = 1.5
[base]
theta = [0.0, 1.0]
beta = 0.5
[start]
theta = [0.4, -0.3]
)"},
    {"logistic-wells", R"(order = "authors"
step_size = 0.1
[potential]
kind = "logistic-wells"
centres = [[2.0, 0.0], [-1.0, 1.7320508], [-1.0, -1.7320508]]
width = 1.0
floor = 0.1
[reward]
kind = "bump"
centre = [1.0, 0.5]
width = 2.0
[smooth_reward]
kind = "bump"
centre = [1.0, 0.5]
width = 2.0
[base]
theta = [0.5, -1.0, 2.0]
beta = 0.3
[start]
theta = [0.5, -1.0, 2.0]
)"},
    {"mixture-cholesky", R"(step_size = 0.05
[potential]
kind = "mixture"
components = 2
covariance = "cholesky"
[reward]
kind = "smooth"
centre = [1.0, 0.0]
width = 8.0
denominator = 1.0
[smooth_reward]
kind = "smooth"
centre = [1.0, 0.0]
width = 8.0
denominator = 1.0
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

// The noise of each problem is its own, so that rows of different problems are independent.
std::uint64_t own_seed(std::uint64_t seed, std::string_view problem) {
  std::uint64_t mixed = 0xcbf29ce484222325 ^ seed;
  for (const char letter : problem) mixed = (mixed ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return mixed >> 1;
}

Problem own_langevin_problem(const std::string& name, Configuration c) {
  c.seed = own_seed(c.seed, name);
  return langevin_problem(name, c);
}

// What there is to check of an experiment, by its kind.
struct ProblemsOf {
  std::vector<Problem> operator()(const Configuration& c) const { return {own_langevin_problem(c.experiment, c)}; }
  // Each method once, whatever its inner steps, and the variants.
  std::vector<Problem> operator()(const Comparison& c) const {
    std::vector<Problem> all;
    std::vector<Method> seen;
    for (const Setting& s : c.settings) {
      if (s.variant.empty() && std::count(seen.begin(), seen.end(), s.configuration.method) > 0) continue;
      if (s.variant.empty()) seen.push_back(s.configuration.method);
      all.push_back(own_langevin_problem(s.folder, s.configuration));
    }
    return all;
  }
  std::vector<Problem> operator()(const FiniteStateConfiguration& c) const {
    return {{c.experiment, [c] { return check_finite_state(c); }}};
  }
  std::vector<Problem> operator()(const RatesConfiguration& c) const { return {{c.experiment, check_rates}}; }
  std::vector<Problem> operator()(const DenoisingGaussianConfiguration& c) const {
    return {{c.experiment, [c] { return check_denoising_gaussian(c); }}};
  }
  std::vector<Problem> operator()(const DenoisingExperiment& e) const {
    return {{e.experiment, [e] { return check_denoising_mixture(e); }}};
  }
};

// The one place where experiments are loaded.
std::vector<Problem> problems(const CheckOptions& o) {
  const Overrides overrides = overrides_of(o.set, o.seed);
  if (!o.experiment.empty()) return std::visit(ProblemsOf(), load_experiment(o.experiment, overrides));
  if (!o.set.empty())
    throw Error(ErrorKind::usage, "--set", "changes one experiment: its name or file is missing, check NAME --set ...");

  std::vector<Problem> all;
  const auto add = [&](const Configuration& c) { all.push_back(own_langevin_problem(c.experiment, c)); };
  std::uint64_t seed = 0;
  for (const auto& [name, text] : built_in_experiments())
    if (const Experiment e = load_experiment(name, overrides); const auto* c = std::get_if<Configuration>(&e)) add(*c);
  for (const auto& [name, text] : fixed_experiments) {
    const Configuration c = read_configuration(read_document(text, name, name, ".", overrides));
    seed = c.seed;
    add(c);
  }
  all.push_back({"finite Gibbs law", [seed] { return check_gibbs(own_seed(seed, "gibbs")); }});
  all.push_back({"softmax chain", [seed] { return check_softmax_chain(own_seed(seed, "softmax")); }});
  all.push_back({"ring chain", [seed] { return check_ring(own_seed(seed, "ring")); }});
  all.push_back({"rates", check_rates});
  all.push_back({"reverse chains", check_chains});
  for (const char* name : {"denoising-gaussian", "denoising-mixture"})
    for (Problem& p : std::visit(ProblemsOf(), load_experiment(name, overrides))) all.push_back(std::move(p));
  return all;
}

// The rows of every problem. Problems are independent, so they are spread over the cores.
std::vector<CheckedProblem> check_all(const std::vector<Problem>& all) {
  std::vector<CheckedProblem> checked(all.size());
  std::vector<std::exception_ptr> failures(all.size());
  Workers workers(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, all.size()));
  workers.for_each(all.size(), 1, [&](std::size_t i) {
    try {
      checked[i] = {all[i].name, all[i].check()};
    } catch (...) {
      failures[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return checked;
}

}  // namespace

int check(const CheckOptions& o) {
  if (o.isa) use_level(*o.isa);
  const std::vector<CheckedProblem> checked = check_all(problems(o));
  print(check_table(checked));
  const std::optional<std::string> off = what_is_off(checked);
  if (!off) return 0;
  complain("check: " + *off);
  return exit_off;
}

}  // namespace program
