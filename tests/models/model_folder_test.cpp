#include "implicit_diffusion/models/model_folder.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/sha256.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"
#include "models/fixtures.hpp"
#include "models/small_model.hpp"

namespace implicit_diffusion {
namespace {

using io::TemporaryFolder;
using nlohmann::json;
using Path = std::filesystem::path;

// Reads a folder and writes it again elsewhere.
void copy_model(const Path& from, const Path& to) {
  const ModelFolder model = read_model_folder(from);
  const Layout layout = parameter_layout(model.network);
  std::vector<float> theta(static_cast<std::size_t>(elements_of(layout)));
  ModelWeights(from).load(layout, theta);
  write_model_folder(to, model, theta);
}

json json_of(const Path& file) { return json::parse(io::read_file(file)); }
void write(const Path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

TEST(ModelFolder, AModelOfDiffusersIsWrittenAgainAsItIs) {
  if (!have_fixtures()) GTEST_SKIP() << no_fixtures;
  for (const char* name : {"unet_google_style", "unet_mnist_class"}) {
    const TemporaryFolder folder;
    copy_model(fixtures() / name, folder / "m");
    EXPECT_EQ(json_of(folder / "m/unet/config.json"), json_of(fixtures() / name / "config.json")) << name;
    EXPECT_TRUE(io::read_file(folder / "m/unet/diffusion_pytorch_model.safetensors") ==
                io::read_file(fixtures() / name / "diffusion_pytorch_model.safetensors"))
        << name;
    EXPECT_FALSE(std::filesystem::exists(folder / "m/model_index.json"));  // there is no scheduler to name
    EXPECT_TRUE(
        ModelWeights(folder / "m").faults(parameter_layout(read_model_folder(folder / "m").network), true).empty());
  }
}

TEST(ModelFolder, IsReadBackWithAllItsParts) {
  const TemporaryFolder folder;
  ModelFolder model = small_model();
  model.origin->base = {"runs/pretrain-mnist-0/model", std::string(64, 'a')};
  model.network.other_keys = {{"_name_or_path", "\"somewhere\""}, {"timestep_values", "null"}};
  model.scheduler->other_keys = {{"skip_prk_steps", "true"}};
  model.origin->other_keys = {{"steps", "100"}};
  const std::vector<float> theta = small_theta();
  write_model_folder(folder / "a/b/m", model, theta);
  ModelFolder back = read_model_folder(folder / "a/b/m");
  EXPECT_EQ(back.index_keys.at("_class_name"), "\"DDPMPipeline\"");
  back.index_keys.clear();
  EXPECT_EQ(back, model);
  std::vector<float> again(theta.size());
  const ModelWeights weights(folder / "a/b/m");
  weights.load(parameter_layout(model.network), again);
  EXPECT_EQ(again, theta);
  EXPECT_EQ(weights.sha256(), io::sha256_of_file(weights.files().front()));

  const json index = json_of(folder / "a/b/m/model_index.json");
  EXPECT_EQ(index.at("unet"), json({"diffusers", "UNet2DModel"}));
  EXPECT_EQ(index.at("scheduler"), json({"diffusers", "DDPMScheduler"}));
  EXPECT_EQ(json_of(folder / "a/b/m/implicit_diffusion.json").at("base").at("path"), "runs/pretrain-mnist-0/model");

  // And over itself.
  write_model_folder(folder / "a/b/m", model, theta);
  copy_model(folder / "a/b/m", folder / "c");
  for (const char* file : {"model_index.json", "implicit_diffusion.json", "unet/config.json",
                           "scheduler/scheduler_config.json", "unet/diffusion_pytorch_model.safetensors"})
    EXPECT_EQ(io::read_file(folder / "c" / file), io::read_file(folder / "a/b/m" / file)) << file;
}

// Flat, in shards, under old names, in half precision.
TEST(ModelFolder, ReadsOtherLayouts) {
  const TemporaryFolder folder;
  const ModelFolder model = small_model();
  const Layout layout = parameter_layout(model.network);
  const std::vector<float> theta = small_theta();
  write(folder / "m/config.json", unet_config_json(model.network));
  write(folder / "m/scheduler_config.json", scheduler_config_json(*model.scheduler));
  write(folder / "m/model_index.json", R"({"_class_name": "DDPMPipeline", "unet": ["diffusers", "UNet2DModel"]})");
  std::array<io::SafetensorsWriter, 2> shards;
  json map;
  std::size_t at = 0, legacy = 0;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto count = static_cast<std::size_t>(elements_of(layout[i].shape));
    std::string name = layout[i].name;
    for (const auto& [now, before] : std::vector<std::pair<std::string, std::string>>{
             {".to_q.", ".query."}, {".to_k.", ".key."}, {".to_v.", ".value."}, {".to_out.0.", ".proj_attn."}})
      if (const std::size_t found = name.find(now); found != std::string::npos) {
        name.replace(found, now.size(), before);
        ++legacy;
      }
    shards[i % 2].put(name, layout[i].shape, std::span(theta).subspan(at, count));
    map[name] = i % 2 == 0 ? "one.safetensors" : "two.safetensors";
    at += count;
  }
  EXPECT_GT(legacy, 7U);
  shards[0].write(folder / "m/one.safetensors");
  shards[1].write(folder / "m/two.safetensors");
  const json index = {{"metadata", {{"total_size", 4 * theta.size()}}}, {"weight_map", map}};
  write(folder / "m/diffusion_pytorch_model.safetensors.index.json", index.dump());

  const ModelFolder back = read_model_folder(folder / "m");
  EXPECT_EQ(back.network, model.network);
  EXPECT_EQ(back.scheduler, model.scheduler);
  std::vector<float> again(theta.size());
  const ModelWeights weights(folder / "m");
  EXPECT_EQ(weights.files().size(), 2U);
  weights.load(layout, again);
  EXPECT_EQ(again, theta);

  const auto with_map = [&](const json& changed) {
    write(folder / "m/diffusion_pytorch_model.safetensors.index.json", json{{"weight_map", changed}}.dump());
    return ModelWeights(folder / "m");
  };
  json changed = map;
  changed.erase("conv_in.bias");  // which is in its file all the same
  std::fill(again.begin(), again.end(), 0.0F);
  with_map(changed).load(layout, again);
  EXPECT_EQ(again, theta);
  changed["conv_in.bias"] = "../../secret";
  EXPECT_ERROR(with_map(changed), data, "'../../secret' is not the name of a file in this folder");
  changed["conv_in.bias"] = "three.safetensors";
  EXPECT_ERROR(with_map(changed), missing, "three.safetensors: no such file");
  changed["conv_in.bias"] = map["conv_in.weight"];
  EXPECT_ERROR(with_map(changed), data, "one.safetensors: tensor 'conv_in.bias' is missing, which");
  changed["conv_in.bias"] = 3;
  EXPECT_ERROR(with_map(changed), data, "weight_map: 'conv_in.bias' is not in a file");
  EXPECT_ERROR(with_map(json()), data, "weight_map: is no object");
  EXPECT_ERROR(with_map(json::object()), data, "weight_map: names no file");
  changed = map;
  for (auto& [tensor, file] : map.items())
    if (file == "two.safetensors") changed.erase(tensor);
  EXPECT_ERROR(with_map(changed).load(layout, again), data, "tensor 'conv_in.bias' is missing");
}

TEST(ModelFolder, WrongParametersAreNamed) {
  const TemporaryFolder folder;
  const ModelFolder model = small_model();
  const Layout layout = parameter_layout(model.network);
  std::vector<float> theta = small_theta(), back(theta.size());
  write_model_folder(folder / "m", model, theta);
  const ModelWeights good(folder / "m");
  EXPECT_TRUE(good.faults(layout, true).empty());
  EXPECT_EQ(good.tensors(), layout.size());

  Layout other = layout;
  other[0].shape = {5};
  other[1].name = "conv_in.offset";
  back.resize(static_cast<std::size_t>(elements_of(other)));
  EXPECT_EQ(good.faults(other, true),
            (std::vector<std::string>{"tensor 'conv_in.weight' has the shape [8, 4, 3, 3], [5] is meant",
                                      "tensor 'conv_in.offset' is missing",
                                      "tensor 'conv_in.bias' does not belong to this network"}));
  EXPECT_ERROR(good.load(other, back), data, "[5] is meant; 3 tensors are wrong in all");

  theta[300] = std::numeric_limits<float>::quiet_NaN();  // conv_in.weight has 288, conv_in.bias 8
  write_model_folder(folder / "m", model, theta);
  const ModelWeights bad(folder / "m");
  EXPECT_TRUE(bad.faults(layout, false).empty());
  const std::vector<std::string> faults = bad.faults(layout, true);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_TRUE(faults[0].starts_with("tensor 'time_embedding.linear_1.weight': value 4 is nan, at byte ")) << faults[0];
  back.resize(theta.size());
  EXPECT_ERROR(bad.load(layout, back), data,
               "diffusion_pytorch_model.safetensors: tensor 'time_embedding.linear_1.weight'");
  EXPECT_ERROR(bad.load(layout, std::span(back).first(5)), usage, "theta: 5 numbers for");
}

TEST(ModelFolder, SaysWhatIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_ERROR(read_model_folder(folder / "m"), missing, "m: no such folder");
  write(folder / "file", "x");
  EXPECT_ERROR(read_model_folder(folder / "file"), missing, "is not a folder");
  EXPECT_ERROR(read_model_folder(folder.path()), missing, "has no config.json, here or in unet/");
  EXPECT_ERROR(ModelWeights(folder.path()), missing, "diffusion_pytorch_model.safetensors: no such file");
  write(folder / "diffusion_pytorch_model.fp16.safetensors", "x");
  EXPECT_ERROR(ModelWeights(folder.path()), missing,
               "no such file; to use diffusion_pytorch_model.fp16.safetensors, give it this name");
  write(folder / "diffusion_pytorch_model.bin", "PK\x03\x04");
  EXPECT_ERROR(ModelWeights(folder.path()), missing, "which only Python can read. To convert it: cd ");
  std::filesystem::create_directory(folder / "two words");
  write(folder / "two words/diffusion_pytorch_model.bin", "PK\x03\x04");
  EXPECT_ERROR(ModelWeights(folder / "two words"), missing, "two words'; python3 -c ");
  write(folder / "diffusion_pytorch_model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_ERROR(ModelWeights(folder.path()), data, "a Git LFS pointer");
}

TEST(ModelFolder, PartsMustAgree) {
  const TemporaryFolder folder;
  write_model_folder(folder / "m", small_model(), small_theta());
  const auto with = [&](const char* file, const char* text) {
    std::filesystem::remove_all(folder / "n");
    std::filesystem::copy(folder / "m", folder / "n", std::filesystem::copy_options::recursive);
    write(folder / "n" / file, text);
    return read_model_folder(folder / "n");
  };
  EXPECT_ERROR(with("model_index.json", R"({"unet": ["diffusers", "UNet2DConditionModel"]})"), data,
               "model_index.json: unet: 'UNet2DConditionModel' is not supported; UNet2DModel is");
  EXPECT_ERROR(with("model_index.json", R"({"unet": "UNet2DModel"})"), data, "is not a library and a class");
  EXPECT_ERROR(with("implicit_diffusion.json", R"({"patch": 4})"), data,
               "implicit_diffusion.json: patch: 4, but 2 in ");
  EXPECT_ERROR(with("implicit_diffusion.json", R"({"patch": 2})"), data, "prediction: epsilon, but v_prediction in ");
  EXPECT_ERROR(with("implicit_diffusion.json", R"({"format": 2})"), data, "format: 2 is of a newer version");
  EXPECT_ERROR(with("implicit_diffusion.json", R"({"base": {"path": "x", "sha256": "12"}})"), data,
               "base: sha256: is not");
  EXPECT_ERROR(with("implicit_diffusion.json", R"({"horizon": 0})"), data, "horizon: 0 is not positive");
  EXPECT_ERROR(with("scheduler/scheduler_config.json", R"({"_class_name": "ScoreSdeVeScheduler"})"), data,
               "'ScoreSdeVeScheduler' is not supported; known: DDPMScheduler");
  EXPECT_ERROR(with("scheduler/scheduler_config.json", R"({"beta_end": 2})"), data,
               "scheduler_config.json: beta_schedule: beta ");
  EXPECT_ERROR(with("scheduler/scheduler_config.json", R"({"clip_sample": 1})"), data,
               "clip_sample: 1 is not true or false");
  EXPECT_ERROR(with("scheduler/scheduler_config.json", R"({"trained_betas": [1, "x"]})"), data, "is not a number");
  EXPECT_ERROR(with("unet/config.json", "<html>"), data, "config.json: an HTML page");
}

// A disk that fails is tested in tests/reliability; here a part of the folder is in the way.
// A model that is written over another one is read back as it is: shards, schedule and origin of the other are gone.
TEST(ModelFolder, ReplacesAnotherModel) {
  const TemporaryFolder folder;
  ModelFolder model = small_model();
  std::vector<float> theta = small_theta();
  write_model_folder(folder / "m", model, theta);
  const std::filesystem::path unet = folder / "m/unet", weights = unet / "diffusion_pytorch_model.safetensors";
  std::filesystem::rename(weights, unet / "old.safetensors");
  json map;
  for (const TensorShape& t : parameter_layout(model.network)) map[t.name] = "old.safetensors";
  write(unet / "diffusion_pytorch_model.safetensors.index.json", json{{"weight_map", map}}.dump());
  theta.front() = 2;
  model.scheduler.reset();
  model.origin.reset();
  write_model_folder(folder / "m", model, theta);
  std::vector<float> back(theta.size());
  ModelWeights(folder / "m").load(parameter_layout(model.network), back);
  EXPECT_EQ(back, theta);
  const ModelFolder read = read_model_folder(folder / "m");
  EXPECT_FALSE(read.scheduler);
  EXPECT_FALSE(read.origin);
}

TEST(ModelFolder, NothingHalfWrittenStays) {
  const TemporaryFolder folder;
  write(folder / "m/scheduler", "a file where a folder must be");
  EXPECT_ERROR(write_model_folder(folder / "m", small_model(), small_theta()), output, "scheduler");
  EXPECT_EQ(std::distance(std::filesystem::recursive_directory_iterator(folder / "m"), {}), 1);
  std::vector<float> few(3);
  EXPECT_ERROR(write_model_folder(folder / "n", small_model(), few), usage, "theta: 3 numbers for");
  EXPECT_FALSE(std::filesystem::exists(folder / "n"));
}

// As diffusers' own classes fill in what is missing.
TEST(ModelFolder, MissingKeysHaveDefaults) {
  EXPECT_EQ(parse_scheduler_config("{}", "s"), SchedulerConfig());
  EXPECT_EQ(parse_model_origin("{}", "o"), ModelOrigin());
  const json written = json::parse(scheduler_config_json(SchedulerConfig()));
  EXPECT_EQ(written.at("variance_type"), "fixed_small");
  EXPECT_EQ(written.at("trained_betas"), nullptr);
  EXPECT_FALSE(written.contains("set_alpha_to_one"));  // DDPMScheduler does not know it
  const SchedulerConfig ddim =
      parse_scheduler_config(R"({"_class_name": "DDIMScheduler", "set_alpha_to_one": false})", "s");
  EXPECT_EQ(parse_scheduler_config(scheduler_config_json(ddim), "s"), ddim);
}

}  // namespace
}  // namespace implicit_diffusion
