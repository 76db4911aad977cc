// The algorithms over an engine that has nothing to do with SIMD (device.hpp), in 784 dimensions: every loop, estimator
// and checkpoint, against recursions written out in double; and how often theta is copied.
#include "device.hpp"
#include "implicit_diffusion/denoising/checkpoint.hpp"
#include "implicit_diffusion/denoising/reconstruction.hpp"
#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

using Theta = device::Vector;
using Samples = device::Samples;
using Batch = PathBatch<device::Steps>;
using Back = BackwardBatch<device::Steps>;
using Numbers = std::vector<double>;
using DeviceAdam = BasicAdam<Theta>;

static_assert(Tiles<device::Tiles> && Energy<device::Energy> && ReverseSteps<device::Steps>);
static_assert(Energy<Potential<float>> && ReverseSteps<PointwiseSteps<float>> && ReverseSteps<PointwiseSteps<double>>);

constexpr std::size_t d = 784, n = 6;  // a whole shard, and half of one

Theta theta_of(const Numbers& numbers) { return Theta(std::vector<float>(numbers.begin(), numbers.end())); }
Numbers host(const Theta& theta) {
  const std::vector<float> numbers = theta.to_host();
  return {numbers.begin(), numbers.end()};
}
double difference(const Numbers& a, const Numbers& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t j = 0; j < std::min(a.size(), b.size()); ++j) most = std::max(most, std::abs(a[j] - b[j]));
  return most;
}
// Numbers near 1 and sums of some tens of single-precision terms: 1e-4 is a hundred times their rounding, and a wrong
// factor or index is a difference of 0.01 and more (asserted where it matters).
constexpr double tolerance = 1e-4;

// ---- Langevin dynamics

const Noise noise(7);
constexpr double g = 0.1, eta = 0.05;

Samples start_samples(std::uint64_t seed = 3, std::size_t size = n) {
  Samples x(size, d);
  StandardNormalStart<device::Energy>{Noise(seed)}.draw(x, 0);
  return x;
}
Numbers rows_of(const Samples& x) { return {x.numbers().begin(), x.numbers().end()}; }

// The objective -1.3 E R + 0.4 KL(pi || base) + 0.7 KL(reference || pi).
constexpr double lambda = 1.3, base_beta = 0.4, reference_beta = 0.7;
GradientEstimator<device::Energy>::Terms all_terms() {
  GradientEstimator<device::Energy>::Terms terms;
  terms.push_back(std::make_unique<RewardTerm<device::Energy>>(device::Reward{}, lambda));
  device::Energy base;
  base.prepare(theta_of(Numbers(d, 0.5)));
  terms.push_back(std::make_unique<BaseTerm<device::Energy>>(base, base_beta));
  terms.push_back(std::make_unique<ReferenceTerm<device::Energy>>(
      std::make_unique<FixedReference<device::Energy>>(start_samples(11, 5)), reference_beta));
  return terms;
}

// Gamma of all terms, straight from its definition: a covariance and two means.
Numbers gradient_by_hand(const Numbers& x, const Numbers& theta) {
  Numbers f(n, 0.0), gradient(d, 0.0);
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      const double v = x[i * d + j];
      f[i] +=
          -lambda * (v - 1) * (v - 1) / 2 + base_beta * ((v - theta[j]) * (v - theta[j]) - (v - 0.5) * (v - 0.5)) / 2;
    }
    mean += f[i] / n;
  }
  const Samples reference = start_samples(11, 5);
  const Numbers y = rows_of(reference);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t i = 0; i < n; ++i)
      gradient[j] += ((f[i] - mean) / (n - 1) - reference_beta / n) * (theta[j] - x[i * d + j]);
    for (std::size_t i = 0; i < 5; ++i) gradient[j] += reference_beta / 5 * (theta[j] - y[i * d + j]);
  }
  return gradient;
}
void step_by_hand(Numbers& x, const Numbers& theta, StepKey at) {
  const std::vector<float> z = device::normals(noise, Stream::sampling, at, d, 0, n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j)
      x[i * d + j] += -g * (x[i * d + j] - theta[j]) + std::sqrt(2 * g) * static_cast<double>(z[i * d + j]);
}

using LangevinState = State<Samples, GradientDescent, Theta>;
LangevinState langevin_state() { return {0, theta_of(Numbers(d, 0.2)), start_samples(), {{eta}}}; }
LangevinEngine<device::Energy> langevin_engine(Workers* workers = nullptr) {
  return {device::Energy{}, all_terms(), {.step_size = {g}, .noise = noise, .workers = workers}};
}

