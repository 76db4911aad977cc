// Models that predict eps or v, as score models: against the score itself for a mixture, and a Gaussian whose
// predictions are known.
#include "implicit_diffusion/denoising/prediction.hpp"

#include "denoising/linear.hpp"
#include "implicit_diffusion/denoising/check.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "io/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace implicit_diffusion {
namespace {

using Vector = std::vector<double>;
constexpr double rounding = 1.2e-16, single_rounding = 6e-8;

double noise_of(double tau) { return std::sqrt(1 - std::exp(-2 * tau)); }

// A score model the other way: eps = -s score, or v = (eps - s y) / a.
enum class Kind { epsilon, v };
template <class M, Kind kind>
struct Predicts : M {
  using M::M;
  Predicts(const M& m) : M(m) {}
  struct NoiseLevel {
    decltype(std::declval<const M&>().level(1.0)) inner;
    std::size_t d;
    double tau;

    template <class N, std::size_t D>
    struct Here {
      decltype(kernel::point_of<N, D>(inner, std::declval<const N*>())) point;
      const N* y;
      std::size_t d;
      N factor;

      void predict(N* out) const {
        point.score(out);
        for (std::size_t j = 0; j < d; ++j) out[j] = -factor * (kind == Kind::v ? out[j] + y[j] : out[j]);
      }
      void pull_back(const N* out, const N* c, N* back, N* sums) const {
        N score[largest_denoising_dimension], scaled[largest_denoising_dimension];
        for (std::size_t j = 0; j < d; ++j) {
          score[j] = -out[j] / factor;
          if (kind == Kind::v) score[j] = score[j] - y[j];
          scaled[j] = -factor * c[j];
        }
        point.pull_back(score, scaled, back, sums);
        for (std::size_t j = 0; kind == Kind::v && j < d; ++j) back[j] = back[j] + scaled[j];
      }
    };
    template <class N, std::size_t D>
    Here<N, D> at(const N* y) const {
      const double factor = noise_of(tau) / (kind == Kind::v ? std::exp(-tau) : 1);
      return {kernel::point_of<N, D>(inner, y), y, d, N(static_cast<Scalar<N>>(factor))};
    }
    std::size_t sums() const { return inner.sums(); }
    void add_gradient(const double* sums, double* gradient) const { inner.add_gradient(sums, gradient); }
  };
  NoiseLevel level(double tau) const { return {M::level(tau), M::dimension(), tau}; }
};

using Mixture = MixtureScore<Spread::cholesky>;
const Mixture mixture(3, 2);
const auto from_epsilon = FromEpsilon(Predicts<Mixture, Kind::epsilon>(mixture));
const auto from_v = FromV(Predicts<Mixture, Kind::v>(mixture));

Vector mixture_theta() {
  Vector theta(mixture.parameters());
  for (std::size_t j = 0; j < theta.size(); ++j)
    theta[j] = (j < 3 ? .5 : j < mixture.spread_at(0) ? 1.5 : .4) * std::sin(1.7 * static_cast<double>(j) + 1);
  return theta;
}

template <class M>
Vector score_at(M model, const Vector& theta, double tau, const Vector& y) {
  model.prepare(theta);
  const auto level = model.level(tau);
  Vector s(y.size());
  kernel::point_of<double>(level, y.data()).score(s.data());
  return s;
}

// Back to the score within a few roundings, from the data end to the noise end. Of v the two terms are as large as y.
TEST(Prediction, OfTheMixtureIsItsScore) {
  const Vector theta = mixture_theta();
  for (const double tau : {1e-6, 1e-3, .1, .7, 3., 8.})
    for (int k = 0; k < 10; ++k) {
      const Vector y{2 * std::sin(3.1 * k), 2 * std::cos(1.7 * k)};
      const Vector score = score_at(mixture, theta, tau, y), by_epsilon = score_at(from_epsilon, theta, tau, y),
                   by_v = score_at(from_v, theta, tau, y);
      for (std::size_t j = 0; j < 2; ++j) {
        // 1 - e^-2tau as the test has it loses digits where tau is small: a rounding of 1 over 2 tau.
        const double allowed = (8 + 1 / tau) * rounding * (std::abs(score[j]) + std::abs(y[j]));
        EXPECT_NEAR(by_epsilon[j], score[j], allowed) << tau;
        EXPECT_NEAR(by_v[j], score[j], allowed) << tau;
      }
    }
}

// R(y) = y_1 + 2 y_2.
template <class Real>
struct Chained {
  PathBatch<Real> batch;
  Vector gradient;
};
template <class Real, class M>
Chained<Real> chained(const M& model, Dynamics dynamics, double beta, std::size_t n = 37, std::size_t keep = 1) {
  const Vector theta = mixture_theta();
  Vector base = theta;
  for (double& t : base) t = .8 * t + .1;
  std::optional<std::pair<ScoreModel<Real>, Vector>> frozen;
  if (beta != 0) frozen.emplace(model, base);
  ReverseChain<Real> chain(model, uniform_grid(3, 32),
                           {.dynamics = dynamics, .keep_every = keep, .normals = normals_of<Real>(Noise(7))},
                           std::move(frozen));
  Chained<Real> result;
  result.batch.points = Population<Real>(n, 2);
  DenoisingStart<Real>{Noise(3)}.draw(result.batch, 5);
  DenoisingSampler<Real>(chain).advance(result.batch, theta, {});
  result.gradient.resize(theta.size());
  PathGradient<Real>(chain, Linear{}, {.lambda = 1, .beta = beta}).estimate(result.batch, theta, 0, result.gradient);
  return result;
}

// How far paths, penalties and gradients are apart, each relative to its largest number.
template <class Real, class Other>
double distance(const Chained<Real>& a, const Chained<Other>& b) {
  double worst = 0;
  const auto compare = [&](std::size_t n, auto&& one, auto&& other) {
    double size = 0, difference = 0;
    for (std::size_t i = 0; i < n; ++i) {
      size = std::max(size, std::abs(static_cast<double>(other(i))));
      difference = std::max(difference, std::abs(static_cast<double>(one(i)) - static_cast<double>(other(i))));
    }
    if (size > 0) worst = std::max(worst, difference / size);
  };
  const std::size_t n = a.batch.points.size();
  for (std::size_t k = 0; k < a.batch.path.size(); ++k)
    compare(
        2 * n, [&](std::size_t i) { return a.batch.path[k](i / 2, i % 2); },
        [&](std::size_t i) { return b.batch.path[k](i / 2, i % 2); });
  compare(
      2 * n, [&](std::size_t i) { return a.batch.points(i / 2, i % 2); },
      [&](std::size_t i) { return b.batch.points(i / 2, i % 2); });
  compare(
      a.batch.penalty.size(), [&](std::size_t i) { return a.batch.penalty[i]; },
      [&](std::size_t i) { return b.batch.penalty[i]; });
  compare(
      a.gradient.size(), [&](std::size_t i) { return a.gradient[i]; }, [&](std::size_t i) { return b.gradient[i]; });
  return worst;
}

// A rounding early on is grown by the steps after it, by less than a hundred times here, in both precisions. 37 samples
// end within a group of lanes.
TEST(Prediction, HasThePathsAndGradientsOfTheScore) {
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode, Dynamics::ddpm, Dynamics::ddim})
    for (const double beta : {0.0, 0.6}) {
      if (beta != 0 && dynamics == Dynamics::ddpm) continue;
      const auto exact = chained<double>(mixture, dynamics, beta);
      EXPECT_LT(distance(chained<double>(from_epsilon, dynamics, beta), exact), 1000 * rounding);
      EXPECT_LT(distance(chained<double>(from_v, dynamics, beta), exact), 1000 * rounding);
      EXPECT_LT(distance(chained<float>(from_epsilon, dynamics, beta), exact), 1000 * single_rounding);
      EXPECT_LT(distance(chained<float>(from_v, dynamics, beta), exact), 1000 * single_rounding);
      // Another objective is seen.
      EXPECT_GT(distance(chained<double>(from_epsilon, dynamics, beta, 37),
                         chained<double>(from_epsilon, Dynamics::euler_sde, .3, 37)),
                1e-3);
    }
  EXPECT_EQ(chained<float>(from_v, Dynamics::euler_sde, .6, 37, 5).gradient,
            chained<float>(from_v, Dynamics::euler_sde, .6).gradient)
      << "a path that is replayed";
}

