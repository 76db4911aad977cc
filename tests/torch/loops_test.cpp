// Networks in every loop over reverse chains: no result depends on threads, replays and resumed runs have the same
// bits, shards of any size agree.
#include "implicit_diffusion/denoising/checkpoint.hpp"
#include "implicit_diffusion/denoising/optimise.hpp"
#include "implicit_diffusion/denoising/reconstruction.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "torch/images.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

using namespace torch_tests;

using Back = BackwardBatch<NetworkSteps>;
using TensorAdam = BasicAdam<TensorParameters>;

using Queue = QueueState<Batch, TensorAdam, TensorParameters>;
Queue run_queue(const Images& images, const ChainSettings& settings, std::int64_t steps, bool warm = true,
                Workers* workers = nullptr) {
  Chain chain(images.steps(Prediction::epsilon, workers), images.grid, settings, frozen_at(images.frozen));
  DenoisingSampler<NetworkSteps> sampler(chain);
  PathGradient<NetworkSteps> gradient(chain, near_one, objective);
  Queue s{0, images.theta, {}, TensorAdam(0.01)};
  const QueueOptions options{.steps = steps, .slots = static_cast<std::int64_t>(settings.slots), .warm_start = warm};
  start_queue(sampler, fresh, s, options, Batch::of(images.start));
  EXPECT_EQ(queue_loop(sampler, gradient, fresh, s, options).status, Status::completed);
  return s;
}

TEST(NetworkLoops, NoResultDependsOnThreads) {
  const Images images(at::kFloat, 21, 4);
  const Queue expected = run_queue(images, {.slots = 3}, 4);
  EXPECT_FALSE(expected.theta == images.theta);
  for (const std::size_t threads : {1, 2, 3}) {
    Workers workers(threads);
    const Queue s = run_queue(images, {.slots = 3}, 4, true, &workers);
    EXPECT_EQ(s.theta, expected.theta) << threads;
    EXPECT_EQ(s.slots, expected.slots) << threads;
  }
}

TEST(NetworkLoops, ReplaysPathsToTheSameBits) {
  const Images images(at::kFloat, 11, 4);
  const Queue kept = run_queue(images, {.slots = 3}, 5, false);
  for (const std::size_t keep : {2, 4, 6}) {
    const Queue replayed = run_queue(images, {.slots = 3, .keep_every = keep}, 5, false);
    EXPECT_EQ(replayed.theta, kept.theta);
    EXPECT_LT(replayed.slots.back().path.size(), kept.slots.back().path.size());
  }
}

TEST(NetworkLoops, TheNestedLoopIsTheQueueOfOneSlot) {
  const Images images(at::kFloat);
  Workers workers(2);
  Chain chain(images.steps(Prediction::epsilon, &workers), images.grid, {}, frozen_at(images.frozen));
  DenoisingEngine<NetworkSteps> engine(chain, near_one, objective);
  State<Batch, TensorAdam, TensorParameters> s{0, images.theta, Batch::of(images.start), TensorAdam(0.01)};
  ASSERT_EQ(nested_loop(engine, engine, fresh, s, {.steps = 3, .inner_steps = 1, .warm_start = false}).status,
            Status::completed);
  // By hand: fresh batches of rounds 0, 1, 2, gradients of the whole graph, Adam's steps. Single precision, three
  // steps: a step of Adam is 0.01 whatever the gradient, so where one is almost zero its sign is rounding's.
  TensorParameters theta = images.theta;
  TensorAdam adam(0.01);
  for (std::int64_t k = 0; k < 3; ++k) {
    Batch b = Batch::of(images.start);
    fresh.draw(b, k);
    const WholeGraph whole{images.network, Prediction::epsilon, Dynamics::euler_sde, images.grid,
                           noise,          objective,           images.frozen};
    adam.update(theta, TensorParameters(whole(theta, b.points, k).gradient), k);
  }
  EXPECT_LT(relative(s.theta, theta), 1e-4);
  EXPECT_GT(relative(images.theta, theta), 1e-2);
}

