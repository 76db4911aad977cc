// The diffusion of a mixture: it comes to the law that is known to be the best, in every loop, and goes on where it was
// killed.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "program/run_program.hpp"

namespace program_test {
namespace {

// Weights within 0.03 and means within 0.1 of the tilted law, from the untilted one.
TEST(DenoisingMixture, LearnsTheTiltedLaw) {
  const Folder folder;
  const Result result = run(folder, {"run", "denoising-mixture", "--quick", "--quiet", "--output", "d"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json s = json(folder / "d/summary.json");
  EXPECT_EQ(s["steps_per_sample"], 256);
  ASSERT_EQ(s["results"].size(), 3U);
  // exp(r . x) times 0.25 I: means move by 0.25 r, weights are w_i exp(r . m_i + 0.25 |r|^2 / 2) / Z.
  EXPECT_NEAR(s["tilted_means"][0][0].get<double>(), -1.3, 1e-12);
  EXPECT_NEAR(s["tilted_means"][0][1].get<double>(), 0.15, 1e-12);
  for (const Json& row : s["results"]) {
    EXPECT_EQ(row["loop"], row["slots"] == 1 ? "nested" : "queue");
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(row["weights"][i].get<double>(), s["tilted_weights"][i].get<double>(), 0.03) << row;
      for (std::size_t j = 0; j < 2; ++j)
        EXPECT_NEAR(row["means"][i][j].get<double>(), s["tilted_means"][i][j].get<double>(), 0.1) << row;
    }
    EXPECT_GT(row["reward"].get<double>(), 1.4);
    // KL(tilted || base) is 0.74.
    EXPECT_GT(row["path_kl"].get<double>(), 0.5);
    EXPECT_LT(row["path_kl"].get<double>(), 1.0);
    EXPECT_GT(row["memory_bytes"], 0);
  }
  // With whole paths kept an outer step costs T evaluations of the model and T products, and as many of the frozen one;
  // the warm start of a queue the evaluations of its slots. That this is what models see: denoising/cost_test.cpp.
  for (const Json& row : s["results"]) {
    const auto slots = row["slots"].get<std::int64_t>();
    EXPECT_EQ(row["model_evaluations"], 500 * 256 + (slots == 1 ? 0 : 256 * (slots + 1) / 2)) << row;
    EXPECT_EQ(row["frozen_evaluations"], row["model_evaluations"]);
    EXPECT_EQ(row["products"], 500 * 256);
    EXPECT_EQ(row["frozen_products"], 500 * 256);
    for (const char* key : {"model_evaluations", "products", "frozen_evaluations", "frozen_products"})
      EXPECT_EQ(row["last_step"][key], 256) << key;
  }
  // The peak holds all that the runs count themselves of the largest, and is less than a machine has.
  EXPECT_GT(s["peak_memory_bytes"], s["results"][0]["memory_bytes"]);
  EXPECT_LT(s["peak_memory_bytes"], 2e9);
  const std::string report = contents(folder / "d/report.html");
  for (const char* text : {"What it cost", "The peak memory of the program", "The learnt distribution",
                           "Path KL to the base", "Paths of a few samples"})
    EXPECT_NE(report.find(text), std::string::npos) << text;
  fs::remove(folder / "d/report.html");
  ASSERT_EQ(run(folder, {"report", "d"}).code, 0);
  EXPECT_EQ(contents(folder / "d/report.html"), report);
}

// Gradients of the double queue are 2 T + 1 steps old, so that its rate must be small and its steps shrink with the
// gradient. At T = 64 Euler's steps of the ODE leave 0.045 of the means and 0.04 of the weights, whatever the loop (the
// queue beside it), noise of 100 samples 0.01. With Adam at 0.003 it swings: means are off by 0.1 to 0.5 from step 500
// on.
TEST(DenoisingMixture, ComesToTheTiltedLawInADoubleQueueToo) {
  const Folder folder;
  const Result result =
      run(folder, {"run", "denoising-mixture", "--quiet", "--no-report", "--output", "d", "--set", "batch=100", "--set",
                   "dynamics=ode", "--set", "steps_per_sample=64", "--set", "slots=64", "--set",
                   ("comparison.settings=[\"loop=queue\", \"loop=double-queue keep_every=64 steps=3000 "
                    "learning_rate=0.014 optimizer=gradient-descent\"]")});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json s = json(folder / "d/summary.json");
  ASSERT_EQ(s["results"].size(), 2U);
  EXPECT_EQ(s["results"][1]["loop"], "double-queue");
  for (const Json& row : s["results"])
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(row["weights"][i].get<double>(), s["tilted_weights"][i].get<double>(), 0.06) << row;
      for (std::size_t j = 0; j < 2; ++j)
        EXPECT_NEAR(row["means"][i][j].get<double>(), s["tilted_means"][i][j].get<double>(), 0.08) << row;
    }
}

// A small problem of one run, for each of the loops.
Words loop_run(const std::string& loop, const std::string& dynamics, const std::string& slots,
               const std::string& keep) {
  return {"run",   "mine.toml",      "--quiet", "--no-report",
          "--set", "loop=" + loop,   "--set",   "dynamics=" + dynamics,
          "--set", "slots=" + slots, "--set",   "keep_every=" + keep};
}
constexpr const char* experiment = R"(kind = "denoising-mixture"
steps_per_sample = 12
horizon = 2.0
batch = 300
steps = 60
log_every = 7
checkpoint_every = 5
[base]
weights = [0.7, 0.3]
means = [[-1.0, 0.0], [1.0, 0.5]]
covariances = [[[0.5, 0.1], [0.1, 0.4]], [[0.3, 0.0], [0.0, 0.3]]]
[reward]
direction = [1.0, -0.5]
)";

struct Loop {
  const char *name, *loop, *dynamics, *slots, *keep;
};
void PrintTo(const Loop& l, std::ostream* out) { *out << l.name; }
class Loops : public testing::TestWithParam<Loop> {
 protected:
  Words arguments() const { return loop_run(GetParam().loop, GetParam().dynamics, GetParam().slots, GetParam().keep); }
};

TEST_P(Loops, DoNotDependOnThreadsOrInstructions) {
  const Folder folder;
  write(folder / "mine.toml", experiment);
  const Words same{"theta.npy", "samples.npy"};
  const auto at = [&](const Words& more, const char* place) {
    const Result r = run(folder, arguments() + more + Words{"--output", place});
    ASSERT_EQ(r.code, 0) << r.err;
  };
  at({"--threads", "1"}, "one");
  at({"--threads", "2"}, "two");
  at({"--threads", "3"}, "three");
  EXPECT_TRUE(same_bytes(folder / "one", folder / "two", same));
  EXPECT_TRUE(same_bytes(folder / "one", folder / "three", same));
  if (run(folder, arguments() + Words{"--isa", "v4", "--output", "v4"}).code == 0) {
    at({"--isa", "v3"}, "v3");
    EXPECT_TRUE(same_bytes(folder / "v3", folder / "v4", same));
  }
}

TEST_P(Loops, GoOnWhereTheyWereKilled) {
  const Folder folder;
  write(folder / "mine.toml", experiment);
  ASSERT_EQ(run(folder, arguments() + Words{"--output", "whole"}).code, 0);
  std::srand(7);
  for (int kill = 0; kill < 3; ++kill) {
    fs::remove_all(folder / "c");
    {
      Process p(Launch{.arguments = arguments() + Words{"--output", "c"}, .folder = folder.path()});
      while (!fs::exists(folder / "c/config.toml")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(std::rand() % 40));
      p.send(SIGKILL);
      p.wait();
    }
    const Result r = run(folder, arguments() + Words{"--output", "c", "--resume"});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_TRUE(same_bytes(folder / "c", folder / "whole"));
    for (const char* name : {"step", "reward", "path_kl", "exact_kl", "mean_error", "gradient_evaluations"}) {
      const auto a = column(folder / "c", name), b = column(folder / "whole", name);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i)
        EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << name;
    }
    for (const char* key : {"model_evaluations", "products", "frozen_evaluations", "frozen_products", "last_step"})
      EXPECT_EQ(json(folder / "c/summary.json")["results"][0][key],
                json(folder / "whole/summary.json")["results"][0][key])
          << key;
  }
  // From a checkpoint, and on to more steps.
  ASSERT_EQ(run(folder, arguments() + Words{"--output", "part", "--steps", "33"}).code, 0);
  ASSERT_EQ(run(folder, arguments() + Words{"--output", "part", "--resume"}).code, 0);
  EXPECT_TRUE(same_bytes(folder / "part", folder / "whole", {"samples.npy"}));
}

