#include "langevin/method.hpp"

#include "experiment/limits.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/loop/nested.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

using namespace implicit_diffusion;

const Population<float>& reference_data(const LangevinConfiguration& c, const Potential<float>& potential) {
  const Population<float>& x = c.reference->data->samples(potential.dimension());
  const std::optional<GaussianMixture> law = potential.law(c.start.theta);
  for (std::size_t j = 0; law && j < x.dimension(); ++j) {
    double sum = 0, variance = 0;
    for (const float v : x.coordinate(j)) sum += static_cast<double>(v);
    for (const Gaussian& g : law->components) variance = std::max(variance, g.covariance[j * x.dimension() + j]);
    if (const auto what = describe_if_too_far(sum / static_cast<double>(x.size()), std::sqrt(variance)))
      throw Error(ErrorKind::data, io::display(c.reference->data->path()),
                  fmt::format("column {}: its mean {}", j + 1, *what));
  }
  return x;
}

AnyStart<float> make_start(const LangevinConfiguration& c, std::size_t dimension) {
  if (!c.start.samples) return {GaussianStart<float>{c.start.mean, c.start.scale, Noise(c.seed)}};
  const Population<float>& samples = c.start.samples->samples(dimension);
  if (samples.size() != static_cast<std::size_t>(c.particles))
    throw Error(ErrorKind::data, io::display(c.start.samples->path()),
                fmt::format("{} samples, {} particles", samples.size(), c.particles));
  return {SampleStart<float>{samples}};
}

void check_input_files(const LangevinConfiguration& c) {
  const Potential<float> potential = c.potential.make();
  (void)make_start(c, potential.dimension());
  if (c.reference && c.reference->data) (void)reference_data(c, potential);
}

namespace {

// The step of the sampler and of theta. The cube-root pair slows both down, as the theory asks.
SchedulePair rates(const LangevinConfiguration& c) {
  // Unrolled, the gradient is that of one step, not of the law: for a Gaussian, g times the true one. The paper
  // takes the rate 2 eta / g.
  const double eta = c.method == Method::unrolled ? 2 * c.learning_rate / c.step_size : c.learning_rate;
  switch (c.schedule) {
    case ScheduleKind::constant:
      return {{c.step_size}, {eta}};
    case ScheduleKind::inverse_sqrt:
      return {{c.step_size}, {eta, 0.5}};
    case ScheduleKind::cube_root:
      return cube_root_pair(c.step_size, eta);
  }
  throw std::logic_error("a schedule without a meaning");
}

std::unique_ptr<Reference<float>> make_reference(const LangevinConfiguration& c, const Potential<float>& potential,
                                                 Noise noise, Processes* processes) {
  const ReferenceSpec& r = *c.reference;
  if (!r.theta.empty())
    return std::make_unique<MixtureReference<float>>(*potential.law(r.theta), r.batch, noise, processes);
  const Population<float>& data = reference_data(c, potential);
  if (r.batch == 0) return std::make_unique<FixedReference<float>>(data);
  return std::make_unique<MinibatchReference<float>>(data, r.batch, noise, processes);
}

}  // namespace

LangevinEngine<float> make_engine(const LangevinConfiguration& c, const Potential<float>& potential,
                                  const LangevinOptions& options, const Population<float>* references,
                                  Processes* processes) {
  GradientEstimator<float>::Terms terms;
  if (c.reward) terms.push_back(std::make_unique<RewardTerm<float>>(c.reward->make(), c.reward->lambda));
  if (c.reference) {
    auto samples = references ? std::make_unique<FixedReference<float>>(*references)
                              : make_reference(c, potential, options.noise, processes);
    terms.push_back(std::make_unique<ReferenceTerm<float>>(std::move(samples), c.reference->beta));
  }
  if (c.base) terms.push_back(std::make_unique<BaseTerm<float>>(prepared(potential, c.base->theta), c.base->beta));
  return {potential, std::move(terms), options, c.normaliser};
}

RunResult run_method(const LangevinConfiguration& c, Workers* workers, const RunObserver& observe, std::stop_token stop,
                     const std::function<void(RunState&)>& resume, Processes* processes) {
  const Noise noise(c.seed);
  const Potential<float> potential = c.potential.make();
  const SchedulePair rate = rates(c);
  const LangevinOptions options{.step_size = rate.sampler, .noise = noise, .workers = workers};
  const AnyStart<float> start = make_start(c, potential.dimension());

  RunResult r;
  r.state.theta = c.start.theta;
  r.state.population = Population<float>(static_cast<std::size_t>(c.particles), potential.dimension(), processes);
  start.draw(r.state.population, 0);
  if (moves_theta(c.method)) r.state.optimizer = AnyOptimizer::make(c.optimizer, rate.optimizer);
  if (c.method == Method::langevin_optimised) r.state.theta = c.theta_opt;
  if (resume) resume(r.state);

  const NestedOptions nested{.steps = c.steps, .inner_steps = c.inner_steps, .warm_start = c.warm_start};
  switch (c.method) {
    case Method::implicit:
    case Method::nested: {
      LangevinEngine<float> engine = make_engine(c, potential, options, nullptr, processes);
      r.outcome = c.method == Method::nested
                      ? nested_loop(engine, engine, start, r.state, nested, observe, stop)
                      : single_loop(engine, engine, r.state, {.steps = c.steps, .order = c.order}, observe, stop);
      break;
    }
    case Method::unrolled: {
      // Its gradient has the sampler's step as a factor, whose decay is no part of theta's schedule.
      const Schedule lambda{c.smooth_reward->lambda, -rate.sampler.exponent};
      Unrolled<float> unrolled(potential, c.smooth_reward->make(), options, lambda);
      r.outcome = nested_loop(unrolled, unrolled, start, r.state, nested, observe, stop);
      break;
    }
    // Sampling alone: theta stays where it is.
    case Method::guided:
    case Method::langevin_initial:
    case Method::langevin_optimised: {
      Langevin<float> sampler(
          c.method == Method::guided ? guided(potential, c.smooth_reward->make(), c.smooth_reward->lambda) : potential,
          options);
      NoGradient none;
      r.outcome = single_loop(sampler, none, r.state, {.steps = c.steps}, observe, stop);
      break;
    }
  }
  return r;
}

}  // namespace program
