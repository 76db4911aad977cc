// Rewards, the oracle, and what sets of images are judged by: against closed forms and finite differences.
#include "data/support.hpp"
#include "implicit_diffusion/images/classifier_folder.hpp"
#include "implicit_diffusion/images/rewards.hpp"
#include "implicit_diffusion/images/source.hpp"
#include "implicit_diffusion/images/statistics.hpp"
#include "torch/made_up.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace implicit_diffusion {
namespace {

namespace fs = std::filesystem;

const ClassifierConfig small_classifier{.channels = 1, .height = 6, .width = 5, .classes = 3, .features = 4};

TensorSamples two_images(std::int64_t channels, at::ScalarType type = at::kDouble) {
  return TensorSamples(made_up("images", {2, channels, 6, 5}).to(type), {}, 2);
}

TEST(Rewards, AreTheirDefinitions) {
  const TensorSamples x = two_images(3);
  const std::vector<double> bright = rewards_of(x, brightness_reward()), red = rewards_of(x, redness_reward()),
                            contrast = rewards_of(x, contrast_reward());
  for (std::size_t i = 0; i < 2; ++i) {
    const double* v = x.x().data_ptr<double>() + 90 * i;
    double sum = 0, squares = 0, by_channel[3] = {};
    for (std::size_t j = 0; j < 90; ++j) {
      const double p = (v[j] + 1) / 2;
      sum += p / 90;
      squares += p * p / 90;
      by_channel[j / 30] += p / 30;
    }
    EXPECT_NEAR(bright[i], sum, 1e-12);
    EXPECT_NEAR(red[i], by_channel[0] - (by_channel[1] + by_channel[2]) / 2, 1e-12);
    EXPECT_NEAR(contrast[i], std::sqrt(squares - sum * sum), 1e-9);
  }
  EXPECT_ERROR(rewards_of(two_images(1), redness_reward()), usage, "three channels");
  // Clipped: an image of 3 everywhere is as bright as white.
  const TensorSamples beyond(at::full({1, 1, 6, 5}, 3.0, at::kDouble));
  EXPECT_NEAR(rewards_of(beyond, brightness_reward())[0], 2, 1e-12);
  EXPECT_NEAR(clipped_rewards_of(beyond, brightness_reward())[0], 1, 1e-12);
}

TEST(Rewards, HaveTheGradientsOfTheirDifferences) {
  const Network network = make_classifier(small_classifier);
  const TensorParameters weights = initial_parameters(network.layout, Noise(3), at::kDouble);
  struct Case {
    TensorReward reward;
    std::int64_t channels;
  };
  const std::vector<Case> cases{{brightness_reward(), 1},
                                {redness_reward(), 3},
                                {contrast_reward(), 1},
                                {class_reward(small_classifier, weights, 2), 1}};
  for (const Case& c : cases) {
    const TensorSamples x = two_images(c.channels);
    const TensorSamples slope(x);
    c.reward.gradient(TensorTiles::tile(x, 0), TensorTiles::tile(slope, 0));
    const at::Tensor direction = made_up("direction", x.x().sizes().vec());
    const auto sum_at = [&](double h) {
      double sum = 0;
      for (const double r : rewards_of(TensorSamples(x.x() + h * direction, {}, 2), c.reward)) sum += r;
      return sum;
    };
    const double h = 1e-5, expected = (sum_at(h) - sum_at(-h)) / (2 * h),
                 got = (slope.x() * direction).sum().item<double>();
    EXPECT_NEAR(got, expected, 1e-6 * std::abs(expected) + 1e-9);
    EXPECT_GT(std::abs(1.1 * got - expected), 1e-5 * std::abs(expected) + 1e-8) << "a tenth more is seen";
  }
  EXPECT_ERROR(class_reward(small_classifier, weights, 3), usage, "the classifier has 3");
}

// By hand for four images.
TEST(Oracle, IsTheReweightedData) {
  const std::vector<double> r{0.1, 0.4, 0.2, 0.9};
  const Oracle all = tilted_data(r, {}, 2);
  double z = 0, reward = 0, kl = 0, squares = 0;
  for (const double x : r) z += std::exp(2 * x);
  for (const double x : r) {
    const double w = std::exp(2 * x) / z;
    reward += w * x;
    kl += w * std::log(4 * w);
    squares += w * w;
  }
  EXPECT_NEAR(all.reward, reward, 1e-14);
  EXPECT_NEAR(all.kl, kl, 1e-14);
  EXPECT_NEAR(all.effective_samples, 1 / squares, 1e-12);
  // Within classes, averaged.
  const Oracle a = tilted_data({0.1, 0.4}, {}, 2), b = tilted_data({0.2, 0.9}, {}, 2),
               both = tilted_data(r, {7, 7, 1, 1}, 2);
  EXPECT_NEAR(both.reward, (a.reward + b.reward) / 2, 1e-14);
  EXPECT_NEAR(both.kl, (a.kl + b.kl) / 2, 1e-14);
  // Nothing changes at ratio 0, and a huge one does not overflow.
  EXPECT_NEAR(tilted_data(r, {}, 0).kl, 0, 1e-15);
  EXPECT_NEAR(tilted_data(r, {}, 1e5).reward, 0.9, 1e-12);
  EXPECT_THROW(tilted_data({}, {}, 1), Error);
  EXPECT_THROW(tilted_data(r, {1, 2}, 1), Error);
}

// Known numbers of the real data, where it is at hand.
TEST(Oracle, HasTheKnownNumbersOfMnist) {
  const fs::path folder = fs::path(IMPLICIT_DIFFUSION_SHARED_DATA) / "mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "no MNIST at " << folder;
  const auto set = data::open_data_set(folder);
  const TensorSamples images = images_of(*set, *set->shape(), 0, set->size(), false, 500);
  const std::vector<double> r = rewards_of(images, brightness_reward());
  struct Known {
    double ratio, reward, kl;
  };
  for (const auto& [ratio, reward, kl] :
       {Known{-60, 0.0680, 1.473}, Known{-30, 0.0893, 0.553}, Known{30, 0.2110, 1.347}}) {
    const Oracle o = tilted_data(r, {}, ratio);
    EXPECT_NEAR(o.reward, reward, 6e-5);  // the digits that are known
    EXPECT_NEAR(o.kl, kl, 6e-4);
  }
}

// ---- distances of laws

TEST(Frechet, HasItsClosedForms) {
  // Of one dimension: (m_1 - m_2)^2 + (s_1 - s_2)^2.
  EXPECT_NEAR(frechet_distance({{1}, {4}}, {{3}, {9}}), 4 + 1, 1e-12);
  // Of two: tr (C_1 C_2)^1/2 = sqrt(tr C_1 C_2 + 2 sqrt(det C_1 C_2)), and these two do not commute.
  const FeatureGaussian a{{0, 0}, {2, 0.5, 0.5, 1}}, b{{1, 2}, {1, -0.3, -0.3, 3}};
  const double trace = 2 * 1 + 0.5 * -0.3 * 2 + 1 * 3, determinant = (2 - 0.25) * (3 - 0.09);
  EXPECT_NEAR(frechet_distance(a, b), 5 + 3 + 4 - 2 * std::sqrt(trace + 2 * std::sqrt(determinant)), 1e-12);
  EXPECT_NEAR(frechet_distance(a, b), frechet_distance(b, a), 1e-12);
  EXPECT_NEAR(frechet_distance(a, a), 0, 1e-12);
}

TEST(Frechet, IsOfTheGaussianOfFeatures) {
  const std::vector<double> rows{1, 2, 3, 5, -1, 0};  // three of width 2
  const FeatureGaussian g = feature_gaussian(rows, 2);
  EXPECT_NEAR(g.mean[0], 1, 1e-14);
  EXPECT_NEAR(g.mean[1], 7.0 / 3, 1e-14);
  EXPECT_NEAR(g.covariance[0], 4, 1e-14);  // (0 + 4 + 4) / 2
  EXPECT_NEAR(g.covariance[1], (2 * 8.0 / 3 + 2 * 7.0 / 3) / 2, 1e-13);
  EXPECT_EQ(g.covariance[1], g.covariance[2]);
  EXPECT_THROW(feature_gaussian(std::vector<double>{1, 2}, 2), Error);
}

TEST(Statistics, AreTheirDefinitions) {
  const std::vector<double> x{1, 2, 4};
  EXPECT_NEAR(mean_and_error(x).mean, 7.0 / 3, 1e-14);
  EXPECT_NEAR(mean_and_error(x).standard_error, std::sqrt((16.0 / 9 + 1.0 / 9 + 25.0 / 9) / 2 / 3), 1e-14);
  const std::vector<std::int64_t> predicted{0, 2, 2, 2};
  const std::vector<double> shares = class_histogram(predicted, 3);
  EXPECT_EQ(shares, (std::vector<double>{0.25, 0, 0.75}));
  EXPECT_NEAR(entropy(shares), -0.25 * std::log(0.25) - 0.75 * std::log(0.75), 1e-14);
  EXPECT_NEAR(mean_pairwise_distance(std::vector<double>{0, 0, 3, 4, 3, 0}, 2), (5 + 3 + 4) / 3.0, 1e-14);
  const Judged judged{0, {}, {0.95, 0.5, 0.91, 0.2}, predicted};
  EXPECT_EQ(recognised(judged, {}), 0.5);
  EXPECT_EQ(recognised(judged, at::tensor({0, 1, 2, 2}, at::kLong)), 0.75);
}

// ---- classifiers

TEST(Classifiers, JudgeWithTheirNetwork) {
  const Network scores = make_classifier(small_classifier), features = make_classifier_features(small_classifier);
  const TensorParameters weights = initial_parameters(scores.layout, Noise(3));
  const TensorSamples x(2 * made_up("judged", {5, 1, 6, 5}).to(at::kFloat), {}, 2);  // some beyond [-1, 1]
  Workers workers(2);
  const Judged judged = judge(small_classifier, weights, x, &workers);
  const at::Tensor clipped = x.x().clamp(-1, 1);
  const auto w = weights_of(scores.layout, weights);
  const at::Tensor p = at::softmax(evaluate(scores, w, {clipped, {}, {}}), 1),
                   f = evaluate(features, w, {clipped, {}, {}});
  for (std::int64_t i = 0; i < 5; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_NEAR(judged.confidence[at], p[i].max().item<double>(), 1e-5);
    EXPECT_EQ(judged.predicted[at], p[i].argmax().item<std::int64_t>());
    for (std::int64_t j = 0; j < 4; ++j)
      EXPECT_NEAR(judged.features[at * 4 + static_cast<std::size_t>(j)], f[i][j].item<double>(), 1e-5);
  }
  EXPECT_ERROR(judge(small_classifier, weights, TensorSamples(2, {1, 4, 4})), usage, "another size");
}

TEST(Classifiers, AreWrittenAndRead) {
  const io::TemporaryFolder folder;
  ClassifierModel model{
      small_classifier, {"a", "b", "c"}, 0.5, initial_parameters(make_classifier(small_classifier).layout, Noise(3))};
  save_classifier(folder.path() / "c", model);
  const ClassifierModel read = load_classifier(folder.path() / "c");
  EXPECT_EQ(read.theta, model.theta);
  EXPECT_EQ(read.class_names, model.class_names);
  EXPECT_EQ(read.accuracy, model.accuracy);
  EXPECT_EQ(read.config.width, 5);

  EXPECT_ERROR(load_classifier(folder.path() / "nowhere"), missing, "classifier.json");
  fs::remove(folder.path() / "c/classifier.safetensors");
  EXPECT_ERROR(load_classifier(folder.path() / "c"), missing, "classifier.safetensors");
  save_classifier(folder.path() / "c", model);
  std::ofstream(folder.path() / "c/classifier.json") << R"({"classes": 4, "height": 6, "width": 5, "features": 4})";
  EXPECT_ERROR(load_classifier(folder.path() / "c"), data, "scores.weight");
  std::ofstream(folder.path() / "c/classifier.json") << R"({"classes": 3, "class_names": ["one"]})";
  EXPECT_ERROR(load_classifier(folder.path() / "c"), data, "class_names");
  model.theta.edit().fill_(INFINITY);
  EXPECT_ERROR((save_classifier(folder.path() / "c", model), 0), data, "not finite");
}

// ---- batches

TEST(ImageSource, DrawsTheBatchesOfTheDataSet) {
  const io::TemporaryFolder folder;
  // Six images of 2 x 3 with their labels, as IDX files.
  std::string images("\0\0\x08\x03\0\0\0\x06\0\0\0\x02\0\0\0\x03", 16), labels("\0\0\x08\x01\0\0\0\x06", 8);
  for (int i = 0; i < 36; ++i) images += static_cast<char>(i * 7);
  for (int i = 0; i < 6; ++i) labels += static_cast<char>(i % 2);
  std::ofstream(folder.path() / "train-images-idx3-ubyte", std::ios::binary) << images;
  std::ofstream(folder.path() / "train-labels-idx1-ubyte", std::ios::binary) << labels;
  const auto set = data::open_data_set(folder.path());
  const data::Batches batches(*set, {.seed = 4, .size = 4});
  ImageSource source(batches, true, 3);
  TensorSamples x;
  for (const std::int64_t k : {0, 1, 2, 1}) {
    source.draw(x, k);
    const data::Batch expected = batches.batch(k);
    ASSERT_EQ(x.size(), 4U);
    EXPECT_EQ(x.shard(), 3U);
    for (std::size_t j = 0; j < expected.values.size(); ++j) EXPECT_EQ(x.x().data_ptr<float>()[j], expected.values[j]);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(x.labels().data_ptr<std::int64_t>()[i], expected.labels[i]);
  }
  const TensorSamples two = images_of(*set, {1, 2, 3}, 1, 2, true);
  EXPECT_EQ(two.labels()[0].item<std::int64_t>(), 1);
  EXPECT_FLOAT_EQ(two.x()[0][0][0][1].item<float>(), 7 * 7 / 127.5F - 1);
}

}  // namespace
}  // namespace implicit_diffusion
