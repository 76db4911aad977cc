// What the loops do to their models, counted by the models themselves, call by call and sample by sample, in double
// precision.
#include "implicit_diffusion/denoising/model_calls.hpp"

#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "implicit_diffusion/denoising/reconstruction.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace implicit_diffusion {
namespace {

using Vector = std::vector<double>;

// Every point that a kernel looks at is asked for its score once, and for a product or not.
struct Calls {
  std::uint64_t points = 0, scores = 0, products = 0;
};

template <class M>
struct Counting : M {
  std::shared_ptr<Calls> calls;
  Counting(const M& m, std::shared_ptr<Calls> c) : M(m), calls(std::move(c)) {}

  struct NoiseLevel {
    decltype(std::declval<const M&>().level(1.0)) inner;
    std::shared_ptr<Calls> calls;

    template <class N, std::size_t D>
    struct Point {
      decltype(kernel::point_of<N, D>(inner, std::declval<const N*>())) inner_point;
      Calls* calls;
      void score(N* s) const {
        ++calls->scores;
        inner_point.score(s);
      }
      void pull_back(const N* s, const N* c, N* back, N* sums) const {
        ++calls->products;
        inner_point.pull_back(s, c, back, sums);
      }
    };
    template <class N, std::size_t D>
    Point<N, D> at(const N* y) const {
      ++calls->points;
      return {kernel::point_of<N, D>(inner, y), calls.get()};
    }
    std::size_t sums() const { return inner.sums(); }
    void add_gradient(const double* sums, double* gradient) const { inner.add_gradient(sums, gradient); }
  };
  NoiseLevel level(double tau) const { return {M::level(tau), calls}; }
};

struct Linear {
  static constexpr bool any_number = true;
  template <class N>
  N operator()(const N* y) const {
    return y[0] + 2 * y[1];
  }
};

constexpr std::size_t batch = 293;  // two blocks, the second with part of a group
constexpr std::uint64_t T = 12;
const MixtureScore<Spread::isotropic> two_components(2, 2);
const Vector theta{.1, -.1, -1, 0, 1, .5, -.3, -.2}, base{0, 0, -1, 0, 1, .5, -.3, -.2};

// A chain whose models count.
struct Counted {
  std::shared_ptr<Calls> own = std::make_shared<Calls>(), frozen = std::make_shared<Calls>();
  ReverseChain<double> chain;
  DenoisingSampler<double> sampler{chain};
  DenoisingStart<double> start{Noise(3)};
  PathBatch<double> empty;

  Counted(Dynamics dynamics, std::size_t slots, std::size_t keep, bool kl)
      : chain(
            Counting(two_components, own), uniform_grid(2, T),
            {.dynamics = dynamics, .slots = slots, .keep_every = keep, .normals = normals_of<double>(Noise(7))},
            kl ? std::optional(std::pair{ScoreModel<double>(Counting(two_components, frozen)), base}) : std::nullopt) {
    empty.points = Population<double>(batch, 2);
  }

