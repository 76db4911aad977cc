// Runs that do not end well: they diverge, are interrupted, or cannot write. What they leave is complete up to where
// they came.
#include <sys/mount.h>

#include <algorithm>
#include <cmath>

#include "program/run_program.hpp"

namespace program_test {
namespace {

bool all_finite(const Json& list) {
  return std::all_of(list.begin(), list.end(), [](const Json& v) { return v.is_number(); });
}

const Words files_without_samples{"config.toml", "metrics.csv", "report.html", "summary.json", "theta.npy"};

// The chain of V = x' P x / 2 multiplies the distance from theta by 1 - h lambda: it explodes for h > 2 / lambda_max.
TEST(Divergence, OfTheChainNamesTheLargestStableStep) {
  const Folder folder;
  write(folder / "x.toml",
        changed(changed(small_experiment, "step_size = 0.1", "step_size = 3"), "steps = 5", "steps = 5000"));
  const Result result = run(folder, {"run", "x.toml", "--output", "r"});
  EXPECT_EQ(result.code, 70);
  EXPECT_TRUE(is_error_line(result.err, {"diverged at step ", "coordinate 1", "step_size is 3", "stable below 2"}));
  EXPECT_EQ(names(folder / "r"), files_without_samples);

  const Json summary = json(folder / "r/summary.json");
  EXPECT_EQ(summary["status"], "diverged");
  EXPECT_LT(summary["steps"], 5000);
  EXPECT_TRUE(all_finite(summary["theta"])) << summary["theta"];
  EXPECT_NE(result.err.find("step " + std::to_string(summary["steps"].get<int>() + 1)), std::string::npos)
      << result.err;
  const io::Array theta = io::read_npy(folder / "r/theta.npy");
  EXPECT_FALSE(io::find_nonfinite(theta));
  EXPECT_EQ(theta.shape[0], column(folder / "r", "step").size());
  EXPECT_EQ(column(folder / "r", "step").back(), summary["steps"]);

  EXPECT_EQ(run(folder, {"report", "r"}).code, 0) << "a report of it can be made again";
}

TEST(Divergence, JustBelowTheLargestStableStepThereIsNone) {
  const Folder folder;
  write(folder / "x.toml", changed(small_experiment, "step_size = 0.1", "step_size = 1.9"));
  EXPECT_EQ(run(folder, {"run", "x.toml", "--steps", "5000", "--set", "learning_rate=0.001"}).code, 0);
}

TEST(Divergence, OfThetaOutOfTheDomain) {
  const Folder folder;
  const Result result =
      run(folder, {"run", "ebm-mixture", "--steps", "200", "--set", "learning_rate=50", "--output", "r", "--quiet"});
  EXPECT_EQ(result.code, 70);
  EXPECT_TRUE(
      is_error_line(result.err, {"diverged at step ", "coordinate ", "theta left the domain", "learning_rate", "50"}));
  EXPECT_EQ(names(folder / "r"), files_without_samples);
  EXPECT_EQ(json(folder / "r/summary.json")["status"], "diverged");
  EXPECT_TRUE(all_finite(json(folder / "r/summary.json")["theta"]));
}

// The advice names what is out of proportion, and not what cannot help.
TEST(Divergence, OfAnObjectiveThatIsTooStrong) {
  const Folder folder;
  const Result result = run(folder, {"run", "langevin-reward", "--steps", "300", "--set", "reward.lambda=1e20", "--set",
                                     "reward.denominator=1e-20", "--output", "r", "--quiet"});
  EXPECT_EQ(result.code, 70);
  EXPECT_TRUE(is_error_line(result.err, {"coordinate 1 of the gradient is not finite", "reward.lambda nearer to 0 than",
                                         "reward.denominator larger than 1e-20"}));
  EXPECT_EQ(result.err.find("step_size"), std::string::npos) << result.err;
}

TEST(Divergence, OfOneRunAmongRepeats) {
  const Folder folder;
  write(folder / "x.toml", changed(small_experiment, "step_size = 0.1", "step_size = 3"));
  const Result result = run(folder, {"run", "x.toml", "--steps", "5000", "--repeats", "2", "--output", "r", "--quiet"});
  EXPECT_EQ(result.code, 70);
  EXPECT_TRUE(is_error_line(result.err, {"diverged at step "}));
  EXPECT_EQ(json(folder / "r/summary.json")["status"], "diverged");
  EXPECT_EQ(json(folder / "r/summary.json")["runs"].size(), 2U);
}

// A run of 10^9 steps that has begun.
class Interrupted : public testing::Test {
 protected:
  Process start(Words more = {}) {
    Words arguments{"run",           "langevin-reward", "--steps",       "1000000000", "--set",
                    "log_every=100", "--set",           "particles=200", "--output",   "r"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Process(Launch{.arguments = arguments, .folder = folder_.path()});
  }
  // The folder is made when signals are looked after; the loop begins right behind it.
  void wait_for_the_loop() const {
    for (int i = 0; i < 10'000 && !fs::exists(folder_ / "r"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }

  void expect_complete(const fs::path& place) {
    const Json summary = json(place / "summary.json");
    EXPECT_EQ(summary["status"], "interrupted");
    const auto steps = summary["steps"].get<std::int64_t>();
    EXPECT_LT(steps, 1'000'000'000);
    const std::vector<double> step = column(place, "step");
    EXPECT_EQ(step.back(), static_cast<double>(steps));
    EXPECT_EQ(io::read_npy(place / "theta.npy").shape, (std::vector<std::size_t>{step.size(), 6}));
    EXPECT_EQ(io::read_npy(place / "samples.npy").shape, (std::vector<std::size_t>{200, 2}));
  }

  Folder folder_;
};

class InterruptedBy : public Interrupted, public testing::WithParamInterface<int> {};

TEST_P(InterruptedBy, TheSignalLeavesARunUpToItsStep) {
  Process process = start();
  wait_for_the_loop();
  const auto sent = std::chrono::steady_clock::now();
  process.send(GetParam());
  const Result result = process.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(2));
  EXPECT_EQ(result.code, 128 + GetParam());
  EXPECT_NE(result.out.find("interrupted"), std::string::npos) << "the closing table";
  EXPECT_EQ(names(folder_ / "r"), files_of_a_run);
  expect_complete(folder_ / "r");

  const std::string steps = json(folder_ / "r/summary.json")["steps"].dump();
  const Result again = run(folder_, {"run", "r/config.toml", "--steps", steps, "--output", "again", "--quiet"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(same_bytes(folder_ / "r", folder_ / "again"));
}

INSTANTIATE_TEST_SUITE_P(Program, InterruptedBy, testing::Values(SIGINT, SIGTERM),
                         [](const auto& signal) { return signal.param == SIGINT ? "SigInt" : "SigTerm"; });

TEST_F(Interrupted, ASecondSignalChangesNothing) {
  Process process = start();
  wait_for_the_loop();
  process.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGTERM);
  process.send(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  EXPECT_EQ(names(folder_ / "r"), files_of_a_run);
  expect_complete(folder_ / "r");
}

TEST_F(Interrupted, RepeatsAreCompleteToo) {
  Process process = start({"--repeats", "3", "--threads", "2", "--quiet"});
  wait_for_the_loop();
  process.send(SIGTERM);
  const Result result = process.wait();
  EXPECT_EQ(result.code, 143);
  EXPECT_EQ(result.err, "");
  const Json summary = json(folder_ / "r/summary.json");
  EXPECT_EQ(summary["status"], "interrupted");
  EXPECT_EQ(summary["seeds"].size(), summary["runs"].size());
  for (const Json& seed : summary["seeds"]) expect_complete(folder_ / ("r/seed-" + seed.dump()));
}

// A folder belongs to one run at a time, and to none when that is gone.
TEST_F(Interrupted, ASecondRunIsKeptOutOfTheFolder) {
  write(folder_ / "x.toml", small_experiment);
  for (const Words& first : {Words{}, Words{"--repeats", "2"}}) {
    fs::remove_all(folder_ / "r");
    Process process = start(first + Words{"--quiet"});
    wait_for_the_loop();
    const auto before = tree(folder_.path());
    for (const Words& second : {Words{}, Words{"--overwrite"}, Words{"--repeats", "2", "--overwrite"}}) {
      const Result loser = run(folder_, Words{"run", "x.toml", "--output", "r"} + second);
      EXPECT_EQ(loser.code, 73);
      EXPECT_EQ(loser.out, "");
      EXPECT_TRUE(is_error_line(loser.err, {"r: ", "another run"}));
    }
    EXPECT_TRUE(tree(folder_.path()) == before) << "the second run has changed files";
    process.send(SIGINT);
    EXPECT_EQ(process.wait().code, 130);
    expect_complete(first.empty() ? folder_ / "r" : folder_ / "r/seed-0");
  }

  fs::remove_all(folder_ / "r");
  Process killed = start();
  wait_for_the_loop();
  killed.send(SIGKILL);
  (void)killed.wait();
  EXPECT_EQ(run(folder_, {"run", "x.toml", "--output", "r", "--overwrite"}).code, 0);
  EXPECT_EQ(names(folder_ / "r"), files_of_a_run);
}

// stdout that cannot be written: an error, but the run's files are complete.
class Unwritable : public testing::TestWithParam<Stream> {};

TEST_P(Unwritable, StdoutIsAnErrorAfterTheFiles) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const Result result =
      run(Launch{.arguments = {"run", "x.toml", "--output", "r"}, .folder = folder.path(), .out = GetParam()});
  EXPECT_EQ(result.code, 74);
  EXPECT_TRUE(is_error_line(result.err, {"stdout: "}));
  EXPECT_EQ(names(folder / "r"), files_of_a_run);
  EXPECT_EQ(json(folder / "r/summary.json")["status"], "completed");
  for (const Words& command :
       {Words{"list"}, Words{"--help"}, Words{"--version"}, Words{"run", "x.toml", "--print-config"}})
    EXPECT_EQ(run(Launch{.arguments = command, .folder = folder.path(), .out = GetParam()}).code, 74) << command[0];
}

// Nobody can be told about a bad stderr: the run goes on, and exit codes are what they are.
TEST_P(Unwritable, StderrDoesNotMatter) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const Result good = run(Launch{
      .arguments = {"run", "x.toml", "--output", "r", "--repeats", "3"}, .folder = folder.path(), .err = GetParam()});
  EXPECT_EQ(good.code, 0);
  for (const char* seed : {"0", "1", "2"})
    EXPECT_EQ(json(folder / ("r/seed-" + std::string(seed) + "/summary.json"))["status"], "completed");
  EXPECT_EQ(run(Launch{.arguments = {"run", "nothing"}, .folder = folder.path(), .err = GetParam()}).code, 2);
  EXPECT_EQ(run(Launch{.arguments = {}, .folder = folder.path(), .err = GetParam()}).code, 2);
}

INSTANTIATE_TEST_SUITE_P(Program, Unwritable, testing::Values(Stream::closed, Stream::full),
                         [](const auto& stream) { return stream.param == Stream::closed ? "Closed" : "Full"; });

// samples.npy of 20000 particles has 80 kB and does not fit; what is there is whole, and there is no summary that tells
// of success.
TEST(Disk, AFileThatGetsTooLongIsNotLeftInPart) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const Result result = run(Launch{.arguments = {"run", "x.toml", "--set", "particles=20000", "--output", "r"},
                                   .folder = folder.path(),
                                   .largest_file = 50'000});
  EXPECT_EQ(result.code, 74);
  EXPECT_TRUE(is_error_line(result.err, {"r/samples.npy: ", "File too large", "80128 bytes"}));
  EXPECT_EQ(names(folder / "r"), (Words{"config.toml", "metrics.csv", "theta.npy"}));
}

TEST(Disk, FullDeviceIsNamed) {
  const Folder folder;
  const fs::path small = folder / "small";
  fs::create_directory(small);
  write(folder / "x.toml", small_experiment);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "no small device can be mounted here";
  const Result result = run(folder, {"run", "x.toml", "--set", "particles=20000", "--output", "small/r"});
  const auto left = names(small);
  ::umount(small.c_str());
  EXPECT_EQ(result.code, 74);
  EXPECT_TRUE(is_error_line(result.err, {"small/r/samples.npy: ", "No space left on device", "80128 bytes"}));
  EXPECT_EQ(left, (Words{"r", "r/config.toml", "r/metrics.csv", "r/theta.npy"}));
}

TEST(Disk, FolderThatMayNotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  fs::create_directory(folder / "r");
  fs::permissions(folder / "r", fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(run(folder, {"run", "x.toml", "--output", "r"}).code, 73);
  EXPECT_EQ(run(folder, {"run", "x.toml", "--output", "r/s"}).code, 73);
}

}  // namespace
}  // namespace program_test
