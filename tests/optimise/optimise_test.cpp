// The front door: it gives the bits of the parts that it is made of, finds known answers, stops when it is told to, and
// refuses what does not fit.
#include "implicit_diffusion/optimise.hpp"
#include "implicit_diffusion/denoising.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin.hpp"
#include "problems/hexagon.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace implicit_diffusion {
namespace {

using Matrix = std::vector<std::vector<double>>;

struct Shifted {
  static constexpr bool any_number = true;
  double centre = 0;

  std::size_t dimension() const { return 1; }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> theta) { centre = theta[0]; }

  template <class Real>
  Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    const Real u = x[0] - Real(Scalar<Real>(centre));
    if (grad_x) grad_x[0] = u;
    if (grad_theta) grad_theta[0] = -u;
    return u * u * Real(Scalar<Real>(0.5));
  }
};
float near_three(const float* x) { return -(x[0] - 3) * (x[0] - 3); }

// E[-(x - 3)^2] under N(theta, v) is -(theta - 3)^2 - v. The estimate of its gradient has a standard error of about
// sqrt(2 / n) a step; gradient descent averages some 1 / eta steps: 0.05 is more than ten standard deviations of theta.
TEST(OptimiseLangevin, FindsTheBestTheta) {
  const auto result = optimise(LangevinProblem(Shifted{}, near_three), {0.0}, GradientDescent{0.02},
                               {.particles = 1000, .step_size = 0.1, .steps = 1000, .seed = 1});
  EXPECT_TRUE(result.completed());
  EXPECT_EQ(result.steps, 1000);
  EXPECT_NEAR(result.theta[0], 3, 0.05);
  ASSERT_TRUE(result.reward && result.objective);
  EXPECT_EQ(*result.objective, -*result.reward);
  EXPECT_NEAR(*result.reward, -1 / 0.95, 0.3);  // -v of the chain; five standard errors of 1000 samples: 0.24
}

TEST(OptimiseLangevin, IsTheSingleLoopBitForBit) {
  const auto hexagon = SoftmaxWells(problems::hexagon(), 2.0);
  const BumpReward reward({4, 3.8}, 2);
  const auto result = optimise(LangevinProblem(hexagon, reward, 1.5), std::vector<double>(6), Adam(0.05),
                               {.particles = 300, .step_size = 0.2, .steps = 50, .seed = 7});

  GradientEstimator<float>::Terms terms;
  terms.push_back(std::make_unique<RewardTerm<float>>(reward, 1.5));
  LangevinEngine<float> engine(hexagon, std::move(terms), {.step_size = 0.2, .noise = Noise(7)});
  State<Population<float>, Adam> s{0, std::vector<double>(6), {300, 2}, Adam(0.05)};
  StandardNormalStart<float>{Noise(7)}.draw(s.population, 0);
  ASSERT_EQ(single_loop(engine, engine, s, {.steps = 50}).status, Status::completed);
  EXPECT_EQ(result.theta, s.theta);
  EXPECT_EQ(result.samples, s.population);
}

