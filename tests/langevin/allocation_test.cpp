// Once it is under way, a loop allocates nothing: every allocation of this program is counted.
//
// operator new is replaced; aligned_alloc, which the library calls for memory that kernels keep, is wrapped by the
// linker.
#include "implicit_diffusion/langevin.hpp"
#include "problems/hexagon_reward.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace {
std::atomic<long> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  void* p =
      alignment ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment) : std::malloc(bytes);
  if (!p) throw std::bad_alloc();
  return p;
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __real_aligned_alloc(alignment, bytes);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace implicit_diffusion {
namespace {

using Terms = GradientEstimator<float>::Terms;

Terms reward_terms(std::size_t dimension) {
  Terms terms;
  std::vector<double> centre(dimension, 1.0);
  terms.push_back(std::make_unique<RewardTerm<float>>(HardReward(centre, 20, 2.5)));
  return terms;
}

// Allocations between the 20th and the 120th of some 120 steps.
template <class Optimizer>
long count_single(const Potential<float>& potential, std::vector<double> theta, Terms terms, Optimizer optimizer,
                  Order order, Workers* workers = nullptr, std::size_t particles = 1003) {
  const std::size_t d = potential.dimension();
  LangevinEngine<float> engine(potential, std::move(terms),
                               {.step_size = {0.01}, .noise = Noise(3), .workers = workers});
  State<Population<float>, Optimizer> state{0, std::move(theta), Population<float>(particles, d), optimizer};
  StandardNormalStart<float>{Noise(3)}.draw(state.population, 0);
  long before = 0;
  const auto observe = [&](const auto& s) {
    if (s.step == 20) before = allocations;
  };
  EXPECT_EQ(single_loop(engine, engine, state, {.steps = 120, .order = order}, observe).status, Status::completed);
  return allocations - before;
}

TEST(SingleLoop, AllocatesNothing) {
  const std::vector<double> six{1.5, 0, 1.5, 0, 1.5, 0};
  const auto descent = GradientDescent{{0.01}};
  for (const Order order : {Order::paper, Order::authors}) {
    EXPECT_EQ(count_single(problems::hexagon_wells(), six, reward_terms(2), descent, order), 0);
    EXPECT_EQ(count_single(LogisticWells(problems::hexagon(), 1, 0.1), six, reward_terms(2), Adam{{0.01}}, order), 0);
    EXPECT_EQ(count_single(Quadratic({{2, 0.5}, {0.5, 1}}), {0.1, 0.2}, reward_terms(2), descent, order), 0);
  }
  const std::vector<std::vector<double>> wide(40, std::vector<double>(24, 0.5));
  EXPECT_EQ(count_single(SoftmaxWells(wide, 2), std::vector<double>(40), reward_terms(24), descent, Order::paper), 0);
}

TEST(SingleLoop, AllocatesNothingWithReferences) {
  for (const auto form : {CovarianceForm::direct, CovarianceForm::cholesky}) {
    const Mixture mixture(2, 2, {form});
    const std::vector<Gaussian> parts{{{-4, 0}, {.75, -.5, -.5, 1.5}}, {{2, -3}, {.75, .5, .5, 1.25}}};
    const std::vector<double> theta = mixture.parameters_of(std::vector<double>{1.5, 0}, parts);
    Terms terms;
    terms.push_back(std::make_unique<ReferenceTerm<float>>(
        std::make_unique<MixtureReference<float>>(mixture.law(theta), 1000, Noise(4))));
    Potential<float> base = mixture;
    base.prepare(theta);
    terms.push_back(std::make_unique<BaseTerm<float>>(base, 0.1));
    EXPECT_EQ(count_single(mixture, theta, std::move(terms), GradientDescent{{1e-3}}, Order::paper), 0);
  }
}

// A thread has memory of its own from its first block on, which may come late; never one for each of the 100 steps.
TEST(SingleLoop, AllocatesNothingForEachStepOnTwoThreads) {
  Workers workers(2);
  EXPECT_LE(count_single(problems::hexagon_wells(), std::vector<double>(6), reward_terms(2), GradientDescent{{0.01}},
                         Order::paper, &workers, 20'000),
            10);
}

TEST(NestedLoop, AllocatesNothing) {
  LangevinEngine<float> engine(problems::hexagon_wells(), reward_terms(2), {.step_size = {0.01}, .noise = Noise(3)});
  State<Population<float>, Adam> state{0, std::vector<double>(6), Population<float>(1000, 2), Adam{{0.01}}};
  StandardNormalStart<float> start{Noise(3)};
  long before = 0;
  const auto observe = [&](const auto& s) {
    if (s.step == 5) before = allocations;
  };
  (void)nested_loop(engine, engine, start, state, {.steps = 20, .inner_steps = 3}, observe);
  EXPECT_EQ(allocations - before, 0);
}

// The count counts: what a potential allocates in its prepare() is seen.
TEST(AllocationCount, SeesOneForEachStep) {
  struct Wasteful : SoftmaxWells {
    using SoftmaxWells::SoftmaxWells;
    void prepare(std::span<const double> theta) {
      SoftmaxWells::prepare(std::vector<double>(theta.begin(), theta.end()));
    }
  };
  EXPECT_GE(count_single(Wasteful(problems::hexagon(), 2.0), std::vector<double>(6), reward_terms(2),
                         GradientDescent{{0.01}}, Order::paper),
            100);
}

}  // namespace
}  // namespace implicit_diffusion