// The signals of 784 coordinates are some hundreds in size: single precision leaves 1e-3 of a gradient of order 30.
TEST(SecondEngine, EstimatesTheGradientOfEveryTerm) {
  GradientEstimator<device::Energy> estimator(device::Energy{}, all_terms());
  const Samples x = start_samples();
  const Theta theta = theta_of(Numbers(d, 0.2));
  Theta gradient = zeros_like(theta);
  estimator.estimate(x, theta, 0, gradient);
  const Numbers expected = gradient_by_hand(rows_of(x), Numbers(d, static_cast<double>(0.2F)));
  double size = 0;
  for (const double v : expected) size = std::max(size, std::abs(v));
  EXPECT_LT(difference(host(gradient), expected), 1e-4 * size);
  // Each term counts: without the last, or with another normaliser, the result is another.
  auto fewer = all_terms();
  fewer.pop_back();
  GradientEstimator<device::Energy>(device::Energy{}, std::move(fewer)).estimate(x, theta, 0, gradient);
  EXPECT_GT(difference(host(gradient), expected), 1e-2 * size);
  GradientEstimator<device::Energy>(device::Energy{}, all_terms(), {.normaliser = Normaliser::n})
      .estimate(x, theta, 0, gradient);
  EXPECT_GT(difference(host(gradient), expected), 1e-2 * size);
}

TEST(SecondEngine, RunsTheSingleLoopInBothOrders) {
  constexpr double slow = 1e-3;  // the gradient is large in 784 dimensions
  for (const Order order : {Order::paper, Order::authors}) {
    LangevinState s = langevin_state();
    s.optimizer = {{slow}};
    LangevinEngine<device::Energy> engine = langevin_engine();
    ASSERT_EQ(single_loop(engine, engine, s, {.steps = 6, .order = order}).status, Status::completed);

    Numbers x = rows_of(start_samples()), theta(d, static_cast<double>(0.2F));
    for (std::int64_t k = 0; k < 6; ++k) {
      Numbers gradient = gradient_by_hand(x, theta);
      step_by_hand(x, theta, {.round = k});
      if (order == Order::authors) gradient = gradient_by_hand(x, theta);
      for (std::size_t j = 0; j < d; ++j) theta[j] -= slow * gradient[j];
    }
    EXPECT_LT(difference(host(s.theta), theta), tolerance);
    EXPECT_LT(difference(rows_of(s.population), x), tolerance);
    EXPECT_GT(difference(theta, Numbers(d, 0.2)), 100 * tolerance);
  }
}

TEST(SecondEngine, TakesSamplerAndEstimatorApartOrTogether) {
  LangevinState together = langevin_state(), apart = langevin_state();
  LangevinEngine<device::Energy> engine = langevin_engine();
  Langevin<device::Energy> sampler(device::Energy{}, {.step_size = {g}, .noise = noise});
  GradientEstimator<device::Energy> estimator(device::Energy{}, all_terms());
  (void)single_loop(engine, engine, together, {.steps = 4});
  (void)single_loop(sampler, estimator, apart, {.steps = 4});
  EXPECT_EQ(host(together.theta), host(apart.theta));
  EXPECT_EQ(rows_of(together.population), rows_of(apart.population));
}

TEST(SecondEngine, RunsTheNestedLoopWarmAndCold) {
  StandardNormalStart<device::Energy> start{Noise(5)};
  for (const bool warm : {true, false}) {
    LangevinState s = langevin_state();
    LangevinEngine<device::Energy> engine = langevin_engine();
    const NestedOptions options{.steps = 3, .inner_steps = 4, .warm_start = warm};
    ASSERT_EQ(nested_loop(engine, engine, start, s, options).status, Status::completed);
    Numbers x = rows_of(start_samples()), theta(d, static_cast<double>(0.2F));
    for (std::int64_t k = 0; k < 3; ++k) {
      if (!warm) {
        Samples fresh(n, d);
        start.draw(fresh, k);
        x = rows_of(fresh);
      }
      for (std::int64_t i = 0; i < 4; ++i) step_by_hand(x, theta, {.round = k, .index = i});
      const Numbers gradient = gradient_by_hand(x, theta);
      for (std::size_t j = 0; j < d; ++j) theta[j] -= eta * gradient[j];
    }
    // eta is large here: theta and its rounding grow with the gradient.
    double size = 0;
    for (const double t : theta) size = std::max(size, std::abs(t));
    EXPECT_LT(difference(host(s.theta), theta), 1e-3 * size) << warm;
  }
}

