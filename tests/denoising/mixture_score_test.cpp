// The score of a mixture against its log-density, its products against finite differences and dual numbers, and chains
// on it.
#include "implicit_diffusion/denoising/mixture_score.hpp"

#include "denoising/linear.hpp"
#include "implicit_diffusion/denoising/check.hpp"
#include "implicit_diffusion/denoising/reconstruction.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "io/expect_error.hpp"
#include "problems/toy_score.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace implicit_diffusion {
namespace {

using Vector = std::vector<double>;

template <Spread form>
Vector some_theta(const MixtureScore<form>& m) {
  Vector theta(m.parameters());
  for (std::size_t j = 0; j < theta.size(); ++j)
    theta[j] = (j < m.components() ? .5 : j < m.spread_at(0) ? 1.5 : .4) * std::sin(1.7 * static_cast<double>(j) + 1);
  return theta;
}

template <class T>
class MixtureScoreForms : public testing::Test {};
template <Spread form>
struct Form {
  static constexpr Spread value = form;
};
using Forms = testing::Types<Form<Spread::isotropic>, Form<Spread::diagonal>, Form<Spread::cholesky>>;
TYPED_TEST_SUITE(MixtureScoreForms, Forms);

// grad log p of the noisy law, by central differences of its closed form.
TYPED_TEST(MixtureScoreForms, IsTheGradientOfTheLogDensity) {
  for (const std::size_t d : {1, 2, 3}) {
    MixtureScore<TypeParam::value> model(4, d);
    const Vector theta = some_theta(model);
    model.prepare(theta);
    const double tau = .35, a = std::exp(-tau);
    GaussianMixture law = model.law(theta);
    for (Gaussian& g : law.components) {
      for (double& m : g.mean) m *= a;
      for (std::size_t k = 0; k < d * d; ++k)
        g.covariance[k] = a * a * g.covariance[k] + (k % (d + 1) == 0 ? 1 - a * a : 0);
    }
    const MixtureLogDensity log_density(law);
    for (int k = 0; k < 10; ++k) {
      Vector y(largest_denoising_dimension), s = y;
      for (std::size_t j = 0; j < d; ++j) y[j] = 2 * std::sin(3.1 * k + static_cast<double>(j));
      const auto level = model.level(tau);
      level.template at<double, 0>(y.data()).score(s.data());
      for (std::size_t j = 0; j < d; ++j) {
        const double h = 1e-5;
        Vector up(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(d)), down = up;
        up[j] += h;
        down[j] -= h;
        EXPECT_NEAR(s[j], (log_density(up) - log_density(down)) / (2 * h), 1e-8);
      }
    }
  }
}

TYPED_TEST(MixtureScoreForms, HasTheRightProducts) {
  for (const std::size_t d : {1, 2, 3}) {
    const MixtureScore<TypeParam::value> model(5, d);
    for (const double tau : {1e-3, .2, 1.5}) {
      const ScoreCheck check = check_score_model(model, some_theta(model), tau);
      // Differences of a score that is as steep as 1 / tau.
      EXPECT_LT(check.state_error, tau < .01 ? 1e-6 : 1e-8) << d << " " << tau;
      EXPECT_LT(check.parameter_error, tau < .01 ? 1e-6 : 1e-8) << d << " " << tau;
    }
  }
}

// On the way out the products are differences of large numbers: of c . g_i and c . s, times the distance. Each rounding
// counts p |u|^2 times; so it does in the exponents of the responsibilities. The covariances are about 1 here.
TYPED_TEST(MixtureScoreForms, HoldsOnTheWayOut) {
  MixtureScore<TypeParam::value> model(4, 2);
  const Vector theta = some_theta(model);
  model.prepare(theta);
  const auto level = model.level(.1);
  const std::size_t count = level.sums();
  double worst_back = 0, worst_sums = 0;
  for (int step = 0; step < 120; ++step) {
    const double angle = 2.4 * step, distance = .25 * step;
    const double y[2] = {static_cast<double>(static_cast<float>(distance * std::cos(angle))),
                         static_cast<double>(static_cast<float>(distance * std::sin(angle)))};
    const double c[2] = {.7, -1.1};
    double s[2], back[2];
    Vector sums(count, 0.0);
    const auto exact = kernel::point_of<double, 2>(level, y);
    exact.score(s);
    exact.pull_back(s, c, back, sums.data());
    const float y1[2] = {static_cast<float>(y[0]), static_cast<float>(y[1])},
                c1[2] = {static_cast<float>(c[0]), static_cast<float>(c[1])};
    float s1[2], alone[2], back1[2];
    std::vector<float> sums1(count, 0.0f);
    const auto single = kernel::point_of<float, 2>(level, y1);
    single.score(s1);
    single.pull_back(s1, c1, back1, sums1.data());
    kernel::score_at<float, 2>(level, y1, alone);
    double off = 0, size = 0, off_sums = 0, size_sums = 0;
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(alone[j], s1[j]) << step;  // with the products or without
      EXPECT_NEAR(static_cast<double>(s1[j]), s[j], 2e-6 * (1 + std::hypot(s[0], s[1]))) << step;
      off = std::hypot(off, static_cast<double>(back1[j]) - back[j]);
      size = std::hypot(size, back[j]);
    }
    for (std::size_t k = 0; k < count; ++k) {
      off_sums = std::hypot(off_sums, static_cast<double>(sums1[k]) - sums[k]);
      size_sums = std::hypot(size_sums, sums[k]);
    }
    const double roundings = 0x1p-24 * (8 + distance * distance);
    worst_back = std::max(worst_back, off / std::max(size, .2) / roundings);
    worst_sums = std::max(worst_sums, off_sums / std::max(size_sums, .2) / roundings);
  }
  EXPECT_LT(worst_back, 10);
  EXPECT_LT(worst_sums, 10);
}

