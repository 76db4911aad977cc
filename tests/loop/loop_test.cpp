// The loops against the index form of the algorithms on a toy that can be followed by hand, their identities with real
// samplers, and how they end: done, stopped, diverged.
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/sampler.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "problems/hexagon_reward.hpp"
#include "problems/linear_toy.hpp"
#include "problems/training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

using problems::ToyAnswers;
using problems::ToyGradient;
using problems::ToySampler;
using problems::ToyStart;
using Where = Divergence::Where;

// ---- the toy

// theta_1, theta_2, ... as the observer sees them; it must see theta_0 first, and every step once.
struct Trace {
  std::vector<double> theta;
  std::int64_t seen = 0;

  template <class State>
  void operator()(const State& s) {
    EXPECT_EQ(s.step, seen);
    ++seen;
    if (s.step > 0) theta.push_back(s.theta[0]);
  }
};

constexpr GradientDescent toy_descent{{ToyAnswers::eta}};

std::vector<double> single_toy(Order order, std::int64_t steps) {
  State<double, GradientDescent> s{0, {ToyAnswers::theta_0}, ToyAnswers::p_0, toy_descent};
  ToySampler sampler;
  ToyGradient gradient;
  Trace trace;
  EXPECT_EQ(single_loop(sampler, gradient, s, {.steps = steps, .order = order}, trace).status, Status::completed);
  EXPECT_EQ(s.step, steps);
  EXPECT_EQ(trace.seen, steps + 1);
  return trace.theta;
}

std::vector<double> nested_toy(bool warm, std::int64_t inner, std::int64_t steps) {
  State<double, GradientDescent> s{0, {ToyAnswers::theta_0}, ToyAnswers::p_0, toy_descent};
  ToySampler sampler;
  ToyGradient gradient;
  ToyStart start;
  Trace trace;
  const NestedOptions options{.steps = steps, .inner_steps = inner, .warm_start = warm};
  EXPECT_EQ(nested_loop(sampler, gradient, start, s, options, trace).status, Status::completed);
  EXPECT_EQ(trace.seen, steps + 1);
  return trace.theta;
}

std::vector<double> queue_toy(bool warm, std::int64_t slots, std::int64_t steps) {
  QueueState<double, GradientDescent> s{0, {ToyAnswers::theta_0}, {}, toy_descent};
  ToySampler sampler;
  ToyGradient gradient;
  ToyStart start;
  Trace trace;
  const QueueOptions options{.steps = steps, .slots = slots, .warm_start = warm};
  start_queue(sampler, start, s, options, 0.0);
  EXPECT_EQ(queue_loop(sampler, gradient, start, s, options, trace).status, Status::completed);
  EXPECT_EQ(trace.seen, steps + 1);
  return trace.theta;
}

// Sums and products of numbers near 1: rounding stays below 1e-14, and the answers have 12 decimals.
double difference(const std::vector<double>& got, const std::vector<double>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double worst = 0;
  for (std::size_t k = 0; k < std::min(got.size(), expected.size()); ++k)
    worst = std::max(worst, std::abs(got[k] - expected[k]));
  return worst;
}

TEST(Loops, FollowTheIndexFormOfTheAlgorithms) {
  const ToyAnswers known;
  EXPECT_LT(difference(nested_toy(false, 3, 5), known.nested_cold_3), 1e-12);
  EXPECT_LT(difference(nested_toy(true, 3, 5), known.nested_warm_3), 1e-12);
  EXPECT_LT(difference(single_toy(Order::paper, 5), known.single_paper), 1e-12);
  EXPECT_LT(difference(single_toy(Order::authors, 5), known.single_authors), 1e-12);
  EXPECT_LT(difference(queue_toy(true, 3, 6), known.queue_warm_3), 1e-12);
  EXPECT_LT(difference(queue_toy(false, 3, 8), known.queue_cold_3), 1e-12);
}

