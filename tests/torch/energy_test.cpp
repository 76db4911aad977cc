// Networks as energies: every estimator and loop of Langevin dynamics, against definitions written out.
#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/langevin/optimise.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "torch/networks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

using torch_tests::host;
using torch_tests::near_one;
using torch_tests::quadratic_energy;
using torch_tests::relative;
using torch_tests::small_energy;
using TensorAdam = BasicAdam<TensorParameters>;

const Noise energy_noise(7);
constexpr std::int64_t d = 3;
constexpr std::size_t n = 11;  // a whole shard, and some of another
constexpr double g = 0.1;

NetworkEnergy quadratic() { return NetworkEnergy(quadratic_energy(d), default_shard, at::kDouble); }
TensorParameters theta_of(double v) { return TensorParameters(at::full({d}, v, at::kDouble)); }
TensorSamples samples_of(std::uint64_t seed, std::size_t size = n) {
  TensorSamples x(size, {d}, at::kDouble);
  StandardNormalStart<NetworkEnergy>{Noise(seed)}.draw(x, 0);
  return x;
}

// -1.3 E R + 0.4 KL(pi || base) + 0.7 KL(reference || pi)
GradientEstimator<NetworkEnergy>::Terms all_terms() {
  GradientEstimator<NetworkEnergy>::Terms terms;
  terms.push_back(std::make_unique<RewardTerm<NetworkEnergy>>(near_one, 1.3));
  NetworkEnergy base = quadratic();
  base.prepare(theta_of(0.5));
  terms.push_back(std::make_unique<BaseTerm<NetworkEnergy>>(base, 0.4));
  terms.push_back(std::make_unique<ReferenceTerm<NetworkEnergy>>(
      std::make_unique<FixedReference<NetworkEnergy>>(samples_of(11, 5)), 0.7));
  return terms;
}
// Its gradient from the definition: a covariance with grad_theta V = theta - x, and two means.
at::Tensor gradient_by_hand(const at::Tensor& x, const at::Tensor& theta) {
  const at::Tensor v = (x - theta).square().sum(1) / 2, v_base = (x - 0.5).square().sum(1) / 2;
  const at::Tensor f = 1.3 * near_one(x) + 0.4 * (v - v_base);
  const at::Tensor w = (f - f.mean()) / (static_cast<double>(n) - 1) - 0.7 / static_cast<double>(n);
  return at::mv((theta - x).t(), w) + 0.7 * (theta - samples_of(11, 5).x()).mean(0);
}
at::Tensor step_by_hand(const at::Tensor& x, const at::Tensor& theta, StepKey key) {
  const at::Tensor z = at::empty_like(x);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j)
      z.data_ptr<double>()[i * d + j] = static_cast<double>(energy_noise.normal(Stream::sampling, key, d, i, j));
  return x - g * (x - theta) + std::sqrt(2 * g) * z;
}

// Sums of some tens of numbers near 1, in double precision.
constexpr double tolerance = 1e-13;

TEST(NetworkEnergy, EstimatesTheGradientOfEveryTerm) {
  const TensorSamples x = samples_of(3);
  const TensorParameters theta = theta_of(0.2);
  TensorParameters gradient = zeros_like(theta);
  GradientEstimator<NetworkEnergy>(quadratic(), all_terms()).estimate(x, theta, 0, gradient);
  const at::Tensor expected = gradient_by_hand(x.x(), theta.read());
  EXPECT_LT(relative(gradient.read(), expected), tolerance);
  auto fewer = all_terms();
  fewer.pop_back();
  GradientEstimator<NetworkEnergy>(quadratic(), std::move(fewer)).estimate(x, theta, 0, gradient);
  EXPECT_GT(relative(gradient.read(), expected), 1e-2);
}

LangevinEngine<NetworkEnergy> engine_of(Workers* workers = nullptr) {
  return {quadratic(), all_terms(), {.step_size = {g}, .noise = energy_noise, .workers = workers}};
}

TEST(NetworkEnergy, RunsTheSingleLoop) {
  for (const Order order : {Order::paper, Order::authors}) {
    auto engine = engine_of();
    State<TensorSamples, GradientDescent, TensorParameters> s{0, theta_of(0.2), samples_of(3), {{0.05}}};
    ASSERT_EQ(single_loop(engine, engine, s, {.steps = 4, .order = order}).status, Status::completed);
    at::Tensor x = samples_of(3).x(), theta = theta_of(0.2).read();
    for (std::int64_t k = 0; k < 4; ++k) {
      const at::Tensor next = step_by_hand(x, theta, {.round = k});
      theta = theta - 0.05 * gradient_by_hand(order == Order::paper ? x : next, theta);
      x = next;
    }
    EXPECT_LT(relative(s.population.x(), x), tolerance);
    EXPECT_LT(relative(s.theta.read(), theta), tolerance);
  }
}

TEST(NetworkEnergy, UnrollsTheLastStep) {
  Unrolled<NetworkEnergy> unrolled(quadratic(), TensorReward(near_one), {.step_size = {g}, .noise = energy_noise}, 2.0);
  TensorSamples x = samples_of(3);
  const TensorParameters theta = theta_of(0.2);
  TensorParameters gradient = zeros_like(theta);
  unrolled.advance(x, theta, {});
  unrolled.estimate(x, theta, 0, gradient);
  // d/dx grad_theta V = -1, grad R = 1 - x.
  EXPECT_LT(relative(gradient.read(), -2.0 * g * (1 - x.x()).mean(0)), tolerance);
}