// d/dx grad_theta V = -1: one step unrolled is -g mean (1 - x'_j).
TEST(SecondEngine, UnrollsOneStep) {
  Unrolled<device::Energy> unrolled(device::Energy{}, device::Reward{}, {.step_size = {g}, .noise = noise});
  Samples x = start_samples();
  const Theta theta = theta_of(Numbers(d, 0.2));
  unrolled.advance(x, theta, {});
  Theta gradient = zeros_like(theta);
  unrolled.estimate(x, theta, 0, gradient);
  Numbers expected(d, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) expected[j] -= g / n * (1 - rows_of(x)[i * d + j]);
  EXPECT_LT(difference(host(gradient), expected), tolerance * g);
}

TEST(SecondEngine, SeesDivergence) {
  LangevinState s = langevin_state();
  s.optimizer = {{1e30}};
  LangevinEngine<device::Energy> engine = langevin_engine();
  const Outcome outcome = single_loop(engine, engine, s, {.steps = 50});
  ASSERT_EQ(outcome.status, Status::diverged);
  EXPECT_FALSE(first_nonfinite(s.theta));
}

// The pointwise engine through the general form, signals then weights, and in its one pass: the same up to rounding.
class TwoPasses : public PointwiseTiles<double> {
 public:
  explicit TwoPasses(Potential<double> v) : v_(std::move(v)) {}
  void prepare(const Theta& theta) { v_.prepare(theta); }
  void add_values(ConstTile x, double c, double* f) const { v_.add_values(x, c, f); }
  void add(ConstTile x, const double* w, Sum sum) const { v_.add(x, w, sum); }
  void step(Tile x, const LangevinStep& s, bool& nonfinite) const { v_.step(x, s, nonfinite); }
  void step_and_add(Tile x, const LangevinStep& s, bool& nonfinite, const double* w, Sum sum) const {
    v_.step_and_add(x, s, nonfinite, w, sum);
  }
  std::optional<std::size_t> find_inadmissible(const Theta& theta) const { return v_.find_inadmissible(theta); }
  bool fits(const Theta& theta) const { return v_.fits(theta); }
  bool fits(const Samples& x) const { return v_.fits(x); }
  Samples samples(std::size_t count) const { return v_.samples(count); }

 private:
  Potential<double> v_;
};
struct Parabola {
  static constexpr bool any_number = true;
  double centre = 0;
  static std::size_t dimension() { return 1; }
  static std::size_t parameters() { return 1; }
  void prepare(std::span<const double> theta) { centre = theta[0]; }
  template <class Real>
  Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    const Real u = x[0] - Real(centre);
    if (grad_x) grad_x[0] = u;
    if (grad_theta) grad_theta[0] = -u;
    return u * u / 2;
  }
};
TEST(SecondEngine, OnePassIsTheGeneralForm) {
  const auto run = [](auto engine) {
    State<Population<double>, GradientDescent> s{0, {0.3}, {700, 1}, {{eta}}};
    StandardNormalStart<double>{Noise(3)}.draw(s.population, 0);
    (void)single_loop(engine, engine, s, {.steps = 20});
    return s;
  };
  const auto terms = []<class T>(T) {
    typename GradientEstimator<T>::Terms list;
    list.push_back(
        std::make_unique<RewardTerm<T>>(Reward<double>([](const double* x) { return -(x[0] - 2) * (x[0] - 2); })));
    Population<double> y(40, 1);
    StandardNormalStart<double>{Noise(8)}.draw(y, 0);
    list.push_back(std::make_unique<ReferenceTerm<T>>(std::make_unique<FixedReference<T>>(y), 0.5));
    return list;
  };
  const LangevinOptions options{.step_size = {g}, .noise = noise};
  const auto one = run(LangevinEngine<double>(Parabola{}, terms(0.0), options));
  const auto two = run(LangevinEngine<TwoPasses>(TwoPasses(Parabola{}), terms(TwoPasses(Parabola{})), options));
  EXPECT_NEAR(one.theta[0], two.theta[0], 1e-12);
  EXPECT_GT(std::abs(one.theta[0] - 0.3), 0.1);
}

