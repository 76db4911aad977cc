// Networks on several processes: every loop ends with the bits of one, and goes on from a checkpoint of any number of
// them on any other.
#include "implicit_diffusion/denoising/checkpoint.hpp"
#include "implicit_diffusion/denoising/optimise.hpp"
#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/langevin/optimise.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/torch/points.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"
#include "processes/threads_as_processes.hpp"
#include "torch/images.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace implicit_diffusion {
namespace {

using namespace torch_tests;
using test::as_processes;
using TensorAdam = BasicAdam<TensorParameters>;

std::vector<double> numbers_of(const TensorParameters& theta) {
  const at::Tensor all = theta.read().to(at::kDouble);
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

// What a run ended with: theta and figures, and a checkpoint of all, which the first process has.
struct Ended {
  std::vector<double> theta;
  std::string checkpoint;
};

template <class Save>
Ended ended(Processes* processes, const TensorParameters& theta, const Save& save) {
  io::CheckpointWriter writer;
  save(writer);
  if (!processes || processes->rank() == 0) return {numbers_of(theta), writer.to_bytes()};
  writer.take_part();
  return {numbers_of(theta), ""};
}

// run(processes, steps, checkpoint): whole, half, and one's half continued by another.
template <class Run>
void expect_the_same(const Run& run, std::int64_t steps, std::int64_t half) {
  const Ended one = run(nullptr, steps, "");
  const Ended before = run(nullptr, half, "");
  EXPECT_NE(one.theta, before.theta);
  for (const std::size_t ranks : {2, 3, 4}) {
    const auto all = as_processes(ranks, [&](Processes* p) { return run(p, steps, ""); });
    for (const Ended& e : all) EXPECT_EQ(e.theta, one.theta) << ranks;
    EXPECT_EQ(all[0].checkpoint, one.checkpoint) << ranks;
    const auto some = as_processes(ranks, [&](Processes* p) { return run(p, half, ""); });
    EXPECT_EQ(some[0].checkpoint, before.checkpoint) << ranks;
    const auto resumed = as_processes(5 - ranks, [&](Processes* p) { return run(p, steps, some[0].checkpoint); });
    EXPECT_EQ(resumed[0].checkpoint, one.checkpoint) << ranks;
  }
}

// Eleven samples in shards of two, the last one not full: a reward, references that are drawn, values of the energy.
Ended run_energy(Processes* processes, bool unrolled, std::int64_t steps, const std::string& from) {
  const NetworkEnergy energy(small_energy(), 2);
  State<TensorSamples, TensorAdam, TensorParameters> s{0, initial_parameters(energy.network().layout, Noise(1)),
                                                       energy.samples(11, processes), TensorAdam(0.05)};
  StandardNormalStart<NetworkEnergy>{Noise(2)}.draw(s.population, 0);
  if (!from.empty()) restore(io::CheckpointReader(from, "bytes"), s);
  const LangevinOptions options{.step_size = {0.1}, .noise = Noise(3)};
  const TensorReward far([](const at::Tensor& x) { return x.square().sum(1); });
  Outcome outcome;
  if (unrolled) {
    Unrolled<NetworkEnergy> last(energy, far, options);
    const StandardNormalStart<NetworkEnergy> start{Noise(2)};
    outcome = nested_loop(last, last, start, s, {.steps = steps, .inner_steps = 1});
  } else {
    NetworkEnergy base = energy;
    base.prepare(initial_parameters(energy.network().layout, Noise(4)));
    const GaussianMixture law{{1}, {{{1, 0}, {0.3, 0, 0, 0.3}}}};
    GradientEstimator<NetworkEnergy>::Terms terms;
    terms.push_back(std::make_unique<RewardTerm<NetworkEnergy>>(far, 0.3));
    terms.push_back(std::make_unique<ReferenceTerm<NetworkEnergy>>(
        std::make_unique<PointsReference>(std::make_unique<MixtureReference<float>>(law, 7, Noise(5)), 2, processes)));
    terms.push_back(std::make_unique<BaseTerm<NetworkEnergy>>(base, 0.2));
    LangevinEngine<NetworkEnergy> engine(energy, std::move(terms), options);
    outcome = single_loop(engine, engine, s, {.steps = steps});
  }
  EXPECT_EQ(outcome.status, Status::completed);
  return ended(processes, s.theta, [&](io::CheckpointWriter& c) { save(c, s); });
}

TEST(ProcessesOfNetworks, LangevinEndsWithTheBitsOfOne) {
  for (const bool unrolled : {false, true})
    expect_the_same(
        [&](Processes* p, std::int64_t steps, const std::string& from) { return run_energy(p, unrolled, steps, from); },
        6, 3);
}

enum class Kind { nested, queue, replayed, both_ways };

Ended run_denoising(Processes* processes, Kind kind, std::int64_t steps, const std::string& from) {
  const Images images(at::kFloat, 11, 2);
  const bool back = kind == Kind::both_ways;
  Chain chain(images.steps(back ? Prediction::v : Prediction::epsilon), images.grid,
              {.dynamics = back ? Dynamics::euler_ode : Dynamics::euler_sde,
               .slots = kind == Kind::nested ? 1U
                        : back               ? 6U
                                             : 3U,
               .keep_every = kind == Kind::replayed ? 4U : 1U},
              frozen_at(images.frozen));
  DenoisingEngine<NetworkSteps> engine(chain, near_one, objective);
  TensorSamples places(11, images.network.sample, at::kFloat, 2, processes);
  places.set_labels(images.start.labels());
  const Batch empty = Batch::of(places);
  const io::CheckpointReader reader(from.empty() ? io::CheckpointWriter().to_bytes() : from, "bytes");
  const auto close = [&](const auto& s, const Outcome& outcome, const Batch& last) {
    EXPECT_EQ(outcome.status, Status::completed);
    Ended e = ended(processes, s.theta, [&](io::CheckpointWriter& c) { save(c, s, chain); });
    if (last.step == chain.steps()) {
      const BatchObjective o = objective_of<NetworkSteps>(last, near_one, objective);
      e.theta.insert(e.theta.end(), {o.value, o.reward, o.path_kl});
    }
    return e;
  };
  if (kind == Kind::nested) {
    State<Batch, TensorAdam, TensorParameters> s{0, images.theta, empty, TensorAdam(0.01)};
    if (!from.empty()) restore(reader, s, chain);
    const Outcome outcome =
        nested_loop(engine, engine, fresh, s, {.steps = steps, .inner_steps = 1, .warm_start = false});
    return close(s, outcome, s.population);
  }
  QueueState<Batch, TensorAdam, TensorParameters> s{0, images.theta, {}, TensorAdam(0.01)};
  const QueueOptions options{.steps = steps, .slots = back ? 6 : 3};
  if (from.empty())
    start_queue(engine, fresh, s, options, empty);
  else if (!back)
    restore(reader, s, chain, empty);
  if (!back) {
    const Outcome outcome = queue_loop(engine, engine, fresh, s, options);
    return close(s, outcome, s.slots.back());
  }
  DoubleQueueState<Batch, BackwardBatch<NetworkSteps>, TensorAdam, TensorParameters> both{
      0, images.theta, std::move(s.slots), {}, TensorAdam(0.01)};
  both.back.resize(7);
  if (!from.empty()) restore(reader, both, chain, empty);
  DenoisingBackward<NetworkSteps> backward(chain, near_one, objective);
  const Outcome outcome = double_queue_loop(engine, backward, fresh, both, steps);
  return close(both, outcome, both.slots.back());
}

TEST(ProcessesOfNetworks, DenoisingEndsWithTheBitsOfOne) {
  for (const Kind kind : {Kind::nested, Kind::queue, Kind::replayed, Kind::both_ways})
    expect_the_same(
        [&](Processes* p, std::int64_t steps, const std::string& from) { return run_denoising(p, kind, steps, from); },
        kind == Kind::both_ways ? 10 : 5, kind == Kind::both_ways ? 8 : 2);
}

// Batches of a source, of which each process keeps its part.
struct Drawn {
  void draw(TensorSamples& s, std::int64_t round) const {
    TensorSamples all(s.total(), s.sample_shape(), at::kFloat, s.shard());
    TensorTiles::fill_normals(all, Noise(6), Stream::reference, {.round = round});
    const auto n = static_cast<std::int64_t>(s.total());
    s = TensorSamples(all.x(), at::arange(n, at::kLong).remainder(3), s.shard(), s.processes());
  }
};

TEST(ProcessesOfNetworks, TrainingEndsWithTheBitsOfOne) {
  expect_the_same(
      [&](Processes* p, std::int64_t steps, const std::string& from) {
        const Images images(at::kFloat);
        LossGradient gradient(images.network, score_matching_loss({.horizon = 3, .noise = Noise(8)}));
        TrainingState s{0, images.theta, TensorSamples(11, images.network.sample, at::kFloat, 2, p),
                        AveragedAdam({{.adam = {.rate = 1e-2}, .clip = 0.5}, 0.9})};
        if (!from.empty()) restore_parameters(io::CheckpointReader(from, "bytes"), s);
        const Drawn source;
        EXPECT_EQ(train(gradient, source, s, steps).status, Status::completed);
        Ended e = ended(p, s.theta, [&](io::CheckpointWriter& c) { save_parameters(c, s); });
        e.theta.push_back(gradient.loss());
        return e;
      },
      6, 3);
}

// Numbers of every sample, and labels, on all of them.
TEST(ProcessesOfNetworks, GatherWhatEachHas) {
  for (const std::size_t ranks : {1, 2, 3, 4})
    (void)as_processes(ranks, [](Processes* p) {
      const at::Tensor x = at::arange(22, at::kFloat).view({11, 2}), labels = at::arange(11, at::kLong);
      const TensorSamples spread(x, labels, 4, p);
      EXPECT_EQ(spread.total(), 11U);
      EXPECT_EQ(gathered(spread), TensorSamples(x, labels, 4));
      EXPECT_TRUE(at::equal(gathered_labels(spread), labels));
      TensorNumbers u = TensorTiles::numbers(spread, 2);
      for (std::size_t i = 0; i < u.values.size(); ++i) u.values[i] = static_cast<double>(2 * spread.first() + i);
      const std::vector<double> all = gathered(u);
      for (std::size_t i = 0; i < 22; ++i) EXPECT_EQ(all[i], static_cast<double>(i));
      const NetworkEnergy energy(quadratic_energy(2), 4);
      NetworkEnergy ready = energy;
      ready.prepare(TensorParameters(2, at::kFloat));
      const std::vector<double> points{1, 0, 2, 0, 0, 3, 1, 1, 4, 0};
      EXPECT_EQ(energies_at(ready, points, nullptr, p), (std::vector<double>{0.5, 2, 4.5, 1, 8}));
      return 0;
    });
}

// Which number is not finite is said alike, whoever has it.
TEST(ProcessesOfNetworks, NameTheFirstNumberThatIsNotFinite) {
  for (const std::size_t ranks : {1, 2, 3})
    for (const auto& found : as_processes(ranks, [](Processes* p) {
           at::Tensor x = at::zeros({11, 3});
           x[2][2] = std::numeric_limits<float>::infinity();
           x[9][1] = std::numeric_limits<float>::quiet_NaN();
           const auto at = find_nonfinite(TensorSamples(x, {}, 2, p));
           return at ? std::pair(at->sample, at->coordinate) : std::pair<std::size_t, std::size_t>();
         }))
      EXPECT_EQ(found, (std::pair<std::size_t, std::size_t>{9, 1}));
}

// The front door: a caller's own processes.
TEST(ProcessesOfNetworks, OptimiseGivesTheResultOfOne) {
  const auto result = [](Processes* p) {
    const Images images(at::kFloat, 11, 4, false);
    const DenoisingProblem<NetworkSteps> problem(images.steps(Prediction::epsilon), near_one, objective.lambda);
    return numbers_of(optimise(problem, images.theta, TensorAdam(0.01),
                               {.batch = 11, .grid = images.grid, .slots = 3, .steps = 3, .seed = 5, .processes = p})
                          .theta);
  };
  const auto one = as_processes(1, result)[0];
  for (const auto& found : as_processes(3, result)) EXPECT_EQ(found, one);
}

}  // namespace
}  // namespace implicit_diffusion