struct DoubleQueueParts {
  Images images{at::kFloat, 11, 4};
  Chain chain{images.steps(Prediction::v),
              images.grid,
              {.dynamics = Dynamics::euler_ode, .slots = 6},
              frozen_at(images.frozen)};
  DenoisingSampler<NetworkSteps> sampler{chain};
  DenoisingBackward<NetworkSteps> backward{chain, near_one, objective};
  using State = DoubleQueueState<Batch, Back, TensorAdam, TensorParameters>;

  State start() {
    Queue warm{0, images.theta, {}, TensorAdam()};
    start_queue(sampler, fresh, warm, {.slots = 6}, Batch::of(images.start));
    return {0, images.theta, std::move(warm.slots), {}, TensorAdam(0.01)};
  }
};

// A batch that goes back step by step has the gradient of one that goes back at once.
TEST(NetworkLoops, TheDoubleQueueFindsPathsAgain) {
  DoubleQueueParts parts;
  Batch b = Batch::of(parts.images.start);
  fresh.draw(b, 4);
  for (int m = 0; m < 6; ++m) parts.sampler.advance(b, parts.images.theta, {});
  Back back = parts.backward.begin(b, parts.images.theta);
  for (std::size_t s = 0; s < 6; ++s) parts.backward.step(back, s, parts.images.theta);
  TensorParameters stepwise = zeros_like(parts.images.theta), at_once = stepwise;
  parts.backward.gradient(back, stepwise);
  ReconstructedGradient<NetworkSteps>(parts.chain, near_one, objective).estimate(b, parts.images.theta, 0, at_once);
  EXPECT_EQ(stepwise, at_once);
  EXPECT_FALSE(stepwise == zeros_like(stepwise));

  DoubleQueueParts::State s = parts.start();
  ASSERT_EQ(double_queue_loop(parts.sampler, parts.backward, fresh, s, 7).status, Status::completed);
  EXPECT_EQ(s.theta, parts.images.theta) << "nothing is back yet";
  ASSERT_EQ(double_queue_loop(parts.sampler, parts.backward, fresh, s, 9).status, Status::completed);
  EXPECT_FALSE(s.theta == parts.images.theta);
}

// The front door is the nested loop with one slot and the queue with more, from the same noise.
TEST(NetworkLoops, TheFrontDoorRunsTheLoops) {
  const Images images(at::kFloat, 11, 4, false);
  const DenoisingProblem<NetworkSteps> problem =
      DenoisingProblem<NetworkSteps>(images.steps(Prediction::epsilon), near_one, objective.lambda)
          .stay_close(images.frozen, objective.beta);
  for (const std::size_t slots : {1, 3}) {
    const auto result =
        optimise(problem, images.theta, TensorAdam(0.01),
                 {.batch = 11, .grid = images.grid, .slots = slots, .steps = 3, .seed = 5, .threads = 2});
    ASSERT_TRUE(result.completed());
    EXPECT_TRUE(result.path_kl && *result.path_kl > 0);

    Chain chain(images.steps(Prediction::epsilon).with(Noise(5), nullptr), images.grid, {.slots = slots},
                frozen_at(images.frozen));
    DenoisingSampler<NetworkSteps> sampler(chain);
    PathGradient<NetworkSteps> gradient(chain, near_one, objective);
    const DenoisingStart<NetworkSteps> start{Noise(5)};
    TensorParameters expected;
    if (slots == 1) {
      State<Batch, TensorAdam, TensorParameters> s{0, images.theta, Batch::of(images.start), TensorAdam(0.01)};
      (void)nested_loop(sampler, gradient, start, s, {.steps = 3, .inner_steps = 1, .warm_start = false});
      expected = s.theta;
    } else {
      Queue s{0, images.theta, {}, TensorAdam(0.01)};
      start_queue(sampler, start, s, {.steps = 3, .slots = 3}, Batch::of(images.start));
      (void)queue_loop(sampler, gradient, start, s, {.steps = 3, .slots = 3});
      expected = s.theta;
    }
    EXPECT_EQ(result.theta, expected);
  }
}

// ---- shards