TEST(SecondEngine, ItsNoiseIsOurs) {
  const std::vector<float> z = device::normals(noise, Stream::sampling, {.round = 5, .index = 2}, d, 4, 3);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(z[i * d + 700], noise.normal(Stream::sampling, {.round = 5, .index = 2}, d, 4 + i, 700), 1e-5);
}

// ---- reverse chains

const TimeGrid grid = uniform_grid(2, 12);
const Numbers frozen_numbers = [] {
  Numbers t(2 * d);
  for (std::size_t j = 0; j < d; ++j) t[j] = 1, t[d + j] = 0.1;
  return t;
}();
const Numbers first_numbers = [] {
  Numbers t(2 * d);
  for (std::size_t j = 0; j < d; ++j) {
    t[j] = 0.8 + 0.3 * std::sin(static_cast<double>(j));
    t[d + j] = 0.5 * std::cos(static_cast<double>(j));
  }
  return t;
}();
constexpr DenoisingObjective objective{.lambda = 1.3, .beta = 0.6};

ReverseChain<device::Steps> chain_of(const ChainSettings& settings, Workers* workers = nullptr, bool frozen = true) {
  std::optional<std::pair<device::Steps::Model, Theta>> base;
  if (frozen) base.emplace(device::Steps::Model{}, theta_of(frozen_numbers));
  return {device::Steps(d, noise, workers), grid, settings, std::move(base)};
}
const DenoisingStart<device::Steps> fresh{Noise(9)};
Batch empty_batch() {
  Batch b;
  b.points = Samples(n, d);
  return b;
}

// One batch by hand, coordinate by coordinate: its path at the thetas that made its steps, and the derivatives of the
// objective along that path with the model at `now`, in forward mode: u = dy / dg, v = dy / dm.
struct ByHand {
  Dynamics dynamics = Dynamics::euler_sde;
  std::size_t last_steps = 12;

  // theta_at(step) made that step. Returns the path, state after state.
  std::vector<Numbers> path(std::int64_t birth, const std::function<const Numbers&(std::size_t)>& theta_at) const {
    Batch b = empty_batch();
    fresh.draw(b, birth);
    std::vector<Numbers> states{rows_of(b.points)};
    for (std::size_t s = 0; s < grid.steps(); ++s) {
      const StepCoefficients c = step_coefficients(dynamics, grid.tau[s], grid.step(s));
      const Numbers& t = theta_at(s);
      const auto index = static_cast<std::int64_t>(s);
      const std::vector<float> z = device::normals(noise, Stream::sampling, {.round = birth, .index = index}, d, 0, n);
      Numbers next = states.back();
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < d; ++j) {
          double& y = next[i * d + j];
          const double score = std::exp(-grid.tau[s]) * t[d + j] - t[j] * y;
          y = c.growth * y + c.pull * score;
          y += c.noise * static_cast<double>(z[i * d + j]);
        }
      states.push_back(std::move(next));
    }
    return states;
  }
  Numbers gradient(const std::vector<Numbers>& states, const Numbers& now, const DenoisingObjective& o) const {
    Numbers sum(2 * d, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < d; ++j) {
        double u = 0, v = 0, penalty_u = 0, penalty_v = 0;
        for (std::size_t s = grid.steps() - last_steps; s < grid.steps(); ++s) {
          const StepCoefficients c = step_coefficients(dynamics, grid.tau[s], grid.step(s));
          const double a = std::exp(-grid.tau[s]), y = states[s][i * d + j];
          const double gap = a * (now[d + j] - frozen_numbers[d + j]) - (now[j] - frozen_numbers[j]) * y;
          // s = a m - g y and s_0 along y(g, m)
          penalty_u += 2 * c.penalty * gap * (-y - (now[j] - frozen_numbers[j]) * u);
          penalty_v += 2 * c.penalty * gap * (a - (now[j] - frozen_numbers[j]) * v);
          u = (c.growth - c.pull * now[j]) * u - c.pull * y;
          v = (c.growth - c.pull * now[j]) * v + c.pull * a;
        }
        const double slope = -o.lambda * (1 - states.back()[i * d + j]);
        sum[j] += (slope * u + o.beta * penalty_u) / n;
        sum[d + j] += (slope * v + o.beta * penalty_v) / n;
      }
    return sum;
  }
};

