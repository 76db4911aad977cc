#include "implicit_diffusion/torch/model.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>

#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"
#include "models/fixtures.hpp"
#include "models/small_model.hpp"
#include "torch/network_checks.hpp"

namespace implicit_diffusion {
namespace {

using at::Tensor;

using Tensors = std::map<std::string, Tensor>;

class Model : public testing::Test {
 protected:
  io::TemporaryFolder folder;
  std::filesystem::path place = folder.path() / "model", file = folder.path() / "io.safetensors";
  ModelFolder model = small_model();
  TensorParameters theta = initial_unet(model.network, Noise(5));
  Network network = make_unet(model.network);

  // What the network does, as another program would record it; `change` may alter it.
  void record(const std::function<void(Tensors&)>& change) {
    Tensors t;
    t["sample"] = made_up("sample", {2, 1, 8, 8}).to(at::kFloat);
    t["timestep"] = at::tensor({3.0F, 700.0F});
    t["class_labels"] = at::tensor({2, 0}, at::kLong);
    NetworkInput in{.x = t["sample"].clone().set_requires_grad(true), .t = t["timestep"], .labels = t["class_labels"]};
    std::vector<Tensor> variables = leaves_of(network, theta);
    const Tensor out = evaluate(network, variables, in);
    t["output"] = out.detach();
    t["cotangent"] = made_up("cotangent", {2, 1, 8, 8}).to(at::kFloat);
    variables.push_back(in.x);
    const auto products = torch::autograd::grad({out}, variables, {t["cotangent"]});
    t["vjp_sample"] = products.back();
    for (std::size_t i = 0; i < network.layout.size(); ++i) {
      if (network.layout[i].name == "time_embedding.linear_1.weight") t["vjp_time_linear_1_weight"] = products[i];
      if (network.layout[i].name == "mid_block.attentions.0.to_out.0.bias")
        t["vjp_mid_block_attentions_0_to_out_0_bias"] = products[i];
    }
    change(t);
    io::SafetensorsWriter writer;
    for (auto& [name, v] : t) {
      v = v.contiguous();
      const auto n = static_cast<std::size_t>(v.numel());
      if (v.scalar_type() == at::kLong)
        writer.put(name, v.sizes().vec(), std::span<const std::int64_t>(v.data_ptr<std::int64_t>(), n));
      else
        writer.put(name, v.sizes().vec(), std::span<const float>(v.data_ptr<float>(), n));
    }
    writer.write(file);
  }
};

TEST_F(Model, IsTheSameAfterItWasWrittenAndRead) {
  save_model(place, model, theta);
  const NetworkModel back = load_model(place);
  EXPECT_EQ(back.theta, theta);
  EXPECT_EQ(back.folder.network.block_out_channels, model.network.block_out_channels);
  EXPECT_EQ(back.network.layout, network.layout);
  EXPECT_EQ(back.network.sample, (std::vector<std::int64_t>{1, 8, 8}));
}

TEST_F(Model, IsRefusedWhereAWeightIsNotFinite) {
  TensorParameters bad = theta;
  bad.edit()[17] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_ERROR(save_model(place, model, bad), data, "parameter 17 is not finite");
  EXPECT_FALSE(std::filesystem::exists(place));
  write_model_folder(place, model, {bad.edit().data_ptr<float>(), bad.size()});
  EXPECT_ERROR(load_model(place), data, "conv_in.weight");
}

TEST_F(Model, WithDropoutIsForInferenceOnly) {
  model.network.dropout = 0.1;
  save_model(place, model, theta);
  EXPECT_ERROR(load_model(place), data, place.string() + ": dropout: 0.1");
  EXPECT_NO_THROW(load_model(place, {.inference_only = true}));
}

TEST_F(Model, AgreesWithWhatItDid) {
  save_model(place, model, theta);
  record([](Tensors&) {});
  const auto rows = verify_model(place, file);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].name, "output");
  for (const TensorDifference& row : rows) EXPECT_LE(row.difference, 1e-6) << row.name;
}

