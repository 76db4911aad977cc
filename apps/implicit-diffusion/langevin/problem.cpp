#include "langevin/problem.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/samples.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/single.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace program {

using namespace implicit_diffusion;

template <class Real>
Potential<Real> make_potential(const PotentialSpec& s) {
  switch (s.kind) {
    case PotentialKind::quadratic:
      return Quadratic(s.precision);
    case PotentialKind::wells:
      return SoftmaxWells(s.centres, s.width);
    case PotentialKind::logistic_wells:
      return LogisticWells(s.centres, s.width, s.floor);
    case PotentialKind::mixture:
      return Mixture(s.components, s.dimension, {s.covariance, s.kappa});
  }
  throw std::logic_error("a potential without a type");
}
template Potential<float> make_potential(const PotentialSpec&);
template Potential<double> make_potential(const PotentialSpec&);

template <class Real>
Reward<Real> make_reward(const RewardSpec& s) {
  switch (s.kind) {
    case RewardKind::hard:
      return HardReward(s.centre, s.width, s.denominator);
    case RewardKind::smooth:
      return SmoothReward(s.centre, s.width, s.denominator, s.softness);
    case RewardKind::quadratic:
      return QuadraticReward(s.centre);
    case RewardKind::bump:
      return BumpReward(s.centre, s.width);
  }
  throw std::logic_error("a reward without a type");
}
template Reward<float> make_reward(const RewardSpec&);
template Reward<double> make_reward(const RewardSpec&);

void check_size(const Configuration& c, std::size_t dimension, std::size_t parameters,
                const std::function<void(std::string_view key, const std::string& reason)>& refuse) {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  const auto too_large = [&](const char* key, std::int64_t value, double bytes) {
    refuse(key,
           fmt::format("{} needs {:.3g} GB of memory, this machine has {:.3g} GB", value, bytes / 1e9, memory / 1e9));
  };
  // The population twice (the second for a step back), its weights and one more array of its size.
  const double samples =
      static_cast<double>(c.particles) * (2.0 * static_cast<double>(dimension) + 3.0) * sizeof(float);
  if (samples > 0.8 * memory) too_large("particles", c.particles, samples);
  if (static_cast<double>(c.particles) * static_cast<double>(dimension) > 0x1p34)
    refuse("particles", fmt::format("{}: at most 2^34 numbers have noise of their own", c.particles));
  if (c.reference) {
    const auto batch = static_cast<double>(c.reference->batch);
    const double drawn = batch * (static_cast<double>(dimension) + 3.0) * sizeof(float);
    if (drawn > 0.8 * memory) too_large("reference.batch", static_cast<std::int64_t>(c.reference->batch), drawn);
    if (batch * static_cast<double>(dimension) > 0x1p34)
      refuse("reference.batch", fmt::format("{}: at most 2^34 numbers have noise of their own", c.reference->batch));
  }
  const double rows = static_cast<double>(c.steps) / static_cast<double>(c.log_every);
  const double metrics = rows * (static_cast<double>(parameters) + 16.0) * 2 * sizeof(double);
  if (metrics > 0.8 * memory) too_large("log_every", c.log_every, metrics);
}

Population<float> read_population(const std::filesystem::path& path, std::size_t dimension) {
  const io::Array a = io::read_samples(path);
  if (a.shape[1] != dimension)
    throw Error(ErrorKind::data, io::display(path),
                fmt::format("{} columns, the potential has dimension {}", a.shape[1], dimension));
  Population<float> x(a.shape[0], dimension);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < dimension; ++j) x(i, j) = static_cast<float>(a.values[i * dimension + j]);
  if (const auto bad = find_nonfinite(x))
    throw Error(
        ErrorKind::data, io::display(path),
        fmt::format("row {}, column {} is too large for single precision", bad->sample + 1, bad->coordinate + 1));
  return x;
}

std::optional<std::string> too_far(double v, double deviation) {
  const double spacing = std::abs(v) * 0x1p-23;
  if (spacing <= deviation / 100) return std::nullopt;
  return fmt::format(
      "{} is too far from the origin for a standard deviation of {:.3g}: single-precision numbers are {:.3g} apart "
      "there; shift centres, means and data towards 0",
      v, deviation, spacing);
}

Population<float> read_reference_data(const Configuration& c, const Potential<float>& potential) {
  Population<float> x = read_population(c.reference->data, potential.dimension());
  const std::optional<GaussianMixture> law = potential.law(c.start.theta);
  for (std::size_t j = 0; law && j < x.dimension(); ++j) {
    double sum = 0, variance = 0;
    for (const float v : std::as_const(x).coordinate(j)) sum += static_cast<double>(v);
    for (const Gaussian& g : law->components) variance = std::max(variance, g.covariance[j * x.dimension() + j]);
    if (const auto what = too_far(sum / static_cast<double>(x.size()), std::sqrt(variance)))
      throw Error(ErrorKind::data, io::display(c.reference->data), fmt::format("column {}: its mean {}", j + 1, *what));
  }
  return x;
}

Start::Start(const StartSpec& spec, std::size_t particles, std::size_t dimension, Noise noise)
    : spec_(spec), noise_(noise) {
  if (spec.samples.empty()) return;
  samples_ = read_population(spec.samples, dimension);
  if (samples_->size() != particles)
    throw Error(ErrorKind::data, io::display(spec.samples),
                fmt::format("{} samples, {} particles", samples_->size(), particles));
}

