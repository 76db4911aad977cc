#include "implicit_diffusion/models/unet_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "implicit_diffusion/io/sha256.hpp"
#include "implicit_diffusion/models/model_folder.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"

namespace implicit_diffusion {
namespace {

using Shape = std::vector<std::int64_t>;
using Block = UNetConfig::Block;

UNetConfig parse(const std::string& json) { return parse_unet_config(json, "config.json"); }

// Counts that diffusers' own class gave.
TEST(UNetConfig, CountsTheParametersOfKnownNetworks) {
  const auto ddpm = [](Shape widths, std::size_t attention) {
    UNetConfig c;
    const std::size_t n = widths.size();
    c.block_out_channels = std::move(widths);
    c.down_block_types.assign(n, Block::plain);
    c.up_block_types.assign(n, Block::plain);
    c.down_block_types[attention] = c.up_block_types[n - 1 - attention] = Block::attention;
    c.attention_head_dim = std::nullopt;
    return c;
  };
  const auto cifar = parameter_layout(ddpm({128, 256, 256, 256}, 1));
  EXPECT_EQ(cifar.size(), 328U);
  EXPECT_EQ(elements_of(cifar), 35'746'307);
  const auto large = parameter_layout(ddpm({128, 128, 256, 256, 512, 512}, 4));
  EXPECT_EQ(large.size(), 450U);
  EXPECT_EQ(elements_of(large), 113'673'219);

  UNetConfig mnist = ddpm({32, 64, 96}, 1);
  mnist.in_channels = mnist.out_channels = 1;
  mnist.attention_head_dim = 8;
  EXPECT_EQ(elements_of(parameter_layout(mnist)), 2'502'849);
  UNetConfig labels = ddpm({160, 288, 320, 320}, 2);
  labels.attention_head_dim = 64;
  labels.num_class_embeds = 10;
  EXPECT_EQ(elements_of(parameter_layout(labels)), 53'199'587);

  UNetConfig patches = ddpm({32, 64}, 1);
  patches.in_channels = patches.out_channels = 4;
  patches.layers_per_block = 1;
  patches.norm_num_groups = 8;
  patches.attention_head_dim = 32;
  EXPECT_EQ(elements_of(parameter_layout(patches)), 703'076);
  patches.num_class_embeds = 10;
  EXPECT_EQ(elements_of(parameter_layout(patches)), 704'356);
}

// Networks that have every option of a config.json in turn, and what diffusers' own class makes of them: tensors,
// parameters, and the beginning of the SHA-256 of the sorted lines "name [sizes]".
struct Variant {
  std::string name, changes;
  std::size_t tensors;
  std::int64_t parameters;
  std::string digest;
};
const std::vector<Variant> variants{
    {"plain", R"({})", 144, 45187, "40c6435314598628"},
    {"fourier", R"({"time_embedding_type": "fourier"})", 145, 45451, "4e45ef6760635b14"},
    {"learned", R"({"time_embedding_type": "learned", "num_train_timesteps": 50})", 145, 45587, "11956d274da7dad7"},
    {"time_width", R"({"time_embedding_dim": 20})", 144, 43195, "43c001b6deadbaf9"},
    {"classes", R"({"num_class_embeds": 5})", 145, 45347, "bb84c723915c9d89"},
    {"class_timestep", R"({"class_embed_type": "timestep"})", 148, 46531, "ea83563f43dc9e6d"},
    {"class_timestep_fourier", R"({"class_embed_type": "timestep", "time_embedding_type": "fourier"})", 149, 47051,
     "14a81c13c358377c"},
    {"class_identity", R"({"class_embed_type": "identity", "num_class_embeds": 5})", 144, 45187, "40c6435314598628"},
    {"no_middle", R"({"mid_block_type": null})", 114, 33603, "155aab9faec72596"},
    {"no_attention", R"({"add_attention": false})", 134, 44067, "92ce1feed125a490"},
    {"scale_shift", R"({"resnet_time_scale_shift": "scale_shift"})", 142, 48587, "eea635c2c9392281"},
    {"scale_shift_groups", R"({"resnet_time_scale_shift": "scale_shift", "attn_norm_num_groups": 2})", 144, 48619,
     "8c1dc8477ff6ee55"},
    {"resnet_samplers", R"({"downsample_type": "resnet", "upsample_type": "resnet",
       "down_block_types": ["AttnDownBlock2D", "DownBlock2D"]})",
     160, 48163, "621010d60679480b"},
    {"narrow_heads", R"({"attention_head_dim": 3})", 144, 44919, "85cbc9fa84f9b6cf"},
    {"one_head", R"({"attention_head_dim": null})", 144, 45187, "40c6435314598628"},
    {"one_level",
     R"({"block_out_channels": [8], "down_block_types": ["DownBlock2D"], "up_block_types": ["UpBlock2D"]})", 74, 10811,
     "d2c355acae28df66"},
    {"three_levels", R"({"block_out_channels": [4, 8, 12], "layers_per_block": 3, "attention_head_dim": 4,
       "down_block_types": ["AttnDownBlock2D", "DownBlock2D", "AttnDownBlock2D"],
       "up_block_types": ["UpBlock2D", "AttnUpBlock2D", "AttnUpBlock2D"]})",
     426, 54655, "8de8a236ac72af89"},
};