// A sample in the outskirts of a wide component, a narrow one far away: the latter's term is 0 in any precision, but
// its score is so large that 2^-126, where single precision ends, would show. As far out as single precision goes
// without help, and on.
TYPED_TEST(MixtureScoreForms, ForgetsANarrowComponentFarAway) {
  MixtureScore<TypeParam::value> model(2, 2);
  Vector theta(model.parameters(), 0.0);
  theta[model.mean_at(0)] = 1e4;
  theta[model.mean_at(1)] = -1e4;
  const std::size_t size = model.spread_size();
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t k = 0; k < size; ++k)
      if (size < 3 || k != 1) theta[model.spread_at(i) + k] = std::log(i == 0 ? 1e-3 : 500.0);  // k = 1: L_10
  model.prepare(theta);
  const auto level = model.level(1e-7);
  for (const double deviations : {0.0, 1.0, 4.0, 6.0, 8.0, 9.0, 10.0, 20.0}) {
    const float y[2] = {static_cast<float>(-1e4 + 400 * deviations), static_cast<float>(300 * deviations)},
                c[2] = {1.0f, -0.5f};
    float s[2], back[2];
    std::vector<float> sums(level.sums(), 0.0f);
    const auto point = kernel::point_of<float, 2>(level, y);
    point.score(s);
    point.pull_back(s, c, back, sums.data());
    Vector gradient(model.parameters(), 0.0);
    level.add_gradient(Vector(sums.begin(), sums.end()).data(), gradient.data());
    // All is that of the wide component: precision p, and derivatives of c . s by its mean alone and its own spread.
    const double p = 1 / 250000.0;
    const double roundings = 0x1p-24 * (8 + deviations * deviations / 4);
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_NEAR(static_cast<double>(s[j]), -p * (static_cast<double>(y[j]) - (j == 0 ? -1e4 : 0.0)), 1e-5 * p * 500)
          << deviations;
      EXPECT_NEAR(static_cast<double>(back[j]), -p * static_cast<double>(c[j]), 20 * roundings * p) << deviations;
      EXPECT_EQ(gradient[model.mean_at(0) + j], 0.0) << deviations;
      EXPECT_NEAR(gradient[model.mean_at(1) + j], p * static_cast<double>(c[j]), 20 * roundings * p) << deviations;
    }
    EXPECT_EQ(gradient[0], 0.0) << deviations;
    for (std::size_t k = 0; k < size; ++k) EXPECT_EQ(gradient[model.spread_at(0) + k], 0.0) << deviations;
  }
}

