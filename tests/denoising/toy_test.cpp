// Adjoints and queues on a small nonlinear model with stand-ins for the noise, against numbers of an independent program.
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "problems/toy_score.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace implicit_diffusion {
namespace {

using problems::ToyScore;
using Vector = std::vector<double>;

const Vector theta0{.5, -.3, .2, -.4, .1, .3};

// R(y) = -|y - (1, -1)|^2.
struct Distance {
  static constexpr bool any_number = true;
  template <class N>
  N operator()(const N* y) const {
    return -(y[0] - 1) * (y[0] - 1) - (y[1] + 1) * (y[1] + 1);
  }
};

void expect_near(std::span<const double> got, const Vector& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t j = 0; j < got.size(); ++j) EXPECT_NEAR(got[j], expected[j], tolerance) << j;
}

// A number for each sample and coordinate where the noise would be, in its layout.
template <class F>
BlockNormals<double> stand_in(F f) {
  return [f](Moment at, const Block<const double>& block, double* out) {
    for (std::size_t i = 0; i < block.size; ++i)
      for (std::size_t j = 0; j < block.dimension; ++j)
        out[(i / lanes_per_group * block.dimension + j) * lanes_per_group + i % lanes_per_group] =
            f(at, static_cast<double>(block.first + i), static_cast<double>(j));
  };
}
const auto fixed_noise =
    stand_in([](Moment at, double i, double j) { return std::sin(1 + static_cast<double>(at.index) + 2 * i + 3 * j); });
const auto queue_noise = stand_in([](Moment at, double i, double j) {
  return std::sin(1 + .9 * static_cast<double>(at.round) + 1.7 * static_cast<double>(at.index) + 2 * i + 3 * j);
});

ReverseChain<double> make_chain(Dynamics dynamics, std::size_t steps, ReverseChainOptions<double> options = {},
                                bool with_frozen = false) {
  options.dynamics = dynamics;
  std::optional<std::pair<ScoreModel<double>, Vector>> frozen;
  if (with_frozen) frozen.emplace(ToyScore{}, Vector{.1, .2, -.1, .3, .25, -.2});
  return {ToyScore{}, uniform_grid(2, steps), std::move(options), std::move(frozen)};
}

PathBatch<double> batch_at(const Vector& rows) {
  PathBatch<double> b;
  b.points = Population<double>(rows.size() / 2, 2);
  for (std::size_t i = 0; i < rows.size(); ++i) b.points(i / 2, i % 2) = rows[i];
  return b;
}

struct Gradient {
  Vector gradient;
  BatchObjective objective;
  PathBatch<double> batch;
};
Gradient gradient_of(ReverseChain<double>& chain, const DenoisingObjective& o, const Vector& theta = theta0) {
  Gradient g{Vector(6), {}, batch_at({.3, -.8, 1.1, .4})};
  DenoisingSampler<double> sampler(chain);
  sampler.advance(g.batch, theta, {});
  PathGradient<double> estimator(chain, Distance{}, o);
  estimator.estimate(g.batch, theta, 0, g.gradient);
  g.objective = objective_of<double>(g.batch, Distance{}, o);
  return g;
}

TEST(Adjoint, OfTheODE) {
  auto chain = make_chain(Dynamics::euler_ode, 4);
  const Gradient g = gradient_of(chain, {});
  EXPECT_NEAR(g.objective.value, 1.585159346088, 1e-10);
  expect_near(g.gradient, {.586123730179, .916325391667, 1.230031237674, -.279479421802, 2.59567594566, 2.321466227113},
              1e-10);
}

TEST(Adjoint, OfTheSDE) {
  auto chain = make_chain(Dynamics::euler_sde, 4, {.normals = fixed_noise});
  const Gradient g = gradient_of(chain, {});
  expect_near(Vector{g.batch.points(0, 0), g.batch.points(0, 1), g.batch.points(1, 0), g.batch.points(1, 1)},
              {1.114382708071, -.461540774392, -1.059814986682, 1.11661795439}, 1e-10);
  EXPECT_NEAR(g.objective.value, 4.512965542878, 1e-10);
  expect_near(g.gradient,
              {-1.734061974421, 2.702942266904, 1.396599849193, -2.872102987144, .782404411895, 2.31834386893}, 1e-10);
}