TEST(SecondEngine, GradientsThroughAChainAreExact) {
  const Theta theta = theta_of(first_numbers);
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode, Dynamics::ddim}) {
    auto chain = chain_of({.dynamics = dynamics});
    DenoisingSampler<device::Steps> sampler(chain);
    Batch b = empty_batch();
    fresh.draw(b, 4);
    sampler.advance(b, theta, {});
    const ByHand hand{dynamics};
    const auto states = hand.path(4, [](std::size_t) -> const Numbers& { return first_numbers; });
    EXPECT_LT(difference(rows_of(b.points), states.back()), tolerance);
    Theta gradient = zeros_like(theta);
    PathGradient<device::Steps>(chain, {}, objective).estimate(b, theta, 0, gradient);
    const Numbers exact = hand.gradient(states, first_numbers, objective);
    EXPECT_LT(difference(host(gradient), exact), tolerance);
    EXPECT_GT(difference(exact, hand.gradient(states, first_numbers, {.lambda = 1.3})), 100 * tolerance);

    const ByHand three{dynamics, 3};
    PathGradient<device::Steps>(chain, {}, objective, 3).estimate(b, theta, 0, gradient);
    EXPECT_LT(difference(host(gradient), three.gradient(states, first_numbers, objective)), tolerance);

    Batch at_once = empty_batch();
    fresh.draw(at_once, 4);
    Theta both = zeros_like(theta);
    PathGradient<device::Steps>(chain, {}, objective).sample_and_estimate(at_once, theta, {}, both);
    EXPECT_LT(difference(host(both), exact), tolerance);
    EXPECT_EQ(rows_of(at_once.points), rows_of(b.points));
    EXPECT_EQ(at_once.penalty, b.penalty);
  }
}

TEST(SecondEngine, FindsPathsAgain) {
  const Theta theta = theta_of(first_numbers);
  auto chain = chain_of({.dynamics = Dynamics::euler_ode});
  Batch b = empty_batch();
  fresh.draw(b, 4);
  DenoisingSampler<device::Steps>(chain).advance(b, theta, {});
  Theta exact = zeros_like(theta), found = exact, back_gradient = exact;
  PathGradient<device::Steps>(chain, {}, objective).estimate(b, theta, 0, exact);
  ReconstructedGradient<device::Steps> coarse(chain, {}, objective, 0), fine(chain, {}, objective, 40);
  fine.estimate(b, theta, 0, found);
  EXPECT_LT(difference(host(found), host(exact)), 10 * tolerance);
  EXPECT_LT(fine.reconstruction_error(), tolerance);
  coarse.estimate(b, theta, 0, found);
  EXPECT_GT(coarse.reconstruction_error(), 100 * tolerance);

  DenoisingBackward<device::Steps> backward(chain, {}, objective);
  Back back = backward.begin(b, theta);
  for (std::size_t s = 0; s < grid.steps(); ++s) backward.step(back, s, theta);
  backward.gradient(back, back_gradient);
  EXPECT_LT(difference(host(back_gradient), host(found)), 1e-6);
}

using Queue = QueueState<Batch, GradientDescent, Theta>;
struct QueueRun {
  Queue state;
  std::vector<Numbers> thetas;  // theta_0, theta_1, ...
};
QueueRun run_queue(const ChainSettings& settings, std::int64_t steps, bool warm = true, Workers* workers = nullptr) {
  auto chain = chain_of(settings, workers);
  DenoisingSampler<device::Steps> sampler(chain);
  PathGradient<device::Steps> gradient(chain, {}, objective);
  QueueRun run{{0, theta_of(first_numbers), {}, {{0.05}}}, {}};
  const QueueOptions options{.steps = steps, .slots = static_cast<std::int64_t>(settings.slots), .warm_start = warm};
  start_queue(sampler, fresh, run.state, options, empty_batch());
  const auto watch = [&](const Queue& s) { run.thetas.push_back(host(s.theta)); };
  EXPECT_EQ(queue_loop(sampler, gradient, fresh, run.state, options, watch).status, Status::completed);
  return run;
}

