// Experiments with images, as a user meets them.
#include "data/lmdb_environment.hpp"
#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/denoising/time_grid.hpp"
#include "implicit_diffusion/io/safetensors.hpp"
#include "program/tiny_images.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace program_test {
namespace {

TEST_F(ImagesTest, ConfigurationsHaveTheSizesOfThePaper) {
  const auto config = [&](const Words& words) { return run(folder, words + Words{"--print-config"}).out; };
  EXPECT_NE(config({"run", "mnist"}).find("steps_per_sample = 32"), std::string::npos);
  EXPECT_NE(config({"run", "mnist", "--set", "size=paper"}).find("steps_per_sample = 256"), std::string::npos);
  EXPECT_NE(config({"run", "cifar10", "--set", "size=\"small\""}).find("steps_per_sample = 32"), std::string::npos);
  for (const char* name : {"mnist", "fashion-mnist", "cifar10", "lsun"})
    EXPECT_NE(config({"run", name, "--quick"}).find("steps_per_sample = 16"), std::string::npos) << name;
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
  for (const char* threads : {"2", "3"}) {
    good({"pretrain", "tiny.toml", "--output", threads, "--threads", threads});
    EXPECT_TRUE(same_bytes(at("one"), at(threads), weights));
  }
  // Every step has a checkpoint: whichever is the newest, the rest is the same.
  const Words slow{"pretrain", "tiny.toml",         "--set", "checkpoint_every=1",
                   "--set",    "pretrain.steps=60", "--set", "pretrain.sample_every=50"};
  good(slow + Words{"--output", "whole"});
  expect_same_after_kills(slow, "whole", weights);
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
  expect_same_after_kills(slow, "whole", all);

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

// Each key has an effect: the weights are others. All steps of a sample are as many as its last 4.
TEST_F(ImagesTest, EveryLoopAndRewardRuns) {
  pretrained();
  std::map<std::string, std::string> by_weights;
  const auto finetuned = [&](const Words& words) {
    const Result r = run(folder, finetune + words + Words{"--output", "f", "--overwrite", "--quiet", "--steps", "2"});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(json(at("f/summary.json"))["steps"], 2);
    return contents(at("f") / weights[0]);
  };
  by_weights[finetuned({})] = "none";
  EXPECT_EQ(finetuned({"--set", "finetune.last_steps=4"}), by_weights.begin()->first);
  for (const Words& words :
       std::vector<Words>{{"--set", "finetune.slots=1"},
                          {"--set", "finetune.dynamics=ode"},
                          {"--set", "finetune.last_steps=2"},
                          {"--set", "finetune.warm_up=2"},
                          {"--set", "finetune.decay=false"},
                          {"--set", "finetune.clip=1e-3"},
                          {"--set", "finetune.first_decay=0.5"},
                          {"--set", "finetune.second_decay=0.5"},
                          {"--set", "finetune.grid=uniform"},
                          {"--set", "finetune.reward=contrast", "--set", "finetune.last_step=noise"},
                          {"--set", "finetune.reward=contrast", "--set", "finetune.lambda=-3"},
                          {"--set", "finetune.reward=class", "--set", "finetune.class=1"},
                          {"--set", "finetune.beta=0", "--set", "finetune.grid=cosine"}}) {
    const auto [at, is_new] = by_weights.try_emplace(finetuned(words), words[1]);
    EXPECT_TRUE(is_new) << words[1] << " and " << at->second;
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
  const Result r =
      run(folder, {"evaluate", "f/model", "--base", "p/model", "--data", "data", "--classifier", "c/classifier",
                   "--lambda-over-beta", "1", "--count", "8", "--steps", "4", "--shard", "2"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Json e = json(at("evaluation.json")), row = json(at("f/summary.json"))["results"][0];
  // The same seed, grid, number and shards as the end of finetuning: the same figures.
  for (const char* key : {"reward", "path_kl", "frechet_distance", "recognised", "class_entropy"})
    EXPECT_EQ(e[key], row[key]) << key;
}

// A base that has learnt to predict something else: both become scores, so that there is a path KL. A network that was
// not trained predicts 0 (zero_outputs), which is a score of -y as v and of 0 as epsilon: the chain is linear, |D|^2 =
// |y|^2, and the KL is 64 sum penalty v with the variance v <- (growth - pull k)^2 v + noise^2 of a pixel from 1, k = 1
// or 0.
TEST_F(ImagesTest, EvaluatesAgainstABaseOfAnotherPrediction) {
  const Words begin{"pretrain", "tiny.toml", "--steps", "0", "--no-report"};
  good(begin + Words{"--output", "v"});
  good(begin + Words{"--output", "e", "--set", "pretrain.prediction=epsilon"});
  EXPECT_EQ(contents(at("v") / weights[0]), contents(at("e") / weights[0]));
  const auto expect_kl = [&](const std::string& model, const std::string& base, double exact) {
    const Result r =
        run(folder, {"evaluate", model + "/model", "--base", base + "/model", "--count", "64", "--steps", "4"});
    EXPECT_EQ(r.code, 0) << r.err;
    const Json e = json(at("evaluation.json"));
    EXPECT_NEAR(e["path_kl"].get<double>(), exact, 4 * e["path_kl_standard_error"].get<double>()) << model << base;
    EXPECT_LE(e["path_kl_standard_error"].get<double>(), 0.04 * exact);
  };
  const auto exact = [](double k) {
    const implicit_diffusion::TimeGrid grid = implicit_diffusion::log_linear_grid(4, 4);
    double variance = 1, kl = 0;
    for (std::size_t n = 0; n < grid.steps(); ++n) {
      const auto c =
          implicit_diffusion::step_coefficients(implicit_diffusion::Dynamics::euler_sde, grid.tau[n], grid.step(n));
      kl += 64 * c.penalty * variance;
      variance = (c.growth - c.pull * k) * (c.growth - c.pull * k) * variance + c.noise * c.noise;
    }
    return kl;
  };
  expect_kl("v", "v", 0);
  expect_kl("v", "e", exact(1));
  expect_kl("e", "v", exact(0));
}

// The noise that --noise writes is that of the samples: a network that was not trained predicts 0, so as epsilon its
// score is 0 and the chain y <- growth y + noise z, without noise in the last step.
TEST_F(ImagesTest, SampleWritesItsNoise) {
  using namespace implicit_diffusion;
  good({"pretrain", "tiny.toml", "--steps", "0", "--no-report", "--output", "e", "--set",
        "pretrain.prediction=epsilon"});
  const Result r = run(
      folder, {"sample", "e/model", "--count", "3", "--steps", "4", "--output", "x", "--noise", "noise.safetensors"});
  ASSERT_EQ(r.code, 0) << r.err;
  const io::SafetensorsReader reader(at("noise.safetensors"));
  const io::Array made = io::read_npy(at("x/samples.npy"));
  const std::size_t n = made.values.size();
  std::vector<float> start(n), steps(4 * n);
  reader.read("start", std::span(start));
  reader.read("steps", std::span(steps));
  const TimeGrid grid = log_linear_grid(4, 4);
  for (std::size_t i = 0; i < n; ++i) {
    double y = static_cast<double>(start[i]);
    for (std::size_t m = 0; m < 4; ++m) {
      const StepCoefficients c = step_coefficients(Dynamics::euler_sde, grid.tau[m], grid.step(m));
      y = c.growth * y + (m + 1 < 4 ? c.noise * static_cast<double>(steps[m * n + i]) : 0);
    }
    ASSERT_NEAR(made.values[i], y, 1e-5 * (1 + std::abs(y))) << i;
  }
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
  // The strip: the four seeds in a row, at steps 4, 2, 0 of the least lambda and 2, 4 of the greatest.
  const auto strip = implicit_diffusion::data::decode_image(contents(at("all/pictures/strip.png")), "strip");
  EXPECT_EQ(strip.shape, (implicit_diffusion::data::ImageShape{1, 2 + 5 * (8 + 2), 2 + 4 * (8 + 2)}));
  const auto step =
      implicit_diffusion::data::decode_image(contents(at("all/settings/finetune--5/pictures/step-000004.png")), "step");
  EXPECT_TRUE(std::equal(step.values.begin(), step.values.begin() + 10 * 42, strip.values.begin()));
  // A stage of it can be run again by itself.
  good({"run", "all/settings/finetune-5/config.toml", "--output", "again"});
  EXPECT_TRUE(same_bytes(at("all/settings/finetune-5"), at("again"), weights));
  // Resumed, it has nothing left to do.
  EXPECT_EQ(run(folder, {"run", "tiny.toml", "--output", "all", "--resume", "--quiet"}).code, 0);
}

// The queue beside the nested loop, on a model that is there: neither is trained again.
TEST_F(ImagesTest, SweepsOverLoopsOfAModelThatIsThere) {
  pretrained();
  const Words words{
      "run",   "tiny.toml",          "--set", "finetune.model=p/model", "--set", "finetune.classifier=c/classifier",
      "--set", "sweep.lambda=[5.0]", "--set", "sweep.slots=[2,1]"};
  good(words + Words{"--output", "both"});
  EXPECT_FALSE(fs::exists(at("both/settings/pretrain")));
  EXPECT_FALSE(fs::exists(at("both/settings/classifier")));
  const Json rows = json(at("both/summary.json"))["results"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["method"], "queue");
  EXPECT_EQ(rows[1]["method"], "nested");
  EXPECT_EQ(rows[0]["reward_before"], rows[1]["reward_before"]);
  EXPECT_NE(rows[0]["reward"], rows[1]["reward"]);
  // The queue alone is the same.
  good(finetune + Words{"--output", "queue"});
  EXPECT_TRUE(same_bytes(at("queue"), at("both/settings/finetune-5-slots-2"), weights));
  // So is all of it, from its own configuration.
  good({"run", "both/config.toml", "--output", "again"});
  EXPECT_TRUE(same_bytes(at("again/settings/finetune-5-slots-1"), at("both/settings/finetune-5-slots-1"), weights));
  bad({"run", "tiny.toml", "--set", "sweep.slots=[2,3]"}, 2, {"sweep.slots", "3 does not divide the 4 steps"});
}

// What a row calls seconds is finetuning, not the evaluation of its samples.
TEST_F(ImagesTest, SecondsAreThoseOfFinetuning) {
  pretrained();
  good(finetune + Words{"--output", "f", "--set", "finetune.samples=400"});
  const Json s = json(at("f/summary.json"));
  EXPECT_EQ(s["results"][0]["seconds"], s["seconds"]);
}

// A signal while the final samples are judged: the run ends, and judges them when it goes on.
TEST_F(ImagesTest, StopsWhileItJudgesTheFinalSamples) {
  pretrained();
  const Words many = finetune + Words{"--set", "finetune.samples=3000", "--threads", "1"};
  good(many + Words{"--output", "whole"});
  Process p(Launch{.arguments = many + Words{"--output", "f", "--quiet"}, .folder = folder.path()});
  for (int i = 0; i < 60'000 && !fs::exists(at("f/model-best/implicit_diffusion.json")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  p.send(SIGTERM);
  EXPECT_EQ(p.wait().code, 143);
  EXPECT_EQ(json(at("f/summary.json"))["status"], "interrupted");
  EXPECT_FALSE(json(at("f/summary.json")).contains("results"));
  EXPECT_EQ(run(folder, many + Words{"--output", "f", "--quiet", "--resume"}).code, 0);
  EXPECT_TRUE(same_bytes(at("f"), at("whole"), weights));
  EXPECT_EQ(json(at("f/summary.json"))["results"][0]["reward"], json(at("whole/summary.json"))["results"][0]["reward"]);
}

// LSUN as it comes, an LMDB of photographs in several sizes: one step of pretraining and one of finetuning.
TEST_F(ImagesTest, LsunTakesAStep) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < 6; ++i) {
    implicit_diffusion::data::Image image{{3, 70 + i, 90}, {}};
    for (std::size_t k = 0; k < image.shape.values(); ++k)
      image.values.push_back(static_cast<std::uint8_t>(k * (i + 3)));
    entries.emplace_back("key-" + std::to_string(i), implicit_diffusion::data::png_bytes(image));
  }
  implicit_diffusion::data::write_lmdb(at("bedrooms"), entries);
  const Words set{"--set", "data.folder=bedrooms", "--set",   "pretrain.batch=2",
                  "--set", "finetune.batch=2",     "--set",   "finetune.strip=2",
                  "--set", "finetune.samples=2",   "--set",   "finetune.steps_per_sample=4",
                  "--set", "finetune.slots=2",     "--steps", "1"};
  good(Words{"pretrain", "lsun", "--output", "p"} + set);
  EXPECT_EQ(io::read_npy(at("p/samples.npy")).shape, (std::vector<std::size_t>{2, 3, 64, 64}));
  EXPECT_TRUE(std::isfinite(column(at("p"), "loss").back()));
  const Result r = run(folder, Words{"finetune", "lsun", "--model", "p/model", "--output", "f", "--quiet"} + set);
  EXPECT_EQ(r.code, 0) << r.err;
  const Json row = json(at("f/summary.json"))["results"][0];
  EXPECT_TRUE(std::isfinite(row["reward"].get<double>()));
  EXPECT_GT(row["path_kl"].get<double>(), 0);
}

// A warning is a line on stderr, an entry of the summary and of the row, and a note in the report.
TEST_F(ImagesTest, WarnsOfAKlThatRunsAway) {
  pretrained();
  const Words far{"--set", "finetune.learning_rate=0.05", "--set", "finetune.lambda=0.01"};
  const Result r = run(folder, finetune + far + Words{"--output", "f", "--quiet"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(is_error_line(r.err, {"warning", "the path KL is"}));
  const Json s = json(at("f/summary.json"));
  ASSERT_EQ(s["warnings"].size(), 1U) << s["warnings"];
  EXPECT_EQ(s["warnings"][0]["kind"], "kl-runaway");
  EXPECT_EQ(s["results"][0]["warnings"], Json::array({"kl-runaway"}));
  EXPECT_NE(contents(at("f/report.html")).find("Warning:"), std::string::npos);
}

#endif

}  // namespace
}  // namespace program_test
