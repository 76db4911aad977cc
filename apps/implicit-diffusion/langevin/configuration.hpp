// What a Langevin experiment is: the keys of its TOML file, checked, with their defaults filled in.
//
// Every key is read in one place (configuration.cpp), which also writes the resolved configuration: running that again
// gives the same run.
#pragma once

#include "experiment/common.hpp"
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

// A Langevin experiment: one method, from its start to its last step.
struct Configuration : Common {
  Method method = Method::implicit;
  std::int64_t particles = 1000, steps = 5000, inner_steps = 1, log_every = 10, checkpoint_every = 0;
  bool warm_start = true;
  double step_size = 0.2, learning_rate = 0.1;
  ScheduleKind schedule = ScheduleKind::constant;
  OptimizerKind optimizer = OptimizerKind::gradient_descent;
  Order order = Order::paper;
  Normaliser normaliser = Normaliser::n_minus_1;
  std::vector<std::int64_t> snapshots;  // the steps, ascending, after which the samples are kept
  std::vector<double> theta_opt;        // empty: no log-likelihood
  std::vector<double> thresholds;

  PotentialSpec potential;
  std::optional<RewardSpec> reward;         // judged by, and trained on
  std::optional<RewardSpec> smooth_reward;  // its differentiable stand-in, for guided and unrolled
  std::optional<ReferenceSpec> reference;
  std::optional<BaseSpec> base;
  StartSpec start;
};

// One of the settings that a comparison runs.
struct Setting {
  Configuration configuration;
  std::string variant;  // the changes that make it, KEY=VALUE ...; empty: a method of the comparison itself
  std::string folder;
};

// The same problem with several methods, and several seeds each.
struct Comparison : Common {
  std::int64_t seeds = 10;
  std::vector<Setting> settings;
  std::size_t variants = 0;  // the last so many settings
};

// Several methods: what depends on which one it is stays open, and is not part of the resolved text.
enum class Methods { one, several };
Configuration read_configuration(const Document& d, Methods given = Methods::one);
Comparison read_comparison(const Document& d);

// The same experiment with another seed.
Configuration with_seed(Configuration c, std::uint64_t seed);

// True for the methods that take several sampling steps to one of theta.
bool has_inner_steps(Method method);

}  // namespace program
