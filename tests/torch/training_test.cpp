// Training: gradients of losses over shards, denoising score matching against closed forms, the optimizer with its
// average, and runs that have the same bits for any threads and after a restart.
#include "implicit_diffusion/differences.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "implicit_diffusion/torch/classifier.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"
#include "torch/networks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace {

using namespace torch_tests;

const Noise noise(5);

// Numbers of the noise's own definition.
at::Tensor normals(const Noise& by, Stream stream, std::int64_t round, std::vector<std::int64_t> shape) {
  const at::Tensor z = at::empty(shape, at::kFloat);
  const auto n = static_cast<std::size_t>(shape[0]), d = static_cast<std::size_t>(z.numel()) / n;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) z.data_ptr<float>()[i * d + j] = by.normal(stream, {.round = round}, d, i, j);
  return z;
}

// The samples of a law N(mean, deviation^2), fresh every round.
struct Gaussians {
  double mean = 0.5, deviation = 0.7;
  void draw(TensorSamples& s, std::int64_t round) const {
    const at::Tensor z = normals(Noise(11), Stream::reference, round, s.x().sizes().vec());
    s = TensorSamples((mean + deviation * z).to(s.x().scalar_type()), s.labels(), s.shard());
  }
};

TensorSamples small_batch(at::ScalarType type, std::int64_t n = 11, std::size_t shard = 4) {
  return TensorSamples(normals(Noise(3), Stream::reference, 0, {n, 1, 6, 6}).to(type),
                       at::arange(n, at::kLong).remainder(3), shard);
}

// The loss as its definition has it, all samples in one graph.
struct WholeLoss {
  Network network;
  ScoreMatchingOptions options;
  std::int64_t step;

  std::pair<double, at::Tensor> operator()(const TensorSamples& batch, const TensorParameters& theta) const {
    const at::AutoGradMode graph(true);
    const at::Tensor flat = theta.read().clone().requires_grad_();
    std::vector<at::Tensor> w;
    std::int64_t first = 0;
    for (const TensorShape& t : network.layout) {
      w.push_back(flat.narrow(0, first, elements_of(t.shape)).view(t.shape));
      first += elements_of(t.shape);
    }
    const auto n = static_cast<std::int64_t>(batch.size());
    const at::Tensor tau = at::empty({n}, at::kDouble);
    for (std::int64_t i = 0; i < n; ++i) {
      const double share = options.noise.uniform(Stream::component, {.round = step}, 1, static_cast<std::size_t>(i), 0);
      const double u = (static_cast<double>(i) + share) / static_cast<double>(n);
      tau.data_ptr<double>()[i] = -std::log(std::cos(u * std::acos(std::exp(-options.horizon))));
    }
    const at::Tensor a = at::exp(-tau).view({n, 1, 1, 1}), s = at::sqrt(1 - a * a);
    const at::Tensor eps = normals(options.noise, Stream::sampling, step, batch.x().sizes().vec()).to(at::kDouble);
    const at::Tensor x = a * batch.x() + s * eps, out = network.forward(w, {x, 10 * tau, batch.labels()});
    at::Tensor gap;
    if (options.prediction == Prediction::v) gap = out - (a * eps - s * batch.x());
    if (options.prediction == Prediction::epsilon) gap = out - eps;
    if (options.prediction == Prediction::score) gap = s * out + eps;
    const at::Tensor loss = gap.square().mean();
    return {loss.item<double>(), ::torch::autograd::grad({loss}, {flat})[0]};
  }
};