// The weighted gradient of a network's energy against central differences of the weighted energies.
TEST(NetworkEnergy, TheGradientIsThatOfFiniteDifferences) {
  NetworkEnergy energy(small_energy(), 4, at::kDouble);
  TensorSamples x(6, {2}, at::kDouble, 4);
  TensorTiles::fill_normals(x, energy_noise, Stream::initial, {});
  const std::vector<double> w{0.5, -1, 0.25, 2, -0.75, 1};
  const TensorParameters theta = initial_parameters(energy.network().layout, Noise(1), at::kDouble);
  const auto value = [&](const TensorParameters& at_theta) {
    energy.prepare(at_theta);
    TensorNumbers v = TensorTiles::numbers(x);
    double sum = 0;
    for (std::size_t k = 0; k < 2; ++k) energy.add_values(TensorTiles::tile(x, k), 1, TensorTiles::numbers_of(v, k));
    for (std::size_t i = 0; i < 6; ++i) sum += w[i] * v.values[i];
    return sum;
  };
  TensorParameters gradient = zeros_like(theta), fused = gradient;
  energy.prepare(theta);
  TensorSamples moved = x, together = x;
  bool bad = false;
  for (std::size_t k = 0; k < 2; ++k) {
    const LangevinStep step{energy_noise, {}, g};
    energy.add(TensorTiles::tile(x, k), w.data() + 4 * k, gradient);
    energy.step(TensorTiles::tile(moved, k), step, bad);
    energy.step_and_add(TensorTiles::tile(together, k), step, bad, w.data() + 4 * k, fused);
  }
  EXPECT_EQ(gradient, fused);
  EXPECT_EQ(moved, together);
  EXPECT_FALSE(bad);
  const double h = 1e-5;  // leaves h^2 and 1e-16 / h
  for (std::int64_t j = 0; j < gradient.read().numel(); ++j) {
    TensorParameters up = theta, down = theta;
    up.edit()[j] += h;
    down.edit()[j] -= h;
    EXPECT_NEAR(gradient.read()[j].item<double>(), (value(up) - value(down)) / (2 * h), 1e-9);
  }
  EXPECT_GT(gradient.read().abs().min().item<double>(), 1e-5) << "too small to see a wrong one";
}

TEST(NetworkEnergy, NoResultDependsOnThreads) {
  const auto run = [](Workers* workers) {
    const NetworkEnergy energy(small_energy());
    TensorSamples x = energy.samples(41);
    StandardNormalStart<NetworkEnergy>{energy_noise}.draw(x, 0);
    GradientEstimator<NetworkEnergy>::Terms terms;
    terms.push_back(std::make_unique<RewardTerm<NetworkEnergy>>(near_one));
    LangevinEngine<NetworkEnergy> engine(energy, std::move(terms),
                                         {.step_size = {g}, .noise = energy_noise, .workers = workers});
    State<TensorSamples, TensorAdam, TensorParameters> s{0, initial_parameters(energy.network().layout, Noise(1)), x,
                                                         TensorAdam(0.01)};
    EXPECT_EQ(single_loop(engine, engine, s, {.steps = 5}).status, Status::completed);
    return std::pair{s.theta, s.population};
  };
  const auto expected = run(nullptr);
  for (const std::size_t threads : {1, 2, 3}) {
    Workers workers(threads);
    EXPECT_EQ(run(&workers), expected) << threads;
  }
}

TEST(NetworkEnergy, ResumesToTheSameBits) {
  using S = State<TensorSamples, TensorAdam, TensorParameters>;
  const auto start = [] { return S{0, theta_of(0.2), samples_of(3), TensorAdam(0.01)}; };
  S whole = start(), stopped = start(), resumed = start();
  auto engine = engine_of();
  (void)single_loop(engine, engine, whole, {.steps = 7});
  (void)single_loop(engine, engine, stopped, {.steps = 3});
  io::CheckpointWriter writer;
  save(writer, stopped);
  const io::CheckpointReader reader(writer.to_bytes(), "checkpoint");
  restore(reader, resumed);
  EXPECT_EQ(resumed.step, 3);
  (void)single_loop(engine, engine, resumed, {.steps = 7});
  EXPECT_EQ(whole.theta, resumed.theta);
  EXPECT_EQ(whole.population, resumed.population);
}

// The front door: the best theta of V = |x - theta|^2 / 2 for data is its mean. Langevin samples of n particles leave
// theta an error of sqrt(1 / n) / sqrt(relaxation times) at most: 5 standard errors of one population bound it.
TEST(NetworkEnergy, LearnsTheMeanOfData) {
  const at::Tensor data = at::tensor({1.0, 2.0, -1.0, 3.0, 0.0, 1.0}, at::kDouble).view({2, 3});
  const auto problem = LangevinProblem<NetworkEnergy>(quadratic()).fit(TensorSamples(data));
  const auto result = optimise(problem, theta_of(0), GradientDescent{{0.1}},
                               {.particles = 64, .step_size = 0.1, .steps = 200, .seed = 1, .threads = 2});
  ASSERT_TRUE(result.completed());
  for (std::int64_t j = 0; j < d; ++j)
    EXPECT_NEAR(result.theta.read()[j].item<double>(), data.select(1, j).mean().item<double>(), 5 / 8.0);
  EXPECT_GT((data.mean(0)).abs().max().item<double>(), 5 / 8.0) << "the start would pass";
}

// A diverging chain is an outcome, not an exception.
TEST(NetworkEnergy, SaysWhereItDiverges) {
  const auto problem = LangevinProblem<NetworkEnergy>(quadratic()).maximise(TensorReward(near_one));
  const auto result =
      optimise(problem, theta_of(0), GradientDescent{{0.1}}, {.particles = 9, .step_size = 1e200, .steps = 9});
  EXPECT_EQ(result.outcome.status, Status::diverged);
  EXPECT_EQ(result.outcome.divergence->where, Divergence::Where::sample);
}

}  // namespace
}  // namespace implicit_diffusion