constexpr const char* base = R"({"block_out_channels": [8, 16], "layers_per_block": 1, "norm_num_groups": 4,
  "down_block_types": ["DownBlock2D", "AttnDownBlock2D"], "up_block_types": ["AttnUpBlock2D", "UpBlock2D"],
  "in_channels": 2, "out_channels": 3, "sample_size": 8})";

std::string changed(const std::string& changes) {
  nlohmann::json json = nlohmann::json::parse(base);
  json.update(nlohmann::json::parse(changes));
  return json.dump();
}

TEST(UNetConfig, HasTheNamesAndShapesOfDiffusers) {
  for (const Variant& v : variants) {
    const Layout layout = parameter_layout(parse(changed(v.changes)));
    std::set<std::string> lines;
    for (const TensorShape& t : layout) lines.insert(fmt::format("{} [{}]", t.name, fmt::join(t.shape, ", ")));
    io::Sha256 sha;
    for (const std::string& line : lines) sha.update(line + "\n");
    EXPECT_EQ(layout.size(), v.tensors) << v.name;
    EXPECT_EQ(lines.size(), v.tensors) << v.name;  // no name twice
    EXPECT_EQ(elements_of(layout), v.parameters) << v.name;
    EXPECT_EQ(sha.digits().substr(0, 16), v.digest) << v.name;
  }
}

// scripts/check-diffusers gives a folder, and has diffusers open what is written into it.
TEST(UNetConfig, IsWrittenForOtherPrograms) {
  const io::TemporaryFolder temporary;
  const char* given = std::getenv("IMPLICIT_DIFFUSION_MODELS");
  const std::filesystem::path folder = given ? given : temporary.path();
  for (const Variant& v : variants) {
    if (!given && v.name != "three_levels") continue;
    ModelFolder model;
    model.network = parse(changed(v.changes));
    model.scheduler = v.name == "plain" ? SchedulerConfig() : cosine_scheduler_config();
    std::vector<float> theta(static_cast<std::size_t>(v.parameters));
    std::iota(theta.begin(), theta.end(), 0.0F);
    write_model_folder(folder / v.name, model, theta);
    EXPECT_EQ(read_model_folder(folder / v.name).network, model.network) << v.name;
  }
}

TEST(UNetConfig, IsWrittenAgainWithAllKeys) {
  const std::string json = changed(R"({"sample_size": [8, 16], "_name_or_path": {"a": [1, null]}, "dropout": 0.25})");
  const UNetConfig config = parse(json);
  EXPECT_EQ(config.image_width(), 16);
  EXPECT_EQ(parse(unet_config_json(config)), config);
  const nlohmann::json written = nlohmann::json::parse(unet_config_json(config));
  const nlohmann::json given = nlohmann::json::parse(json);
  for (const auto& [key, value] : given.items()) EXPECT_EQ(written.at(key), value) << key;
  EXPECT_FALSE(written.contains("patch"));
  EXPECT_EQ(parse(unet_config_json(UNetConfig())), UNetConfig());
  EXPECT_EQ(parse("{}"), UNetConfig());  // the defaults of the class
}

