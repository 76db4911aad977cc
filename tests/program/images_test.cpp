// Experiments with images, as a user meets them: tiny networks on a data set of 40 images that the test makes.
#include "program/run_program.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace program_test {
namespace {

// Forty images of 8 x 8: bars that lie or stand, with a label for each.
void write_images(const fs::path& folder, int classes = 2, int side = 8) {
  const auto size = static_cast<char>(side);
  std::string images("\0\0\x08\x03\0\0\0\x28\0\0\0", 11), labels("\0\0\x08\x01\0\0\0\x28", 8);
  images += size + std::string("\0\0\0", 3) + size;
  for (int i = 0; i < 40; ++i) {
    labels += static_cast<char>(i % classes);
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) images += static_cast<char>((i % 2 ? y : x) % 4 < 2 ? 200 + i : 10);
  }
  write(folder / "train-images-idx3-ubyte", images);
  write(folder / "train-labels-idx1-ubyte", labels);
}

constexpr const char* tiny = R"(kind = "images"
seed = 3
[data]
folder = "data"
shape = [1, 8, 8]
classes = 2
conditional = true
[network]
channels = [8, 8]
attention = [4]
groups = 4
head_width = 4
[classifier]
steps = 8
batch = 8
features = 8
[pretrain]
steps = 7
batch = 5
shard = 2
warm_up = 2
log_every = 2
sample_every = 4
[finetune]
lambda = 5.0
steps_per_sample = 4
slots = 2
batch = 3
shard = 2
steps = 4
warm_up = 1
learning_rate = 0.001
evaluate_every = 2
strip = 4
samples = 8
[sweep]
lambda = [5.0, -5.0]
)";

// A folder with the data, the experiment, and what later stages begin with.
class ImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    write_images(folder.path() / "data");
    write(folder.path() / "tiny.toml", tiny);
  }
  Result good(const Words& words) {
    const Result r = run(folder, words + Words{"--quiet"});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err, "");
    return r;
  }
  void pretrained() {
    good({"pretrain", "tiny.toml", "--output", "p"});
    good({"pretrain", "tiny.toml", "--classifier", "--output", "c"});
  }
  const Words finetune{"finetune", "tiny.toml", "--model", "p/model", "--classifier", "c/classifier"};
  // One line, and the exit code.
  void bad(const Words& words, int code, const std::vector<std::string>& needed) {
    const Result r = run(folder, words);
    EXPECT_EQ(r.code, code) << r.err;
    EXPECT_TRUE(is_error_line(r.err, needed));
  }
  fs::path at(const std::string& name) const { return folder.path() / name; }

  Folder folder;
};

const std::vector<std::string> weights{"model/unet/diffusion_pytorch_model.safetensors", "samples.npy"};

TEST_F(ImagesTest, ConfigurationsHaveTheSizesOfThePaper) {
  const auto config = [&](const Words& words) { return run(folder, words + Words{"--print-config"}).out; };
  EXPECT_NE(config({"run", "mnist"}).find("steps_per_sample = 32"), std::string::npos);
  EXPECT_NE(config({"run", "mnist", "--set", "size=paper"}).find("steps_per_sample = 256"), std::string::npos);
  // What the command line says comes after the table of the size.
  EXPECT_NE(config({"run", "mnist", "--set", "finetune.steps_per_sample=64"}).find("steps_per_sample = 64"),
            std::string::npos);
  // A resolved configuration is its own.
  for (const char* name : {"mnist", "fashion-mnist", "cifar10", "lsun"}) {
    const std::string text = config({"run", name});
    write(at("resolved.toml"), text);
    EXPECT_EQ(config({"run", "resolved.toml"}), text) << name;
  }
}

#ifdef IMPLICIT_DIFFUSION_NETWORKS

