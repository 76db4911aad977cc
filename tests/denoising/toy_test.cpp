// Adjoints and queues on a small nonlinear model with stand-ins for the noise, against numbers of an independent
// program.
#include "problems/toy_diffusion.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace implicit_diffusion {
namespace {

using problems::ToyScore;
using Distance = problems::ToyDiffusion::Distance;
using Vector = std::vector<double>;

const problems::ToyDiffusion toy;
const Vector& theta0 = toy.theta;
const auto& fixed_noise = toy.fixed_noise;

void expect_near(std::span<const double> got, const Vector& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t j = 0; j < got.size(); ++j) EXPECT_NEAR(got[j], expected[j], tolerance) << j;
}

PathBatch<double> batch_at(const Vector& rows) {
  PathBatch<double> b;
  b.points = Population<double>(rows.size() / 2, 2);
  for (std::size_t i = 0; i < rows.size(); ++i) b.points(i / 2, i % 2) = rows[i];
  return b;
}

auto gradient_of(ReverseChain<double>& chain, const DenoisingObjective& o, const Vector& theta = theta0) {
  return toy.estimate(chain, o, theta);
}

TEST(Adjoint, OfTheODE) {
  auto chain = toy.chain(Dynamics::euler_ode, 4);
  const auto g = gradient_of(chain, {});
  EXPECT_NEAR(g.objective.value, toy.ode_objective, 1e-10);
  expect_near(g.gradient, toy.ode_gradient, 1e-10);
}

TEST(Adjoint, OfTheSDE) {
  auto chain = toy.chain(Dynamics::euler_sde, 4, {.normals = fixed_noise});
  const auto g = gradient_of(chain, {});
  expect_near(Vector{g.batch.points(0, 0), g.batch.points(0, 1), g.batch.points(1, 0), g.batch.points(1, 1)},
              toy.sde_end, 1e-10);
  EXPECT_NEAR(g.objective.value, toy.sde_objective, 1e-10);
  expect_near(g.gradient, toy.sde_gradient, 1e-10);
}

TEST(Adjoint, WithThePathKL) {
  auto chain = toy.chain(Dynamics::euler_sde, 4, {.normals = fixed_noise}, true);
  const auto g = gradient_of(chain, toy.with_kl);
  EXPECT_NEAR(g.objective.path_kl, toy.path_kl, 1e-10);
  EXPECT_NEAR(g.objective.value, toy.kl_objective, 1e-10);
  expect_near(g.gradient, toy.kl_gradient, 1e-10);
}

// Central differences of the batch's objective, for every kind of step, with and without the KL, and every way to keep
// the path.
TEST(Adjoint, EqualsFiniteDifferences) {
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode, Dynamics::ddpm, Dynamics::ddim})
    for (const bool kl : {false, true}) {
      if (kl && dynamics == Dynamics::ddpm) continue;
      const DenoisingObjective o{.lambda = -.8, .beta = kl ? .6 : 0};
      auto chain = toy.chain(dynamics, 12, {.normals = fixed_noise}, kl);
      const Vector exact = gradient_of(chain, o).gradient;
      for (std::size_t j = 0; j < 6; ++j) {
        const double h = 1e-5;
        Vector up = theta0, down = theta0;
        up[j] += h;
        down[j] -= h;
        const double difference =
            gradient_of(chain, o, up).objective.value - gradient_of(chain, o, down).objective.value;
        EXPECT_NEAR(exact[j], difference / (2 * h), 2e-8) << static_cast<int>(dynamics) << " " << kl << " " << j;
      }
      for (const std::size_t keep : {2, 3, 5, 12, 100}) {
        auto sparing = toy.chain(dynamics, 12, {.keep_every = keep, .normals = fixed_noise}, kl);
        EXPECT_EQ(gradient_of(sparing, o).gradient, exact) << "the replayed path is the same, bit for bit: " << keep;
      }
    }
}

// A last step that returns its mean: the same path but for that noise, the same penalty, and still the exact gradient.
TEST(Adjoint, StartsFromTheMeanOfTheLastStep) {
  const DenoisingObjective o{.lambda = -.8, .beta = .6};
  auto plain = toy.chain(Dynamics::euler_sde, 6, {.normals = fixed_noise}, true);
  auto chain = toy.chain(Dynamics::euler_sde, 6, {.normals = fixed_noise, .last_step = LastStep::mean}, true);
  const auto noisy = gradient_of(plain, o), g = gradient_of(chain, o);
  EXPECT_EQ(g.objective.path_kl, noisy.objective.path_kl);
  ASSERT_EQ(g.batch.path.size(), noisy.batch.path.size());
  const auto& before = noisy.batch.path.back();
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(g.batch.path.back()(i, j), before(i, j));
      // fixed_noise is sin(1 + n + 2 i + 3 j) at step n.
      const double xi = std::sin(1. + 5 + 2 * static_cast<double>(i) + 3 * static_cast<double>(j));
      EXPECT_NEAR(noisy.batch.points(i, j) - g.batch.points(i, j), plain.coefficients(5).noise * xi, 1e-12);
    }
  for (std::size_t j = 0; j < 6; ++j) {
    const double h = 1e-5;
    Vector up = theta0, down = theta0;
    up[j] += h;
    down[j] -= h;
    const double difference = gradient_of(chain, o, up).objective.value - gradient_of(chain, o, down).objective.value;
    EXPECT_NEAR(g.gradient[j], difference / (2 * h), 2e-8) << j;
    EXPECT_GT(std::abs(g.gradient[j] - noisy.gradient[j]), 1e-4) << "the noisy step has another gradient";
  }
}