TEST(OptimiseLangevin, DoesNotDependOnThreads) {
  const LangevinProblem problem(SoftmaxWells(problems::hexagon(), 2.0), BumpReward({4, 3.8}, 2));
  const auto run = [&](std::size_t threads) {
    return optimise(problem, std::vector<double>(6), GradientDescent{0.1},
                    {.particles = 20'000, .step_size = 0.2, .steps = 5, .threads = threads});
  };
  const auto one = run(1), three = run(3);
  EXPECT_EQ(one.theta, three.theta);
  EXPECT_EQ(one.samples, three.samples);
}

// All terms: a sum of rewards, reference samples and a law to stay close to is the engine with those terms.
TEST(OptimiseLangevin, TakesEveryTerm) {
  const auto wells = SoftmaxWells(problems::hexagon(), 2.0);
  const BumpReward reward({4, 3.8}, 2);
  Population<float> data(40, 2);
  StandardNormalStart<float>{Noise(3)}.draw(data, 0);
  const std::vector<double> base(6, 0.5), start{0.1, -0.2, 0.3, 0, 0.2, -0.1};
  const auto result = optimise(LangevinProblem(wells, reward).fit(data, 0.7).stay_close(base, 0.4).fit_marginal(0.3),
                               start, GradientDescent{0.1}, {.particles = 300, .step_size = 0.2, .steps = 20});
  EXPECT_FALSE(result.objective) << "no mean over samples tells a KL";

  GradientEstimator<float>::Terms terms;
  terms.push_back(std::make_unique<RewardTerm<float>>(reward));
  terms.push_back(std::make_unique<ReferenceTerm<float>>(std::make_unique<FixedReference<float>>(data), 0.7));
  Potential<float> at_base = wells;
  at_base.prepare(base);
  terms.push_back(std::make_unique<BaseTerm<float>>(at_base, 0.4));
  terms.push_back(std::make_unique<MarginalLikelihoodTerm<float>>(0.3));
  LangevinEngine<float> engine(wells, std::move(terms), {.step_size = 0.2});
  State<Population<float>, GradientDescent> s{0, start, {300, 2}, {0.1}};
  StandardNormalStart<float>{}.draw(s.population, 0);
  ASSERT_EQ(single_loop(engine, engine, s, {.steps = 20}).status, Status::completed);
  EXPECT_EQ(result.theta, s.theta);
}

TEST(OptimiseLangevin, ShowsEveryStepAndStopsWhenTold) {
  std::vector<std::int64_t> seen;
  const auto watch = [&](const auto& glimpse) {
    seen.push_back(glimpse.step);
    EXPECT_EQ(glimpse.samples.size(), 100U);
    EXPECT_EQ(glimpse.theta.size(), 1U);
    return glimpse.step < 3;
  };
  const auto stopped = optimise(LangevinProblem(Shifted{}, near_three), {0.0}, GradientDescent{0.02},
                                {.particles = 100, .step_size = 0.1, .steps = 10}, watch);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(stopped.outcome.status, Status::interrupted);
  EXPECT_EQ(stopped.steps, 3);
  EXPECT_NE(describe(stopped).find("stopped after 3 steps"), std::string::npos);

  // The same three steps as a run of three.
  const auto three = optimise(LangevinProblem(Shifted{}, near_three), {0.0}, GradientDescent{0.02},
                              {.particles = 100, .step_size = 0.1, .steps = 3});
  EXPECT_EQ(stopped.theta, three.theta);
  EXPECT_TRUE(three.completed());

  std::stop_source source;
  source.request_stop();
  const auto none = optimise(LangevinProblem(Shifted{}, near_three), {0.5}, GradientDescent{0.02},
                             {.particles = 100, .step_size = 0.1, .steps = 10, .stop = source.get_token()});
  EXPECT_EQ(none.steps, 0);
  EXPECT_EQ(none.theta[0], 0.5);
}

TEST(OptimiseLangevin, SaysWhatDivergedAndWhatMayHelp) {
  const auto result = optimise(LangevinProblem(Quadratic(Matrix{{4.0}}), near_three), {0.0}, GradientDescent{0.01},
                               {.particles = 50, .step_size = 2.0, .steps = 5000});
  EXPECT_EQ(result.outcome.status, Status::diverged);
  EXPECT_FALSE(result.completed());
  const std::string text = describe(result);
  EXPECT_NE(text.find("diverged at step"), std::string::npos) << text;
  EXPECT_NE(text.find("stable below 0.5"), std::string::npos) << text;
  EXPECT_TRUE(std::isfinite(result.theta[0]));
}

TEST(OptimiseLangevin, StartsFromGivenSamples) {
  Population<float> start(10, 1);
  for (std::size_t i = 0; i < 10; ++i) start(i, 0) = 2;
  const auto result = optimise(LangevinProblem(Shifted{}, near_three), {0.0}, GradientDescent{0.02},
                               {.step_size = 0.1, .steps = 0, .start = start});
  EXPECT_EQ(result.samples, start);
  EXPECT_EQ(*result.reward, -1);
}

// A usage error, before any memory is touched.
TEST(OptimiseLangevin, RefusesWhatDoesNotFit) {
  const LangevinProblem problem(SoftmaxWells(problems::hexagon(), 2.0), BumpReward({4, 3.8}, 2));
  const std::vector<double> theta(6);
  const auto refuses = [](const auto& run, const std::string& word) {
    try {
      (void)run();
      ADD_FAILURE() << "accepted: " << word;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  refuses([&] { return optimise(problem, {0.0, 0.0}, Adam(0.1)); }, "theta");
  refuses([&] { return optimise(problem, theta, Adam(0.1), {.particles = 0}); }, "sample");
  refuses([&] { return optimise(problem, theta, Adam(0.1), {.step_size = 0.0}); }, "step_size");
  refuses([&] { return optimise(problem, theta, Adam(0.1), {.step_size = std::nan("")}); }, "step_size");
  refuses([&] { return optimise(problem, theta, Adam(0.1), {.steps = -1}); }, "steps");
  refuses([&] { return optimise(problem, theta, Adam(0.1), {.start = Population<float>(10, 3)}); }, "sample");
  refuses([&] { return optimise(problem, theta, Adam(0.1), {.start = Population<float>()}); }, "sample");
  refuses([&] { return optimise(problem, {0.0}, Adam(0.1), {.steps = 0}); }, "theta");
  refuses([&] { return optimise(problem, std::vector<double>(6, std::nan("")), Adam(0.1)); }, "theta");
  refuses([&] { return optimise(problem, theta, Adam(0.1), {.particles = 1}); }, "particle");
  refuses([&] { return problem.stay_close({}); }, "theta");
  refuses([&] { return problem.fit(Population<float>(10, 3)); }, "sample");
  constexpr std::size_t far_too_many = std::numeric_limits<std::size_t>::max();
  for (const std::size_t n : {far_too_many, far_too_many / 2 + 2, std::size_t{1} << 34})
    refuses([&] { return optimise(problem, theta, Adam(0.1), {.particles = n}); }, "particles: ");
  refuses([&] { return optimise(problem, theta, Adam(0.1), {.threads = far_too_many}); }, "threads: ");
  refuses([&] { return Population<float>(far_too_many, 2); }, "samples: ");
  refuses([&] { return Population<double>(far_too_many / 2 + 1, 2); }, "samples: ");
  refuses([&] { return problem.maximise(BumpReward({4}, 2)); }, "reward: it is of dimension 1, the samples");
  refuses([&] { return optimise(LangevinProblem(DoubleWell(1, 1, 1), near_three), {-1.0}, Adam(0.1)); }, "theta");
}

// A mean over one particle has no covariance, and needs none.
TEST(OptimiseLangevin, FitsWithOneParticle) {
  const auto result = optimise(LangevinProblem(Shifted{}).fit_marginal(), {0.5}, GradientDescent{0.1},
                               {.particles = 1, .step_size = 0.1, .steps = 10});
  EXPECT_TRUE(result.completed());
  EXPECT_NE(result.theta[0], 0.5);
}

TEST(OptimiseLangevin, TakesPartsOfDoublePrecision) {
  const Potential<double> potential = Shifted{};
  const auto result = optimise(LangevinProblem(potential, QuadraticReward({3.0})), {0.0}, GradientDescent{0.02},
                               {.particles = 500, .step_size = 0.1, .steps = 500});
  EXPECT_NEAR(result.theta[0], 3, 0.1);
}

struct Slow : Shifted {
  static constexpr bool any_number = false;
};
TEST(OptimiseLangevin, NotesWhatMissesTheFastPath) {
  const auto notes = [](const auto& problem) {
    std::string all;
    for (const std::string& note : optimise(problem, {0.0}, Adam(0.1), {.particles = 10, .steps = 1}).notes)
      all += note;
    return all;
  };
  EXPECT_NE(notes(LangevinProblem(Slow{}, BumpReward({3}, 1))).find("potential"), std::string::npos);
  EXPECT_NE(notes(LangevinProblem(Quadratic(Matrix{{1.0}}), near_three)).find("reward"), std::string::npos);
  EXPECT_EQ(notes(LangevinProblem(Quadratic(Matrix{{1.0}}), BumpReward({3}, 1))), "");
}

// --- Denoising -----------------------------------------------------------------------------------------------------

using Model = MixtureScore<Spread::isotropic>;
const GaussianMixture& two_gaussians() {
  static const GaussianMixture law{{0.6, 0.4}, {{{-1, 0}, {0.3, 0, 0, 0.3}}, {{1.5, 1}, {0.4, 0, 0, 0.4}}}};
  return law;
}

// With one slot it is the nested loop, with more the queue, bit for bit.
TEST(OptimiseDenoising, IsItsLoopsBitForBit) {
  const Model model(2, 2);
  const std::vector<double> start = model.parameters_of(two_gaussians());
  const LinearReward reward{{1, 0}};
  for (const std::size_t slots : {1, 4}) {
    const auto result = optimise(DenoisingProblem(model, reward, 0.8).stay_close(start), start, Adam(0.01),
                                 {.batch = 100, .grid = uniform_grid(3, 16), .slots = slots, .steps = 6, .seed = 5});
    ASSERT_TRUE(result.completed());

    ReverseChain<float> chain(model, uniform_grid(3, 16), {.slots = slots, .normals = normals_of<float>(Noise(5))},
                              std::pair{ScoreModel<float>(model), start});
    DenoisingEngine<float> engine(chain, reward, {.lambda = 0.8, .beta = 1});
    DenoisingStart<float> fresh{Noise(5)};
    PathBatch<float> batch;
    batch.points = Population<float>(100, 2);
    if (slots == 1) {
      State<PathBatch<float>, Adam> s{0, start, batch, Adam(0.01)};
      (void)nested_loop(engine, engine, fresh, s, {.steps = 6, .inner_steps = 1, .warm_start = false});
      EXPECT_EQ(result.theta, s.theta);
      EXPECT_EQ(result.samples, s.population.points);
      EXPECT_EQ(*result.objective, objective_of(s.population, Reward<float>(reward), {.lambda = 0.8, .beta = 1}).value);
    } else {
      QueueState<PathBatch<float>, Adam> s{0, start, {}, Adam(0.01)};
      const QueueOptions options{.steps = 6, .slots = 4};
      start_queue(engine, fresh, s, options, batch);
      (void)queue_loop(engine, engine, fresh, s, options);
      EXPECT_EQ(result.theta, s.theta);
      EXPECT_EQ(result.samples, s.slots.back().points);
    }
    EXPECT_EQ(*result.objective, -0.8 * *result.reward + *result.path_kl);
  }
}

TEST(OptimiseDenoising, StopsAndRefuses) {
  const Model model(2, 2);
  const std::vector<double> start = model.parameters_of(two_gaussians());
  const DenoisingProblem problem(model, LinearReward{{1, 0}});
  const DenoisingRun few{.batch = 20, .grid = uniform_grid(3, 8), .steps = 10};
  const auto stopped = optimise(problem, start, Adam(0.01), few, [](const auto& seen) { return seen.step < 2; });
  EXPECT_EQ(stopped.steps, 2);
  EXPECT_FALSE(stopped.path_kl) << "there is no frozen model";
  EXPECT_THROW((void)optimise(problem, {0.0}, Adam(0.01), few), Error);
  EXPECT_THROW((void)optimise(problem, start, Adam(0.01), {.batch = 0, .steps = 1}), Error);
  EXPECT_THROW((void)optimise(problem, start, Adam(0.01), {.grid = uniform_grid(3, 8), .slots = 3}), Error);
  EXPECT_THROW((void)optimise(problem, {0.0}, Adam(0.01), {.steps = 0}), Error);
  for (const TimeGrid& grid : {TimeGrid{}, TimeGrid{{0, 1, 2}}, TimeGrid{{0}}, TimeGrid{{std::nan(""), 1, 0}}})
    EXPECT_THROW((void)optimise(problem, start, Adam(0.01), {.batch = 20, .grid = grid, .steps = 1}), Error);
  const ScoreModel<float> held = model;
  EXPECT_EQ(optimise(DenoisingProblem(held, LinearReward{{1, 0}}), start, Adam(0.01), few).theta,
            optimise(problem, start, Adam(0.01), few).theta);
  constexpr std::size_t far_too_many = std::numeric_limits<std::size_t>::max();
  const auto where = [&](const DenoisingRun& run) -> std::string {
    try {
      (void)optimise(problem, start, Adam(0.01), run);
    } catch (const Error& e) {
      return e.where();
    }
    return "accepted";
  };
  EXPECT_EQ(where({.batch = far_too_many}), "batch");
  EXPECT_EQ(where({.slots = far_too_many}), "slots");
  EXPECT_EQ(where({.threads = far_too_many}), "threads");
  EXPECT_THROW(DenoisingProblem(model, LinearReward{{1, 0, 0}}), Error);
  // A path of which nothing is kept but its beginning.
  DenoisingRun thin{.batch = 20, .grid = uniform_grid(3, 8), .slots = 2, .keep_every = 8, .steps = 3};
  const auto kept = optimise(problem, start, Adam(0.01), thin).theta;
  thin.keep_every = far_too_many;
  EXPECT_EQ(optimise(problem, start, Adam(0.01), thin).theta, kept);
  const DenoisingProblem rough(model, [](const float* x) { return x[0]; });
  EXPECT_THROW((void)optimise(rough, start, Adam(0.01), few), Error);
}

TEST(Describe, ShowsTheFirstParametersOfMany) {
  Matrix identity(9, std::vector<double>(9));
  for (std::size_t j = 0; j < 9; ++j) identity[j][j] = 1;
  const auto result = optimise(LangevinProblem(Quadratic(identity), BumpReward(std::vector<double>(9), 1)),
                               std::vector<double>(9, 0.25), Hold{}, {.particles = 10, .steps = 2});
  EXPECT_NE(describe(result).find("0.25, ... 9 in all"), std::string::npos) << describe(result);
}

}  // namespace
}  // namespace implicit_diffusion
