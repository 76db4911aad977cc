// Networks in reverse chains: paths and gradients against known numbers, the pointwise engine, backpropagation through
// the whole graph and finite differences; memory; what is refused.
#include "implicit_diffusion/denoising/gradient.hpp"
#include "problems/toy_diffusion.hpp"
#include "torch/images.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

using namespace torch_tests;

// ---- known numbers

TEST(NetworkSteps, HaveTheKnownGradientsOfTheToy) {
  const problems::ToyDiffusion toy;
  const TensorParameters theta(at::tensor(toy.theta, at::kDouble));
  const TensorReward reward([](const at::Tensor& y) {
    return -(y - at::tensor({1.0, -1.0}, y.options())).square().sum(1);
  });
  Chain chain(NetworkSteps(toy_score(), {.prediction = Prediction::score}), uniform_grid(2, 4),
              {.dynamics = Dynamics::euler_ode});
  Batch b = Batch::of(TensorSamples(at::tensor(toy.start, at::kDouble).view({2, 2})));
  DenoisingSampler<NetworkSteps>(chain).advance(b, theta, {});
  TensorParameters gradient = zeros_like(theta);
  PathGradient<NetworkSteps>(chain, reward).estimate(b, theta, 0, gradient);
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(host(gradient)[j], toy.ode_gradient[j], 1e-11);
  EXPECT_NEAR(objective_of(b, reward, {}).value, toy.ode_objective, 1e-11);
}

// The same model, point by point in double precision: the same noise, so the same path, to the rounding of some tens of
// operations on numbers near 1.
TEST(NetworkSteps, AgreeWithThePointwiseEngine) {
  const problems::ToyDiffusion toy;
  const TimeGrid grid = uniform_grid(2, 12);
  const TensorParameters theta(at::tensor(toy.theta, at::kDouble)), other(at::tensor(toy.frozen, at::kDouble));
  const TensorReward reward([](const at::Tensor& y) {
    return -(y - at::tensor({1.0, -1.0}, y.options())).square().sum(1);
  });
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode, Dynamics::ddim}) {
    ReverseChain<double> points(problems::ToyScore{}, grid,
                                {.dynamics = dynamics, .normals = normals_of<double>(noise)},
                                std::pair{ScoreModel<double>(problems::ToyScore{}), toy.frozen});
    Chain tensors(NetworkSteps(toy_score(), {.prediction = Prediction::score, .noise = noise}), grid,
                  {.dynamics = dynamics}, frozen_at(other));
    auto p = PathBatch<double>::of(Population<double>(21, 2));
    Batch t = Batch::of(TensorSamples(21, {2}, at::kDouble));
    DenoisingStart<double>{Noise(9)}.draw(p, 4);
    fresh.draw(t, 4);
    std::vector<double> exact(6);
    TensorParameters gradient = zeros_like(theta);
    PathGradient<double>(points, problems::ToyDiffusion::Distance{}, objective)
        .sample_and_estimate(p, toy.theta, {}, exact);
    PathGradient<NetworkSteps>(tensors, reward, objective).sample_and_estimate(t, theta, {}, gradient);
    for (std::size_t i = 0; i < 21; ++i) {
      for (std::size_t j = 0; j < 2; ++j)
        EXPECT_NEAR(t.points.x().data_ptr<double>()[2 * i + j], p.points(i, j), 1e-12);
      EXPECT_NEAR(t.penalty.values[i], p.penalty[i], 1e-12);
    }
    for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(host(gradient)[j], exact[j], 1e-11 * (1 + std::abs(exact[j])));
  }
}

// ---- the adjoint is the gradient of the whole graph