TEST(Adjoint, OfTheLastStepsOnlyLeavesTheRestOut) {
  auto chain = toy.chain(Dynamics::euler_sde, 8, {.normals = fixed_noise});
  PathBatch<double> b = batch_at({.3, -.8, 1.1, .4});
  DenoisingSampler<double>(chain).advance(b, theta0, {});
  Vector all(6), few(6), whole(6);
  PathGradient<double>(chain, Distance{}).estimate(b, theta0, 0, all);
  PathGradient<double>(chain, Distance{}, {}, 3).estimate(b, theta0, 0, few);
  PathGradient<double>(chain, Distance{}, {}, 8).estimate(b, theta0, 0, whole);
  EXPECT_EQ(whole, all);
  EXPECT_GT(std::abs(few[0] - all[0]), 1e-2);
  // The same as the gradient of a chain that begins where the last three steps do.
  PathBatch<double> late = b;
  const TimeGrid grid = chain.grid();
  ReverseChain<double> tail(ToyScore{}, {{grid.tau.begin() + 5, grid.tau.end()}}, {});
  late.path.erase(late.path.begin(), late.path.begin() + 5);
  late.step = 3;
  Vector rest(6);
  PathGradient<double>(tail, Distance{}).estimate(late, theta0, 0, rest);
  EXPECT_EQ(few, rest);
}

// Errors of orders h, h^2, h^3 relative to the adjoint along the stored path.
TEST(Reconstruction, HasTheKnownErrors) {
  auto chain = toy.chain(Dynamics::euler_ode, 64);
  PathBatch<double> b = batch_at({.3, -.8, 1.1, .4});
  DenoisingSampler<double>(chain).advance(b, theta0, {});
  Vector exact(6), found(6);
  PathGradient<double>(chain, Distance{}).estimate(b, theta0, 0, exact);
  double size = 0;
  for (const double g : exact) size = std::max(size, std::abs(g));
  double last_error = 1;
  for (const auto& [refinements, known] : {std::pair{0, 4.3e-3}, {1, 2.3e-5}, {2, 1.1e-7}, {40, 0.0}}) {
    ReconstructedGradient<double> estimator(chain, Distance{}, {}, static_cast<std::size_t>(refinements));
    estimator.estimate(b, theta0, 0, found);
    double error = 0;
    for (std::size_t j = 0; j < 6; ++j) error = std::max(error, std::abs(found[j] - exact[j]));
    EXPECT_NEAR(error, known, known > 0 ? 3 * known : 1e-12) << refinements;
    EXPECT_LT(estimator.reconstruction_error(), last_error) << "it is measured";
    last_error = estimator.reconstruction_error();
  }
  // With the path KL as well.
  auto both = toy.chain(Dynamics::euler_ode, 64, {}, true);
  PathBatch<double> c = batch_at({.3, -.8, 1.1, .4});
  DenoisingSampler<double>(both).advance(c, theta0, {});
  const DenoisingObjective o{.lambda = 1.3, .beta = .7};
  PathGradient<double>(both, Distance{}, o).estimate(c, theta0, 0, exact);
  ReconstructedGradient<double>(both, Distance{}, o, 40).estimate(c, theta0, 0, found);
  expect_near(found, exact, 1e-11);
  auto noisy = toy.chain(Dynamics::euler_sde, 4);
  EXPECT_THROW(ReconstructedGradient<double>(noisy, Distance{}), Error);
}

class Queue : public testing::TestWithParam<problems::ToyDiffusion::Queue> {};
TEST_P(Queue, WithStoredPathsHasTheKnownTheta) {
  for (const std::size_t keep : {1, 3, 4}) {
    auto chain =
        toy.chain(GetParam().dynamics, 4, {.slots = GetParam().slots, .keep_every = keep, .normals = toy.queue_noise});
    PathGradient<double> estimator(chain, Distance{});
    expect_near(toy.run_queue(chain, estimator, 5), GetParam().theta, 1e-10);
  }
}
INSTANTIATE_TEST_SUITE_P(Toy, Queue, testing::ValuesIn(problems::ToyDiffusion{}.queues), [](const auto& c) {
  return std::string(c.param.dynamics == Dynamics::euler_ode ? "ODE" : "SDE") + std::to_string(c.param.slots);
});

TEST(Queue, WithReconstructedPathsHasTheKnownTheta) {
  for (const auto& [slots, refinements, theta] : toy.reconstructed) {
    auto chain = toy.chain(Dynamics::euler_ode, 4, {.slots = slots});
    ReconstructedGradient<double> estimator(chain, Distance{}, {}, refinements);
    expect_near(toy.run_queue(chain, estimator, 5), theta, 1e-10);
  }
}

TEST(DoubleQueue, HasTheKnownTheta) {
  const std::vector<Vector> thetas = toy.run_double_queue(9);
  ASSERT_EQ(thetas.size(), 10U);
  EXPECT_EQ(thetas[5], theta0) << "the first gradient takes T + 1 steps";
  EXPECT_NE(thetas[6], theta0);
  expect_near(thetas.back(), toy.double_queue, 1e-10);
}

}  // namespace
}  // namespace implicit_diffusion