INSTANTIATE_TEST_SUITE_P(
    Denoising, Loops,
    testing::Values(Loop{"Nested", "queue", "sde", "1", "1"}, Loop{"Queue", "queue", "sde", "4", "1"},
                    Loop{"QueueReplayed", "queue", "sde", "6", "5"}, Loop{"Single", "queue", "ode", "12", "12"},
                    Loop{"Cold", "queue-cold", "sde", "4", "1"}, Loop{"Double", "double-queue", "ode", "12", "12"}),
    [](const auto& l) { return l.param.name; });

// One slot, in whichever loop, is the nested loop, and is called so.
TEST(DenoisingMixture, OfOneSlotIsTheNestedLoop) {
  const Folder folder;
  write(folder / "mine.toml", experiment);
  for (const char* loop : {"nested", "queue", "queue-cold"}) {
    const Result r = run(folder, loop_run(loop, "sde", "1", "1") + Words{"--output", loop});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(json(folder / loop / "summary.json")["results"][0]["loop"], "nested");
    EXPECT_NE(contents(folder / loop / "config.toml").find("loop = \"nested\""), std::string::npos);
    EXPECT_TRUE(same_bytes(folder / loop, folder / "nested"));
    // It holds one batch of samples with their penalties, and no path.
    const auto bytes = json(folder / loop / "summary.json")["results"][0]["memory_bytes"].get<std::size_t>();
    EXPECT_LT(bytes, 2 * 300 * 3 * sizeof(float));
  }
}