TEST_F(Model, DiffersWhereOneNumberDoes) {
  save_model(place, model, theta);
  for (const char* name :
       {"output", "vjp_sample", "vjp_time_linear_1_weight", "vjp_mid_block_attentions_0_to_out_0_bias"}) {
    record([&](Tensors& t) { t[name].view(-1)[1] += 1e-3F * std::max(1.0F, t[name].abs().max().item<float>()); });
    for (const TensorDifference& row : verify_model(place, file)) {
      if (row.name == name)
        EXPECT_NEAR(row.difference, 1e-3, 1e-5) << name;
      else
        EXPECT_LE(row.difference, 1e-6) << row.name;
    }
  }
}

// diffusers knows nothing of patches: it records what the network sees.
TEST_F(Model, MayBeVerifiedOnPatches) {
  save_model(place, model, theta);
  record([](Tensors& t) {
    for (const char* name : {"sample", "output", "cotangent", "vjp_sample"}) t[name] = at::pixel_unshuffle(t[name], 2);
  });
  for (const TensorDifference& row : verify_model(place, file)) EXPECT_LE(row.difference, 1e-6) << row.name;
}

TEST_F(Model, IsNotVerifiedByABadFile) {
  save_model(place, model, theta);
  const auto expect = [&](const std::function<void(Tensors&)>& change, const std::string& text) {
    record(change);
    EXPECT_ERROR(verify_model(place, file), data, file.string() + ": " + text);
  };
  expect([](Tensors& t) { t.erase("sample"); }, "sample: is missing");
  expect([](Tensors& t) { t.erase("timestep"); }, "timestep: is missing");
  expect([](Tensors& t) { t.erase("class_labels"); }, "class_labels: is missing");
  expect([](Tensors& t) { t.erase("output"); }, "output: is missing");
  expect([](Tensors& t) { t.erase("cotangent"); }, "cotangent: is missing");
  expect([](Tensors& t) { t["sample"] = t["sample"][0]; }, "sample: it has 3 dimensions");
  expect([](Tensors& t) { t["sample"] = at::zeros({2, 3, 8, 8}); }, "sample: it has 3 channels");
  expect([](Tensors& t) { t["sample"] = at::zeros({2, 1, 7, 8}); }, "sample: 7 x 8 pixels are no whole patches");
  expect([](Tensors& t) { t["sample"] = at::zeros({2, 1, 6, 8}); }, "sample_size: 3 cannot be halved 1 times");
  expect([](Tensors& t) { t["timestep"] = at::zeros({3}); }, "timestep: its shape is [3] and should be [2]");
  expect([](Tensors& t) { t["class_labels"][1] = 3; }, "class_labels: [1] is 3, the model has 3 classes");
  expect([](Tensors& t) { t["class_labels"] = at::zeros({2}); }, "class_labels: they are no integers");
  expect([](Tensors& t) { t["output"] = at::zeros({2, 1, 8, 4}); }, "output: its shape is [2, 1, 8, 4]");
  expect([](Tensors& t) { t["vjp_nothing"] = at::zeros({2}); }, "vjp_nothing: the model has no such parameter");
  EXPECT_ERROR(verify_model(place, folder.path() / "none"), missing, "none");
  EXPECT_ERROR(verify_model(folder.path() / "none", file), missing, "none");
}

// diffusers' own outputs and products for two small networks.
TEST(GoldenModels, AgreeWithDiffusers) {
  if (!have_fixtures()) GTEST_SKIP() << no_fixtures;
  for (const char* name : {"unet_google_style", "unet_mnist_class"}) {
    const auto rows = verify_model(fixtures() / name, fixtures() / name / "io.safetensors");
    ASSERT_EQ(rows.size(), 4U);
    for (const TensorDifference& row : rows) {
      EXPECT_LE(row.difference, model_tolerance) << name << " " << row.name;
      RecordProperty(std::string(name) + "_" + row.name, std::to_string(row.difference));
    }
  }
}

}  // namespace
}  // namespace implicit_diffusion
