// The figures of the built-in experiments against those of an independent program in double precision, and the same
// bits for any number of threads.
#include <cmath>

#include "program/run_program.hpp"

namespace program_test {
namespace {

class Threads : public testing::TestWithParam<Words> {};

TEST_P(Threads, DoNotChangeABit) {
  const Folder folder;
  for (const char* threads : {"1", "2", "3"}) {
    Words arguments{"run", "--quiet", "--no-report", "--threads", threads, "--output", threads};
    arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
    const Result result = run(folder, arguments);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(json(folder / (std::string(threads) + "/summary.json"))["threads"], std::stoi(threads));
  }
  EXPECT_TRUE(same_bytes(folder / "1", folder / "2"));
  EXPECT_TRUE(same_bytes(folder / "1", folder / "3"));
}

INSTANTIATE_TEST_SUITE_P(
    Program, Threads,
    testing::Values(Words{"langevin-reward", "--set", "particles=20000", "--steps", "50"},
                    Words{"ebm-wells", "--set", "particles=3001", "--steps", "40"},
                    Words{"ebm-mixture", "--set", "particles=3001", "--steps", "40"},
                    Words{"langevin-reward", "--set", "particles=5001", "--steps", "20", "--set", "method=nested"},
                    Words{"langevin-reward", "--set", "particles=5001", "--steps", "20", "--set", "method=unrolled"},
                    Words{"langevin-reward", "--set", "particles=5001", "--steps", "20", "--set", "method=guided"}),
    [](const auto& words) {
      std::string name = words.param.back().starts_with("method=") ? words.param.back().substr(7) : words.param.front();
      std::erase(name, '-');
      return name;
    });

struct Range {
  double low, high;
};
void expect_within(const Json& summary, const char* key, Range range) {
  ASSERT_TRUE(summary[key].is_number()) << key;
  EXPECT_GE(summary[key].get<double>(), range.low) << key;
  EXPECT_LE(summary[key].get<double>(), range.high) << key;
}

Json summary_of(const Words& arguments) {
  const Folder folder;
  Words all{"run", "langevin-reward", "--quiet", "--no-report", "--output", "r"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Result result = run(folder, all);
  EXPECT_EQ(result.code, 0) << result.err;
  return json(folder / "r/summary.json");
}

// 1800 seeds of the other program: exact reward .2946 +- .0005, reward .2909 +- .0027, log-likelihood -1.244 +- .045,
// the step at which -2.0 is reached 3310 +- 215 and never outside [2695, 4133]. Bounds are about five standard
// deviations away.
TEST(Figures, OfTheRewardExperiment) {
  const Json top = summary_of({"--repeats", "3"});
  ASSERT_EQ(top["runs"].size(), 3U);
  for (const Json& run : top["runs"]) {
    expect_within(run, "exact_reward", {0.289, 0.2965});
    expect_within(run, "reward", {0.276, 0.305});
    expect_within(run, "log_likelihood", {-1.50, -1.02});
    const Json at = run["first_step_at"]["-2.0"];
    ASSERT_TRUE(at.is_number());
    EXPECT_GE(at, 2500);
    EXPECT_LE(at, 4700);
    EXPECT_EQ(run["gradient_evaluations_at"]["-2.0"], at);
  }
}

// Batches of 1000: the reward has standard deviation .002 to .003, the log-likelihood .04 to .06. Five of them around
// the other program's values, each of which is the mean of a few runs.
TEST(Figures, OfLangevinAtTheStart) {
  const Json s = summary_of({"--set", "method=langevin-initial"});
  expect_within(s, "reward", {0.0715 - 0.013, 0.0715 + 0.013});
  expect_within(s, "exact_reward", {0.0725 - 5e-4, 0.0725 + 5e-4});
  expect_within(s, "log_likelihood", {-6.04 - 0.25, -6.04 + 0.25});
  EXPECT_TRUE(s["first_step_at"]["-2.0"].is_null());
  EXPECT_EQ(s["theta"], (Json{1.5, 0.0, 1.5, 0.0, 1.5, 0.0}));
}

TEST(Figures, OfLangevinAtTheOptimum) {
  const Json s = summary_of({"--set", "method=langevin-optimised"});
  expect_within(s, "reward", {0.291 - 0.015, 0.291 + 0.015});
  expect_within(s, "exact_reward", {0.2947 - 1e-3, 0.2947 + 1e-3});
  expect_within(s, "log_likelihood", {-1.24 - 0.27, -1.24 + 0.27});
  ASSERT_TRUE(s["first_step_at"]["-2.0"].is_number());
  EXPECT_GE(s["first_step_at"]["-2.0"], 71 - 50);
  EXPECT_LE(s["first_step_at"]["-2.0"], 71 + 50);
}

TEST(Figures, OfGuidance) {
  const Json s = summary_of({"--set", "method=guided"});
  expect_within(s, "reward", {0.304 - 0.012, 0.304 + 0.012});
  expect_within(s, "log_likelihood", {-2.47 - 0.22, -2.47 + 0.22});
  EXPECT_TRUE(s["first_step_at"]["-2.0"].is_null());
  EXPECT_EQ(s["theta"], (Json{1.5, 0.0, 1.5, 0.0, 1.5, 0.0})) << "it moves samples, not theta";

  const Json weak = summary_of({"--set", "method=guided", "--set", "smooth_reward.lambda=1"});
  expect_within(weak, "reward", {0.119 - 0.015, 0.119 + 0.015});
  expect_within(weak, "log_likelihood", {-5.27 - 0.3, -5.27 + 0.3});
}

// Exact reward .2316 to .2325, log-likelihood -2.7 to -2.9, -5.8 at steps 511 to 861 (few seeds: 252 has been seen),
// -2.0 never.
TEST(Figures, OfUnrolling) {
  const Json s = summary_of({"--set", "method=unrolled"});
  expect_within(s, "exact_reward", {0.229, 0.2355});
  expect_within(s, "log_likelihood", {-3.12, -2.50});
  EXPECT_TRUE(s["first_step_at"]["-5.8"].is_number());
  EXPECT_TRUE(s["first_step_at"]["-2.0"].is_null());
}

// Ten inner steps with a warm start follow exact gradient descent, whose E R is .136856 after 300 steps. Over seeds
// with 300 particles the nested loop has .1365 +- .0004.
TEST(Figures, OfTheNestedLoopOnItsWay) {
  const Json nested = summary_of({"--set", "method=nested", "--steps", "300", "--set", "particles=300"});
  expect_within(nested, "exact_reward", {0.136856 - 0.0025, 0.136856 + 0.0025});
  EXPECT_EQ(nested["gradient_evaluations"], 3000);
}

TEST(Figures, OfTheEnergyBasedExperimentsAtTheStart) {
  const Folder folder;
  ASSERT_EQ(run(folder, {"run", "ebm-wells", "--steps", "0", "--output", "wells"}).code, 0);
  EXPECT_NEAR(json(folder / "wells/summary.json")["exact_kl"].get<double>(), 5.95588, 1e-5);
  ASSERT_EQ(run(folder, {"run", "ebm-mixture", "--steps", "0", "--output", "mixture"}).code, 0);
  EXPECT_NEAR(json(folder / "mixture/summary.json")["exact_kl"].get<double>(), 8.40533, 1e-5);
  EXPECT_EQ(json(folder / "mixture/summary.json")["permutation"].size(), 2U);
  const Json s = json(folder / "wells/summary.json");
  EXPECT_EQ(s["reward"].get<double>(), -s["exact_kl"].get<double>());
}

// The mixture's KL is 1.31 after 4000 steps, with a standard deviation of .004 over seeds.
TEST(Figures, OfTheMixtureAfterItsQuickForm) {
  const Folder folder;
  ASSERT_EQ(run(folder, {"run", "ebm-mixture", "--quick", "--quiet", "--no-report", "--output", "r"}).code, 0);
  EXPECT_NEAR(json(folder / "r/summary.json")["exact_kl"].get<double>(), 1.31, 0.03);
}

}  // namespace
}  // namespace program_test