TEST(Adjoint, WithThePathKL) {
  auto chain = make_chain(Dynamics::euler_sde, 4, {.normals = fixed_noise}, true);
  const Gradient g = gradient_of(chain, {.lambda = 1.3, .beta = .7});
  EXPECT_NEAR(g.objective.path_kl, 1.674888007488, 1e-10);
  EXPECT_NEAR(g.objective.value, 7.039276810983, 1e-10);
  expect_near(g.gradient,
              {-1.925826975985, 3.183042518162, 3.199699321627, -5.238199781841, -.048260335005, 4.258947827913},
              1e-10);
}

// Central differences of the batch's objective, for every kind of step, with and without the KL, and every way to keep the path.
TEST(Adjoint, EqualsFiniteDifferences) {
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode, Dynamics::ddpm, Dynamics::ddim})
    for (const bool kl : {false, true}) {
      if (kl && dynamics == Dynamics::ddpm) continue;
      const DenoisingObjective o{.lambda = -.8, .beta = kl ? .6 : 0};
      auto chain = make_chain(dynamics, 12, {.normals = fixed_noise}, kl);
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
        auto sparing = make_chain(dynamics, 12, {.keep_every = keep, .normals = fixed_noise}, kl);
        EXPECT_EQ(gradient_of(sparing, o).gradient, exact) << "the replayed path is the same, bit for bit: " << keep;
      }
    }
}

TEST(Adjoint, OfTheLastStepsOnlyLeavesTheRestOut) {
  auto chain = make_chain(Dynamics::euler_sde, 8, {.normals = fixed_noise});
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
  auto chain = make_chain(Dynamics::euler_ode, 64);
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
  auto both = make_chain(Dynamics::euler_ode, 64, {}, true);
  PathBatch<double> c = batch_at({.3, -.8, 1.1, .4});
  DenoisingSampler<double>(both).advance(c, theta0, {});
  const DenoisingObjective o{.lambda = 1.3, .beta = .7};
  PathGradient<double>(both, Distance{}, o).estimate(c, theta0, 0, exact);
  ReconstructedGradient<double>(both, Distance{}, o, 40).estimate(c, theta0, 0, found);
  expect_near(found, exact, 1e-11);
  auto noisy = make_chain(Dynamics::euler_sde, 4);
  EXPECT_THROW(ReconstructedGradient<double>(noisy, Distance{}), Error);
}

// Batches of two, fresh(k)_ij = cos(1.3 k + .7 i + 2.1 j).
struct Fresh {
  void draw(PathBatch<double>& b, std::int64_t round) const {
    b = PathBatch<double>{};
    b.birth = round;
    b.points = Population<double>(2, 2);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 2; ++j)
        b.points(i, j) =
            std::cos(1.3 * static_cast<double>(round) + .7 * static_cast<double>(i) + 2.1 * static_cast<double>(j));
  }
};

template <class Estimator>
Vector queue_result(ReverseChain<double>& chain, Estimator& estimator, std::int64_t steps) {
  DenoisingSampler<double> sampler(chain);
  Fresh start;
  QueueState<PathBatch<double>, GradientDescent> s{0, theta0, {}, GradientDescent{{.scale = .05}}};
  const QueueOptions options{.steps = steps, .slots = static_cast<std::int64_t>(chain.slots())};
  start_queue(sampler, start, s, options, PathBatch<double>{});
  EXPECT_EQ(queue_loop(sampler, estimator, start, s, options).status, Status::completed);
  return s.theta;
}