class DenoisingInput : public testing::TestWithParam<Refused> {};
TEST_P(DenoisingInput, IsRefused) {
  const Folder folder;
  const Result r = run(folder, Words{"run", "denoising-mixture"} + GetParam().arguments);
  EXPECT_EQ(r.code, 2) << r.out;
  EXPECT_TRUE(is_error_line(r.err, GetParam().words));
  EXPECT_TRUE(names(folder.path()).empty());
}
INSTANTIATE_TEST_SUITE_P(
    Denoising, DenoisingInput,
    testing::Values(
        Refused{"SlotsThatDoNotDivide", {"--set", "slots=60"}, {"--set slots", "60 does not divide the 256"}},
        Refused{"NoSlots", {"--set", "slots=0"}, {"slots"}},
        Refused{"NegativeHorizon", {"--set", "horizon=-1"}, {"horizon", "positive"}},
        Refused{"CosineBeyondOne", {"--set", "schedule=cosine"}, {"horizon", "below 1"}},
        Refused{"CosineTooShort",
                {"--set", "schedule=cosine", "--set", "horizon=1e-20"},
                {"--set horizon", "1e-20", "too short for 256 steps"}},
        Refused{"UnknownSchedule", {"--set", "schedule=linear"}, {"schedule", "cosine"}},
        Refused{"EmptyBatch", {"--set", "batch=0"}, {"batch"}},
        Refused{"BatchBeyondMemory", {"--set", "batch=1000000000"}, {"batch", "GB"}},
        Refused{"NoSteps", {"--set", "steps_per_sample=0"}, {"steps_per_sample"}},
        Refused{"BetaOfNothing", {"--set", "beta=0"}, {"beta", "positive"}},
        Refused{"NestedWithSlots", {"--set", "loop=nested"}, {"slots", "64", "slots = 1"}},
        Refused{"NestedWithAPathToKeep",
                {"--set", "slots=1", "--set", "keep_every=16", "--set", "comparison.settings=[]"},
                {"--set keep_every", "16 has no effect on the nested loop"}},
        Refused{"DoubleQueueOfTheSDE", {"--set", "loop=double-queue"}, {"double-queue", "ode"}},
        Refused{"DoubleQueueWithFewSlots",
                {"--set", "loop=double-queue", "--set", "dynamics=ode"},
                {"slots", "one for each of the 256"}},
        Refused{"CovarianceThatIsNotDefinite",
                {"--set", "base.means=[[0.0, 0.0]]", "--set", "base.weights=[1.0]", "--set",
                 "base.covariances=[[[1.0, 2.0], [2.0, 1.0]]]"},
                {"--set base.covariances: the covariance of component 1 is not", "positive definite"}},
        Refused{"CovarianceThatIsNearlyFlat",
                {"--set", "base.means=[[0.0, 0.0]]", "--set", "base.weights=[1.0]", "--set",
                 "base.covariances=[[[1.0, 0.99999999999], [0.99999999999, 1.0]]]"},
                {"--set base.covariances", "matrix 1", "below 1e-6"}},
        Refused{"DeviationsBesideCovariances",
                {"--set", "base.deviations=[1, 1, 1, 1]", "--set", "base.covariances=[[[1.0]]]"},
                {"base.deviations", "given already"}},
        Refused{"WeightsOfAnotherNumber", {"--set", "base.weights=[1.0]"}, {"base.weights", "4 means"}},
        Refused{"NegativeWeight", {"--set", "base.weights=[0.5, 0.5, 0.5, -0.5]"}, {"base.weights", "positive"}},
        Refused{"DirectionOfAnotherSize", {"--set", "reward.direction=[1.0]"}, {"reward.direction"}},
        Refused{
            "SettingWithoutValue", {"--set", "comparison.settings=[\"slots\"]"}, {"comparison.settings", "key=value"}},
        Refused{"SettingOfAnotherSeed", {"--set", "comparison.settings=[\"seed=3\"]"}, {"comparison.settings", "seed"}},
        Refused{"SettingOfAnotherKind",
                {"--set", "comparison.settings=[\"kind=rates\"]"},
                {"comparison.settings", "cannot change kind"}},
        Refused{"SetThatEverySettingUndoes", {"--set", "slots=16"}, {"--set slots", "comparison.settings=[]"}},
        Refused{"WeightBeyondBounds", {"--set", "base.weights=[1e308, 1e308, 1.0, 1.0]"}, {"base.weights", "1e12"}},
        Refused{"VarianceBeyondBounds",
                {"--set", "base.means=[[0.0, 0.0]]", "--set", "base.weights=[1.0]", "--set",
                 "base.covariances=[[[1e300, 0.0], [0.0, 1.0]]]"},
                {"base.covariances", "1e+300"}},
        Refused{"DirectionBeyondBounds", {"--set", "reward.direction=[1e300, 0.0]"}, {"reward.direction", "1e30"}},
        Refused{"Repeats", {"--repeats", "2"}, {"--repeats"}}),
    [](const auto& r) { return r.param.name; });