TEST(ScoreMatching, IsTheGradientOfTheWholeGraph) {
  const Network network = small_images();
  const TensorSamples batch = small_batch(at::kDouble);
  TensorParameters theta = initial_parameters(network.layout, Noise(1), at::kDouble), gradient = zeros_like(theta);
  for (const Prediction prediction : {Prediction::v, Prediction::epsilon, Prediction::score}) {
    const ScoreMatchingOptions options{
        .prediction = prediction, .horizon = 3, .time = [](double tau) { return 10 * tau; }, .noise = noise};
    const auto [loss, expected] = WholeLoss{network, options, 4}(batch, theta);
    LossGradient estimator(network, score_matching_loss(options));
    estimator.estimate(batch, theta, 4, gradient);
    // Double precision: levels near 0 lose some digits in 1 - a^2, which the definition above takes as it stands.
    EXPECT_NEAR(estimator.loss(), loss, 1e-9 * loss);
    EXPECT_LT(relative(gradient.read(), expected), 1e-8);
    // A gradient of the next step, of other noise, is another one.
    estimator.estimate(batch, theta, 5, gradient);
    EXPECT_GT(relative(gradient.read(), expected), 1e-2);
  }
}

TEST(ScoreMatching, IsTheDifferenceOfLosses) {
  const Network network = small_images();
  const TensorSamples batch = small_batch(at::kDouble);
  TensorParameters theta = initial_parameters(network.layout, Noise(1), at::kDouble), gradient = zeros_like(theta);
  LossGradient estimator(network, score_matching_loss({.noise = noise}));
  estimator.estimate(batch, theta, 0, gradient);
  const TensorParameters exact = gradient;
  const at::Tensor direction = normals(Noise(8), Stream::reference, 0, {static_cast<std::int64_t>(theta.size())});
  const double slope = (exact.read() * direction).sum().item<double>();
  const auto loss_at = [&](double h) {
    estimator.estimate(batch, TensorParameters(theta.read() + h * direction), 0, gradient);
    return estimator.loss();
  };
  // Central differences: their error is h^2 times a third derivative, 1e-8 here, and 1e-16 / h of rounding.
  const double h = 1e-5, difference = (loss_at(h) - loss_at(-h)) / (2 * h);
  EXPECT_NEAR(difference, slope, 1e-6 * std::abs(slope));
  EXPECT_GT(std::abs(difference - 1.1 * slope), 1e-2 * std::abs(slope)) << "a gradient a tenth too long is seen";
}

TEST(ScoreMatching, DoesNotDependOnThreadsOrOnWhatFillsAShard) {
  const Network network = small_images();
  const TensorSamples batch = small_batch(at::kFloat, 21);
  const TensorParameters theta = initial_parameters(network.layout, Noise(1));
  std::optional<TensorParameters> expected;
  double loss = 0;
  for (const std::size_t threads : {1, 2, 3}) {
    Workers workers(threads);
    LossGradient estimator(network, score_matching_loss({.noise = noise}), &workers);
    TensorParameters gradient = zeros_like(theta);
    estimator.estimate(batch, theta, 2, gradient);
    if (!expected) loss = estimator.loss();
    if (!expected) expected = gradient;
    EXPECT_EQ(gradient, *expected) << threads;
    EXPECT_EQ(estimator.loss(), loss) << threads;
  }
  // Shards of 8, the last with 3 copies, agree but for rounding.
  LossGradient estimator(network, score_matching_loss({.noise = noise}));
  TensorParameters gradient = zeros_like(theta);
  estimator.estimate(TensorSamples(batch.x(), batch.labels(), 8), theta, 2, gradient);
  EXPECT_LT(relative(gradient, *expected), 1e-5);
  EXPECT_NEAR(estimator.loss(), loss, 1e-5 * loss);
}