void Start::draw(Population<float>& x, std::int64_t round) const {
  if (samples_) {
    x = *samples_;
    return;
  }
  StandardNormalStart<float>{noise_}.draw(x, round);
  for (std::size_t j = 0; j < x.dimension(); ++j)
    for (float& v : x.coordinate(j)) v = static_cast<float>(spec_.mean[j] + spec_.scale * static_cast<double>(v));
}

bool moves_theta(Method method) {
  return method == Method::implicit || method == Method::nested || method == Method::unrolled;
}

std::int64_t gradient_evaluations_per_step(const Configuration& c) {
  return c.method == Method::nested || c.method == Method::unrolled ? c.inner_steps : 1;
}

namespace {

// The step of the sampler and of theta. The cube-root pair slows both down, as the theory asks.
SchedulePair rates(const Configuration& c) {
  // Unrolled one step, the gradient is that of the step, not of the law: g times too small for a Gaussian. The rate 2
  // eta / g undoes it.
  const double eta = c.method == Method::unrolled ? 2 * c.learning_rate / c.step_size : c.learning_rate;
  switch (c.schedule) {
    case ScheduleKind::constant:
      return {{c.step_size}, {eta}};
    case ScheduleKind::inverse_sqrt:
      return {{c.step_size}, {eta, 0.5}};
    case ScheduleKind::cube_root:
      return {{c.step_size, 1.0 / 3.0}, {eta, 2.0 / 3.0}};
  }
  throw std::logic_error("a schedule without a meaning");
}

AnyOptimizer make_optimizer(const Configuration& c, const Schedule& rate) {
  if (c.optimizer == OptimizerKind::adam) return {Adam({.rate = rate})};
  return {GradientDescent{rate}};
}

std::unique_ptr<Reference<float>> make_reference(const Configuration& c, const Potential<float>& potential,
                                                 Noise noise) {
  const ReferenceSpec& r = *c.reference;
  if (!r.theta.empty()) return std::make_unique<MixtureReference<float>>(*potential.law(r.theta), r.batch, noise);
  Population<float> data = read_reference_data(c, potential);
  if (r.batch == 0) return std::make_unique<FixedReference<float>>(std::move(data));
  return std::make_unique<MinibatchReference<float>>(std::move(data), r.batch, noise);
}

}  // namespace

LangevinEngine<float> make_engine(const Configuration& c, const Potential<float>& potential,
                                  const LangevinOptions& options) {
  GradientEstimator<float>::Terms terms;
  if (c.reward) terms.push_back(std::make_unique<RewardTerm<float>>(make_reward(*c.reward), c.reward->lambda));
  if (c.reference)
    terms.push_back(
        std::make_unique<ReferenceTerm<float>>(make_reference(c, potential, options.noise), c.reference->beta));
  if (c.base) {
    Potential<float> base = potential;
    base.prepare(c.base->theta);
    terms.push_back(std::make_unique<BaseTerm<float>>(std::move(base), c.base->beta));
  }
  return {potential, std::move(terms), options, c.normaliser};
}

std::vector<double> AnyOptimizer::memory() const {
  const auto* adam = std::get_if<Adam>(&choice);
  return adam ? adam->memory().list() : std::vector<double>();
}

bool AnyOptimizer::restore(std::span<const double> numbers, std::size_t parameters) {
  auto* adam = std::get_if<Adam>(&choice);
  return adam ? adam->memory().restore(numbers, parameters) : numbers.empty();
}

RunResult run_method(const Configuration& c, Workers* workers, const RunObserver& observe, std::stop_token stop,
                     const std::function<void(RunState&)>& resume) {
  const Noise noise(c.seed);
  const Potential<float> potential = make_potential(c.potential);
  const SchedulePair rate = rates(c);
  const LangevinOptions options{.step_size = rate.sampler, .noise = noise, .workers = workers};
  const auto n = static_cast<std::size_t>(c.particles);
  const Start start(c.start, n, potential.dimension(), noise);

  RunResult r{
      {.step = 0, .theta = c.start.theta, .population = Population<float>(n, potential.dimension()), .optimizer = {}},
      {}};
  start.draw(r.state.population, 0);
  if (moves_theta(c.method)) r.state.optimizer = make_optimizer(c, rate.optimizer);
  if (c.method == Method::langevin_optimised) r.state.theta = c.theta_opt;
  if (resume) resume(r.state);

  const NestedOptions nested{.steps = c.steps, .inner_steps = c.inner_steps, .warm_start = c.warm_start};
  switch (c.method) {
    case Method::implicit: {
      LangevinEngine<float> engine = make_engine(c, potential, options);
      r.outcome = single_loop(engine, engine, r.state, {.steps = c.steps, .order = c.order}, observe, stop);
      break;
    }
    case Method::nested: {
      LangevinEngine<float> engine = make_engine(c, potential, options);
      r.outcome = nested_loop(engine, engine, start, r.state, nested, observe, stop);
      break;
    }
    case Method::unrolled: {
      Unrolled<float> unrolled(potential, make_reward(*c.smooth_reward), options);
      r.outcome = nested_loop(unrolled, unrolled, start, r.state, nested, observe, stop);
      break;
    }
    // Sampling alone: theta stays where it is.
    case Method::guided:
    case Method::langevin_initial:
    case Method::langevin_optimised: {
      Langevin<float> sampler(c.method == Method::guided
                                  ? guided(potential, make_reward(*c.smooth_reward), c.smooth_reward->lambda)
                                  : potential,
                              options);
      NoGradient none;
      r.outcome = single_loop(sampler, none, r.state, {.steps = c.steps}, observe, stop);
      break;
    }
  }
  return r;
}

}  // namespace program