// Settings may differ in lambda, and so in what they are to learn.
TEST(DenoisingMixture, MeasuresEachSettingAgainstItsOwnLaw) {
  const Folder folder;
  write(folder / "mine.toml", std::string(experiment) + "[comparison]\nsettings = [\"lambda=1\", \"lambda=-1\"]\n");
  const Result r = run(folder, {"run", "mine.toml", "--quiet", "--no-report", "--output", "d", "--set", "slots=4"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* setting : {"queue-sde-4", "queue-sde-4-2"}) {
    const fs::path place = folder / "d/settings" / setting;
    EXPECT_NE(r.out.find(fmt::format("{:13.4f}{:11.4f}", column(place, "weight_error").back(),
                                     column(place, "mean_error").back())),
              std::string::npos)
        << setting << r.out;
  }
}

// What was done before counts: the time so far is taken from the summary, and the runs that go on are counted.
TEST(DenoisingMixture, AddsUpTheSecondsOfAComparisonOverResumes) {
  const Folder folder;
  write(folder / "mine.toml", std::string(experiment) + "[comparison]\nsettings = [\"lambda=1\", \"lambda=-1\"]\n");
  const Words arguments{"run", "mine.toml", "--no-report", "--output", "d", "--set", "slots=4"};
  ASSERT_EQ(run(folder, arguments).code, 0);
  Json s = json(folder / "d/summary.json");
  s["seconds"] = 1000.0;
  write(folder / "d/summary.json", s.dump());
  const Result r = run(folder, arguments + Words{"--resume"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("2 of 2 runs have a checkpoint"), std::string::npos) << r.err;
  EXPECT_GT(json(folder / "d/summary.json")["seconds"].get<double>(), 1000.0);
  EXPECT_LT(json(folder / "d/summary.json")["seconds"].get<double>(), 1100.0);
}

// The longest run, which would take days, is begun first; the other two wait for it.
TEST(DenoisingMixture, SaysInItsReportWhichRunsAnInterruptLeft) {
  const Folder folder;
  write(folder / "mine.toml",
        std::string(experiment) + "[comparison]\nsettings = [\"lambda=1\", \"steps=90000000\", \"lambda=-1\"]\n");
  Process process(
      Launch{.arguments = {"run", "mine.toml", "--quiet", "--output", "d", "--set", "slots=4", "--threads", "1"},
             .folder = folder.path()});
  while (!fs::exists(folder / "d/settings/queue-sde-4-2/checkpoints"))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGINT);
  const Result r = process.wait();
  EXPECT_EQ(r.code, 130);
  EXPECT_NE(r.out.find("of 90000000 steps"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("2 of 3 runs had not started"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("continue with --resume"), std::string::npos) << r.out;
  const Json s = json(folder / "d/summary.json");
  EXPECT_EQ(s["status"], "interrupted");
  const std::string report = contents(folder / "d/report.html");
  EXPECT_NE(report.find("The comparison was interrupted: the report covers 1 of 3 runs."), std::string::npos);
  EXPECT_NE(report.find("was interrupted after"), std::string::npos);
}

TEST(DenoisingMixture, WithoutSettingsIsOneRun) {
  const Folder folder;
  const Result r = run(folder, {"run", "denoising-mixture", "--quick", "--quiet", "--no-report", "--output", "d",
                                "--set", "comparison.settings=[]", "--set", "slots=16", "--steps", "20"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json s = json(folder / "d/summary.json");
  ASSERT_EQ(s["results"].size(), 1U);
  EXPECT_EQ(s["results"][0]["slots"], 16);
  EXPECT_FALSE(fs::exists(folder / "d/settings"));
}

// On the line, in the plane and beyond: the base and the end, each with the share of its samples where the tilted law
// has most of its mass.
TEST(DenoisingMixture, HasPicturesInAnyDimension) {
  const Folder folder;
  const std::vector<Words> means{
      {"base.means=[[-1.0], [1.0]]", "reward.direction=[1.0]", "density of the tilted law"},
      {"base.means=[[-1.0, 0.0], [1.0, 0.5]]", "reward.direction=[1.0, 0.0]", "Contours"},
      {"base.means=[[-1.0, 0.0, 2.0], [1.0, 0.5, 0.0]]", "reward.direction=[1.0, 0.0, 0.0]", "first two coordinates"}};
  for (const Words& m : means) {
    const Result r = run(folder, {"run",      "denoising-mixture",
                                  "--quiet",  "--overwrite",
                                  "--output", "d",
                                  "--steps",  "2",
                                  "--set",    "comparison.settings=[]",
                                  "--set",    "base.weights=[0.5, 0.5]",
                                  "--set",    "base.deviations=[0.5, 0.5]",
                                  "--set",    m[0],
                                  "--set",    m[1],
                                  "--set",    "steps_per_sample=8",
                                  "--set",    "slots=2"});
    ASSERT_EQ(r.code, 0) << r.err;
    const std::string report = contents(folder / "d/report.html");
    std::size_t shares = 0;
    for (std::size_t at = 0; (at = report.find("of the samples lie where the tilted law has", at)) != std::string::npos;
         ++at)
      ++shares;
    EXPECT_EQ(shares, 2U) << m[0];
    EXPECT_NE(report.find(m[2]), std::string::npos) << m[0];
  }
}

TEST(DenoisingMixture, ThatDivergesSaysSo) {
  const Folder folder;
  write(folder / "mine.toml", experiment);
  const Result r = run(folder, {"run", "mine.toml", "--quiet", "--set", "slots=4", "--set", "learning_rate=1e20",
                                "--set", "optimizer=gradient-descent", "--output", "d"});
  EXPECT_EQ(r.code, 70) << r.out << r.err;
  EXPECT_NE(r.err.find("diverged after"), std::string::npos) << r.err;
  EXPECT_NE(contents(folder / "d/report.html").find("SDE M=4 diverged after"), std::string::npos);
  EXPECT_EQ(json(folder / "d/summary.json")["status"], "diverged");
  EXPECT_FALSE(fs::exists(folder / "d/samples.npy"));
}

}  // namespace
}  // namespace program_test