// Far from all components every term of the sum would vanish in single precision, and there the nearest component is
// the whole score. Every third lane is far; the others do not notice.
TYPED_TEST(MixtureScoreForms, HoldsFarFromAllComponents) {
  MixtureScore<TypeParam::value> model(4, 2);
  Vector theta = some_theta(model);
  for (std::size_t k = model.spread_at(0); k < theta.size(); ++k) theta[k] -= 2;  // narrow: e^-2 of the width
  model.prepare(theta);
  const auto level = model.level(.02);
  const auto coordinate = [](std::size_t lane, std::size_t j, bool some_far) {
    const double near = 1.5 * std::sin(2.3 * static_cast<double>(lane) + static_cast<double>(j));
    return some_far && lane % 3 == 0 ? (j == 0 ? 40 : -25) + near : near;
  };
  const auto lanes_at = [&](bool some_far, auto&& take) {
    alignas(64) float x[2][16], s[2][16];
    for (std::size_t lane = 0; lane < 16; ++lane)
      for (std::size_t j = 0; j < 2; ++j) x[j][lane] = static_cast<float>(coordinate(lane, j, some_far));
    const Lanes y[2] = {load<Lanes>(x[0]), load<Lanes>(x[1])};
    Lanes score[2];
    kernel::point_of<Lanes, 2>(level, y).score(score);
    store(score[0], s[0]);
    store(score[1], s[1]);
    for (std::size_t lane = 0; lane < 16; ++lane) take(lane, x[0][lane], x[1][lane], s[0][lane], s[1][lane]);
  };
  std::vector<float> alone(32);
  lanes_at(false, [&](std::size_t lane, float, float, float s0, float s1) {
    alone[2 * lane] = s0;
    alone[2 * lane + 1] = s1;
  });
  lanes_at(true, [&](std::size_t lane, float x0, float x1, float s0, float s1) {
    const double y[2] = {static_cast<double>(x0), static_cast<double>(x1)};
    double exact[2];
    const auto point = kernel::point_of<double, 2>(level, y);
    point.score(exact);
    const double size = std::hypot(exact[0], exact[1]) + 1;
    // The product with the state is the precision there, not a difference of large numbers.
    const double c[2] = {1, -.5};
    double back[2];
    point.pull_back(exact, c, back, static_cast<double*>(nullptr));
    const Lanes at[2] = {Lanes(x0), Lanes(x1)}, lane_c[2] = {Lanes(1), Lanes(-.5)};
    Lanes lane_score[2], lane_back[2];
    const auto lane_point = kernel::point_of<Lanes, 2>(level, at);
    lane_point.score(lane_score);
    lane_point.pull_back(lane_score, lane_c, lane_back, static_cast<Lanes*>(nullptr));
    for (std::size_t j = 0; j < 2; ++j) {
      alignas(64) float found[16];
      store(lane_back[j], found);
      EXPECT_NEAR(static_cast<double>(found[0]), back[j], 1e-4 * std::hypot(back[0], back[1])) << lane;
    }
    EXPECT_NEAR(static_cast<double>(s0), exact[0], 1e-4 * size) << lane;
    EXPECT_NEAR(static_cast<double>(s1), exact[1], 1e-4 * size) << lane;
    if (lane % 3 == 0) {
      EXPECT_GT(size, 100) << lane;
    } else {
      EXPECT_EQ(s0, alone[2 * lane]) << lane;
      EXPECT_EQ(s1, alone[2 * lane + 1]) << lane;
    }
  });
}