TEST(NetworkLoops, ShardsOfAnySizeAgree) {
  std::vector<TensorParameters> gradients;
  std::vector<TensorSamples> ends;
  for (const std::size_t shard : {4, 8, 16}) {
    const Images images(at::kFloat, 19, shard);
    Chain chain(images.steps(Prediction::epsilon), images.grid, {}, frozen_at(images.frozen));
    DenoisingEngine<NetworkSteps> engine(chain, near_one, objective);
    Batch b = Batch::of(images.start);
    fresh.draw(b, 0);
    gradients.push_back(zeros_like(images.theta));
    engine.sample_and_estimate(b, images.theta, {}, gradients.back());
    ends.push_back(b.points);
  }
  for (const std::size_t i : {1, 2}) {
    EXPECT_LT(relative(gradients[i], gradients[0]), 1e-5);
    EXPECT_LT(relative(ends[i].x(), ends[0].x()), 1e-5);
  }
}

// Ten steps of gradient descent: what shards change in theta is small against what the steps change.
TEST(NetworkLoops, ShardsOfAnySizeLeadToTheSamePlace) {
  std::vector<at::Tensor> ends;
  at::Tensor start;
  double rate = 0;  // by which the first step is a thousandth of theta: a network that nobody trained has steep slopes
  for (const std::size_t shard : {4, 8, 16}) {
    const Images images(at::kFloat, 19, shard);
    Chain chain(images.steps(Prediction::epsilon), images.grid, {}, frozen_at(images.frozen));
    DenoisingEngine<NetworkSteps> engine(chain, near_one, objective);
    if (rate == 0) {
      Batch b = Batch::of(images.start);
      fresh.draw(b, 0);
      TensorParameters gradient = zeros_like(images.theta);
      engine.sample_and_estimate(b, images.theta, {}, gradient);
      rate = 1e-3 * (images.theta.read().norm() / gradient.read().norm()).item<double>();
    }
    State<Batch, GradientDescent, TensorParameters> s{0, images.theta, Batch::of(images.start), {{rate}}};
    ASSERT_EQ(nested_loop(engine, engine, fresh, s, {.steps = 10, .inner_steps = 1, .warm_start = false}).status,
              Status::completed);
    start = images.theta.read();
    ends.push_back(s.theta.read());
  }
  const double change = (ends[0] - start).norm().item<double>();
  EXPECT_GT(change, 1e-3 * start.norm().item<double>()) << "too small to see anything but rounding";
  for (const std::size_t i : {1, 2}) EXPECT_LT((ends[i] - ends[0]).norm().item<double>(), 1e-4 * change);
}

// A sample's path depends neither on its neighbours nor on the size of the batch, whole shards or not.
TEST(NetworkLoops, ASampleDoesNotDependOnItsBatch) {
  const auto end = [](std::size_t n) {
    const Images images(at::kFloat, n);
    Chain chain(images.steps(Prediction::epsilon), images.grid, {});
    Batch b = Batch::of(images.start);
    fresh.draw(b, 0);
    DenoisingSampler<NetworkSteps>(chain).advance(b, images.theta, {});
    return b.points.x().clone();
  };
  const at::Tensor all = end(16);
  for (const std::int64_t n : {1, 3, 8, 13})
    EXPECT_TRUE(at::equal(end(static_cast<std::size_t>(n)), all.narrow(0, 0, n))) << n;
}

TEST(NetworkLoops, LabelsReachTheirSamples) {
  const Images with(at::kFloat, 11), without(at::kFloat, 11, default_shard, false);
  const auto end = [](const Images& images) {
    Chain chain(images.steps(Prediction::epsilon), images.grid, {});
    Batch b = Batch::of(images.start);
    fresh.draw(b, 0);
    DenoisingSampler<NetworkSteps>(chain).advance(b, images.theta, {});
    TensorParameters gradient = zeros_like(images.theta);
    PathGradient<NetworkSteps>(chain, near_one).estimate(b, images.theta, 0, gradient);
    return std::pair{b.points, gradient};
  };
  const auto [x, gradient] = end(with);
  const auto [y, other] = end(without);
  EXPECT_FALSE(at::equal(x.x(), y.x()));
  const auto of_labels = [](const TensorParameters& g) {
    return g.read().narrow(0, static_cast<std::int64_t>(g.size()) - 12, 12);
  };
  EXPECT_GT(of_labels(gradient).abs().max().item<double>(), 0);
  EXPECT_EQ(of_labels(other).abs().max().item<double>(), 0) << "the table of labels is not used";
}