TEST_F(ImagesTest, PretrainWritesWhatItPromises) {
  pretrained();
  for (const char* name :
       {"config.toml", "summary.json", "metrics.csv", "samples.npy", "report.html", "model/model_index.json",
        "model/implicit_diffusion.json", "model/unet/config.json", "model/scheduler/scheduler_config.json",
        "pictures/step-000004.png", "pictures/step-000007.png"})
    EXPECT_TRUE(fs::exists(at("p") / name)) << name;
  EXPECT_FALSE(fs::exists(at("p/theta.npy")));
  const Json summary = json(at("p/summary.json"));
  EXPECT_TRUE(summary["theta"].is_null());
  EXPECT_EQ(summary["status"], "completed");
  EXPECT_EQ(column(at("p"), "step"), (std::vector<double>{0, 2, 4, 6, 7}));
  EXPECT_TRUE(std::isfinite(column(at("p"), "loss").back()));
  EXPECT_EQ(io::read_npy(at("p/samples.npy")).shape, (std::vector<std::size_t>{4, 1, 8, 8}));
  // The same again from config.toml.
  good({"run", "p/config.toml", "--output", "q"});
  EXPECT_TRUE(same_bytes(at("p"), at("q"), weights));
  // It can be replaced, and nothing is left of it.
  write(at("p/mine.txt"), "mine");
  good({"pretrain", "tiny.toml", "--output", "p", "--overwrite", "--steps", "0", "--no-report"});
  EXPECT_FALSE(fs::exists(at("p/pictures/step-000004.png")));
  EXPECT_TRUE(fs::exists(at("p/mine.txt")));
  EXPECT_TRUE(fs::exists(at("c/classifier/classifier.safetensors")));
  EXPECT_TRUE(json(at("c/summary.json")).contains("accuracy"));
}