// In one dimension: weights w_i exp(t m_i + t^2 v_i / 2), means m_i + v_i t, the same variances.
TEST(TiltedLaw, OfAMixtureIsAMixture) {
  const GaussianMixture p{{.3, .7}, {{{-1}, {.5}}, {{2}, {4}}}};
  const double t = .8, a = .3 * std::exp(t * -1 + t * t * .5 / 2), b = .7 * std::exp(t * 2 + t * t * 4 / 2);
  const GaussianMixture law = tilted_law(p, std::vector{t});
  EXPECT_NEAR(law.weights[0], a / (a + b), 1e-14);
  EXPECT_NEAR(law.weights[1], b / (a + b), 1e-14);
  EXPECT_NEAR(law.components[0].mean[0], -1 + .5 * t, 1e-14);
  EXPECT_NEAR(law.components[1].mean[0], 2 + 4 * t, 1e-14);
  EXPECT_EQ(law.components[1].covariance, p.components[1].covariance);
}

TYPED_TEST(MixtureScoreForms, KnowsItsLaw) {
  const MixtureScore<TypeParam::value> model(3, 2);
  Vector theta = some_theta(model);
  const Vector again = model.parameters_of(model.law(theta));
  for (std::size_t j = 0; j < theta.size(); ++j)
    EXPECT_NEAR(again[j] - (j < 3 ? again[0] : 0), theta[j] - (j < 3 ? theta[0] : 0), 1e-12)
        << "logits up to a constant";
}

TEST(MixtureScore, KnowsItsDomain) {
  const MixtureScore<Spread::cholesky> model(2, 3);
  const Vector theta = some_theta(model);
  EXPECT_FALSE(model.find_inadmissible(theta));
  // A factor is l11, l21, l22, l31, l32, l33: its diagonal is a logarithm.
  for (std::size_t j = 0; j < theta.size(); ++j) {
    Vector far = theta;
    far[j] = 100;
    const std::size_t k = (j - model.spread_at(0)) % 6;
    const bool logarithm = j >= model.spread_at(0) && (k == 0 || k == 2 || k == 5);
    EXPECT_EQ(model.find_inadmissible(far), logarithm ? std::optional(j) : std::nullopt) << j;
    far[j] = NAN;
    EXPECT_EQ(model.find_inadmissible(far).has_value(), j >= 2);
  }
}

TEST(MixtureScore, RefusesWhatItIsNot) {
  EXPECT_ERROR(MixtureScore<Spread::isotropic>(0, 2), usage, "components: 0");
  EXPECT_ERROR(MixtureScore<Spread::isotropic>(2, 17), usage, "dimension: 17");
  const GaussianMixture tilted{{1}, {{{0, 0}, {1, .5, .5, 1}}}}, flat{{1}, {{{0, 0}, {1, 1, 1, 1}}}};
  EXPECT_ERROR((MixtureScore<Spread::isotropic>(1, 2).parameters_of(tilted)), usage, "multiple of the identity");
  EXPECT_ERROR((MixtureScore<Spread::diagonal>(1, 2).parameters_of(tilted)), usage, "diagonal");
  EXPECT_ERROR((MixtureScore<Spread::cholesky>(1, 2).parameters_of(flat)), usage, "positive definite");
}