struct QueueCase {
  Dynamics dynamics;
  std::size_t slots;
  Vector theta;
};
class Queue : public testing::TestWithParam<QueueCase> {};
TEST_P(Queue, WithStoredPathsHasTheKnownTheta) {
  for (const std::size_t keep : {1, 3, 4}) {
    auto chain =
        make_chain(GetParam().dynamics, 4, {.slots = GetParam().slots, .keep_every = keep, .normals = queue_noise});
    PathGradient<double> estimator(chain, Distance{});
    expect_near(queue_result(chain, estimator, 5), GetParam().theta, 1e-10);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Toy, Queue,
    testing::Values(
        QueueCase{Dynamics::euler_ode,
                  4,
                  {.692724703768, -.607143187306, -.495014492608, .008888728196, .475676117079, -.290105379686}},
        QueueCase{Dynamics::euler_ode,
                  2,
                  {.714391671885, -.613780263274, -.374916697354, -.030279015752, .323074757795, -.189522939961}},
        QueueCase{Dynamics::euler_ode,
                  1,
                  {.642867210646, -.577848217635, -.371493565596, .010619985252, .377226470156, -.286044657142}},
        QueueCase{Dynamics::euler_sde,
                  4,
                  {.680673048559, -.755305379771, .251495398518, -.475845711837, -.066425925201, .362974639768}},
        QueueCase{Dynamics::euler_sde,
                  2,
                  {.658890911847, -.652451912927, .185461841148, -.386369683304, -.073885863455, .252703133199}},
        QueueCase{Dynamics::euler_sde,
                  1,
                  {.709377467688, -.68755786252, .074164129206, -.260265315388, .056676203267, .136138762221}}),
    [](const auto& c) {
      return std::string(c.param.dynamics == Dynamics::euler_ode ? "ODE" : "SDE") + std::to_string(c.param.slots);
    });

TEST(Queue, WithReconstructedPathsHasTheKnownTheta) {
  for (const auto& [slots, refinements, theta] :
       {std::tuple{4, 0,
                   Vector{.699119335955, -.605756496721, -.56131019318, .091415305806, .58121995498, -.318730532395}},
        {4, 60, Vector{.69860690078, -.606757601352, -.548437383453, .094897150666, .599380484665, -.317760930907}},
        {2, 0, Vector{.714519236215, -.610731360957, -.372201386433, -.037993880652, .353846191113, -.185845906184}},
        {1, 0, Vector{.645543655931, -.576747520677, -.421211623755, .03747915898, .458258252318, -.325067915491}}}) {
    auto chain = make_chain(Dynamics::euler_ode, 4, {.slots = static_cast<std::size_t>(slots)});
    ReconstructedGradient<double> estimator(chain, Distance{}, {}, static_cast<std::size_t>(refinements));
    expect_near(queue_result(chain, estimator, 5), theta, 1e-10);
  }
}

TEST(DoubleQueue, HasTheKnownTheta) {
  auto chain = make_chain(Dynamics::euler_ode, 4, {.slots = 4});
  DenoisingSampler<double> sampler(chain);
  DenoisingBackward<double> backward(chain, Distance{});
  Fresh start;
  QueueState<PathBatch<double>, GradientDescent> warm{0, theta0, {}, GradientDescent{}};
  start_queue(sampler, start, warm, {.slots = 4}, PathBatch<double>{});
  DoubleQueueState<PathBatch<double>, BackwardBatch<double>, GradientDescent> s{
      0, theta0, warm.slots, {}, GradientDescent{{.scale = .05}}};
  std::vector<Vector> thetas;
  double_queue_loop(sampler, backward, start, s, 9, [&](const auto& state) { thetas.push_back(state.theta); });
  EXPECT_EQ(thetas[5], theta0) << "the first gradient takes T + 1 steps";
  EXPECT_NE(thetas[6], theta0);
  expect_near(s.theta, {.769747010622, -.611732098588, -.437958661483, .078548544138, .535855318516, -.404641734117},
              1e-10);
}

}  // namespace
}  // namespace implicit_diffusion