TEST(Prediction, OnLanesIsThatOfSingleFloats) {
  auto model = from_v;
  model.prepare(mixture_theta());
  const auto level = model.level(.4);
  float y[2][16], s[2][16], back[2][16];
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 2; ++j)
      y[j][i] = static_cast<float>(2 * std::sin(3.1 * static_cast<double>(i + 5 * j)));
  const Lanes at[2] = {load<Lanes>(y[0]), load<Lanes>(y[1])}, c[2] = {Lanes(0.3F), Lanes(-1.1F)};
  Lanes score[2], pulled[2];
  const auto point = kernel::point_of<Lanes, 2>(level, at);
  point.score(score);
  point.pull_back(score, c, pulled, nullptr);
  for (std::size_t j = 0; j < 2; ++j) {
    store(score[j], s[j]);
    store(pulled[j], back[j]);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    const float one[2] = {y[0][i], y[1][i]}, direction[2] = {0.3F, -1.1F};
    float alone[2], alone_back[2];
    const auto here = kernel::point_of<float, 2>(level, one);
    here.score(alone);
    here.pull_back(alone, direction, alone_back, nullptr);
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(s[j][i], alone[j]);
      EXPECT_EQ(back[j][i], alone_back[j]);
    }
  }
}

TEST(Prediction, HasTheRightProducts) {
  for (const double tau : {1e-3, .2, 1.5, 4.}) {
    // Differences of a score that is as steep as 1 / tau.
    const double allowed = tau < .01 ? 1e-6 : 1e-8;
    for (const ScoreCheck& check :
         {check_score_model(from_epsilon, mixture_theta(), tau), check_score_model(from_v, mixture_theta(), tau)}) {
      EXPECT_LT(check.state_error, allowed) << tau;
      EXPECT_LT(check.parameter_error, allowed) << tau;
    }
  }
}