// What a slip of one index would change: the answers are apart by more than 1e-3 from the third step on.
TEST(Loops, TheToyTellsTheAlgorithmsApart) {
  const ToyAnswers known;
  EXPECT_GT(difference(known.single_paper, known.single_authors), 1e-3);
  EXPECT_GT(difference(known.nested_cold_3, known.nested_warm_3), 1e-3);
  EXPECT_GT(difference(queue_toy(true, 2, 6), known.queue_warm_3), 1e-3);
  EXPECT_GT(difference(queue_toy(true, 4, 6), known.queue_warm_3), 1e-3);
}

TEST(Loops, AColdQueueIsTheWarmOneDelayed) {
  const std::int64_t slots = 3;
  const std::vector<double> warm = queue_toy(true, slots, 20), cold = queue_toy(false, slots, 20 + slots);
  for (std::size_t k = 0; k < warm.size(); ++k) EXPECT_EQ(cold[k + slots], warm[k]) << k;
}

// Each cold start has a population of its own.
TEST(Loops, AColdStartIsDrawnForItsRound) {
  struct Rounds {
    std::vector<std::int64_t> drawn;
    void draw(double& p, std::int64_t round) {
      drawn.push_back(round);
      p = ToyAnswers::p_0;
    }
  } start;
  State<double, GradientDescent> s{0, {ToyAnswers::theta_0}, ToyAnswers::p_0, toy_descent};
  ToySampler sampler;
  ToyGradient gradient;
  (void)nested_loop(sampler, gradient, start, s, {.steps = 4, .inner_steps = 2, .warm_start = false});
  EXPECT_EQ(start.drawn, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(Loops, NoStepsOnlyShowTheStart) {
  EXPECT_TRUE(single_toy(Order::paper, 0).empty());
  EXPECT_TRUE(nested_toy(true, 3, 0).empty());
  EXPECT_TRUE(queue_toy(true, 3, 0).empty());
}

// ---- where the populations of a queue come from

// A population that remembers its birth and how often it moved.
struct Traveller {
  std::int64_t birth = -99, moves = 0;
};

struct TravellerStart {
  void draw(Traveller& p, std::int64_t round) const { p = {round, 0}; }
};

// Sigma_m must act on a population after m moves, with the noise of its own birth: and never with the same noise twice.
struct TravelAgent {
  std::set<std::pair<std::int64_t, std::int64_t>> used{};

  void advance(Traveller& p, std::span<const double>, StepKey at) {
    EXPECT_EQ(at.round, p.birth);
    EXPECT_EQ(at.index, p.moves);
    EXPECT_TRUE(used.emplace(at.round, at.index).second) << at.round << ' ' << at.index;
    ++p.moves;
  }
};

struct Arrivals {
  std::int64_t slots;
  std::vector<std::int64_t> steps{};

  void estimate(const Traveller& p, std::span<const double>, std::int64_t step, std::span<double> gradient) {
    EXPECT_EQ(p.birth, step - slots);
    EXPECT_EQ(p.moves, slots);
    steps.push_back(step);
    gradient[0] = 0;
  }
};

TEST(Queue, SlotMOfStepKWasBornAtRoundKMinusM) {
  for (const bool warm : {true, false}) {
    const QueueOptions options{.steps = 12, .slots = 5, .warm_start = warm};
    QueueState<Traveller, GradientDescent> s{0, {0.0}, {}, {}};
    TravelAgent sampler;
    TravellerStart start;
    Arrivals gradient{options.slots};
    start_queue(sampler, start, s, options, Traveller{});
    const auto check = [&](const QueueState<Traveller, GradientDescent>& q) {
      ASSERT_EQ(q.slots.size(), static_cast<std::size_t>(warm ? options.slots : std::min(q.step, options.slots)) + 1);
      for (std::size_t m = 0; m < q.slots.size(); ++m) {
        EXPECT_EQ(q.slots[m].birth, q.step - static_cast<std::int64_t>(m));
        EXPECT_EQ(q.slots[m].moves, static_cast<std::int64_t>(m));
      }
    };
    EXPECT_EQ(queue_loop(sampler, gradient, start, s, options, check).status, Status::completed);

    // Warm: an estimate at every step. Cold: from step M on.
    const std::int64_t first = warm ? 0 : options.slots;
    ASSERT_EQ(gradient.steps.size(), static_cast<std::size_t>(options.steps - first));
    EXPECT_EQ(gradient.steps.front(), first);
  }
}

// ---- the same with Langevin dynamics

struct Run {
  std::vector<double> theta;
  Population<float> population;
  friend bool operator==(const Run&, const Run&) = default;
};

constexpr std::size_t n = 300;

Langevin<float> langevin() {
  return Langevin<float>(problems::hexagon_wells(), {.step_size = {0.2}, .noise = Noise{11}});
}
// Minibatches of a data set as well, so that a continued run must also find the batches of its steps again.
GradientEstimator<float> estimator() {
  GradientEstimator<float>::Terms terms;
  terms.push_back(std::make_unique<RewardTerm<float>>(problems::hard_reward()));
  auto data = problems::population_of<float>(problems::five_points());
  terms.push_back(std::make_unique<ReferenceTerm<float>>(
      std::make_unique<MinibatchReference<float>>(std::move(data), 32, Noise{12}), 0.1));
  return {problems::hexagon_wells(), std::move(terms)};
}
StandardNormalStart<float> standard_normal() { return {Noise{13}}; }

template <class Opt>
State<Population<float>, Opt> first_state(Opt optimizer) {
  State<Population<float>, Opt> s{0, problems::hexagon_start(), Population<float>(n, 2), std::move(optimizer)};
  standard_normal().draw(s.population, 0);
  return s;
}

TEST(Loops, NestedWithOneWarmStepIsTheSingleLoopInTheAuthorsOrder) {
  auto single = first_state(GradientDescent{}), nested = first_state(GradientDescent{}),
       paper = first_state(GradientDescent{});
  auto sampler = langevin();
  auto gradient = estimator();
  auto start = standard_normal();
  (void)single_loop(sampler, gradient, single, {.steps = 30, .order = Order::authors});
  (void)single_loop(sampler, gradient, paper, {.steps = 30, .order = Order::paper});
  (void)nested_loop(sampler, gradient, start, nested, {.steps = 30, .inner_steps = 1, .warm_start = true});
  EXPECT_EQ(single.theta, nested.theta);
  EXPECT_EQ(single.population, nested.population);
  EXPECT_NE(single.theta, paper.theta);
}

// A state and how to run it on with parts made anew, as a program does that resumes.
template <class State>
void run_single(State& s, std::int64_t steps, std::stop_token stop = {}) {
  auto sampler = langevin();
  auto gradient = estimator();
  (void)single_loop(sampler, gradient, s, {.steps = steps}, ignore, stop);
}

TEST(Loops, AContinuedRunEqualsOneThatNeverStopped) {
  auto whole = first_state(Adam{});
  run_single(whole, 10);
  auto parts = first_state(Adam{});
  run_single(parts, 4);
  auto continued = parts, forgetful = parts;
  run_single(continued, 10);
  EXPECT_EQ(continued.theta, whole.theta);
  EXPECT_EQ(continued.population, whole.population);

  forgetful.optimizer = Adam{};  // Adam's moments are part of the state: without them the run is another
  run_single(forgetful, 10);
  EXPECT_NE(forgetful.theta, whole.theta);

  for (const bool warm : {true, false}) {
    const auto run = [&](auto& s, std::int64_t steps) {
      auto sampler = langevin();
      auto gradient = estimator();
      auto start = standard_normal();
      (void)nested_loop(sampler, gradient, start, s, {.steps = steps, .inner_steps = 3, .warm_start = warm});
    };
    auto a = first_state(Adam{}), b = first_state(Adam{});
    run(a, 10);
    run(b, 4);
    auto c = b;
    run(c, 10);
    EXPECT_EQ(c.theta, a.theta);
    EXPECT_EQ(c.population, a.population);
  }

  for (const bool warm : {true, false}) {
    using Queue = QueueState<Population<float>, Adam>;
    const auto run = [&](Queue& s, std::int64_t steps) {
      auto sampler = langevin();
      auto gradient = estimator();
      auto start = standard_normal();
      const QueueOptions options{.steps = steps, .slots = 3, .warm_start = warm};
      if (s.step == 0) start_queue(sampler, start, s, options, Population<float>(n, 2));
      (void)queue_loop(sampler, gradient, start, s, options);
    };
    Queue a{0, problems::hexagon_start(), {}, Adam{}}, b = a;
    run(a, 10);
    run(b, 2);  // without warm start the queue is not yet full here
    Queue c = b;
    run(c, 10);
    EXPECT_EQ(c.theta, a.theta);
    EXPECT_EQ(c.slots, a.slots);
  }
}

// ---- ends

TEST(Loops, AStopIsHeededBetweenStepsAndLeavesACompleteState) {
  std::stop_source stop;
  auto s = first_state(GradientDescent{}), whole = s;
  auto sampler = langevin();
  auto gradient = estimator();
  auto start = standard_normal();
  const auto stop_at_4 = [&](const auto& at) {
    if (at.step == 4) stop.request_stop();
  };
  EXPECT_EQ(single_loop(sampler, gradient, s, {.steps = 10}, stop_at_4, stop.get_token()).status, Status::interrupted);
  run_single(whole, 4);
  EXPECT_EQ(s.step, 4);
  EXPECT_EQ(s.theta, whole.theta);
  EXPECT_EQ(s.population, whole.population);

  // The token is already used: nothing more happens, in any loop.
  EXPECT_EQ(single_loop(sampler, gradient, s, {.steps = 10}, ignore, stop.get_token()).status, Status::interrupted);
  EXPECT_EQ(nested_loop(sampler, gradient, start, s, {.steps = 10}, ignore, stop.get_token()).status,
            Status::interrupted);
  EXPECT_EQ(s.population, whole.population);
  QueueState<Population<float>, GradientDescent> q{0, problems::hexagon_start(), {}, {}};
  start_queue(sampler, start, q, {}, Population<float>(n, 2));
  EXPECT_EQ(queue_loop(sampler, gradient, start, q, {}, ignore, stop.get_token()).status, Status::interrupted);
  EXPECT_EQ(q.step, 0);

  // A run that is done is completed, not interrupted.
  EXPECT_EQ(single_loop(sampler, gradient, s, {.steps = 4}, ignore, stop.get_token()).status, Status::completed);
}

// theta moves by -eta each step, so that it tells how many steps were taken.
struct ConstantGradient {
  template <class Population>
  void estimate(const Population&, std::span<const double>, std::int64_t, std::span<double> gradient) const {
    std::fill(gradient.begin(), gradient.end(), 1.0);
  }
};

// A step of 3 on curvatures up to 1 is beyond 2 / lambda_max: coordinates of curvature 1 are multiplied by -2 each step
// and pass the largest float after about 127 of them. The chain is replayed here, number by number, to know which goes
// first.
TEST(Loops, ASampleThatIsNoLongerFiniteIsNamed) {
  const std::size_t samples = 40, d = 2;
  const Noise noise{21};
  Quadratic potential({{0.5, 0}, {0, 1}});
  ASSERT_LT(potential.largest_stable_step(), 3.0);

  Population<float> replayed(samples, d);
  StandardNormalStart<float>{noise}.draw(replayed, 0);
  std::vector<double> theta{0, 0};
  std::optional<SampleCoordinate> first;
  std::int64_t step = 0;
  for (; !first; ++step) {
    ASSERT_LT(step, 200);
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t i = 0; i < samples; ++i) {
        const float slope = (j == 0 ? 0.5f : 1.0f) * (replayed(i, j) - static_cast<float>(theta[j]));
        const float z = noise.normal(Stream::sampling, {.round = step}, d, i, j);
        const auto fused = [](float a, float b, float c) {
          return active_isa() == Isa::baseline ? a * b + c : std::fma(a, b, c);
        };
        replayed(i, j) = fused(-3.0f, slope, fused(static_cast<float>(std::sqrt(6.0)), z, replayed(i, j)));
        if (!first && !std::isfinite(replayed(i, j))) first = SampleCoordinate{i, j};
      }
    if (!first)
      for (double& t : theta) t -= 0.25;
  }
  EXPECT_GT(step, 100);

  State<Population<float>, GradientDescent> s{0, {0, 0}, Population<float>(samples, d), {{0.25}}};
  StandardNormalStart<float>{noise}.draw(s.population, 0);
  Langevin<float> sampler(potential, {.step_size = {3.0}, .noise = noise});
  ConstantGradient gradient;
  const Outcome outcome = single_loop(sampler, gradient, s, {.steps = 1000});
  ASSERT_EQ(outcome.status, Status::diverged);
  ASSERT_TRUE(outcome.divergence);
  EXPECT_EQ(outcome.divergence->where, Where::sample);
  EXPECT_EQ(outcome.divergence->step, step);
  EXPECT_EQ(outcome.divergence->sample, first->sample);
  EXPECT_EQ(outcome.divergence->coordinate, first->coordinate);
  EXPECT_EQ(s.step, step - 1);
  EXPECT_EQ(s.theta, theta);  // multiples of 1/4: exact
}

TEST(Loops, NestedLoopAndQueueNameADivergedSampleToo) {
  const Quadratic potential(std::vector<std::vector<double>>{{1.0}});
  Langevin<double> sampler(potential, {.step_size = {1e200}});  // 1e200 after one step, beyond all bounds after two
  ConstantGradient gradient;
  StandardNormalStart<double> start;

  State<Population<double>, GradientDescent> s{0, {0}, Population<double>(20, 1), {}};
  start.draw(s.population, 0);
  const Outcome nested = nested_loop(sampler, gradient, start, s, {.steps = 5, .inner_steps = 2});
  ASSERT_TRUE(nested.divergence);
  EXPECT_EQ(nested.divergence->where, Where::sample);
  EXPECT_EQ(nested.divergence->step, 1);
  EXPECT_EQ(s.theta[0], 0.0);

  QueueState<Population<double>, GradientDescent> q{0, {0}, {}, {}};
  const QueueOptions options{.steps = 9, .slots = 4, .warm_start = false};
  start_queue(sampler, start, q, options, Population<double>(20, 1));
  const Outcome queue = queue_loop(sampler, gradient, start, q, options);
  ASSERT_TRUE(queue.divergence);
  EXPECT_EQ(queue.divergence->where, Where::sample);
  EXPECT_EQ(queue.divergence->step, 2);
  EXPECT_EQ(q.step, 1);
}

struct NanAtStep3 {
  void estimate(double, std::span<const double>, std::int64_t step, std::span<double> gradient) const {
    gradient[0] = 1;
    gradient[1] = step == 3 ? std::numeric_limits<double>::quiet_NaN() : 1;
  }
};

TEST(Loops, AGradientThatIsNotFiniteIsNamedAndThetaIsLeftAlone) {
  ToySampler sampler;
  NanAtStep3 gradient;
  State<double, GradientDescent> s{0, {1, 2}, 1.0, {{0.25}}};
  const Outcome outcome = single_loop(sampler, gradient, s, {.steps = 10});
  ASSERT_EQ(outcome.status, Status::diverged);
  EXPECT_EQ(outcome.divergence->where, Where::gradient);
  EXPECT_EQ(outcome.divergence->step, 4);  // counted from 1
  EXPECT_EQ(outcome.divergence->coordinate, 1u);
  EXPECT_EQ(s.step, 3);
  EXPECT_EQ(s.theta, (std::vector<double>{0.25, 1.25}));
}

TEST(Loops, AParameterThatOverflowsIsNamed) {
  ToySampler sampler;
  ToyGradient gradient;
  State<double, GradientDescent> s{0, {2.0}, 1.0, {{1e308}}};  // theta_1 = -1.2e308; its next gradient is large too
  const Outcome outcome = single_loop(sampler, gradient, s, {.steps = 10});
  ASSERT_EQ(outcome.status, Status::diverged);
  EXPECT_EQ(outcome.divergence->where, Where::parameter);
  EXPECT_EQ(outcome.divergence->step, 2);
  EXPECT_EQ(s.theta[0], 2.0 - 1e308 * 1.2);
}

TEST(Loops, AParameterOutsideItsDomainIsNamed) {
  const problems::TwoGaussians problem({CovarianceForm::direct});
  const auto make = [&] {
    GradientEstimator<float>::Terms terms;
    terms.push_back(std::make_unique<ReferenceTerm<float>>(
        std::make_unique<MixtureReference<float>>(problem.mixture.law(problem.target), 500, Noise{31})));
    return GradientEstimator<float>(problem.mixture, std::move(terms));
  };
  const auto run = [&](double rate, State<Population<float>, GradientDescent>& s) {
    Langevin<float> sampler(problem.mixture, {.step_size = {0.05}, .noise = Noise{32}});
    auto gradient = make();
    s = {0, problem.start, Population<float>(500, 2), {{rate}}};
    StandardNormalStart<float>{Noise{33}}.draw(s.population, 0);
    return single_loop(sampler, gradient, s, {.steps = 20});
  };

  State<Population<float>, GradientDescent> s;
  const Outcome outcome = run(100.0, s);
  ASSERT_EQ(outcome.status, Status::diverged);
  EXPECT_EQ(outcome.divergence->where, Where::parameter);
  EXPECT_EQ(outcome.divergence->step, s.step + 1);
  EXPECT_FALSE(problem.mixture.find_inadmissible(s.theta));

  // The step that was refused, taken by hand from the start: it is the first one.
  ASSERT_EQ(s.step, 0);
  EXPECT_EQ(s.theta, problem.start);
  Population<float> x(500, 2);
  StandardNormalStart<float>{Noise{33}}.draw(x, 0);
  std::vector<double> g(problem.start.size()), next = problem.start;
  make().estimate(x, problem.start, 0, g);
  for (std::size_t j = 0; j < g.size(); ++j) next[j] -= 100.0 * g[j];
  EXPECT_EQ(problem.mixture.find_inadmissible(next), outcome.divergence->coordinate);

  EXPECT_EQ(run(5e-4, s).status, Status::completed);  // the experiment's rate stays inside
}

// A stop in the middle of the inner steps leaves the state of the last complete outer step.
TEST(Loops, NestedLoopDoesNotWaitForItsInnerSteps) {
  struct StopsInTheMiddle {
    std::stop_source& source;
    int calls = 0;
    void advance(double& p, std::span<const double>, StepKey) {
      p += 1;
      if (++calls == 25) source.request_stop();
    }
  };
  struct NoSlope {
    void estimate(const double&, std::span<const double>, std::int64_t, std::span<double> gradient) const {
      gradient[0] = 0;
    }
  };
  struct AtZero {
    void draw(double& p, std::int64_t) const { p = 0; }
  };
  std::stop_source source;
  StopsInTheMiddle sampler{source};
  NoSlope estimator;
  AtZero start;
  State<double, GradientDescent> s{0, {0.0}, 0.0, {}};
  const Outcome outcome =
      nested_loop(sampler, estimator, start, s, {.steps = 100, .inner_steps = 10}, ignore, source.get_token());
  EXPECT_EQ(outcome.status, Status::interrupted);
  EXPECT_EQ(sampler.calls, 25);
  EXPECT_EQ(s.step, 2);
  EXPECT_EQ(s.population, 20);
}

}  // namespace
}  // namespace implicit_diffusion
