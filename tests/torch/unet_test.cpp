#include "implicit_diffusion/torch/unet.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "implicit_diffusion/io/safetensors.hpp"
#include "io/expect_error.hpp"
#include "models/fixtures.hpp"
#include "src/torch/layers.hpp"
#include "torch/network_checks.hpp"
#include "torch/unet_golden.hpp"

namespace implicit_diffusion {
namespace {

using at::Tensor;

// As scripts/check-networks fills a model.
TensorParameters made_up_theta(const Layout& layout) {
  TensorParameters theta(elements_of(layout), at::kDouble);
  (void)theta.edit();
  const std::vector<Tensor> weights = weights_of(layout, theta);
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto& [name, shape] = layout[i];
    Tensor u = made_up(name, shape);
    const bool table = name.find("embedding.weight") != std::string::npos || name.starts_with("time_proj");
    if (name.ends_with("bias"))
      u = 0.1 * u;
    else if (shape.size() >= 2 && !table)
      u = u * std::sqrt(3.0 * static_cast<double>(shape[0]) / static_cast<double>(elements_of(shape)));
    else if (shape.size() == 1 && !table)
      u = 1 + 0.3 * u;
    weights[i].copy_(u);
  }
  return theta;
}

NetworkInput made_up_input(const UNetConfig& c) {
  using Time = UNetConfig::TimeEmbedding;
  NetworkInput in;
  in.x = made_up("sample", {3, c.image_channels(), c.image_height(), c.image_width()}) * std::sqrt(3.0);
  in.t = c.time_embedding_type == Time::positional ? at::tensor({0.0, 250.5, 999.0})
         : c.time_embedding_type == Time::fourier  ? at::tensor({0.5, 3.0, 20.0})
                                                   : at::tensor({0.0, 7.0, 19.0});
  in.t = in.t.to(at::kDouble);
  if (c.classes()) in.labels = at::tensor({4, 0, 2}, at::kLong);
  if (c.class_embed_type == UNetConfig::ClassEmbedding::timestep) in.labels = at::tensor({3, 1, 19}, at::kLong);
  if (c.class_embed_type == UNetConfig::ClassEmbedding::identity)
    in.labels = made_up("class_labels", {3, c.embedding_width()});
  return in;
}

UNetConfig small() {
  UNetConfig c;
  c.sample_size = {8};
  c.in_channels = c.out_channels = 2;
  c.block_out_channels = {8, 16};
  c.layers_per_block = 1;
  c.down_block_types = {UNetConfig::Block::plain, UNetConfig::Block::attention};
  c.up_block_types = {UNetConfig::Block::attention, UNetConfig::Block::plain};
  c.norm_num_groups = 4;
  return c;
}

class UNetOption : public testing::TestWithParam<GoldenUNet> {
 protected:
  UNetConfig config = parse_unet_config(GetParam().config, GetParam().name);
  Network network = make_unet(config);
  TensorParameters theta = made_up_theta(network.layout);
  NetworkInput in = made_up_input(config);
};

// diffusers' numbers in double precision. Its embedding of times is in single precision, where libraries differ in the
// last digit of a sine: 6e-8, and 3e-8 in a phase of at most 1000 / 10000^(1/4): hence 1e-5.
TEST_P(UNetOption, GivesTheNumbersOfDiffusers) {
  const std::vector<Tensor> leaves = leaves_of(network, theta);
  in.x.set_requires_grad(true);
  const Tensor out = evaluate(network, leaves, in);
  EXPECT_EQ(out.sizes(), (at::IntArrayRef{3, config.out_channels, in.x.size(2), in.x.size(3)}));
  EXPECT_NEAR(made_up_sum("output", out), GetParam().output, 1e-5 * (1 + std::abs(GetParam().output)));

  std::vector<Tensor> variables = leaves;
  variables.push_back(in.x);
  const std::vector<Tensor> products =
      torch::autograd::grad({out}, variables, {made_up("cotangent", out.sizes().vec())}, false, false, true);
  EXPECT_NEAR(made_up_sum("by_sample", products.back()), GetParam().by_sample,
              1e-5 * (1 + std::abs(GetParam().by_sample)));
  double by_theta = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_TRUE(products[i].defined() || network.layout[i].name == "time_proj.weight") << network.layout[i].name;
    if (products[i].defined()) by_theta += made_up_sum(network.layout[i].name, products[i]);
  }
  EXPECT_NEAR(by_theta, GetParam().by_theta, 1e-5 * (1 + std::abs(GetParam().by_theta)));
}

// relu has kinks, which differences cross.
class SmoothUNetOption : public UNetOption {};
TEST_P(SmoothUNetOption, HasTheDerivativesOfItsValues) { expect_derivatives_by_differences(network, theta, in); }