// Wrappers that get the products wrong: the score is right, and its products are those of `change`d vectors.
template <class M, class Change>
struct Wrong {
  M model;
  Change change;
  std::size_t dimension() const { return 2; }
  std::size_t parameters() const { return model.parameters(); }
  void prepare(std::span<const double> theta) { model.prepare(theta); }
  struct NoiseLevel {
    decltype(std::declval<const M&>().level(1.0)) inner;
    double tau;
    Change change;
    template <class N>
    void score(const N* y, N* s) const {
      kernel::point_of<N>(inner, y).score(s);
    }
    template <class N>
    void pull_back(const N* y, const N* s, const N* c, N* back, N* sums) const {
      N changed[2];
      for (std::size_t j = 0; j < 2; ++j) changed[j] = change.scale(tau) * c[j];
      kernel::point_of<N>(inner, y).pull_back(s, changed, back, sums);
      for (std::size_t j = 0; j < 2; ++j) back[j] = back[j] + change.shift * c[j];
    }
    std::size_t sums() const { return inner.sums(); }
    void add_gradient(const double* sums, double* gradient) const { inner.add_gradient(sums, gradient); }
  };
  NoiseLevel level(double tau) const { return {model.level(tau), tau, change}; }
};
template <class Change, class M>
Wrong<M, Change> wrong(const M& model) {
  return {model, {}};
}
struct OtherSign {
  double shift = 0;
  double scale(double) const { return -1; }
};
struct WithoutTheNoise {  // eps' c in place of -eps' c / s
  double shift = 0;
  double scale(double tau) const { return -noise_of(tau); }
};
struct WithoutTheState {  // of v: -y forgotten
  double shift = 1;
  double scale(double) const { return 1; }
};
TEST(Prediction, WithWrongProductsIsNoticed) {
  const Vector theta = mixture_theta();
  const ScoreCheck sign = check_score_model(wrong<OtherSign>(from_epsilon), theta, .3),
                   noise = check_score_model(wrong<WithoutTheNoise>(from_epsilon), theta, .3),
                   state = check_score_model(wrong<WithoutTheState>(from_v), theta, .3);
  for (const ScoreCheck& check : {sign, noise}) {
    EXPECT_GT(check.state_error, .1);
    EXPECT_GT(check.parameter_error, .1);
  }
  EXPECT_GT(state.state_error, .1);
  EXPECT_LT(state.parameter_error, 1e-8) << "that one is right";
  // What is wrong in itself, but has the products of what it is, is no score: -eps taken for v.
  const Vector y{.4, -1.3};
  const auto mistaken = FromV(Predicts<Mixture, Kind::epsilon>(mixture));
  EXPECT_GT(std::abs(score_at(mistaken, theta, .3, y)[0] - score_at(mixture, theta, .3, y)[0]), .1);
}