// The frozen network may have learnt something else than the other.
TEST(NetworkSteps, TheAdjointEqualsBackpropagationThroughTheWholeGraph) {
  const auto twice = [](double tau) { return 2 * tau; };
  const std::vector<std::optional<NetworkMeaning>> meanings{
      {}, NetworkMeaning{Prediction::epsilon}, NetworkMeaning{Prediction::v, twice}, NetworkMeaning{Prediction::score}};
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double tolerance = type == at::kDouble ? 1e-10 : 1e-5;
    const Images images(type);
    for (const Prediction prediction : {Prediction::epsilon, Prediction::v, Prediction::score})
      for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode, Dynamics::ddim})
        for (std::size_t kind = 0; kind <= meanings.size(); ++kind) {
          const bool kl = kind < meanings.size();
          const std::optional<NetworkMeaning> means_0 = kl ? meanings[kind] : std::nullopt;
          const DenoisingObjective o{.lambda = 1.3, .beta = kl ? 0.7 : 0.0};
          NetworkStepsOptions options = images.steps(prediction).options();
          options.frozen = means_0;
          Chain chain(NetworkSteps(images.network, options), images.grid, {.dynamics = dynamics},
                      kl ? frozen_at(images.frozen) : std::nullopt);
          Batch b = Batch::of(images.start), at_once = b;
          fresh.draw(b, 4);
          fresh.draw(at_once, 4);
          const WholeGraph whole{.network = images.network,
                                 .prediction = prediction,
                                 .dynamics = dynamics,
                                 .grid = images.grid,
                                 .noise = noise,
                                 .objective = o,
                                 .frozen = kl ? std::optional(images.frozen) : std::nullopt,
                                 .frozen_means = means_0};
          const WholeGraph::Result exact = whole(images.theta, b.points, 4);

          DenoisingSampler<NetworkSteps>(chain).advance(b, images.theta, {});
          TensorParameters gradient = zeros_like(images.theta), both = gradient;
          PathGradient<NetworkSteps> adjoint(chain, near_one, o);
          adjoint.estimate(b, images.theta, 0, gradient);
          EXPECT_LT(relative(b.points.x(), exact.end), tolerance);
          EXPECT_LT(relative(gradient.read(), exact.gradient), tolerance) << static_cast<int>(prediction) << kind;
          EXPECT_NEAR(objective_of(b, near_one, o).value, exact.objective, tolerance * std::abs(exact.objective));
          if (kl) {
            EXPECT_NEAR(objective_of(b, near_one, o).path_kl, exact.path_kl, tolerance * exact.path_kl);
          }

          adjoint.sample_and_estimate(at_once, images.theta, {}, both);
          EXPECT_EQ(both, gradient);
          EXPECT_EQ(at_once.points, b.points);
          EXPECT_EQ(at_once.penalty, b.penalty);
        }
  }
}

// Central differences of the objective along a direction, with the same noise, against the gradient: their error is
// h^2 times a third derivative, and the rounding 1e-16 / h of an objective near 20; h = 1e-4 leaves 1e-7 of both.
TEST(NetworkSteps, TheGradientIsThatOfFiniteDifferences) {
  const Images images(at::kDouble, 5);
  Chain chain(images.steps(Prediction::v), images.grid, {}, frozen_at(images.frozen));
  DenoisingEngine<NetworkSteps> engine(chain, near_one, objective);
  TensorParameters gradient = zeros_like(images.theta), unused = gradient;
  const auto value_at = [&](const TensorParameters& theta, TensorParameters& g) {
    Batch b = Batch::of(images.start);
    fresh.draw(b, 4);
    engine.sample_and_estimate(b, theta, {}, g);
    return objective_of(b, near_one, objective).value;
  };
  value_at(images.theta, gradient);
  for (int direction = 0; direction < 3; ++direction) {
    const at::Tensor along = initial_parameters(images.network.layout, Noise(20 + direction), at::kDouble).read();
    const double h = 1e-4;
    const double difference = (value_at(TensorParameters(images.theta.read() + h * along), unused) -
                               value_at(TensorParameters(images.theta.read() - h * along), unused)) /
                              (2 * h);
    const double product = (gradient.read() * along).sum().item<double>();
    EXPECT_NEAR(product, difference, 1e-6 * std::abs(difference));
    EXPECT_GT(std::abs(1.001 * product - difference), 1e-6 * std::abs(difference)) << "a wrong one would pass";
  }
}

// ---- memory