TEST_P(UNetOption, TreatsSamplesAlone) {
  const TensorParameters single(theta.read().to(at::kFloat));
  in.x = in.x.to(at::kFloat);
  if (in.labels.defined() && in.labels.is_floating_point()) in.labels = in.labels.to(at::kFloat);
  in.t = in.t.to(at::kFloat);
  expect_samples_to_be_alone(network, single, in);
}

std::string test_name(const testing::TestParamInfo<GoldenUNet>& row) {
  std::string name;
  for (const char* c = row.param.name; *c; ++c) name += std::isalnum(*c) ? *c : '_';
  return name;
}
std::vector<GoldenUNet> smooth() {
  std::vector<GoldenUNet> rows(std::begin(golden_unets), std::end(golden_unets));
  std::erase_if(rows, [](const GoldenUNet& row) { return row.name == std::string("relu"); });
  return rows;
}
INSTANTIATE_TEST_SUITE_P(All, UNetOption, testing::ValuesIn(golden_unets), test_name);
INSTANTIATE_TEST_SUITE_P(All, SmoothUNetOption, testing::ValuesIn(smooth()), test_name);

// A deliberately wrong network is told apart: the groups of one normalisation.
TEST(UNet, WrongGroupsGiveOtherNumbers) {
  UNetConfig c = parse_unet_config(golden_unets[0].config, "base");
  c.norm_num_groups = 2;
  const Network network = make_unet(c);
  const Tensor out = evaluate(network, weights_of(network.layout, made_up_theta(network.layout)), made_up_input(c));
  EXPECT_GT(std::abs(made_up_sum("output", out) - golden_unets[0].output), 0.01);
}

TEST(UNet, EmbedsTimesAsDiffusersDoes) {
  if (!have_fixtures()) GTEST_SKIP() << no_fixtures;
  const io::SafetensorsReader file(fixtures() / "timestep_embedding.safetensors");
  const auto expect = [&](const std::string& name, const Tensor& t, std::int64_t features, bool flip,
                          std::int64_t shift) {
    Tensor expected = at::empty({t.size(0), features});
    file.read(name, std::span(expected.data_ptr<float>(), static_cast<std::size_t>(expected.numel())));
    const Tensor e =
        layers::embed_time(t, layers::embedding_frequencies(features / 2, shift), features, flip, at::kFloat);
    // A phase of up to 999 has an error of half its last digit, 3e-5, in single precision.
    EXPECT_LT((e - expected).abs().max().item<double>(), 1e-4) << name;
    EXPECT_LT((e - expected).abs().mean().item<double>(), 1e-6) << name;
  };
  const Tensor times = at::tensor({0.0F, 1.0F, 10.0F, 500.0F, 999.0F});
  for (const int flip : {0, 1})
    for (const int shift : {0, 1})
      for (const int features : {7, 8, 128})
        expect(fmt::format("emb_flip{}_shift{}_dim{}", flip, shift, features), times, features, flip == 1, shift);
  expect("emb_fractional_flip0_shift1_dim8", at::tensor({0.0F, 0.25F, 10.5F, 999.0F}), 8, false, 1);
}

// Space to depth by hand: channel (c p + i) p + j of the network has the pixels with row i and column j modulo p.
TEST(UNet, WorksOnPatches) {
  UNetConfig inner = small();
  inner.in_channels = inner.out_channels = 8;
  UNetConfig patched = inner;
  patched.patch = 2;
  const Network a = make_unet(inner), b = make_unet(patched);
  EXPECT_EQ(b.sample, (std::vector<std::int64_t>{2, 16, 16}));
  const TensorParameters theta = made_up_theta(a.layout);
  NetworkInput image = made_up_input(patched), cut = image;
  const auto to_patches = [](const Tensor& x) {
    Tensor y = at::empty({x.size(0), 4 * x.size(1), x.size(2) / 2, x.size(3) / 2}, x.options());
    for (std::int64_t c = 0; c < x.size(1); ++c)
      for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t j = 0; j < 2; ++j)
          y.select(1, (c * 2 + i) * 2 + j).copy_(x.select(1, c).slice(1, i, x.size(2), 2).slice(2, j, x.size(3), 2));
    return y;
  };
  cut.x = to_patches(image.x);
  const std::vector<Tensor> weights = weights_of(a.layout, theta);
  EXPECT_TRUE(at::equal(to_patches(evaluate(b, weights, image)), evaluate(a, weights, cut)));
}