// Labels by key: each batch has its own, on its way and back.
TEST(NetworkLoops, LabelsAreDrawnWithTheirBatch) {
  const Images images(at::kFloat, 11, 4, false);
  NetworkStepsOptions options = images.steps(Prediction::epsilon).options();
  options.classes = 3;
  Chain drawn(NetworkSteps(images.network, options), images.grid, {}, frozen_at(images.frozen));
  std::vector<at::Tensor> all;
  for (const std::int64_t birth : {3, 4}) {
    Batch b = Batch::of(images.start);
    fresh.draw(b, birth);
    at::Tensor labels = at::empty({11}, at::kLong);
    for (std::size_t i = 0; i < 11; ++i)
      labels.data_ptr<std::int64_t>()[i] =
          static_cast<std::int64_t>((3ULL * noise.bits(Stream::component, {.round = birth}, 1, i, 0)) >> 32U);
    all.push_back(labels);
    const TensorSamples start(b.points.x(), labels, 4);
    const WholeGraph whole{images.network, Prediction::epsilon, Dynamics::euler_sde, images.grid,
                           noise,          objective,           images.frozen};
    const auto expected = whole(images.theta, start, birth);
    TensorParameters gradient = zeros_like(images.theta);
    DenoisingSampler<NetworkSteps>(drawn).advance(b, images.theta, {});
    PathGradient<NetworkSteps>(drawn, near_one, objective).estimate(b, images.theta, 0, gradient);
    EXPECT_LT(relative(b.points.x(), expected.end), 1e-5);
    EXPECT_LT(relative(gradient.read(), expected.gradient), 1e-5);
  }
  EXPECT_FALSE(at::equal(all[0], all[1]));
}

// ---- checkpoints

template <class S, class... Shape>
S through_a_checkpoint(const S& stopped, S resumed, const Chain& chain, const Shape&... shape) {
  io::CheckpointWriter writer;
  save(writer, stopped, chain);
  const io::CheckpointReader reader(writer.to_bytes(), "checkpoint");
  restore(reader, resumed, chain, shape...);
  return resumed;
}

TEST(NetworkLoops, ResumesToTheSameBits) {
  const Images images(at::kFloat, 11, 4);
  const Batch empty = Batch::of(images.start);
  for (const std::size_t keep : {1, 4}) {
    const ChainSettings settings{.slots = 3, .keep_every = keep};
    Chain chain(images.steps(Prediction::epsilon), images.grid, settings, frozen_at(images.frozen));
    DenoisingSampler<NetworkSteps> sampler(chain);
    PathGradient<NetworkSteps> gradient(chain, near_one, objective);
    for (const std::int64_t stop : {2, 5}) {  // two: a cold queue that still fills
      Queue s = through_a_checkpoint(run_queue(images, settings, stop, false),
                                     Queue{0, zeros_like(images.theta), {}, TensorAdam(0.01)}, chain, empty);
      (void)queue_loop(sampler, gradient, fresh, s, {.steps = 7, .slots = 3, .warm_start = false});
      EXPECT_EQ(run_queue(images, settings, 7, false).theta, s.theta) << keep << ' ' << stop;
    }
  }

  DoubleQueueParts parts;
  DoubleQueueParts::State whole = parts.start(), stopped = parts.start();
  (void)double_queue_loop(parts.sampler, parts.backward, fresh, whole, 12);
  (void)double_queue_loop(parts.sampler, parts.backward, fresh, stopped, 9);
  DoubleQueueParts::State s = through_a_checkpoint(stopped, parts.start(), parts.chain, Batch::of(parts.images.start));
  (void)double_queue_loop(parts.sampler, parts.backward, fresh, s, 12);
  EXPECT_EQ(whole.theta, s.theta);
  EXPECT_FALSE(whole.theta == stopped.theta);

  io::CheckpointWriter writer;
  save(writer, stopped, parts.chain);
  const io::CheckpointReader reader(writer.to_bytes(), "checkpoint");
  DoubleQueueParts::State shorter{0, TensorParameters(3, at::kFloat), {}, {}, TensorAdam()};
  EXPECT_THROW(restore(reader, shorter, parts.chain, Batch::of(parts.images.start)), Error);
}

}  // namespace
}  // namespace implicit_diffusion