// x_0 ~ N(m, q^2) and a network w x + b that predicts eps: with r = w (a x_0 + s eps) + b - eps
//     E r^2 = w^2 a^2 q^2 + (w a m + b)^2 + (w s - 1)^2
// averaged over the levels.
TEST(ScoreMatching, HasTheExactLossOfALinearNetworkOnGaussians) {
  const Network linear{.layout = {{"w", {1}}, {"b", {1}}},
                       .sample = {2},
                       .forward = [](Weights w, const NetworkInput& in) { return w[0] * in.x + w[1]; }};
  const TensorParameters theta(at::tensor({0.8, -0.3}, at::kDouble));
  const Gaussians data;
  for (const LevelLaw law : {LevelLaw::cosine, LevelLaw::uniform}) {
    const double horizon = 2;
    double expected = 0, other_law = 0;
    const auto loss_at = [&](double tau) {
      const double a = std::exp(-tau), s = std::sqrt(1 - a * a), w = 0.8, b = -0.3;
      return w * w * a * a * data.deviation * data.deviation + std::pow(w * a * data.mean + b, 2) +
             std::pow(w * s - 1, 2);
    };
    constexpr int points = 20000;
    for (int i = 0; i < points; ++i) {
      const double u = (i + 0.5) / points;
      expected +=
          loss_at(law == LevelLaw::cosine ? -std::log(std::cos(u * std::acos(std::exp(-horizon)))) : u * horizon);
      other_law +=
          loss_at(law == LevelLaw::uniform ? -std::log(std::cos(u * std::acos(std::exp(-horizon)))) : u * horizon);
    }
    expected /= points;
    other_law /= points;

    TensorSamples batch(256, {2}, at::kDouble, 64);
    TensorParameters gradient = zeros_like(theta);
    LossGradient estimator(
        linear,
        score_matching_loss({.prediction = Prediction::epsilon, .law = law, .horizon = horizon, .noise = noise}));
    double sum = 0, squares = 0;
    constexpr int rounds = 200;
    for (int k = 0; k < rounds; ++k) {
      data.draw(batch, k);
      estimator.estimate(batch, theta, k, gradient);
      sum += estimator.loss();
      squares += estimator.loss() * estimator.loss();
    }
    const double mean = sum / rounds, error = std::sqrt((squares / rounds - mean * mean) / (rounds - 1));
    EXPECT_NEAR(mean, expected, 4 * error);
    EXPECT_GT(0.1 * expected, 4 * error) << "a loss a tenth too large is seen";
    EXPECT_GT(std::abs(other_law - expected), 4 * error) << "and so is the other law";
  }
}

// Trained, the linear network that predicts eps from x alone, at nearly one level, finds the regression of eps on x.
TEST(ScoreMatching, TrainsToTheRegression) {
  const Network linear{.layout = {{"w", {1}}, {"b", {1}}},
                       .sample = {2},
                       .forward = [](Weights w, const NetworkInput& in) { return w[0] * in.x + w[1]; }};
  const Gaussians data;
  LossGradient estimator(linear,
                         score_matching_loss({.prediction = Prediction::epsilon, .horizon = 2, .noise = noise}));
  TrainingState state{0, TensorParameters(2, at::kDouble), TensorSamples(256, {2}, at::kDouble, 64),
                      AveragedAdam({{.adam = {.rate = 0.05}, .decay = 400}, 0.9})};
  ASSERT_EQ(train(estimator, data, state, 400).status, Status::completed);
  // The normal equations, by quadrature over levels: E x^2 w + E x b = E x eps, E x w + b = 0.
  double xx = 0, x = 0, xe = 0;
  constexpr int points = 20000;
  for (int i = 0; i < points; ++i) {
    const double tau = level_at(LevelLaw::cosine, 2, (i + 0.5) / points), a = std::exp(-tau), s = std::sqrt(1 - a * a);
    xx += (a * a * (data.deviation * data.deviation + data.mean * data.mean) + s * s) / points;
    x += a * data.mean / points;
    xe += s / points;
  }
  const double w = xe / (xx - x * x), b = -x * w;
  // What is left is the noise of the last steps: about 0.01 of numbers near 1.
  const std::vector<double> theta = host(state.theta), average = host(average_of(state.optimizer, state.theta));
  for (const auto& found : {theta, average}) {
    EXPECT_NEAR(found[0], w, 0.02);
    EXPECT_NEAR(found[1], b, 0.02);
  }
  EXPECT_NE(theta, average);
}

