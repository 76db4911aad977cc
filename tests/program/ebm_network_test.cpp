// The experiment `ebm-network`: a run with a network through the program, its files, and what must not change them.
#include "program/same_run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>

namespace program_test {
namespace {

// The program without the executable with networks beside it.
fs::path alone_in(const Folder& folder) {
  fs::create_directory(folder / "bin");
  fs::copy_file(IMPLICIT_DIFFUSION_PROGRAM, folder / "bin/implicit-diffusion");
  return folder / "bin/implicit-diffusion";
}

TEST(EbmNetwork, NeedsNetworksOnlyToRun) {
  const Folder folder;
  const fs::path alone = alone_in(folder);
  const auto go = [&](const Words& words) {
    return run(Launch{.arguments = words, .folder = folder.path(), .program = alone});
  };
  for (const char* command : {"run", "check"}) {
    const Result r = go({command, "ebm-network"});
    EXPECT_EQ(r.code, 2);
    EXPECT_TRUE(is_error_line(r.err, {"ebm-network", "make build"})) << r.err;
    EXPECT_EQ(r.out, "");
  }
  EXPECT_FALSE(fs::exists(folder / "runs"));
  EXPECT_EQ(go({"run", "ebm-network", "--print-config"}).code, 0);
  EXPECT_NE(go({"list"}).out.find("ebm-network "), std::string::npos);
}

TEST(EbmNetwork, RefusesBadKeys) {
  const Folder folder;
  const std::vector<std::pair<std::string, std::string>> bad{{"network.widths=[]", "network.widths"},
                                                             {"network.widths=[0]", "network.widths"},
                                                             {"network.confinement=0", "confinement"},
                                                             {"network.shard=0", "network.shard"},
                                                             {"target.law=three-moons", "two-moons"},
                                                             {"target.deviation=0.01", "target.deviation"},
                                                             {"average=1", "average"},
                                                             {"optimizer=sgd", "optimizer"},
                                                             {"target.batch=0", "target.batch"},
                                                             {"inner_steps=0", "inner_steps"},
                                                             {"network.width=[3]", "did you mean network.widths"}};
  for (const auto& [change, named] : bad) {
    const Result r = run(folder, {"run", "ebm-network", "--set", change, "--print-config"});
    EXPECT_EQ(r.code, 2) << change;
    EXPECT_NE(r.err.find(named), std::string::npos) << r.err;
  }
}

#ifdef IMPLICIT_DIFFUSION_NETWORKS
// Half a second, most of it LibTorch's start; a part of a shard is left over.
Words energy_run(const std::string& output, const Words& more = {}, const std::string& steps = "60") {
  return Words{"run",
               "ebm-network",
               "--steps",
               steps,
               "--quiet",
               "--set",
               "particles=100",
               "--set",
               "target.batch=90",
               "--set",
               "network.shard=16",
               "--set",
               "network.widths=[16,16]",
               "--set",
               "network.confinement=2",
               "--set",
               "checkpoint_every=7",
               "--set",
               "log_every=20",
               "--output",
               output} +
         more;
}

TEST(EbmNetwork, WritesARunThatAReportIsMadeOfWithoutNetworks) {
  const Folder folder;
  const Result r = run(folder, energy_run("r"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("exact KL"), std::string::npos);
  const Json summary = json(folder / "r/summary.json");
  EXPECT_TRUE(summary["theta"].is_null());
  EXPECT_EQ(summary["method"], "implicit");
  EXPECT_EQ(summary["steps"], 60);
  EXPECT_EQ(summary["reward"].get<double>(), -summary["exact_kl"].get<double>());
  EXPECT_EQ(summary["gradient_evaluations"], 60);
  EXPECT_EQ(column(folder / "r", "step"), (std::vector<double>{0, 20, 40, 60}));
  const std::vector<double> kl = column(folder / "r", "exact_kl");
  EXPECT_EQ(kl.back(), summary["exact_kl"].get<double>());
  EXPECT_FALSE(fs::exists(folder / "r/theta.npy"));
  EXPECT_EQ(io::read_npy(folder / "r/samples.npy").shape, (std::vector<std::size_t>{100, 2}));

  // The density in energy.npy is that whose divergence was measured: on its grid it has nearly all of its mass.
  const io::Array energy = io::read_npy(folder / "r/energy.npy");
  ASSERT_EQ(energy.shape, (std::vector<std::size_t>{2, 128, 128}));
  const double side = 2 * (2 + 3.7 * 0.3) / 127;
  double mass = 0;
  for (std::size_t i = 128 * 128; i < 2 * 128 * 128; ++i) mass += std::exp(energy.values[i]) * side * side;
  EXPECT_GT(mass, 0.9);
  EXPECT_LT(mass, 1.01);

  const std::string page = contents(folder / "r/report.html");
  EXPECT_NE(page.find("This run trained a neural energy"), std::string::npos);
  fs::remove(folder / "r/report.html");
  const Result again = run(Launch{.arguments = {"report", "r"}, .folder = folder.path(), .program = alone_in(folder)});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(contents(folder / "r/report.html"), page);

  // --overwrite takes all of it away, the model too.
  std::ofstream(folder / "r/model/mine.txt") << "mine";
  EXPECT_EQ(run(folder, energy_run("r", {"--overwrite"}, "0")).code, 0);
  EXPECT_TRUE(fs::exists(folder / "r/model/mine.txt"));
}

TEST(EbmNetwork, TheSameBitsForAnyThreadsAndAfterKills) {
  const Folder folder;
  const Result whole = run(folder, energy_run("whole", {"--threads", "1"}));
  ASSERT_EQ(whole.code, 0) << whole.err;
  for (const char* threads : {"2", "3"}) {
    ASSERT_EQ(run(folder, energy_run(threads, {"--threads", threads})).code, 0);
    EXPECT_TRUE(same_run(folder / "whole", folder / threads));
  }
  // Another seed gives others: the comparison can fail.
  ASSERT_EQ(run(folder, energy_run("other", {"--seed", "1"})).code, 0);
  EXPECT_FALSE(same_bytes(folder / "whole", folder / "other", {"model/model.safetensors"}));

  std::mt19937 random(7);
  int killed = 0;
  for (int i = 0; i < 3; ++i) {
    const std::string name = fmt::format("killed-{}", i);
    Process process({.arguments = energy_run(name), .folder = folder.path()});
    for (int k = 0; k < 20'000 && !fs::exists(folder / name / "checkpoints"); ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
    process.send(SIGKILL);
    killed += process.wait().code == 128 + SIGKILL;
    ASSERT_EQ(run(folder, energy_run(name, {"--resume"})).code, 0);
    EXPECT_TRUE(same_run(folder / "whole", folder / name));
  }
  EXPECT_GT(killed, 0);
}

// The nested loop, Adam, and more steps later.
TEST(EbmNetwork, GoesOnWithMoreSteps) {
  const Folder folder;
  const auto words = [](const std::string& output, const std::string& steps, const Words& more = {}) {
    return energy_run(
        output, Words{"--set", "inner_steps=3", "--set", "optimizer=adam", "--set", "target.law=two-moons"} + more,
        steps);
  };
  ASSERT_EQ(run(folder, words("whole", "30")).code, 0);
  ASSERT_EQ(run(folder, words("parts", "13")).code, 0);
  ASSERT_EQ(run(folder, words("parts", "30", {"--resume"})).code, 0);
  EXPECT_TRUE(same_run(folder / "whole", folder / "parts"));
  EXPECT_EQ(json(folder / "whole/summary.json")["method"], "nested");
  EXPECT_EQ(json(folder / "whole/summary.json")["gradient_evaluations"], 90);
}

TEST(EbmNetwork, Learns) {
  const Folder folder;
  const Result r = run(folder, {"run", "ebm-network", "--steps", "800", "--quiet", "--no-report", "--output", "r",
                                "--set", "log_every=800", "--set", "target.law=checkerboard"});
  ASSERT_EQ(r.code, 0) << r.err;
  const std::vector<double> kl = column(folder / "r", "exact_kl");
  EXPECT_LT(kl.back(), kl.front() / 2);
  EXPECT_GT(kl.back(), 0);
}

TEST(EbmNetwork, LearnsDataOfTheUser) {
  const Folder folder;
  std::ofstream(folder / "points.csv") << "1,0\n1.5,0.5\n-1,0\n-1.5,-0.5\n0,1\n";
  const Words data{"--set", "target={data=\"points.csv\",batch=16}"};
  ASSERT_EQ(run(folder, energy_run("r", data)).code, 0);
  const Json summary = json(folder / "r/summary.json");
  EXPECT_TRUE(summary["exact_kl"].is_null());
  const std::vector<double> fit = column(folder / "r", "data_log_likelihood");
  EXPECT_GT(fit.back(), fit.front());
  std::ofstream(folder / "points.csv") << "1,0\n1.5,0.5\n-1,0\n-1.5,-0.5\n0,2\n";
  const Result changed = run(folder, energy_run("r", data + Words{"--resume"}, "70"));
  EXPECT_EQ(changed.code, 2);
  EXPECT_TRUE(is_error_line(changed.err, {"target.data", "has changed"})) << changed.err;
}

TEST(EbmNetwork, SaysThatItDiverged) {
  const Folder folder;
  const Result r = run(folder, energy_run("r", {"--set", "step_size=1e20"}));
  EXPECT_EQ(r.code, 70);
  EXPECT_NE(r.err.find("learning_rate"), std::string::npos) << r.err;
  EXPECT_EQ(json(folder / "r/summary.json")["status"], "diverged");
  EXPECT_FALSE(fs::exists(folder / "r/samples.npy"));
}

TEST(EbmNetwork, IsChecked) {
  const Folder folder;
  const Result r = run(folder, {"check", "ebm-network", "--set", "network.widths=[8]"});
  EXPECT_EQ(r.code, 0) << r.err << r.out;
  for (const char* row : {"grad_x V in a step", "grad_theta of sum w V", "in shards of 8", "grad KL(target || pi)"})
    EXPECT_NE(r.out.find(row), std::string::npos) << row;
  EXPECT_NE(r.out.find(" 0 OFF"), std::string::npos);
}
#endif

}  // namespace
}  // namespace program_test
