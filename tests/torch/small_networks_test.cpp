#include <ATen/ATen.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "implicit_diffusion/torch/classifier.hpp"
#include "implicit_diffusion/torch/mlp.hpp"
#include "io/expect_error.hpp"
#include "torch/network_checks.hpp"

namespace implicit_diffusion {
namespace {

using at::Tensor;

// A network whose gradient forgets a factor, and one that looks at its neighbours.
Network wrong(bool gradient) {
  return {
      .layout = {{"w", {2}}}, .sample = {2}, .forward = [gradient](std::span<const Tensor> w, const NetworkInput& in) {
        if (gradient) return in.x * w[0] * w[0].detach();
        return in.x * w[0] - in.x.mean(0);
      }};
}
void check_wrong_gradient() {
  expect_derivatives_by_differences(wrong(true), TensorParameters(at::full({2}, 0.7, at::kDouble)),
                                    {.x = made_up("x", {3, 2}), .t = {}, .labels = {}});
}
void check_neighbours() {
  expect_samples_to_be_alone(wrong(false), TensorParameters(at::full({2}, 0.7, at::kDouble)),
                             {.x = made_up("x", {3, 2}), .t = {}, .labels = {}});
}
TEST(NetworkChecks, FindWhatIsWrong) {
  EXPECT_NONFATAL_FAILURE(check_wrong_gradient(), "expected");
  EXPECT_NONFATAL_FAILURE(check_neighbours(), "at::equal");
}

double silu(double x) { return x / (1 + std::exp(-x)); }

// Two units and two layers, by hand.
TEST(Mlp, IsTheFormulaOfItsHeader) {
  const Network network = make_mlp({.inputs = 1, .outputs = 1, .widths = {2, 1}, .time_features = 2, .classes = 3});
  // input 2 + 2, time 4 + 2 + 4 + 2, labels 6, hidden 2 + 1, output 1 + 1
  ASSERT_EQ(elements_of(network.layout), 27);
  Tensor theta = at::arange(27, at::kDouble) / 10 - 1;
  const auto w = [&](std::int64_t j) { return theta[j].item<double>(); };
  const double x = 0.7, t = 2.0;
  const double e[2] = {std::cos(t), std::sin(t)};
  double h[2];
  for (std::int64_t i = 0; i < 2; ++i) {
    h[i] = w(i) * x + w(2 + i) + w(14 + i) + w(16 + 2 * 1 + i);
    for (std::int64_t j = 0; j < 2; ++j)
      h[i] += w(10 + 2 * i + j) * silu(w(4 + 2 * j) * e[0] + w(4 + 2 * j + 1) * e[1] + w(8 + j));
  }
  const double hidden = w(22) * silu(h[0]) + w(23) * silu(h[1]) + w(24);
  const double expected = w(25) * silu(hidden) + w(26);
  const Tensor out = evaluate(network, weights_of(network.layout, TensorParameters(theta)),
                              {.x = at::full({1, 1}, x, at::kDouble),
                               .t = at::full({1}, t, at::kDouble),
                               .labels = at::full({1}, 1, at::kLong)});
  // The time is embedded in single precision.
  EXPECT_NEAR(out.item<double>(), expected, 1e-6);
}

TEST(Mlp, HasTheDerivativesOfItsValuesAndTreatsSamplesAlone) {
  for (const std::vector<std::int64_t>& widths : {std::vector<std::int64_t>{7}, {16, 5}, {8, 8, 8, 8}}) {
    const Network network = make_mlp({.inputs = 3, .outputs = 2, .widths = widths, .time_features = 6, .classes = 4});
    const TensorParameters theta = initial_parameters(network.layout, Noise(1), at::kDouble);
    const NetworkInput in{.x = made_up("x", {4, 3}),
                          .t = at::tensor({0.0, 3.5, 100.0, 1000.0}).to(at::kDouble),
                          .labels = at::tensor({0, 3, 1, 2}, at::kLong)};
    EXPECT_EQ(evaluate(network, weights_of(network.layout, theta), in).sizes(), (at::IntArrayRef{4, 2}));
    expect_derivatives_by_differences(network, theta, in);
    expect_samples_to_be_alone(network, theta, in);
  }
}

TEST(MlpEnergy, HasTheDerivativesOfItsValuesAndTreatsSamplesAlone) {
  const Network network = make_mlp_energy({.inputs = 2, .widths = {9, 6}, .confinement = 0.3});
  const TensorParameters theta = initial_parameters(network.layout, Noise(1), at::kDouble);
  const NetworkInput in{.x = made_up("x", {5, 2}), .t = {}, .labels = {}};
  EXPECT_EQ(evaluate(network, weights_of(network.layout, theta), in).sizes(), at::IntArrayRef{5});
  expect_derivatives_by_differences(network, theta, in);
  expect_samples_to_be_alone(network, theta, in);
}

// With weights of 0 the law is N(0, 1 / confinement), and with large ones V still grows: along any ray
// V(r u) >= confinement r^2 / 2 - L r - |f(0)|, with L the product of the norms of the weights and of 1.1, the largest
// slope of silu.
TEST(MlpEnergy, IsConfinedByAParabola) {
  const double c = 0.3;
  const Network network = make_mlp_energy({.inputs = 2, .widths = {9, 6}, .confinement = c});
  const Tensor x = made_up("x", {5, 2}) * 4;
  const TensorParameters zero(elements_of(network.layout), at::kDouble);
  const Tensor parabola = evaluate(network, weights_of(network.layout, zero), {.x = x, .t = {}, .labels = {}});
  EXPECT_LT((parabola - c / 2 * x.square().sum(1)).abs().max().item<double>(), 1e-14);

  TensorParameters theta = initial_parameters(network.layout, Noise(1), at::kDouble);
  theta.edit().mul_(10);
  const std::vector<Tensor> weights = weights_of(network.layout, theta);
  double slope = 1;
  for (const Tensor& w : weights)
    if (w.dim() == 2) slope *= w.norm().item<double>();
  slope *= 1.1 * 1.1;
  const auto energy = [&](const Tensor& at) { return evaluate(network, weights, {.x = at, .t = {}, .labels = {}}); };
  const double at_zero = std::abs(energy(at::zeros({1, 2}, at::kDouble)).item<double>());
  const double r = 10 * slope / c;
  for (int k = 0; k < 16; ++k) {
    const double angle = 2 * std::numbers::pi * k / 16;
    const Tensor far = at::tensor({r * std::cos(angle), r * std::sin(angle)}).to(at::kDouble).unsqueeze(0);
    EXPECT_GT(energy(far).item<double>(), c / 2 * r * r - slope * r - at_zero);
  }
}

TEST(Mlp, RefusesWhatItCannotBe) {
  EXPECT_ERROR(make_mlp({.inputs = 0}), usage, "network.inputs: 0");
  EXPECT_ERROR(make_mlp({.outputs = -1}), usage, "network.outputs: -1");
  EXPECT_ERROR(make_mlp({.widths = {}}), usage, "network.widths");
  EXPECT_ERROR(make_mlp({.widths = {4, 0}}), usage, "network.widths: 0");
  EXPECT_ERROR(make_mlp({.time_features = 3}), usage, "network.time_features: 3");
  EXPECT_ERROR(make_mlp({.classes = -1}), usage, "network.classes: -1");
  EXPECT_ERROR(make_mlp_energy({.confinement = 0}), usage, "network.confinement");
}

// A kernel with a single 1 in its middle picks pixels: the scores are those of the image at every fourth pixel.
TEST(Classifier, IsTheFormulaOfItsHeader) {
  const ClassifierConfig config{.height = 7, .width = 5, .classes = 2, .features = 3};
  const Network network = make_classifier(config), features = make_classifier_features(config);
  TensorParameters theta(elements_of(network.layout), at::kDouble);
  (void)theta.edit();
  const std::vector<Tensor> w = weights_of(network.layout, theta);
  for (const std::size_t conv : {0U, 2U, 4U}) w[conv][0][0][1][1] = 1;
  w[1][0] = 0.5;                                     // the bias of the first convolution
  w[6].narrow(1, 0, 4).copy_(made_up("f", {3, 4}));  // 2 x 2 pixels of the first of 32 channels
  w[8].copy_(made_up("s", {2, 3}));
  w[9].copy_(made_up("b", {2}));
  const Tensor x = made_up("x", {4, 1, 7, 5});
  const Tensor picked = at::relu(x.slice(2, 0, 7, 4).slice(3, 0, 5, 4) + 0.5).reshape({4, 4});
  const Tensor f = at::relu(picked.matmul(made_up("f", {3, 4}).t()));
  const NetworkInput in{.x = x, .t = {}, .labels = {}};
  EXPECT_LT((evaluate(features, w, in) - f).abs().max().item<double>(), 1e-14);
  const Tensor scores = f.matmul(made_up("s", {2, 3}).t()) + made_up("b", {2});
  EXPECT_LT((evaluate(network, w, in) - scores).abs().max().item<double>(), 1e-14);
}

TEST(Classifier, TreatsSamplesAlone) {
  const Network network = make_classifier();
  EXPECT_EQ(network.sample, (std::vector<std::int64_t>{1, 28, 28}));
  EXPECT_EQ(elements_of(network.layout), 160 + 4640 + 9248 + (32 * 49 + 1) * 64 + 650);
  const TensorParameters theta = initial_parameters(network.layout, Noise(1));
  const NetworkInput in{.x = made_up("x", {4, 1, 28, 28}).to(at::kFloat), .t = {}, .labels = {}};
  expect_samples_to_be_alone(network, theta, in);
  EXPECT_ERROR(make_classifier({.classes = 0}), usage, "classifier.classes: 0");
}

}  // namespace
}  // namespace implicit_diffusion
