// `denoising-mixture` with a network for its score: training, every loop, their files, and what must not change them.
#include "program/same_run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>

namespace program_test {
namespace {

TEST(DenoisingNetwork, RefusesBadKeys) {
  const Folder folder;
  const std::vector<std::pair<Words, std::string>> bad{
      {{"denoising-network", "--set", "network.widths=[]"}, "network.widths"},
      {{"denoising-network", "--set", "network.time_features=3"}, "network.time_features"},
      {{"denoising-network", "--set", "network.shard=0"}, "network.shard"},
      {{"denoising-network", "--set", "network.samples=0"}, "network.samples"},
      {{"denoising-network", "--set", "training.steps=-1"}, "training.steps"},
      {{"denoising-network", "--set", "training.average=1"}, "training.average"},
      {{"denoising-network", "--set", "training.rate=1"}, "training.rate"},
      {{"denoising-network", "--set", "base.spread=diagonal"}, "base.spread"},
      {{"denoising-network", "--set", "model=unet"}, "model"},
      {{"denoising-mixture", "--set", "network.shard=8"}, "network"},
      {{"denoising-mixture", "--set", "training.steps=8"}, "training"},
      {{"denoising-network", "--set", "comparison.settings=[\"training.steps=5\"]"}, "its training"},
      {{"denoising-network", "--set", "comparison.settings=[\"model=mixture\"]"}, "network: "}};
  for (const auto& [words, named] : bad) {
    const Result r = run(folder, Words{"run"} + words + Words{"--print-config"});
    EXPECT_EQ(r.code, 2) << words.back();
    EXPECT_NE(r.err.find(named), std::string::npos) << r.err;
  }
}

#ifdef IMPLICIT_DIFFUSION_NETWORKS
// Parts of shards are left over, in the training and in the loop.
Words network_run(const std::string& output, const Words& more = {}, const std::string& steps = "12") {
  Words words{"run", "denoising-network", "--steps", steps, "--quiet", "--output", output};
  for (const char* set : {"batch=50", "steps_per_sample=8", "slots=4", "log_every=5", "checkpoint_every=3",
                          "network.widths=[16,16]", "network.time_features=8", "network.shard=16",
                          "network.samples=500", "training.steps=40", "training.batch=60", "training.shard=16"})
    words = words + Words{"--set", set};
  return words + more;
}

TEST(DenoisingNetwork, WritesARunThatAReportIsMadeOfWithoutNetworks) {
  const Folder folder;
  const Result r = run(folder, network_run("r"));
  ASSERT_EQ(r.code, 0) << r.err;
  const Json summary = json(folder / "r/summary.json");
  EXPECT_TRUE(summary["theta"].is_null());
  EXPECT_EQ(summary["steps"], 12);
  const Json result = summary["results"][0];
  double shares = 0;
  for (const double w : result["weights"]) shares += w;
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_EQ(column(folder / "r", "step"), (std::vector<double>{0, 5, 10, 12}));
  for (const double e : column(folder / "r", "weight_error")) EXPECT_TRUE(e > 0 && e < 1) << e;
  EXPECT_FALSE(fs::exists(folder / "r/theta.npy"));
  EXPECT_EQ(io::read_npy(folder / "r/samples.npy").shape, (std::vector<std::size_t>{50, 2}));
  EXPECT_EQ(json(folder / "r/training/summary.json")["steps"], 40);
  // Theta has moved from where it was trained to.
  EXPECT_NE(contents(folder / "r/model/model.safetensors"), contents(folder / "r/training/model/model.safetensors"));

  const std::string page = contents(folder / "r/report.html");
  EXPECT_NE(page.find("A network learnt the score of 4 Gaussians"), std::string::npos);
  fs::remove(folder / "r/report.html");
  fs::create_directory(folder / "bin");
  fs::copy_file(IMPLICIT_DIFFUSION_PROGRAM, folder / "bin/implicit-diffusion");
  const Result again =
      run(Launch{.arguments = {"report", "r"}, .folder = folder.path(), .program = folder / "bin/implicit-diffusion"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(contents(folder / "r/report.html"), page);
}

// What a network has beside what every run has.
testing::AssertionResult same_network_run(const fs::path& a, const fs::path& b) {
  if (const auto same = same_bytes(a / "training", b / "training", {"model/model.safetensors", "samples.npy"}); !same)
    return same;
  return same_run(a, b);
}

// In batches of four, too, each level has all components: were they drawn from the bits of the levels, the last two
// components would have shares of 0.31 and 0.01 instead of 0.2 and 0.1. Five standard errors of 1000 samples are 0.06
// and 0.05, and as much again is for a small network that is trained for seconds.
TEST(DenoisingNetwork, LevelsAndDataAreIndependent) {
  const Folder folder;
  const Result r = run(folder, {"run",      "denoising-network",
                                "--steps",  "0",
                                "--quiet",  "--no-report",
                                "--output", "r",
                                "--set",    "training.steps=6000",
                                "--set",    "training.batch=4",
                                "--set",    "training.shard=4",
                                "--set",    "training.learning_rate=0.002",
                                "--set",    "training.average=0.999",
                                "--set",    "network.widths=[32,32]",
                                "--set",    "network.samples=1000"});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto x = io::read_npy(folder / "r/training/samples.npy");
  const double means[4][2] = {{-1.5, 0.0}, {0.5, 1.5}, {1.0, -1.2}, {2.2, 1.0}};
  double shares[4] = {};
  for (std::size_t i = 0; i < x.shape[0]; ++i) {
    const auto off = [&](const double* m) { return std::hypot(x.values[2 * i] - m[0], x.values[2 * i + 1] - m[1]); };
    std::size_t nearest = 0;
    for (std::size_t k = 1; k < 4; ++k)
      if (off(means[k]) < off(means[nearest])) nearest = k;
    shares[nearest] += 1.0 / static_cast<double>(x.shape[0]);
  }
  EXPECT_NEAR(shares[2], 0.2, 0.1);
  EXPECT_NEAR(shares[3], 0.1, 0.08);
}

TEST(DenoisingNetwork, EveryLoopHasTheSameBitsForAnyThreads) {
  const Folder folder;
  const std::vector<std::pair<std::string, Words>> loops{
      {"queue", {}},
      {"nested", {"--set", "slots=1"}},
      {"replayed", {"--set", "keep_every=3"}},
      {"cold", {"--set", "loop=queue-cold"}},
      {"double", {"--set", "loop=double-queue", "--set", "dynamics=ode", "--set", "slots=8"}}};
  for (const auto& [name, words] : loops) {
    // The gradients of a double queue are 17 steps old.
    const std::string steps = name == "double" ? "20" : "12";
    ASSERT_EQ(run(folder, network_run(name, words + Words{"--threads", "1"}, steps)).code, 0) << name;
    ASSERT_EQ(run(folder, network_run(name + "3", words + Words{"--threads", "3"}, steps)).code, 0) << name;
    EXPECT_TRUE(same_network_run(folder / name, folder / (name + "3"))) << name;
  }
  // The replayed queue is the queue; the nested loop is another: the comparison can fail.
  EXPECT_EQ(contents(folder / "replayed/model/model.safetensors"), contents(folder / "queue/model/model.safetensors"));
  EXPECT_NE(contents(folder / "nested/model/model.safetensors"), contents(folder / "queue/model/model.safetensors"));
  for (const auto& [name, words] : loops)
    EXPECT_NE(contents(folder / (name + "/model/model.safetensors")),
              contents(folder / (name + "/training/model/model.safetensors")))
        << name << " has not moved theta";
  // They begin with the same network.
  EXPECT_EQ(contents(folder / "nested/training/model/model.safetensors"),
            contents(folder / "queue/training/model/model.safetensors"));
}

TEST(DenoisingNetwork, SettingsShareOneTraining) {
  const Folder folder;
  const Words settings{"--set", "comparison.settings=[\"lambda=1.0\",\"dynamics=ode\",\"loop=queue-cold\"]"};
  ASSERT_EQ(run(folder, network_run("all", settings)).code, 0);
  ASSERT_EQ(run(folder, network_run("queue")).code, 0);
  EXPECT_EQ(contents(folder / "all/training/model/model.safetensors"),
            contents(folder / "queue/training/model/model.safetensors"));
  EXPECT_EQ(contents(folder / "all/settings/queue-sde-4/model/model.safetensors"),
            contents(folder / "queue/model/model.safetensors"));
  EXPECT_EQ(json(folder / "all/summary.json")["results"].size(), 3U);
  EXPECT_NE(contents(folder / "all/report.html").find("3 runs then finetuned it"), std::string::npos);
}

// IMPLICIT_DIFFUSION_KILLS=N kills N runs, in the training or in the loop.
TEST(DenoisingNetwork, TheSameBitsAfterKills) {
  const Folder folder;
  const auto words = [](const std::string& output, const Words& more = {}) {
    return network_run(output, Words{"--set", "training.steps=400", "--set", "network.samples=2000"} + more, "60");
  };
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(folder, words("whole")).code, 0);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  const char* const wanted = std::getenv("IMPLICIT_DIFFUSION_KILLS");
  const int runs = wanted ? std::atoi(wanted) : 3;
  std::mt19937 random(7);
  int killed = 0;
  for (int i = 0; i < runs; ++i) {
    const std::string name = fmt::format("killed-{}", i);
    Process process({.arguments = words(name), .folder = folder.path()});
    for (int k = 0; k < 20'000 && !fs::exists(folder / name / "training/checkpoints"); ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::uniform_real_distribution<double>(0, 0.9)(random) * whole);
    process.send(SIGKILL);
    killed += process.wait().code == 128 + SIGKILL;
    ASSERT_EQ(run(folder, words(name, {"--resume"})).code, 0) << name;
    EXPECT_TRUE(same_network_run(folder / "whole", folder / name)) << name;
  }
  EXPECT_GT(2 * killed, runs) << "runs end before they are killed";
}

TEST(DenoisingNetwork, AChangedTrainingIsNotResumed) {
  const Folder folder;
  ASSERT_EQ(run(folder, network_run("r")).code, 0);
  const Result r = run(folder, network_run("r", {"--resume", "--set", "training.learning_rate=0.1"}, "14"));
  EXPECT_NE(r.code, 0);
  EXPECT_TRUE(is_error_line(r.err, {"another configuration", "learning_rate"})) << r.err;
}

TEST(DenoisingNetwork, ATrainingThatDivergesSaysSo) {
  const Folder folder;
  const Result r =
      run(folder, network_run("r", {"--set", "training.learning_rate=1e30", "--set", "training.warm_up=0"}));
  EXPECT_EQ(r.code, 70);
  EXPECT_NE(r.err.find("training.learning_rate"), std::string::npos) << r.err;
}

TEST(DenoisingNetwork, CheckSeesEveryDeliberateError) {
  const Folder folder;
  const Result r = run(folder, {"check", "denoising-network"});
  EXPECT_EQ(r.code, 0) << r.out;
  EXPECT_NE(r.out.find("7 ok, 0 OFF, 7 deliberate errors caught, 0 left out"), std::string::npos) << r.out;
}
#endif

}  // namespace
}  // namespace program_test