TEST(Training, ResumesToTheSameBits) {
  const Network network = small_images();
  const auto start = [&] {
    return TrainingState{0, initial_parameters(network.layout, Noise(1)), TensorSamples(10, {1, 6, 6}, at::kFloat, 4),
                         AveragedAdam({{.adam = {.rate = 0.01}, .warm_up = 3, .decay = 8, .clip = 0.1}, 0.9})};
  };
  const Gaussians data;
  LossGradient estimator(network, score_matching_loss({.noise = noise}));
  TrainingState whole = start(), first = start(), second = start();
  ASSERT_EQ(train(estimator, data, whole, 8).status, Status::completed);
  ASSERT_EQ(train(estimator, data, first, 5).status, Status::completed);
  io::CheckpointWriter writer;
  save_parameters(writer, first);
  restore_parameters(io::CheckpointReader(writer.to_bytes(), "bytes"), second);
  ASSERT_EQ(train(estimator, data, second, 8).status, Status::completed);
  EXPECT_EQ(second.theta, whole.theta);
  EXPECT_EQ(average_of(second.optimizer, second.theta), average_of(whole.optimizer, whole.theta));
  EXPECT_FALSE(first.theta == whole.theta);
}

TEST(Training, SaysWhatDoesNotFit) {
  const Network network = small_images();
  LossGradient estimator(network, score_matching_loss());
  const TensorParameters theta = initial_parameters(network.layout, Noise(1));
  TensorParameters gradient;
  EXPECT_THROW(estimator.estimate(TensorSamples(4, {1, 5, 6}), theta, 0, gradient), Error);
  EXPECT_THROW(estimator.estimate(TensorSamples(0, {1, 6, 6}), theta, 0, gradient), Error);
  EXPECT_THROW(estimator.estimate(TensorSamples(4, {1, 6, 6}), TensorParameters(3, at::kFloat), 0, gradient), Error);
  EXPECT_THROW(score_matching_loss({.horizon = 0}), Error);
  LossGradient scalar(network, [](const NetworkAt& f, const LossInput& in) {
    return f({in.samples.x, at::zeros({in.samples.size()}), {}}).sum();
  });
  EXPECT_THROW(scalar.estimate(TensorSamples(4, {1, 6, 6}), theta, 0, gradient), Error);
}

// ---- the optimizer

TEST(ScheduledAdam, WarmsUpAndDecays) {
  const ScheduledAdamOptions o{.adam = {.rate = 2.0}, .warm_up = 4, .decay = 8};
  EXPECT_DOUBLE_EQ(o.rate(0), 2.0 * 0.25);
  EXPECT_DOUBLE_EQ(o.rate(3), 2.0 * 0.5 * (1 + std::cos(std::numbers::pi * 3 / 8)));
  EXPECT_NEAR(o.rate(4), 1.0, 1e-15);
  EXPECT_NEAR(o.rate(8), 0.0, 1e-15);
  EXPECT_NEAR(o.rate(12), 0.0, 1e-15);
  EXPECT_DOUBLE_EQ((ScheduledAdamOptions{.adam = {.rate = 2.0}}).rate(100), 2.0);
}

// With epsilon large, a step of Adam is nearly eta m / epsilon: the length of the gradient shows.
TEST(ScheduledAdam, BoundsTheGradient) {
  const auto step = [](double clip, double factor) {
    TensorParameters theta(2, at::kDouble);
    ScheduledAdam adam({.adam = {.rate = 1.0, .epsilon = 1e6}, .clip = clip});
    adam.update(theta, TensorParameters(at::tensor({3.0 * factor, 4.0 * factor}, at::kDouble)), 0);
    return host(theta);
  };
  const std::vector<double> free = step(0, 1), bounded = step(2.5, 1), short_one = step(2.5, 0.4);
  EXPECT_NEAR(free[0], -3e-6, 1e-10);
  EXPECT_NEAR(bounded[0], -1.5e-6, 1e-10);
  EXPECT_NEAR(bounded[1], -2e-6, 1e-10);
  EXPECT_EQ(short_one, step(0, 0.4));
}