// A checker that cannot fail is none.
struct WrongState : problems::ToyScore {
  struct NoiseLevel : problems::ToyScore::NoiseLevel {
    template <class N>
    void pull_back(const N* y, const N* s, const N* c, N* back, N* sums) const {
      problems::ToyScore::NoiseLevel::pull_back(y, s, c, back, sums);
      back[1] = back[1] + c[0];
    }
  };
  NoiseLevel level(double tau) const { return {problems::ToyScore::level(tau)}; }
};
struct WrongParameter : problems::ToyScore {
  struct NoiseLevel : problems::ToyScore::NoiseLevel {
    void add_gradient(const double* sums, double* gradient) const {
      for (std::size_t j = 0; j < 6; ++j) gradient[j] += sums[j];  // without the decay
    }
  };
  NoiseLevel level(double tau) const { return {problems::ToyScore::level(tau)}; }
};
TEST(CheckScoreModel, NoticesWrongProducts) {
  const Vector theta{.5, -.3, .2, -.4, .1, .3};
  const ScoreCheck good = check_score_model(problems::ToyScore{}, theta, .5);
  EXPECT_LT(good.state_error, 1e-8);
  EXPECT_LT(good.parameter_error, 1e-8);
  EXPECT_GT(check_score_model(WrongState{}, theta, .5).state_error, .1);
  EXPECT_FALSE(check_score_model(problems::ToyScore{}, theta, std::nan("")).state_error < 1) << "a NaN is off";
  EXPECT_GT(check_score_model(WrongParameter{}, theta, .5).parameter_error, .1);
}

// R(y) = r . y.
template <class Real, Spread form = Spread::cholesky>
Vector chain_gradient(Dynamics dynamics, std::size_t keep, double beta, Workers* workers = nullptr, std::size_t n = 300,
                      PathBatch<Real>* batch = nullptr) {
  const MixtureScore<form> model(3, 2);
  const Vector theta = some_theta(model);
  Vector base = theta;
  for (double& t : base) t = .8 * t + .1;
  ReverseChain<Real> chain(
      model, uniform_grid(2, 32),
      {.dynamics = dynamics, .keep_every = keep, .normals = normals_of<Real>(Noise(7)), .workers = workers},
      std::pair{ScoreModel<Real>(model), base});
  PathBatch<Real> b;
  b.points = Population<Real>(n, 2);
  DenoisingStart<Real>{Noise(3)}.draw(b, 5);
  DenoisingSampler<Real> sampler(chain);
  sampler.advance(b, theta, {});
  Vector gradient(model.parameters());
  PathGradient<Real>(chain, Linear{}, {.lambda = 1, .beta = beta}).estimate(b, theta, 0, gradient);
  if (batch) *batch = b;
  return gradient;
}

double distance(const Vector& a, const Vector& b) {
  double difference = 0, size = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    difference += (a[j] - b[j]) * (a[j] - b[j]);
    size += b[j] * b[j];
  }
  return std::sqrt(difference / size);
}

// The same samples in single and in double precision. Paths of single samples drift apart by rounding, hence not 1e-7.
TEST(Chains, InSinglePrecisionHaveTheGradientOfDoublePrecision) {
  const auto both = []<Spread form>(Dynamics dynamics, Form<form>) {
    return distance(chain_gradient<float, form>(dynamics, 1, .5), chain_gradient<double, form>(dynamics, 1, .5));
  };
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode}) {
    EXPECT_LT(both(dynamics, Form<Spread::isotropic>{}), 1e-5);
    EXPECT_LT(both(dynamics, Form<Spread::diagonal>{}), 1e-5);
    EXPECT_LT(both(dynamics, Form<Spread::cholesky>{}), 1e-5);
  }
}

// What a batch of several blocks carries: its memory, its path KL, and nothing of the batch before.
TEST(Chains, OfSeveralBlocksAddUp) {
  PathBatch<float> b;
  chain_gradient<float>(Dynamics::euler_sde, 1, .5, nullptr, 600, &b);
  ASSERT_EQ(b.points.blocks(), 3u);
  EXPECT_EQ(b.bytes(), (600 * 2 * (1 + 32) + b.penalty.size()) * sizeof(float));
  double sum = 0;
  for (std::size_t i = 0; i < 600; ++i) sum += static_cast<double>(b.penalty[i]);
  const Reward<float> reward = Linear{};
  EXPECT_NEAR(objective_of(b, reward, {.lambda = 1, .beta = .5}).path_kl, sum / 600, 1e-9);
  EXPECT_NE(b.penalty[0], b.penalty[256]);
  DenoisingStart<float>{Noise(3)}.draw(b, 6);
  EXPECT_TRUE(std::all_of(b.penalty.begin(), b.penalty.end(), [](float u) { return u == 0; }));
}

