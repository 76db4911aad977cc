// What an experiment is: the keys of its TOML file, checked, with their defaults filled in.
//
// Every key is read in one place (configuration.cpp), which also writes the resolved configuration: running that again
// gives the same run. Errors name the file and line, or the --set, the key, and the value; an unknown key the nearest
// known one.
#pragma once

#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/loop/single.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace program {

using implicit_diffusion::CovarianceForm;
using implicit_diffusion::GaussianMixture;
using implicit_diffusion::Normaliser;
using implicit_diffusion::Order;

enum class Method { implicit, nested, unrolled, guided, langevin_initial, langevin_optimised };
enum class ScheduleKind { constant, inverse_sqrt, cube_root };
enum class OptimizerKind { gradient_descent, adam };
enum class PotentialKind { quadratic, wells, logistic_wells, mixture };
enum class RewardKind { hard, smooth, quadratic, bump };

std::string_view to_string(Method method);

struct PotentialSpec {
  PotentialKind kind = PotentialKind::wells;
  std::vector<std::vector<double>> centres;    // wells
  double width = 2.0;                          // q
  double floor = 0.1;                          // logistic wells: the smallest weight
  std::vector<std::vector<double>> precision;  // quadratic
  std::size_t components = 2, dimension = 2;   // mixture
  CovarianceForm covariance = CovarianceForm::direct;
  double kappa = 0.5;
};

struct RewardSpec {
  RewardKind kind = RewardKind::hard;
  std::vector<double> centre;  // of the bump, or the target
  double width = 20.0;         // tau; s for the bump
  double denominator = 2.5;
  double softness = 0.5;
  double lambda = 1.0;  // its weight in the objective, or in the guidance
};

struct ReferenceSpec {
  std::vector<double> theta;   // the potential's law at this theta; empty for data
  std::filesystem::path data;  // samples of the user's
  std::size_t batch = 0;       // samples drawn for each step; 0: all of the data
  double beta = 1.0;
};

struct BaseSpec {
  std::vector<double> theta;  // the law to stay close to
  double beta = 1.0;
};

struct StartSpec {
  std::vector<double> theta;
  std::filesystem::path samples;  // empty: N(mean, scale^2 I)
  std::vector<double> mean;
  double scale = 1.0;
};

struct Configuration {
  std::string experiment, title;
  Method method = Method::implicit;
  std::int64_t particles = 1000, steps = 5000, inner_steps = 1, log_every = 10, checkpoint_every = 0;
  bool warm_start = true;
  double step_size = 0.2, learning_rate = 0.1;
  ScheduleKind schedule = ScheduleKind::constant;
  OptimizerKind optimizer = OptimizerKind::gradient_descent;
  Order order = Order::paper;
  Normaliser normaliser = Normaliser::n_minus_1;
  std::uint64_t seed = 0;
  std::vector<double> theta_opt;  // empty: no log-likelihood
  std::vector<double> thresholds;

  PotentialSpec potential;
  std::optional<RewardSpec> reward;         // judged by, and trained on
  std::optional<RewardSpec> smooth_reward;  // its differentiable stand-in, for guided and unrolled
  std::optional<ReferenceSpec> reference;
  std::optional<BaseSpec> base;
  StartSpec start;

  std::string resolved;  // as a TOML file
};

// Changes to a configuration from the command line.
struct Override {
  std::string key;  // with dots for tables
  std::string value;
  std::string option;  // how messages call it: "--set steps", "--seed"
};
struct Overrides {
  std::vector<Override> set;
  bool quick = false;
};

// What `list` shows.
struct Description {
  std::string name, title, duration;
};

// Reads TOML text; `where` is its file, `folder` what paths in it are relative to.
Configuration read_configuration(std::string_view text, const std::string& where, const std::string& name,
                                 const std::filesystem::path& folder, const Overrides& overrides);
Description read_description(std::string_view text, const std::string& name);

// The same experiment with another seed.
Configuration with_seed(Configuration c, std::uint64_t seed);
inline constexpr std::uint64_t largest_seed = std::numeric_limits<std::int64_t>::max();  // of a TOML integer

// The experiments inside the program, by name.
const std::map<std::string, std::string>& built_in_experiments();

// The experiment of a name or a file. Throws a usage Error with the nearest name, or a missing one.
Configuration load_experiment(const std::string& name_or_file, const Overrides& overrides);

// A number as TOML and summary.json's keys have it: with a point or an exponent.
std::string written(double v);

// The word among these that is closest to what was typed, if one is close.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& words);

}  // namespace program