TEST(AveragedAdam, AveragesTheta) {
  TensorParameters theta(at::tensor({1.0, -2.0}, at::kDouble));
  AveragedAdam adam({{.adam = {.rate = 0.1}}, 0.3});
  std::vector<double> expected = host(theta);
  EXPECT_EQ(host(average_of(adam, theta)), expected);
  for (std::int64_t k = 0; k < 6; ++k) {
    adam.update(theta, TensorParameters(at::tensor({1.0, k % 2 == 0 ? 1.0 : -3.0}, at::kDouble)), k);
    const double d = std::min(0.3, (1.0 + static_cast<double>(k)) / (10.0 + static_cast<double>(k)));
    for (std::size_t j = 0; j < 2; ++j) expected[j] = d * expected[j] + (1 - d) * host(theta)[j];
    EXPECT_EQ(host(average_of(adam, theta)), expected) << k;
  }
}

// ---- the classifier

TEST(CrossEntropy, IsThatOfTheSoftmax) {
  const Network scores{.layout = {{"w", {3, 2}}}, .sample = {2}, .forward = [](Weights w, const NetworkInput& in) {
                         return at::linear(in.x, w[0]);
                       }};
  const TensorParameters theta(at::tensor({0.3, -0.2, 1.0, 0.5, -0.7, 0.1}, at::kDouble));
  const std::vector<std::vector<double>> x{{1, 2}, {-1, 0.5}, {0.2, 0.3}};
  const TensorSamples batch(at::tensor({1.0, 2.0, -1.0, 0.5, 0.2, 0.3}, at::kDouble).view({3, 2}),
                            at::tensor({0, 2, 1}, at::kLong), 2);
  double expected = 0;
  const std::vector<double> w = host(theta);
  for (std::size_t i = 0; i < 3; ++i) {
    double sum = 0, own = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const double score = w[2 * c] * x[i][0] + w[2 * c + 1] * x[i][1];
      sum += std::exp(score);
      if (c == std::vector<std::size_t>{0, 2, 1}[i]) own = score;
    }
    expected += (std::log(sum) - own) / 3;
  }
  LossGradient estimator(scores, cross_entropy_loss());
  TensorParameters gradient;
  estimator.estimate(batch, theta, 0, gradient);
  EXPECT_NEAR(estimator.loss(), expected, 1e-14);
  EXPECT_THROW(estimator.estimate(TensorSamples(batch.x()), theta, 0, gradient), Error) << "without labels";
}

// Bright and dark images: a classifier tells them apart after a few steps.
TEST(CrossEntropy, TrainsAClassifier) {
  struct Halves {
    static void draw(TensorSamples& s, std::int64_t round) {
      const auto n = static_cast<std::int64_t>(s.size());
      const at::Tensor labels = at::arange(n, at::kLong).remainder(2);
      const at::Tensor z = normals(Noise(2), Stream::reference, round, s.x().sizes().vec());
      s = TensorSamples(0.3 * z + (labels.to(at::kFloat) - 0.5).view({n, 1, 1, 1}), labels, s.shard());
    }
  } source;
  const Network network = make_classifier({.height = 8, .width = 8, .classes = 2, .features = 64});
  LossGradient estimator(network, cross_entropy_loss());
  TrainingState state{0, initial_parameters(network.layout, Noise(4)), TensorSamples(16, {1, 8, 8}),
                      AveragedAdam({{.adam = {.rate = 3e-3}}, 0.9})};
  std::vector<double> losses;
  ASSERT_EQ(train(estimator, source, state, 60, [&](const auto&) { losses.push_back(estimator.loss()); }).status,
            Status::completed);
  EXPECT_NEAR(losses[1], std::log(2.0), 0.2) << "it begins undecided";
  EXPECT_LT(losses.back(), 0.1);
}

}  // namespace
}  // namespace implicit_diffusion