// By pixel or by channel: sums in another order. Values are of order 1 and go through about 100 layers.
TEST(UNet, GivesTheSameWithChannelsLast) {
  const UNetConfig c = small();
  const Network by_channel = make_unet(c), by_pixel = make_unet(c, {.channels_last = true});
  const TensorParameters theta = made_up_theta(by_channel.layout);
  const NetworkInput in = made_up_input(c);
  const std::vector<Tensor> weights = weights_of(by_channel.layout, theta);
  const Tensor a = evaluate(by_channel, weights, in), b = evaluate(by_pixel, weights, in);
  EXPECT_TRUE(b.is_contiguous());
  EXPECT_LT((a - b).abs().max().item<double>(), 1e-12);
}

TEST(UNet, BeginsWithTheWeightsOfPyTorch) {
  UNetConfig c = small();
  c.num_class_embeds = 500;
  c.time_embedding_type = UNetConfig::TimeEmbedding::fourier;
  const Layout layout = parameter_layout(c);
  const TensorParameters theta = initial_unet(c, Noise(3));
  EXPECT_EQ(theta, initial_unet(c, Noise(3)));
  EXPECT_FALSE(theta == initial_unet(c, Noise(4)));
  const std::vector<Tensor> weights = weights_of(layout, theta);
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto& [name, shape] = layout[i];
    const double largest = weights[i].abs().max().item<double>();
    if (name == "class_embedding.weight") {
      // 16,000 normals: the standard error of their variance is sqrt(2 / 16000) = 0.011.
      EXPECT_NEAR(weights[i].var().item<double>(), 1, 5 * 0.0112);
    } else if (name == "time_proj.weight") {
      EXPECT_GT(largest, 4);  // 8 normals of width 16
    } else if (shape.size() > 1) {
      const double bound = std::sqrt(static_cast<double>(shape[0]) / static_cast<double>(elements_of(shape)));
      EXPECT_LE(largest, bound) << name;
      EXPECT_GT(largest, 0.8 * bound) << name;  // of at least 100 uniforms
    }
  }
}

TEST(UNet, BeginsAtZeroIfAsked) {
  const UNetConfig c = small();
  const Network network = make_unet(c);
  NetworkInput in = made_up_input(c);
  in.x = in.x.to(at::kFloat);
  const auto largest = [&](bool zero) {
    const TensorParameters theta = initial_unet(c, Noise(3), zero);
    return evaluate(network, weights_of(network.layout, theta), in).abs().max().item<double>();
  };
  EXPECT_EQ(largest(true), 0);
  EXPECT_GT(largest(false), 0.01);
  // The second convolution of 6 resnets, 4 attentions and the last convolution, and nothing else.
  const TensorParameters theta = initial_unet(c, Noise(3), true);
  const std::vector<Tensor> weights = weights_of(network.layout, theta);
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (network.layout[i].shape.size() > 1 && weights[i].abs().max().item<double>() == 0) ++zeros;
  EXPECT_EQ(zeros, 8U + 4U + 1U);
}

TEST(UNet, RefusesWhatItCannotBe) {
  const auto with = [](auto change) {
    UNetConfig c = small();
    change(c);
    return c;
  };
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.dropout = 0.1; })), usage, "network: dropout: 0.1");
  EXPECT_NO_THROW(make_unet(with([](UNetConfig& c) { c.dropout = 0.1; }), {.inference_only = true}));
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.sample_size.clear(); })), usage, "network: sample_size");
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.sample_size = {9}; })), usage, "network: sample_size: 9");
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.norm_num_groups = 3; })), usage, "norm_num_groups");
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.attn_norm_num_groups = 5; })), usage, "5 groups");
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.attention_head_dim = 17; })), usage, "attention_head_dim");
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.up_block_types.pop_back(); })), usage, "up_block_types");
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.patch = 2; })), usage, "patch");
  EXPECT_ERROR(make_unet(with([](UNetConfig& c) { c.time_embedding_type = UNetConfig::TimeEmbedding::learned; })),
               usage, "num_train_timesteps");
}

// Where a function is asked for what is not in its tables.
TEST(UNet, RefusesTimesAndLabelsThatItDoesNotHave) {
  UNetConfig c = small();
  c.time_embedding_type = UNetConfig::TimeEmbedding::learned;
  c.num_train_timesteps = 20;
  c.num_class_embeds = 5;
  const Network network = make_unet(c);
  const std::vector<Tensor> weights = weights_of(network.layout, made_up_theta(network.layout));
  NetworkInput in = made_up_input(c);
  EXPECT_NO_THROW(evaluate(network, weights, in));
  in.labels[1] = 5;
  EXPECT_ERROR(evaluate(network, weights, in), usage, "out of range");
  in.labels[1] = 4;
  in.t[0] = 20;
  EXPECT_ERROR(evaluate(network, weights, in), usage, "out of range");
  in.t[0] = 1.5;
  EXPECT_ERROR(evaluate(network, weights, in), usage, "learned time embedding");
}

}  // namespace
}  // namespace implicit_diffusion