// The batch that finishes at step k was born at k - M and made its m-th stretch at theta_{k - M + m}; warm slots at
// theta_0.
TEST(SecondEngine, RunsTheQueue) {
  for (const bool warm : {true, false}) {
    constexpr std::int64_t slots = 4, steps = 9;
    const QueueRun run = run_queue({.slots = slots}, steps, warm);
    std::vector<Numbers> thetas{first_numbers};
    const ByHand hand;
    for (std::int64_t k = 0; k < steps; ++k) {
      thetas.push_back(thetas.back());
      if (!warm && k < slots) continue;
      const auto theta_at = [&](std::size_t s) -> const Numbers& {
        const std::int64_t step = k - slots + static_cast<std::int64_t>(s) / 3;
        return thetas[static_cast<std::size_t>(std::max<std::int64_t>(step, 0))];
      };
      const Numbers gradient =
          hand.gradient(hand.path(k - slots, theta_at), thetas[static_cast<std::size_t>(k)], objective);
      for (std::size_t j = 0; j < 2 * d; ++j) thetas.back()[j] -= 0.05 * gradient[j];
    }
    for (std::size_t k = 0; k <= steps; ++k) EXPECT_LT(difference(run.thetas[k], thetas[k]), tolerance) << warm << k;
    EXPECT_GT(difference(thetas.front(), thetas.back()), 100 * tolerance);
  }
}

TEST(SecondEngine, ReplaysPathsToTheSameBits) {
  const QueueRun kept = run_queue({.slots = 4}, 9);
  for (const std::size_t keep : {2, 5, 12})
    EXPECT_EQ(run_queue({.slots = 4, .keep_every = keep}, 9).thetas, kept.thetas);
}

TEST(SecondEngine, DoesNotDependOnThreads) {
  Workers three(3);
  EXPECT_EQ(run_queue({.slots = 4, .keep_every = 5}, 6, true, &three).thetas,
            run_queue({.slots = 4, .keep_every = 5}, 6).thetas);
  LangevinState one = langevin_state(), more = langevin_state();
  auto alone = langevin_engine(), spread = langevin_engine(&three);
  (void)single_loop(alone, alone, one, {.steps = 5});
  (void)single_loop(spread, spread, more, {.steps = 5});
  EXPECT_EQ(host(one.theta), host(more.theta));
}

TEST(SecondEngine, TheNestedLoopTakesBothAtOnce) {
  auto chain = chain_of({});
  DenoisingEngine<device::Steps> engine(chain, {}, objective);
  State<Batch, GradientDescent, Theta> s{0, theta_of(first_numbers), empty_batch(), {{0.05}}};
  ASSERT_EQ(nested_loop(engine, engine, fresh, s, {.steps = 5, .inner_steps = 1, .warm_start = false}).status,
            Status::completed);
  EXPECT_TRUE(s.population.path.empty());
  Numbers theta = first_numbers;
  const ByHand hand;
  for (std::int64_t k = 0; k < 5; ++k) {
    const Numbers now = theta;
    const Numbers gradient =
        hand.gradient(hand.path(k, [&](std::size_t) -> const Numbers& { return now; }), now, objective);
    for (std::size_t j = 0; j < 2 * d; ++j) theta[j] -= 0.05 * gradient[j];
  }
  EXPECT_LT(difference(host(s.theta), theta), tolerance);
}

using DoubleQueue = DoubleQueueState<Batch, Back, DeviceAdam, Theta>;
struct DoubleQueueParts {
  ReverseChain<device::Steps> chain = chain_of({.dynamics = Dynamics::euler_ode, .slots = 12});
  DenoisingSampler<device::Steps> sampler{chain};
  DenoisingBackward<device::Steps> backward{chain, {}, objective};

  DoubleQueue start() {
    Queue warm{0, theta_of(first_numbers), {}, {}};
    start_queue(sampler, fresh, warm, {.slots = 12}, empty_batch());
    return {0, theta_of(first_numbers), std::move(warm.slots), {}, DeviceAdam{{.rate = {0.01}}}};
  }
};

TEST(SecondEngine, RunsTheDoubleQueue) {
  DoubleQueueParts parts;
  DoubleQueue s = parts.start();
  const Numbers before = host(s.theta);
  ASSERT_EQ(double_queue_loop(parts.sampler, parts.backward, fresh, s, 13).status, Status::completed);
  EXPECT_EQ(host(s.theta), before) << "nothing is back yet";
  ASSERT_EQ(double_queue_loop(parts.sampler, parts.backward, fresh, s, 14).status, Status::completed);
  // Adam's first step is 0.01 against the sign of the gradient, which is that of the batch that had finished at step 0.
  Batch b = empty_batch();
  fresh.draw(b, -12);
  auto whole = chain_of({.dynamics = Dynamics::euler_ode});
  DenoisingSampler<device::Steps>(whole).advance(b, theta_of(first_numbers), {});
  Theta gradient = theta_of(Numbers(2 * d));
  ReconstructedGradient<device::Steps>(whole, {}, objective).estimate(b, theta_of(first_numbers), 0, gradient);
  const Numbers g1 = host(gradient), after = host(s.theta);
  for (std::size_t j = 0; j < 2 * d; ++j)
    if (std::abs(g1[j]) > 1e-3) {
      EXPECT_NEAR(after[j], before[j] - (g1[j] > 0 ? 0.01 : -0.01), 1e-5) << j;
    }
}