  // A product takes the score at its point along: what is left are evaluations.
  DenoisingCost seen() const {
    for (const auto& c : {own, frozen}) EXPECT_EQ(c->scores, c->points);
    return {own->points - own->products, own->products, frozen->points - frozen->products, frozen->products};
  }
};
DenoisingCost of_samples(const DenoisingCost& c) {
  return {batch * c.evaluations, batch * c.products, batch * c.frozen_evaluations, batch * c.frozen_products};
}

struct Case {
  const char* name;
  Dynamics dynamics;
  std::size_t slots, keep;
  bool kl, warm;
  DenoisingCost step;  // of an outer step
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
class Cost : public testing::TestWithParam<Case> {};

TEST_P(Cost, OfAStepIsWhatTheModelsSee) {
  const Case& c = GetParam();
  Counted counted(c.dynamics, c.slots, c.keep, c.kl);
  PathGradient<double> gradient(counted.chain, Linear{}, {.lambda = 1, .beta = c.kl ? .5 : 0});
  QueueState<PathBatch<double>, GradientDescent> s{0, theta, {}, GradientDescent{{.01}}};
  const std::int64_t slots = static_cast<std::int64_t>(c.slots), steps = slots + 4;
  const QueueOptions options{.steps = steps, .slots = slots, .warm_start = c.warm};
  start_queue(counted.sampler, counted.start, s, options, counted.empty);
  // Slot m has made m of M parts of its way.
  const std::uint64_t warm = c.warm ? T * (c.slots + 1) / 2 : 0;
  EXPECT_EQ(counted.seen(), of_samples({warm, 0, c.kl ? warm : 0, 0}));

  DenoisingCost before;
  (void)queue_loop(counted.sampler, gradient, counted.start, s, options, [&](const auto& now) {
    const DenoisingCost seen = counted.seen();
    EXPECT_EQ(of_samples(counted.sampler.cost() + gradient.cost()), seen) << "what is reported is what was done";
    if (now.step > 0 && (c.warm || now.step > slots)) {
      EXPECT_EQ(seen - before, of_samples(c.step)) << now.step;
    }
    // A queue that fills has k slots that move at its k-th step, and no gradient.
    if (now.step > 0 && !c.warm && now.step <= slots) {
      const std::uint64_t moved = static_cast<std::uint64_t>(now.step) * T / c.slots;
      EXPECT_EQ(seen - before, of_samples({moved, 0, c.kl ? moved : 0, 0})) << now.step;
    }
    before = seen;
  });
  EXPECT_EQ(s.step, steps);
}

// T evaluations for sampling and T products for the gradient, with a KL one of each of the frozen model at every point,
// and nothing more, whatever the slots. Of a path that was thinned, states between those that were kept are made again:
// 12 - 3 with every fifth kept.
INSTANTIATE_TEST_SUITE_P(
    Denoising, Cost,
    testing::Values(Case{"Nested", Dynamics::euler_sde, 1, 1, false, true, {T, T, 0, 0}},
                    Case{"Queue", Dynamics::euler_sde, 4, 1, false, true, {T, T, 0, 0}},
                    Case{"Single", Dynamics::euler_sde, 12, 1, false, true, {T, T, 0, 0}},
                    Case{"NestedWithKL", Dynamics::euler_sde, 1, 1, true, true, {T, T, T, T}},
                    Case{"QueueWithKL", Dynamics::euler_sde, 4, 1, true, true, {T, T, T, T}},
                    Case{"SingleWithKL", Dynamics::euler_sde, 12, 1, true, true, {T, T, T, T}},
                    Case{"ColdWithKL", Dynamics::euler_sde, 4, 1, true, false, {T, T, T, T}},
                    Case{"ODEWithKL", Dynamics::euler_ode, 4, 1, true, true, {T, T, T, T}},
                    Case{"DDIM", Dynamics::ddim, 4, 1, false, true, {T, T, 0, 0}},
                    Case{"ReplayedWithKL", Dynamics::euler_sde, 4, 5, true, true, {T + 9, T, T, T}},
                    Case{"NothingKept", Dynamics::euler_sde, 4, 12, false, true, {T + 11, T, 0, 0}}),
    [](const auto& c) { return c.param.name; });

// Every batch on its way back makes one evaluation, to find its place, and one product, in each outer step.
TEST(DoubleQueueCost, OfAStepIsWhatTheModelsSee) {
  Counted counted(Dynamics::euler_ode, T, T, true);
  DenoisingBackward<double> backward(counted.chain, Linear{}, {.lambda = 1, .beta = .5});
  QueueState<PathBatch<double>, GradientDescent> warm{0, theta, {}, GradientDescent{}};
  start_queue(counted.sampler, counted.start, warm, {.slots = T}, counted.empty);
  DoubleQueueState<PathBatch<double>, BackwardBatch<double>, GradientDescent> s{
      0, theta, warm.slots, {}, GradientDescent{{.01}}};
  DenoisingCost before = counted.seen();
  (void)double_queue_loop(counted.sampler, backward, counted.start, s, 16, [&](const auto& now) {
    const DenoisingCost seen = counted.seen();
    EXPECT_EQ(of_samples(counted.sampler.cost() + backward.cost()), seen);
    const std::uint64_t on_the_way =
        std::min<std::uint64_t>(T, static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.step - 1)));
    if (now.step > 0) {
      EXPECT_EQ(seen - before, of_samples({T + on_the_way, on_the_way, T, on_the_way})) << now.step;
    }
    before = seen;
  });
}

TEST(ReconstructedCost, IsWhatTheModelsSee) {
  for (const std::size_t refinements : {0, 3}) {
    Counted counted(Dynamics::euler_ode, 1, T, true);
    PathBatch<double> b = counted.empty;
    counted.start.draw(b, 0);
    counted.sampler.advance(b, theta, {});
    ReconstructedGradient<double> gradient(counted.chain, Linear{}, {.lambda = 1, .beta = .5}, refinements);
    Vector g(theta.size());
    gradient.estimate(b, theta, 0, g);
    EXPECT_EQ(gradient.cost(), (DenoisingCost{T * (1 + refinements), T, 0, T}));
    EXPECT_EQ(of_samples(counted.sampler.cost() + gradient.cost()), counted.seen());
  }
}

}  // namespace
}  // namespace implicit_diffusion