// The most that was allocated while the network was evaluated, beyond what was there before `run`.
struct Watched {
  std::shared_ptr<std::size_t> most = std::make_shared<std::size_t>(0);
  static std::size_t allocated() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  }
  Network watch(Network network) const {
    return {network.layout, network.sample, [most = most, inner = network.forward](auto w, const NetworkInput& in) {
              const at::Tensor out = inner(w, in);
              *most = std::max(*most, allocated());
              return out;
            }};
  }
  template <class Run>
  std::size_t operator()(Run&& run) const {
    *most = 0;
    const std::size_t before = allocated();
    run();
    return *most > before ? *most - before : 0;
  }
};

// A state of 8 images is 1,152 bytes, what a step leaves in its graph some 50 times as much.
TEST(NetworkSteps, MemoryGrowsByThePathAlone) {
  if (Watched::allocated() == 0) GTEST_SKIP() << "this allocator does not count";
  const Watched watched;
  const Network network = watched.watch(small_images(32));
  const TensorParameters theta = initial_parameters(network.layout, Noise(1));
  const auto adjoint = [&](std::size_t steps) {
    Chain chain(NetworkSteps(network, {.noise = noise}), uniform_grid(3, steps), {});
    DenoisingEngine<NetworkSteps> engine(chain, near_one, {});
    Batch b = Batch::of(TensorSamples(8, {1, 6, 6}));
    fresh.draw(b, 0);
    TensorParameters gradient = zeros_like(theta);
    engine.sample_and_estimate(b, theta, {}, gradient);  // what is made once
    fresh.draw(b, 0);
    return watched([&] { engine.sample_and_estimate(b, theta, {}, gradient); });
  };
  const auto whole = [&](std::size_t steps) {
    const WholeGraph graph{network, Prediction::epsilon, Dynamics::euler_sde, uniform_grid(3, steps), noise, {}};
    return watched([&] { graph(theta, TensorSamples(8, {1, 6, 6}), 0); });
  };
  const std::size_t state = 8 * 36 * sizeof(float), at_16 = adjoint(16);
  for (const std::size_t steps : {64, 256}) {
    const std::size_t path = (steps - 16) * state;
    const std::size_t seen = adjoint(steps);
    EXPECT_LT(seen, at_16 + path + path / 4 + 16'384) << steps;
    EXPECT_GT(seen, at_16 + path / 2) << "the path is not seen: " << steps;
  }
  EXPECT_GT(whole(64), at_16 + 20 * (64 - 16) * state) << "a graph that is kept would not be noticed";
}

// ---- what is refused

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(NetworkSteps, RefusesWhatDoesNotFit) {
  const Images images(at::kFloat);
  Chain chain(images.steps(Prediction::epsilon), images.grid, {});
  DenoisingEngine<NetworkSteps> engine(chain, near_one);
  Batch b = Batch::of(images.start);
  TensorParameters gradient = zeros_like(images.theta), small(3, at::kFloat);
  EXPECT_EQ(refusal([&] { engine.sample_and_estimate(b, small, {}, gradient); }),
            "theta: it is not of the size of the model");
  Batch flat = Batch::of(TensorSamples(4, {36}));
  EXPECT_EQ(refusal([&] { engine.sample_and_estimate(flat, images.theta, {}, gradient); }),
            "batch: its dimension is not that of the model");
  EXPECT_NE(refusal([&] { DenoisingEngine<NetworkSteps>(chain, TensorReward(near_one).without_gradient()); }), "");
  // Samples in single precision, weights in double: LibTorch's own words, on one line that names the network.
  TensorParameters wide(images.theta.read().to(at::kDouble)), wide_gradient = zeros_like(wide);
  const std::string words = refusal([&] { engine.sample_and_estimate(b, wide, {}, wide_gradient); });
  EXPECT_EQ(words.rfind("network: ", 0), 0U) << words;
  EXPECT_EQ(words.find('\n'), std::string::npos) << words;

  Network wrong = small_images();
  wrong.forward = [](auto, const NetworkInput& in) { return in.x.flatten(1); };
  Chain other(NetworkSteps(wrong), images.grid, {});
  EXPECT_EQ(refusal([&] { DenoisingSampler<NetworkSteps>(other).advance(b, images.theta, {}); }),
            "network: what it predicts must have the shape of its samples");
}

}  // namespace
}  // namespace implicit_diffusion