// ---- checkpoints: a run that goes on from one equals one that was never stopped

template <class Save, class Restore>
void through_a_checkpoint(Save&& save_state, Restore&& restore_state) {
  io::CheckpointWriter writer;
  save_state(writer);
  const io::CheckpointReader reader(writer.to_bytes(), "checkpoint");
  restore_state(reader);
}

TEST(SecondEngine, ResumesLangevinRuns) {
  using S = State<Samples, DeviceAdam, Theta>;
  const auto start = [] { return S{0, theta_of(Numbers(d, 0.2)), start_samples(), DeviceAdam{{.rate = {0.01}}}}; };
  S whole = start(), stopped = start(), resumed = start();
  auto engine = langevin_engine();
  (void)single_loop(engine, engine, whole, {.steps = 7});
  (void)single_loop(engine, engine, stopped, {.steps = 3});
  through_a_checkpoint([&](auto& writer) { save(writer, stopped); }, [&](auto& reader) { restore(reader, resumed); });
  EXPECT_EQ(resumed.step, 3);
  (void)single_loop(engine, engine, resumed, {.steps = 7});
  EXPECT_EQ(host(whole.theta), host(resumed.theta));
  EXPECT_EQ(rows_of(whole.population), rows_of(resumed.population));
}

TEST(SecondEngine, ResumesQueues) {
  for (const std::size_t keep : {1, 5}) {
    for (const std::int64_t stop : {2, 6}) {  // two: a cold queue that still fills
      const ChainSettings settings{.slots = 4, .keep_every = keep};
      auto chain = chain_of(settings);
      DenoisingSampler<device::Steps> sampler(chain);
      PathGradient<device::Steps> gradient(chain, {}, objective);
      Queue resumed{0, theta_of(Numbers(2 * d)), {}, {{0.05}}};
      const QueueRun stopped = run_queue(settings, stop, false);
      through_a_checkpoint([&](auto& writer) { save(writer, stopped.state, chain); },
                           [&](auto& reader) { restore(reader, resumed, chain, empty_batch()); });
      (void)queue_loop(sampler, gradient, fresh, resumed, {.steps = 9, .slots = 4, .warm_start = false});
      EXPECT_EQ(run_queue(settings, 9, false).thetas.back(), host(resumed.theta)) << keep << ' ' << stop;
    }
  }
}

TEST(SecondEngine, ResumesDoubleQueuesAndNestedRuns) {
  DoubleQueueParts parts;
  DoubleQueue whole = parts.start(), stopped = parts.start(), resumed = parts.start();
  (void)double_queue_loop(parts.sampler, parts.backward, fresh, whole, 20);
  (void)double_queue_loop(parts.sampler, parts.backward, fresh, stopped, 15);
  through_a_checkpoint([&](auto& writer) { save(writer, stopped, parts.chain); },
                       [&](auto& reader) { restore(reader, resumed, parts.chain, empty_batch()); });
  (void)double_queue_loop(parts.sampler, parts.backward, fresh, resumed, 20);
  EXPECT_EQ(host(whole.theta), host(resumed.theta));

  auto chain = chain_of({});
  DenoisingEngine<device::Steps> engine(chain, {}, objective);
  using S = State<Batch, DeviceAdam, Theta>;
  const NestedOptions cold{.steps = 5, .inner_steps = 1, .warm_start = false};
  S all{0, theta_of(first_numbers), empty_batch(), DeviceAdam{}}, some = all, more = all;
  (void)nested_loop(engine, engine, fresh, all, cold);
  (void)nested_loop(engine, engine, fresh, some, {.steps = 2, .inner_steps = 1, .warm_start = false});
  through_a_checkpoint([&](auto& writer) { save(writer, some, chain); },
                       [&](auto& reader) { restore(reader, more, chain); });
  EXPECT_EQ(more.population.penalty, some.population.penalty);
  (void)nested_loop(engine, engine, fresh, more, cold);
  EXPECT_EQ(host(all.theta), host(more.theta));
}

