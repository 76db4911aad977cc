// The same seed gives the same bits: for any number of threads, and for a sample whatever the size of its population.
#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/langevin/sampler.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "implicit_diffusion/parallel.hpp"
#include "problems/hexagon_reward.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace implicit_diffusion {
namespace {

using problems::hard_reward;
using problems::hexagon_elsewhere;
using problems::hexagon_start;
using problems::hexagon_wells;
using problems::smooth_reward;

// 98 blocks, the last one not full: four threads get a share each.
constexpr std::size_t particles = 25'000;
static_assert(particles / block_size / blocks_per_thread >= 4);

template <class Real>
State<Population<Real>, GradientDescent> start_state(std::size_t size, std::uint64_t seed) {
  State<Population<Real>, GradientDescent> s{0, hexagon_start(), Population<Real>(size, 2), {}};
  StandardNormalStart<Real>{Noise{seed}}.draw(s.population, 0);
  return s;
}

enum class Passes { together, apart };

// Some steps of the single loop with every kind of term; sampler and estimator as one engine or as two objects.
template <class Real>
auto run(Workers* workers, std::uint64_t seed = 81, Passes passes = Passes::together, std::size_t size = particles,
         std::int64_t steps = 20) {
  auto s = start_state<Real>(size, seed);
  Potential<Real> wells = hexagon_wells(), base = hexagon_wells();
  base.prepare(hexagon_elsewhere());
  typename GradientEstimator<Real>::Terms terms;
  terms.push_back(std::make_unique<RewardTerm<Real>>(hard_reward(), 1.3));
  terms.push_back(std::make_unique<ReferenceTerm<Real>>(
      std::make_unique<MixtureReference<Real>>(hexagon_wells().law(hexagon_elsewhere()), particles, Noise{seed}), 0.7));
  terms.push_back(std::make_unique<BaseTerm<Real>>(base, 0.2));
  const LangevinOptions options{.step_size = {0.2}, .noise = Noise{seed}, .workers = workers};
  if (passes == Passes::together) {
    LangevinEngine<Real> engine(wells, std::move(terms), options);
    (void)single_loop(engine, engine, s, {.steps = steps});
  } else {
    GradientEstimator<Real> gradient(wells, std::move(terms), {.workers = workers});
    Langevin<Real> sampler(wells, options);
    (void)single_loop(sampler, gradient, s, {.steps = steps});
  }
  return s;
}

// The joint pass is the two passes: the same bits.
TEST(SameBits, InOnePassAndInTwo) {
  for (const std::size_t size : {2, 17, 1000, 20'000}) {
    const auto one = run<float>(nullptr, 81, Passes::together, size),
               two = run<float>(nullptr, 81, Passes::apart, size);
    EXPECT_EQ(one.theta, two.theta) << size;
    EXPECT_EQ(one.population, two.population) << size;
  }
}

// v3 and v4 give the same bits; the baseline, without fma, nearly the same.
TEST(SameBits, OnEveryLevelWithFma) {
  if (machine_isa() != Isa::v4) GTEST_SKIP() << "this machine has " << to_string(machine_isa()) << " only";
  const auto at = [](Isa level) {
    use_isa(level);
    auto s = run<float>(nullptr, 81, Passes::together, 1001);
    use_isa(machine_isa());
    return s;
  };
  const auto v4 = at(Isa::v4), v3 = at(Isa::v3), baseline = at(Isa::baseline);
  EXPECT_EQ(v3.theta, v4.theta);
  EXPECT_EQ(v3.population, v4.population);
  for (std::size_t j = 0; j < v4.theta.size(); ++j) EXPECT_NEAR(baseline.theta[j], v4.theta[j], 1e-5);
}

// No number of particles is special: groups and blocks that are not full, one alone and 3,907 with 67 in the last.
TEST(SameBits, OfOddPopulations) {
  for (const std::size_t size : {1, 15, 17, 1'000'003})
    for (const Isa level : {Isa::baseline, Isa::v3, Isa::v4}) {
      if (level > machine_isa()) continue;
      use_isa(level);
      Workers workers(3);
      const auto alone = run<float>(nullptr, 85, Passes::together, size, 3),
                 together = run<float>(&workers, 85, Passes::together, size, 3),
                 apart = run<float>(nullptr, 85, Passes::apart, size, 3);
      EXPECT_EQ(together.theta, alone.theta) << size << ", " << to_string(level);
      EXPECT_EQ(together.population, alone.population) << size << ", " << to_string(level);
      EXPECT_EQ(apart.theta, alone.theta) << size << ", " << to_string(level);
      EXPECT_EQ(apart.population, alone.population) << size << ", " << to_string(level);
    }
  use_isa(machine_isa());
}

template <class Real>
void expect_the_same_bits_for_any_threads() {
  const auto alone = run<Real>(nullptr);
  for (const std::size_t threads : {1, 2, 3, 4}) {
    Workers workers(threads);
    const auto together = run<Real>(&workers);
    EXPECT_EQ(together.theta, alone.theta) << threads << " threads";
    EXPECT_EQ(together.population, alone.population) << threads << " threads";
  }
  EXPECT_NE(run<Real>(nullptr, 82).theta, alone.theta) << "the seed does not matter";
}
TEST(SameBits, ForAnyNumberOfThreads) { expect_the_same_bits_for_any_threads<float>(); }
TEST(SameBits, ForAnyNumberOfThreadsInDouble) { expect_the_same_bits_for_any_threads<double>(); }

TEST(SameBits, ForAnyNumberOfThreadsWhenUnrolling) {
  const auto unroll = [](Workers* workers) {
    auto s = start_state<float>(particles, 83);
    Unrolled<float> unrolled(hexagon_wells(), smooth_reward(),
                             {.step_size = {0.2}, .noise = Noise{83}, .workers = workers});
    (void)single_loop(unrolled, unrolled, s, {.steps = 10, .order = Order::authors});
    return s;
  };
  Workers workers(3);
  const auto alone = unroll(nullptr), together = unroll(&workers);
  EXPECT_EQ(together.theta, alone.theta);
  EXPECT_EQ(together.population, alone.population);
}

// At a fixed theta a sample's path is its own: it does not depend on how many others there are.
TEST(SameBits, OfASampleForAnySizeOfThePopulation) {
  const auto sample = [](std::size_t size) {
    auto s = start_state<float>(size, 84);
    Langevin<float> sampler(hexagon_wells(), {.step_size = {0.2}, .noise = Noise{84}});
    for (std::int64_t k = 0; k < 20; ++k) sampler.advance(s.population, hexagon_start(), {.round = k});
    return s.population;
  };
  const Population<float> all = sample(particles);
  for (const std::size_t few : {1, 17, 1000}) {
    const Population<float> x = sample(few);
    for (std::size_t j = 0; j < 2; ++j)
      for (std::size_t i = 0; i < few; ++i) ASSERT_EQ(x(i, j), all(i, j)) << few << ", sample " << i;
  }
}

}  // namespace
}  // namespace implicit_diffusion