// Data N(m, w) in one dimension, theta = m. Given y the data have the mean m + k (y - a m), k = a w / (a^2 w + s^2),
// and eps is what is left of y: (y - a E[x_0 | y]) / s. The score is -(y - a m) / (a^2 w + s^2).
struct GaussianPrediction {
  static constexpr double w = .25;
  bool velocity = false;
  double m = 0;
  std::size_t dimension() const { return 1; }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> theta) { m = theta[0]; }

  struct NoiseLevel {
    bool velocity;
    double m, a, s, k;

    template <class N>
    void predict(const N* y, N* out) const {
      const N data = m + k * (y[0] - a * m), eps = (y[0] - a * data) / s;
      out[0] = velocity ? a * eps - s * data : eps;
    }
    double slope() const { return velocity ? a * (1 - a * k) / s - s * k : (1 - a * k) / s; }
    double slope_of_mean() const { return (1 - k * a) * (velocity ? -a * a / s - s : -a / s); }
    template <class N>
    void pull_back(const N*, const N*, const N* c, N* back, N* sums) const {
      back[0] = slope() * c[0];
      if (sums) sums[0] = sums[0] + c[0];
    }
    std::size_t sums() const { return 1; }
    void add_gradient(const double* sums, double* gradient) const { gradient[0] += slope_of_mean() * sums[0]; }
  };
  NoiseLevel level(double tau) const {
    const double a = std::exp(-tau), s = noise_of(tau);
    return {velocity, m, a, s, a * w / (a * a * w + s * s)};
  }
};

template <class M>
void expect_gaussian(M model) {
  const double mean = 1.5, c = .7;
  model.prepare(Vector{mean});
  for (const double tau : {.01, .5, 2.}) {
    const double a = std::exp(-tau), spread = a * a * .25 + 1 - a * a;
    const auto level = model.level(tau);
    for (const double y : {-1.2, .3, 4.}) {
      const auto point = kernel::point_of<double>(level, &y);
      double s = 0, back = 0, sum = 0, gradient = 0;
      point.score(&s);
      point.pull_back(&s, &c, &back, &sum);
      level.add_gradient(&sum, &gradient);
      EXPECT_NEAR(s, -(y - a * mean) / spread, 1e-13);
      EXPECT_NEAR(back, -c / spread, 1e-13);
      EXPECT_NEAR(gradient, c * a / spread, 1e-13);
      // With dual numbers.
      const Dual<double> at(y, 1.0);
      Dual<double> moved;
      kernel::point_of<Dual<double>>(level, &at).score(&moved);
      EXPECT_NEAR(moved.value, s, 1e-13);
      EXPECT_NEAR(moved.along(0), back / c, 1e-13);
    }
  }
}
TEST(Prediction, OfAGaussianIsItsScore) {
  expect_gaussian(FromEpsilon(GaussianPrediction{false}));
  expect_gaussian(FromV(GaussianPrediction{true}));
}

// Numbers worked out apart: at tau = 0.7 the score -0.5 at 0.8 is eps = 0.433993961956 and x_0 = 0.852418464137.
struct Constant : GaussianPrediction {
  double value;
  explicit Constant(double v) : value(v) {}
  struct NoiseLevel : GaussianPrediction::NoiseLevel {
    double value;
    template <class N>
    void predict(const N*, N* out) const {
      out[0] = value;
    }
  };
  NoiseLevel level(double tau) const { return {GaussianPrediction::level(tau), value}; }
};
TEST(Prediction, HasTheKnownNumbers) {
  const double tau = .7, eps = .433993961956, v = std::exp(-tau) * eps - noise_of(tau) * .852418464137;
  EXPECT_NEAR(score_at(FromEpsilon(Constant(eps)), {0}, tau, {.8})[0], -.5, 1e-11);
  EXPECT_NEAR(score_at(FromV(Constant(v)), {0}, tau, {.8})[0], -.5, 1e-11);
}

TEST(Prediction, KnowsItsEndsAndItsDomain) {
  EXPECT_ERROR(from_epsilon.level(0), usage, "tau: 0");
  EXPECT_ERROR(from_v.level(-1), usage, "tau: -1");
  EXPECT_ERROR(from_v.level(NAN), usage, "tau: ");
  // As far out as there is: the score is -eps, and -y.
  EXPECT_NEAR(score_at(FromEpsilon(Constant(.3)), {0}, 400, {.8})[0], -.3, 1e-15);
  EXPECT_NEAR(score_at(FromV(Constant(.3)), {0}, 400, {.8})[0], -.8, 1e-15);
  Vector far = mixture_theta();
  EXPECT_FALSE(ScoreModel<float>(from_epsilon).find_inadmissible(far));
  far[4] = 1e16;
  EXPECT_EQ(ScoreModel<float>(from_epsilon).find_inadmissible(far), 4U);
}

}  // namespace
}  // namespace implicit_diffusion