TEST(SecondEngine, RefusesCheckpointsOfAnotherShape) {
  State<Samples, DeviceAdam, Theta> s{0, theta_of(Numbers(d, 0.2)), start_samples(), DeviceAdam{}};
  auto shorter = s;
  shorter.theta = theta_of(Numbers(d - 1));
  State<Samples, GradientDescent, Theta> descent{0, s.theta, s.population, {}};
  auto engine = langevin_engine();
  (void)single_loop(engine, engine, s, {.steps = 1});
  io::CheckpointWriter writer;
  save(writer, s);
  const io::CheckpointReader reader(writer.to_bytes(), "checkpoint");
  EXPECT_THROW(restore(reader, shorter), Error);
  EXPECT_THROW(restore(reader, descent), Error);
  auto chain = chain_of({});
  State<Batch, DeviceAdam, Theta> batch{0, s.theta, empty_batch(), DeviceAdam{}};
  EXPECT_THROW(restore(reader, batch, chain), Error);
}

// ---- what it costs: copies of theta in a step, and numbers that leave the device

// Between `steps` and twice as many, so that what a run does once does not count.
template <class Run>
void expect_copies(int a_step, Run&& run) {
  constexpr int steps = 10;
  const auto count = [&](std::int64_t k) {
    const int copies = device::counts.copies, transfers = device::counts.transfers;
    run(k);
    return std::pair{device::counts.copies - copies, device::counts.transfers - transfers};
  };
  const auto once = count(steps), twice = count(2 * steps);
  EXPECT_EQ(twice.first - once.first, a_step * steps);
  EXPECT_EQ(twice.second, once.second) << "a step sends nothing to the host";
}

TEST(SecondEngine, AStepCopiesThetaOnce) {
  auto engine = langevin_engine();
  for (const Order order : {Order::paper, Order::authors})
    expect_copies(1, [&](std::int64_t k) {
      State<Samples, DeviceAdam, Theta> s{0, theta_of(Numbers(d, 0.2)), start_samples(), DeviceAdam{}};
      (void)single_loop(engine, engine, s, {.steps = k, .order = order});
    });
  auto chain = chain_of({});
  DenoisingEngine<device::Steps> at_once(chain, {}, objective);
  expect_copies(1, [&](std::int64_t k) {
    State<Batch, DeviceAdam, Theta> s{0, theta_of(first_numbers), empty_batch(), DeviceAdam{}};
    (void)nested_loop(at_once, at_once, fresh, s, {.steps = k, .inner_steps = 1, .warm_start = false});
  });
}

// However many steps of the sampler it has, and whatever the gradient is taken through.
TEST(SecondEngine, AStepOfNestedUnrolledAndDoubleLoopsCopiesThetaOnce) {
  auto engine = langevin_engine();
  Unrolled<device::Energy> unrolled(device::Energy{}, device::Reward{}, {.step_size = {g}, .noise = noise});
  const StandardNormalStart<device::Energy> start{Noise(5)};
  for (const bool warm : {true, false}) {
    expect_copies(1, [&](std::int64_t k) {
      LangevinState s = langevin_state();
      (void)nested_loop(engine, engine, start, s, {.steps = k, .inner_steps = 3, .warm_start = warm});
    });
    expect_copies(1, [&](std::int64_t k) {
      LangevinState s = langevin_state();
      (void)nested_loop(unrolled, unrolled, start, s, {.steps = k, .inner_steps = 3, .warm_start = warm});
    });
  }
  expect_copies(1, [&](std::int64_t k) {
    DoubleQueueParts parts;
    DoubleQueue s = parts.start();
    (void)double_queue_loop(parts.sampler, parts.backward, fresh, s, 25 + k);
  });
}

// And once more, shared by all slots, where the path is to be replayed.
TEST(SecondEngine, AQueueThatReplaysCopiesThetaTwice) {
  for (const std::size_t keep : {1, 5}) {
    auto chain = chain_of({.slots = 4, .keep_every = keep});
    DenoisingSampler<device::Steps> sampler(chain);
    PathGradient<device::Steps> gradient(chain, {}, objective);
    expect_copies(keep == 1 ? 1 : 2, [&](std::int64_t k) {
      Queue s{0, theta_of(first_numbers), {}, {{0.05}}};
      const QueueOptions options{.steps = k, .slots = 4};
      start_queue(sampler, fresh, s, options, empty_batch());
      (void)queue_loop(sampler, gradient, fresh, s, options);
    });
  }
}

}  // namespace
}  // namespace implicit_diffusion