TEST(UNetConfig, PatchesAreCutFromImages) {
  const UNetConfig c = parse(changed(R"({"patch": 2, "in_channels": 4, "out_channels": 4, "sample_size": 14})"));
  EXPECT_EQ(c.image_channels(), 1);
  EXPECT_EQ(c.image_height(), 28);
  EXPECT_EQ(nlohmann::json::parse(unet_config_json(c)).at("patch"), 2);
}

TEST(UNetConfig, RefusesWhatIsNoNetwork) {
  const auto refused = [](const std::string& changes, const std::string& message) {
    EXPECT_ERROR(parse(changed(changes)), data, "config.json: " + message) << changes;
  };
  refused(R"({"_class_name": "UNet2DConditionModel"})", "_class_name: 'UNet2DConditionModel' is not supported; known:");
  refused(R"({"in_channels": 0})", "in_channels: 0 is not between 1 and ");
  refused(R"({"in_channels": 3.0})", "in_channels: 3.0 is not a whole number");
  refused(R"({"in_channels": "3"})", "in_channels: \"3\" is not a whole number");
  refused(R"({"in_channels": null})", "in_channels: null is not a whole number");
  refused(R"({"in_channels": 18446744073709551615})", "in_channels: 18446744073709551615 is not between");
  refused(R"({"in_channels": 1000000})", "in_channels: 1000000 is not between 1 and 65536");
  refused(R"({"layers_per_block": 1000000000})", "layers_per_block: 1000000000 is not between 1 and 64");
  refused(R"({"block_out_channels": []})", "block_out_channels: 0 levels");
  refused(R"({"block_out_channels": [8]})", "down_block_types: 2 blocks for 1 widths");
  refused(R"({"up_block_types": ["UpBlock2D"]})", "up_block_types: 1 blocks for 2 widths");
  refused(R"({"down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D"]})",
          "down_block_types: 'CrossAttnDownBlock2D' is");
  refused(R"({"block_out_channels": [8, 18]})",
          "norm_num_groups: the 18 channels of down_blocks.1.resnets.0.norm2 cannot");
  refused(R"({"attention_head_dim": 32})", "attention_head_dim: 32 is wider than the 16 channels of down_blocks.1");
  refused(R"({"time_embedding_type": "learned"})", "num_train_timesteps: is missing");
  refused(R"({"sample_size": 7})", "sample_size: 7 cannot be halved 1 times");
  refused(R"({"sample_size": [8, 8, 8]})", "sample_size: is neither one number nor two");
  refused(R"({"patch": 2})", "patch: 2 in_channels and 3 out_channels are no whole patches of 2 x 2");
  refused(R"({"norm_eps": 0})", "norm_eps: 0 is not between 0 and 1");
  refused(R"({"dropout": 1})", "dropout: 1 is not at least 0 and below 1");
  refused(R"({"downsample_padding": 2})", "downsample_padding: 2 is not between 0 and 1");
  refused(R"({"flip_sin_to_cos": 1})", "flip_sin_to_cos: 1 is not true or false");

  EXPECT_ERROR(parse(""), data, "config.json: the file is empty");
  EXPECT_ERROR(parse("[]"), data, "config.json: is an array, an object is meant");
  EXPECT_ERROR(parse("{\n\n\"a\": }"), data, "config.json: line 3: not valid JSON");
  EXPECT_ERROR(parse(R"({"a": 1, "a": 1})"), data, "config.json: key 'a' is there twice");
  EXPECT_ERROR(parse(R"({"a": )" + std::string(100'000, '[')), data, "config.json: nested more than 64 levels deep");
  EXPECT_ERROR(parse("{\"a\": \"\xff\"}"), data, "not valid JSON");
  EXPECT_ERROR(parse(std::string("{}\0{}", 5)), data, "a zero byte");
  EXPECT_ERROR(parse(R"({"norm_eps": 1e999})"), data, "a number is too large");
  EXPECT_ERROR(parse(R"({"norm_eps": NaN})"), data, "not valid JSON");
}

}  // namespace
}  // namespace implicit_diffusion
