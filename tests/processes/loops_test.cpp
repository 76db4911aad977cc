// Every loop on several processes ends with the bits of one, and goes on from a checkpoint of any number of them on any
// other.
#include "implicit_diffusion/denoising/checkpoint.hpp"
#include "implicit_diffusion/denoising/mixture_model.hpp"
#include "implicit_diffusion/denoising/optimise.hpp"
#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/langevin/optimise.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/population_arrays.hpp"
#include "problems/hexagon_reward.hpp"
#include "processes/threads_as_processes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace implicit_diffusion {
namespace {

using problems::hard_reward;
using problems::hexagon_elsewhere;
using problems::hexagon_start;
using problems::hexagon_wells;
using problems::smooth_reward;
using test::as_processes;

// What a run ended with: theta, and a checkpoint of all, which the first process has.
struct Ended {
  std::vector<double> theta;
  std::string checkpoint;
};

template <class Save>
std::string checkpoint_of(Processes* processes, const Save& save) {
  io::CheckpointWriter writer;
  save(writer);
  if (!processes || processes->rank() == 0) return writer.to_bytes();
  writer.take_part();
  return "";
}

enum class Loop { single, authors, nested, cold, unrolled, sampling };

// Six blocks, the last one not full; a covariance, references that are drawn, and a divergence to a base.
template <class Real>
Ended run_langevin(Processes* processes, Loop loop, std::int64_t steps, const std::string& from = "") {
  constexpr std::size_t n = 1400;
  const Noise noise(3);
  State<Population<Real>, Adam> s{0, hexagon_start(), Population<Real>(n, 2, processes), Adam(0.05)};
  const StandardNormalStart<Real> start{noise};
  start.draw(s.population, 0);
  if (!from.empty()) restore(io::CheckpointReader(from, "bytes"), s);
  Potential<Real> wells = hexagon_wells(), base = hexagon_wells();
  base.prepare(hexagon_elsewhere());
  typename GradientEstimator<Real>::Terms terms;
  terms.push_back(std::make_unique<RewardTerm<Real>>(hard_reward(), 1.3));
  terms.push_back(std::make_unique<ReferenceTerm<Real>>(
      std::make_unique<MixtureReference<Real>>(hexagon_wells().law(hexagon_elsewhere()), 700, noise, processes), 0.7));
  terms.push_back(std::make_unique<BaseTerm<Real>>(base, 0.2));
  const LangevinOptions options{.step_size = {0.2}, .noise = noise};
  LangevinEngine<Real> engine(wells, std::move(terms), options);
  Outcome outcome;
  if (loop == Loop::single || loop == Loop::authors) {
    outcome = single_loop(engine, engine, s,
                          {.steps = steps, .order = loop == Loop::authors ? Order::authors : Order::paper});
  } else if (loop == Loop::sampling) {
    NoGradient none;
    outcome = single_loop(static_cast<Langevin<Real>&>(engine), none, s, {.steps = steps});
  } else if (loop == Loop::unrolled) {
    Unrolled<Real> unrolled(wells, smooth_reward(), options);
    outcome = nested_loop(unrolled, unrolled, start, s, {.steps = steps, .inner_steps = 1});
  } else {
    outcome =
        nested_loop(engine, engine, start, s, {.steps = steps, .inner_steps = 3, .warm_start = loop == Loop::nested});
  }
  EXPECT_EQ(outcome.status, Status::completed);
  return {s.theta, checkpoint_of(processes, [&](io::CheckpointWriter& c) { save(c, s); })};
}

template <class Run>
void expect_the_same(const Run& run, const std::vector<std::size_t>& numbers = {2, 3, 4, 7}) {
  const Ended one = run(nullptr, 12, "");
  EXPECT_NE(one.theta, run(nullptr, 11, "").theta);
  std::string first = run(nullptr, 5, "").checkpoint;  // each goes on from where the one before it has stopped
  for (const std::size_t ranks : numbers) {
    const auto ended = as_processes(ranks, [&](Processes* p) { return run(p, 12, ""); });
    for (const Ended& e : ended) EXPECT_EQ(e.theta, one.theta) << ranks;
    EXPECT_EQ(ended[0].checkpoint, one.checkpoint) << ranks;
    const auto half = as_processes(ranks, [&](Processes* p) { return run(p, 5, ""); });
    EXPECT_EQ(half[0].checkpoint, first) << ranks;
    const auto resumed = as_processes(ranks, [&](Processes* p) { return run(p, 12, first); });
    EXPECT_EQ(resumed[0].checkpoint, one.checkpoint) << ranks;
    EXPECT_EQ(run(nullptr, 12, half[0].checkpoint).checkpoint, one.checkpoint) << ranks;
  }
}

TEST(ProcessesOfLangevin, EndWithTheBitsOfOne) {
  for (const Loop loop : {Loop::single, Loop::authors, Loop::nested, Loop::cold, Loop::unrolled})
    expect_the_same([&](Processes* p, std::int64_t steps, const std::string& from) {
      return run_langevin<float>(p, loop, steps, from);
    });
  expect_the_same([&](Processes* p, std::int64_t steps, const std::string& from) {
    return run_langevin<double>(p, Loop::single, steps, from);
  });
}

TEST(ProcessesOfLangevin, SampleTheSame) {
  const Ended one = run_langevin<float>(nullptr, Loop::sampling, 12);
  for (const std::size_t ranks : {2, 3})
    EXPECT_EQ(
        as_processes(ranks, [](Processes* p) { return run_langevin<float>(p, Loop::sampling, 12); })[0].checkpoint,
        one.checkpoint);
}

// All of them say that a run diverged, at the same step and in the same sample.
TEST(ProcessesOfLangevin, DivergeTogether) {
  const auto diverge = [](Processes* processes) {
    State<Population<float>, Adam> s{0, hexagon_start(), Population<float>(1000, 2, processes), Adam(0.05)};
    const StandardNormalStart<float> start{Noise(1)};
    start.draw(s.population, 0);
    if (s.population.first() <= 700 && 700 < s.population.first() + s.population.size())
      s.population(700 - s.population.first(), 1) = 1e38f;
    GradientEstimator<float>::Terms terms;
    terms.push_back(std::make_unique<RewardTerm<float>>(hard_reward()));
    LangevinEngine<float> engine(hexagon_wells(), std::move(terms), {.step_size = {1e6}, .noise = Noise(1)});
    const Outcome outcome = single_loop(engine, engine, s, {.steps = 5});
    const Divergence d = outcome.divergence.value_or(Divergence{});
    return std::vector<std::size_t>{static_cast<std::size_t>(outcome.status), static_cast<std::size_t>(d.step),
                                    static_cast<std::size_t>(d.where), d.sample, d.coordinate};
  };
  const auto one = as_processes(1, diverge)[0];
  EXPECT_EQ(one[0], static_cast<std::size_t>(Status::diverged));
  EXPECT_EQ(one[2], static_cast<std::size_t>(Divergence::Where::sample));
  for (const std::size_t ranks : {2, 3, 4})
    for (const auto& found : as_processes(ranks, diverge)) EXPECT_EQ(found, one) << ranks;
}

enum class Denoising { nested, queue, cold, replayed, both_ways };

// Batches of six blocks through four steps, finetuned towards a reward with a price on the path.
Ended run_denoising(Processes* processes, Denoising kind, std::int64_t steps, const std::string& from = "") {
  constexpr std::size_t n = 1400;
  const GaussianMixture base{{0.4, 0.6}, {{{-1, 0}, {0.3, 0, 0, 0.3}}, {{1, 0.5}, {0.3, 0, 0, 0.3}}}};
  const MixtureModel model{Spread::isotropic, 2, 2};
  const Noise noise(5);
  const bool nested = kind == Denoising::nested, back = kind == Denoising::both_ways;
  ReverseChain<float> chain(model.score<float>(), uniform_grid(2, 4),
                            {.dynamics = back ? Dynamics::euler_ode : Dynamics::euler_sde,
                             .slots = nested ? 1U : 4U,
                             .keep_every = kind == Denoising::replayed ? 3U : 1U,
                             .normals = normals_of<float>(noise)},
                            std::pair{model.score<float>(), model.parameters_of(base)});
  const Reward<float> reward = LinearReward{{1, 0.3}};
  const DenoisingObjective objective{1, 0.5};
  DenoisingEngine<float> engine(chain, reward, objective);
  const DenoisingStart<float> start{noise};
  const auto empty = PathBatch<float>::of(Population<float>(n, 2, processes));
  const io::CheckpointReader reader(from.empty() ? io::CheckpointWriter().to_bytes() : from, "bytes");
  const auto ended = [&](auto& s, const PathBatch<float>& last, const Outcome& outcome) {
    EXPECT_EQ(outcome.status, Status::completed);
    std::vector<double> theta = s.theta;
    if (last.step == chain.steps()) {
      const BatchObjective o = objective_of<float>(last, reward, objective);
      theta.insert(theta.end(), {o.value, o.reward, o.path_kl});
    }
    return Ended{theta, checkpoint_of(processes, [&](io::CheckpointWriter& c) { save(c, s, chain); })};
  };
  if (nested) {
    State<PathBatch<float>, Adam> s{0, model.parameters_of(base), empty, Adam(0.02)};
    if (!from.empty()) restore(reader, s, chain);
    const Outcome outcome =
        nested_loop(engine, engine, start, s, {.steps = steps, .inner_steps = 1, .warm_start = false});
    return ended(s, s.population, outcome);
  }
  QueueState<PathBatch<float>, Adam> s{0, model.parameters_of(base), {}, Adam(0.02)};
  const QueueOptions options{.steps = steps, .slots = 4, .warm_start = kind != Denoising::cold};
  if (back) {
    DoubleQueueState<PathBatch<float>, BackwardBatch<float>, Adam> both{0, s.theta, {}, {}, s.optimizer};
    both.back.resize(5);
    if (from.empty()) {
      start_queue(engine, start, s, options, empty);
      both.slots = std::move(s.slots);
    } else {
      restore(reader, both, chain, empty);
    }
    DenoisingBackward<float> backward(chain, reward, objective);
    const Outcome outcome = double_queue_loop(engine, backward, start, both, steps);
    return ended(both, both.slots.back(), outcome);
  }
  if (from.empty())
    start_queue(engine, start, s, options, empty);
  else
    restore(reader, s, chain, empty);
  const Outcome outcome = queue_loop(engine, engine, start, s, options);
  return ended(s, s.slots.back(), outcome);
}

TEST(ProcessesOfDenoising, EndWithTheBitsOfOne) {
  for (const Denoising kind :
       {Denoising::nested, Denoising::queue, Denoising::cold, Denoising::replayed, Denoising::both_ways})
    expect_the_same(
        [&](Processes* p, std::int64_t steps, const std::string& from) { return run_denoising(p, kind, steps, from); },
        {2, 3, 7});
}

// The front door: processes of a caller's own.
TEST(ProcessesOfOptimise, GiveTheResultOfOne) {
  const auto langevin = [](Processes* p) {
    const auto result = optimise(LangevinProblem(Potential<float>(hexagon_wells()), hard_reward()), hexagon_start(),
                                 Adam(0.05), {.particles = 900, .step_size = 0.1, .steps = 20, .processes = p});
    return std::pair{result.theta, result.reward};
  };
  const auto one = as_processes(1, langevin)[0];
  for (const auto& found : as_processes(3, langevin)) EXPECT_EQ(found, one);
}

}  // namespace
}  // namespace implicit_diffusion