TEST_F(ImagesTest, TrainingDoesNotDependOnThreadsNorOnStops) {
  good({"pretrain", "tiny.toml", "--output", "one", "--threads", "1"});
  good({"pretrain", "tiny.toml", "--output", "three", "--threads", "3"});
  EXPECT_TRUE(same_bytes(at("one"), at("three"), weights));
  // Every step has a checkpoint: whichever is the newest, the rest is the same.
  const Words slow{"pretrain", "tiny.toml",         "--set", "checkpoint_every=1",
                   "--set",    "pretrain.steps=60", "--set", "pretrain.sample_every=50"};
  good(slow + Words{"--output", "whole"});
  for (int stops = 0; stops < 3; ++stops) {
    Process p(Launch{.arguments = slow + Words{"--output", "s", stops == 0 ? "--quiet" : "--resume"},
                     .folder = folder.path()});
    for (int i = 0; i < 3000 && !fs::exists(at("s/checkpoints")); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(150 * stops));
    p.send(stops == 1 ? SIGTERM : SIGKILL);
    p.wait();
  }
  const Result r = run(folder, slow + Words{"--output", "s", "--resume"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(same_bytes(at("s"), at("whole"), weights));
}

TEST_F(ImagesTest, FinetuneIsTheSameForAnyThreadsAndAfterStops) {
  pretrained();
  good(finetune + Words{"--output", "one", "--threads", "1"});
  const std::vector<std::string> all{weights[0], weights[1], "model-best/unet/diffusion_pytorch_model.safetensors",
                                     "pictures/step-000004.png"};
  for (const char* threads : {"2", "3"}) {
    good(finetune + Words{"--output", threads, "--threads", threads});
    EXPECT_TRUE(same_bytes(at("one"), at(threads), all));
  }
  const Words slow = finetune + Words{"--set", "checkpoint_every=1", "--set", "finetune.steps=24"};
  good(slow + Words{"--output", "whole"});
  for (int stops = 0; stops < 3; ++stops) {
    Process p(Launch{.arguments = slow + Words{"--output", "s", stops == 0 ? "--quiet" : "--resume"},
                     .folder = folder.path()});
    for (int i = 0; i < 3000 && !fs::exists(at("s/checkpoints")); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(150 * stops));
    p.send(stops == 1 ? SIGINT : SIGKILL);
    p.wait();
  }
  const Result r = run(folder, slow + Words{"--output", "s", "--resume"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(same_bytes(at("s"), at("whole"), all));

  // All that a row promises is there, and the model moved.
  const Json row = json(at("one/summary.json"))["results"][0];
  for (const char* key : {"lambda", "beta", "reward_before", "reward", "reward_standard_error", "reward_clipped",
                          "path_kl", "path_kl_standard_error", "frechet_distance_before", "frechet_distance",
                          "frechet_floor", "recognised_before", "recognised", "class_entropy_before", "class_entropy",
                          "oracle_reward", "oracle_kl", "oracle_effective_samples", "warnings"})
    EXPECT_TRUE(row.contains(key)) << key;
  EXPECT_GT(row["path_kl"].get<double>(), 0);
  const std::vector<double> kl = column(at("one"), "path_kl");
  EXPECT_EQ(kl.front(), 0) << "before the first step the model is its base";
  EXPECT_NE(contents(at("p") / weights[0]), contents(at("one") / weights[0]));
  EXPECT_NE(contents(at("one/model/implicit_diffusion.json")).find("sha256"), std::string::npos);
}

TEST_F(ImagesTest, EveryLoopAndRewardRuns) {
  pretrained();
  for (const Words& words : std::vector<Words>{{"--set", "finetune.slots=1"},
                                               {"--set", "finetune.dynamics=ode"},
                                               {"--set", "finetune.last_steps=2"},
                                               {"--set", "finetune.reward=contrast", "--set", "finetune.lambda=-3"},
                                               {"--set", "finetune.reward=class", "--set", "finetune.class=1"},
                                               {"--set", "finetune.grid=uniform", "--set", "finetune.last_step=noise"},
                                               {"--set", "finetune.beta=0", "--set", "finetune.grid=cosine"}}) {
    const Result r = run(folder, finetune + words + Words{"--output", "f", "--overwrite", "--quiet", "--steps", "2"});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(json(at("f/summary.json"))["steps"], 2);
  }
}

TEST_F(ImagesTest, SampleAndEvaluate) {
  pretrained();
  const auto sampled = [&](const Words& words) {
    const Result r = run(folder, Words{"sample", "p/model", "--count", "5", "--steps", "4", "--output", "x"} + words);
    EXPECT_EQ(r.code, 0) << r.err;
    return contents(at("x/samples.npy"));
  };
  const std::string sde = sampled({});
  EXPECT_EQ(io::read_npy(at("x/samples.npy")).shape, (std::vector<std::size_t>{5, 1, 8, 8}));
  EXPECT_EQ(sampled({"--threads", "3"}), sde);
  for (const Words& other : std::vector<Words>{{"--seed", "1"},
                                               {"--labels", "1"},
                                               {"--sampler", "ode"},
                                               {"--sampler", "ddpm"},
                                               {"--sampler", "ddim"},
                                               {"--grid", "uniform"}})
    EXPECT_NE(sampled(other), sde) << other[0] << other[1];

  good(finetune + Words{"--output", "f"});
  const Result r = run(folder, {"evaluate", "f/model", "--base", "p/model", "--data", "data", "--classifier",
                                "c/classifier", "--lambda-over-beta", "1", "--count", "8", "--steps", "4"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Json e = json(at("evaluation.json")), row = json(at("f/summary.json"))["results"][0];
  // The same seed, grid and number as the end of finetuning: the same figures.
  for (const char* key : {"reward", "path_kl", "frechet_distance", "recognised", "class_entropy"})
    EXPECT_EQ(e[key], row[key]) << key;
}

TEST_F(ImagesTest, RunDoesAllOfIt) {
  good({"run", "tiny.toml", "--output", "all"});
  const Json summary = json(at("all/summary.json"));
  EXPECT_EQ(summary["status"], "completed");
  ASSERT_EQ(summary["results"].size(), 2U);
  EXPECT_EQ(summary["results"][1]["lambda"], -5.0);
  for (const char* name : {"classifier", "pretrain", "finetune-5", "finetune--5"})
    EXPECT_TRUE(fs::exists(at("all/settings") / name / "summary.json")) << name;
  EXPECT_NE(contents(at("all/report.html")).find("data:image/png"), std::string::npos);
  // A stage of it can be run again by itself.
  good({"run", "all/settings/finetune-5/config.toml", "--output", "again"});
  EXPECT_TRUE(same_bytes(at("all/settings/finetune-5"), at("again"), weights));
  // Resumed, it has nothing left to do.
  EXPECT_EQ(run(folder, {"run", "tiny.toml", "--output", "all", "--resume", "--quiet"}).code, 0);
}

// ---- bad input: one line, and the exit code

TEST_F(ImagesTest, RefusesBadConfigurations) {
  const auto set = [&](const std::string& change, const std::vector<std::string>& needed) {
    bad({"pretrain", "tiny.toml", "--set", change}, 2, needed);
  };
  set("finetune.slots=3", {"finetune.slots", "3 does not divide the 4 steps"});
  set("finetune.reward=brightnes", {"finetune.reward", "did you mean brightness?"});
  set("finetune.reward=redness", {"redness is for images of three channels"});
  set("network.groups=3", {"network"});
  set("network.patch=3", {"network.patch", "does not divide"});
  set("pretrain.average=1", {"pretrain.average", "below 1"});
  set("data.shape=[2,8,8]", {"data.shape", "1 or 3"});
  set("data.folder=", {"data.folder", "no folder is given"});
  bad({"run", "tiny.toml", "--set", "stage=both"}, 2, {"stage"});
  bad({"run", "tiny.toml", "--repeats", "2"}, 2, {"--repeats"});
  bad({"pretrain", "langevin-reward"}, 2, {"langevin-reward", "is not an experiment with images"});
  EXPECT_FALSE(fs::exists(at("runs")));
}

TEST_F(ImagesTest, RefusesBadData) {
  bad({"pretrain", "tiny.toml", "--set", "data.folder=nowhere"}, 66, {"nowhere"});
  bad({"pretrain", "tiny.toml", "--set", "data.shape=[1,12,12]"}, 65, {"has images of 1 x 8 x 8"});
  bad({"pretrain", "tiny.toml", "--set", "data.classes=3"}, 65, {"has labels of 2 classes"});
}

TEST_F(ImagesTest, RefusesBadModels) {
  pretrained();
  bad({"finetune", "tiny.toml"}, 2, {"finetune.model", "--model"});
  bad({"finetune", "tiny.toml", "--model", "nowhere"}, 66, {"nowhere"});
  bad({"finetune", "tiny.toml", "--model", "p/model", "--set", "finetune.reward=class"}, 2, {"finetune.classifier"});
  bad({"sample", "p/model", "--labels", "2"}, 2, {"labels", "classes 0 to 1"});
  bad({"sample", "p/model", "--sampler", "euler"}, 2, {"--sampler"});
  bad({"evaluate", "p/model", "--reward", "brightnes"}, 2, {"reward", "did you mean brightness?"});
  bad({"evaluate", "p/model", "--reward", "class"}, 2, {"reward", "needs a classifier"});

  // Of other images, of another shape, of other labels.
  write(at("other.toml"), changed(changed(tiny, "conditional = true", "conditional = false"), "[8, 8]\nattention = [4]",
                                  "[8, 16]\nattention = [4]"));
  good({"pretrain", "other.toml", "--output", "o", "--steps", "1"});
  bad({"evaluate", "p/model", "--base", "o/model"}, 65, {"another shape"});
  bad(finetune + Words{"--set", "data.shape=[1,12,12]"}, 65, {"the model makes images of 1 x 8 x 8"});
  write_images(at("three"), 3);
  write(at("three.toml"), changed(changed(tiny, "\"data\"", "\"three\""), "classes = 2", "classes = 3"));
  good({"pretrain", "three.toml", "--classifier", "--output", "c3"});
  bad({"finetune", "tiny.toml", "--model", "p/model", "--classifier", "c3/classifier"}, 65,
      {"trained on 3 classes, the model on 2"});

  // A folder that lacks a file.
  fs::remove(at("p/model/unet/diffusion_pytorch_model.safetensors"));
  bad(finetune, 66, {"p/model"});
  fs::remove(at("c/classifier/classifier.json"));
  bad(finetune, 66, {"p/model"});
}

// The disk is full when the model is written: nothing of it is there, and the run can be continued.
TEST_F(ImagesTest, LeavesNoHalfModelOnAFullDisk) {
  const Words words{"pretrain", "tiny.toml", "--output", "p", "--quiet", "--set", "pretrain.sample_every=100"};
  const Result r = run(Launch{.arguments = words, .folder = folder.path(), .largest_file = 20000});
  EXPECT_EQ(r.code, 74) << r.err;
  EXPECT_TRUE(is_error_line(r.err, {"p/"}));
  EXPECT_FALSE(fs::exists(at("p/model/model_index.json")));
  for (const auto& [name, bytes] : tree(at("p"))) EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
}

#endif

}  // namespace
}  // namespace program_test
