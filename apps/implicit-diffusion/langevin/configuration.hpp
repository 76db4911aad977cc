// What a Langevin experiment is: the keys of its TOML file, checked, with their defaults filled in.
//
// Every key is read in one place (configuration.cpp), which also records the resolved configuration: running that again
// gives the same run.
#pragma once

#include "experiment/common.hpp"
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "langevin/potential_specs.hpp"
#include "langevin/reward_specs.hpp"
#include "langevin/samples.hpp"

#include <memory>

namespace program {

enum class Method { implicit, nested, unrolled, guided, langevin_initial, langevin_optimised };
enum class ScheduleKind { constant, inverse_sqrt, cube_root };

std::string_view to_string(Method method);

struct ReferenceSpec {
  std::vector<double> theta;               // the potential's law at this theta; empty for data
  std::shared_ptr<const SampleFile> data;  // samples of the user's
  std::size_t batch = 0;                   // samples drawn for each step; 0: all of the data
  double beta = 1.0;
};

struct BaseSpec {
  std::vector<double> theta;  // the law to stay close to
  double beta = 1.0;
};

struct StartSpec {
  std::vector<double> theta;
  std::shared_ptr<const SampleFile> samples;  // null: N(mean, scale^2 I)
  std::vector<double> mean;
  double scale = 1.0;
};

// One method, from its start to its last step.
struct LangevinConfiguration : Common {
  Method method = Method::implicit;
  std::int64_t particles = 1000, steps = 5000, inner_steps = 1, log_every = 10, checkpoint_every = 0;
  bool warm_start = true;
  double step_size = 0.2, learning_rate = 0.1;
  ScheduleKind schedule = ScheduleKind::constant;
  std::string optimizer;  // its name
  implicit_diffusion::Order order{};
  implicit_diffusion::Normaliser normaliser{};
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

// Several methods: what depends on which one it is stays open, and is not part of the resolved configuration.
enum class Methods { one, several };
LangevinConfiguration read_langevin_configuration(const Document& d, Methods given = Methods::one);
// The methods of a list.
std::vector<Method> read_methods(TableReader& t, std::string_view key);

// True for the methods that take several sampling steps to one of theta.
bool has_inner_steps(Method method);
// False for the methods that sample alone.
bool moves_theta(Method method);
// Sampling steps, that is batch evaluations of grad_x V, in one outer step.
std::int64_t gradient_evaluations_per_step(const LangevinConfiguration& c);

}  // namespace program