struct Curved {
  static constexpr bool any_number = true;
  template <class N>
  N operator()(const N* y) const {
    return y[0] * y[0] + y[1];
  }
};
// Back through a double queue at one theta is the reconstructed gradient, for every block.
TEST(Chains, OfSeveralBlocksGoBackThroughADoubleQueue) {
  const MixtureScore<Spread::isotropic> model(3, 2);
  const Vector theta = some_theta(model);
  ReverseChain<double> chain(model, uniform_grid(2, 32), {.dynamics = Dynamics::euler_ode});
  PathBatch<double> b;
  b.points = Population<double>(600, 2);
  DenoisingStart<double>{Noise(3)}.draw(b, 5);
  DenoisingSampler<double>(chain).advance(b, theta, {});
  Vector reconstructed(model.parameters());
  ReconstructedGradient<double>(chain, Curved{}).estimate(b, theta, 0, reconstructed);
  DenoisingBackward<double> backward(chain, Curved{});
  BackwardBatch<double> back = backward.begin(b, theta);
  for (std::size_t s = 0; s < 32; ++s) backward.step(back, s, theta);
  Vector gradient(model.parameters());
  backward.gradient(back, gradient);
  EXPECT_LT(distance(gradient, reconstructed), 1e-13);
}

// All the way and back, block by block, is sampling and then the adjoint: the same bits, for any number of threads, and
// no path is left.
TEST(Chains, AtOnceAreTheirTwoParts) {
  const MixtureScore<Spread::isotropic> model(3, 2);
  const Vector theta = some_theta(model);
  Vector base = theta;
  for (double& t : base) t = .8 * t + .1;
  Workers three(3);
  for (const std::size_t n : {1, 17, 300, 20'000})
    for (Workers* workers : {static_cast<Workers*>(nullptr), &three})
      for (const std::size_t last_steps : {5, 1000}) {
        ReverseChain<float> chain(model, uniform_grid(2, 32),
                                  {.normals = normals_of<float>(Noise(7)), .workers = workers},
                                  std::pair{ScoreModel<float>(model), base});
        PathBatch<float> one, two;
        one.points = two.points = Population<float>(n, 2);
        DenoisingStart<float>{Noise(3)}.draw(one, 5);
        DenoisingStart<float>{Noise(3)}.draw(two, 5);
        PathGradient<float> gradient(chain, Linear{}, {.lambda = 1, .beta = .5}, last_steps);
        Vector at_once(model.parameters()), in_two(model.parameters());
        gradient.sample_and_estimate(one, theta, {}, at_once);
        DenoisingSampler<float>(chain).advance(two, theta, {});
        gradient.estimate(two, theta, 0, in_two);
        EXPECT_EQ(at_once, in_two) << n;
        EXPECT_EQ(one.points, two.points) << n;
        EXPECT_EQ(one.penalty, two.penalty) << n;
        EXPECT_EQ(one.step, two.step);
        EXPECT_TRUE(one.path.empty());
      }
}

TEST(Chains, AtOnceNeedOneSlotAndAFreshBatch) {
  const MixtureScore<Spread::isotropic> model(3, 2);
  const Vector theta = some_theta(model);
  Vector gradient(model.parameters());
  PathBatch<float> b;
  b.points = Population<float>(20, 2);
  DenoisingStart<float>{Noise(3)}.draw(b, 0);
  ReverseChain<float> two(model, uniform_grid(2, 32), {.slots = 2}), one(model, uniform_grid(2, 32), {});
  EXPECT_ERROR(PathGradient<float>(two, Linear{}).sample_and_estimate(b, theta, {}, gradient), usage, "slots");
  DenoisingSampler<float>(one).advance(b, theta, {});
  EXPECT_ERROR(PathGradient<float>(one, Linear{}).sample_and_estimate(b, theta, {}, gradient), usage, "begun");
  // The path of the round before is not taken for that of the samples at hand.
  DenoisingStart<float>{Noise(3)}.draw(b, 1);
  PathGradient<float>(one, Linear{}).sample_and_estimate(b, theta, {}, gradient);
  EXPECT_ERROR(PathGradient<float>(one, Linear{}).estimate(b, theta, 0, gradient), usage, "path");
  PathBatch<float> none;
  none.points = Population<float>(0, 2);
  EXPECT_ERROR(PathGradient<float>(one, Linear{}).sample_and_estimate(none, theta, {}, gradient), usage, "empty");
}

// The nested loop takes an engine's way, and theta goes where it goes with sampler and gradient apart.
TEST(Chains, InANestedLoopAreTheSameAtOnce) {
  const MixtureScore<Spread::isotropic> model(3, 2);
  ReverseChain<float> chain(model, uniform_grid(2, 32), {.normals = normals_of<float>(Noise(7))});
  PathBatch<float> empty;
  empty.points = Population<float>(100, 2);
  DenoisingStart<float> start{Noise(3)};
  const NestedOptions options{.steps = 5, .inner_steps = 1, .warm_start = false};
  State<PathBatch<float>, GradientDescent> one{0, some_theta(model), empty, {{.1}}}, two = one;
  DenoisingEngine<float> engine(chain, Linear{});
  DenoisingSampler<float> sampler(chain);
  PathGradient<float> gradient(chain, Linear{});
  EXPECT_EQ(nested_loop(engine, engine, start, one, options).status, Status::completed);
  EXPECT_EQ(nested_loop(sampler, gradient, start, two, options).status, Status::completed);
  EXPECT_EQ(one.theta, two.theta);
  EXPECT_NE(one.theta, some_theta(model));
  EXPECT_EQ(one.population.points, two.population.points);
  EXPECT_TRUE(one.population.path.empty());
  EXPECT_FALSE(two.population.path.empty());
}

TEST(Chains, DoNotDependOnThreadsOrOnHowThePathIsKept) {
  Workers two(2), three(3);
  PathBatch<float> a, b, c;
  const Vector one = chain_gradient<float>(Dynamics::euler_sde, 1, .5, nullptr, 20'000, &a);
  EXPECT_EQ(chain_gradient<float>(Dynamics::euler_sde, 1, .5, &two, 20'000, &b), one);
  EXPECT_EQ(chain_gradient<float>(Dynamics::euler_sde, 6, .5, &three, 20'000, &c), one);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.points, c.points);
  EXPECT_LT(c.bytes(), a.bytes() / 4);
}

// A batch that ends within a group: the samples that are not there count for nothing.
TEST(Chains, OfAnySizeAreTheirSamples) {
  PathBatch<double> all, some;
  chain_gradient<double>(Dynamics::euler_sde, 1, .5, nullptr, 300, &all);
  chain_gradient<double>(Dynamics::euler_sde, 1, .5, nullptr, 37, &some);
  for (std::size_t i = 0; i < 37; ++i)
    for (std::size_t j = 0; j < 2; ++j) EXPECT_EQ(some.points(i, j), all.points(i, j));
  // The gradient over n samples is the mean of those over its parts; in single precision on lanes too.
  for (const std::size_t n : {1, 15, 17, 257}) {
    const Vector single = chain_gradient<float>(Dynamics::euler_sde, 1, .5, nullptr, n),
                 twice = chain_gradient<double>(Dynamics::euler_sde, 1, .5, nullptr, n);
    EXPECT_LT(distance(single, twice), 2e-5) << n;
  }
}

}  // namespace
}  // namespace implicit_diffusion
