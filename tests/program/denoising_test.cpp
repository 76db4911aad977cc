// The experiment `denoising-gaussian`: its rows against known numbers, the recursion and the theory of its noise; what
// it refuses.
#include <cmath>
#include <csignal>
#include <tuple>

#include "implicit_diffusion/denoising/gaussian_theory.hpp"
#include "program/run_program.hpp"

namespace program_test {
namespace {

using implicit_diffusion::GaussianDenoising;

const Words all_files{"checkpoints", "config.toml", "report.html", "summary.json"};

class DenoisingGaussian : public testing::Test {
 protected:
  // All five etas at four horizons, 16 loops of each.
  static void SetUpTestSuite() {
    folder = std::make_unique<Folder>();
    const Result result = run(*folder, {"run", "denoising-gaussian", "--quick", "--quiet", "--set", "repeats=16"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    summary = json(place() / "summary.json");
  }
  static void TearDownTestSuite() { folder.reset(); }
  static fs::path place() { return *folder / "runs/denoising-gaussian-0"; }
  static double number(const Json& row, const char* key) { return row.at(key).get<double>(); }
  static GaussianDenoising model_of(const Json& row) {
    return {.horizon = number(row, "horizon"), .eta = number(row, "eta"), .theta_0 = .5, .target = 2};
  }

  static std::unique_ptr<Folder> folder;
  static Json summary;
};
std::unique_ptr<Folder> DenoisingGaussian::folder;
Json DenoisingGaussian::summary;

TEST_F(DenoisingGaussian, LeavesItsFilesAndAReportThatCanBeMadeAnew) {
  EXPECT_EQ(names(place()), all_files);
  EXPECT_EQ(summary["status"], "completed");
  EXPECT_EQ(summary["steps"], 128) << "twice 16 steps in a unit of time, horizon 4";
  for (const char* key : {"method", "theta", "reward"}) EXPECT_TRUE(summary[key].is_null()) << key;
  // In 2 M steps the slots make 1 + 2 + ... + M, then M times M steps.
  std::int64_t evaluations = 0;
  for (const std::int64_t m : {16, 32, 48, 64}) evaluations += 5 * 16 * (m * (m + 1) / 2 + m * m);
  EXPECT_EQ(summary["gradient_evaluations"], evaluations);
  const std::string report = contents(place() / "report.html");
  for (const char* text : {"holds only for 4η &gt; 1", "θ over time, T = 3", "η = 0.25", "rate, fitted"})
    EXPECT_NE(report.find(text), std::string::npos) << text;
  fs::remove(place() / "report.html");
  ASSERT_EQ(run(*folder, {"report", "runs/denoising-gaussian-0"}).code, 0);
  EXPECT_EQ(contents(place() / "report.html"), report);
}

TEST_F(DenoisingGaussian, HasTheKnownThetasOfTheDelayEquation) {
  const std::map<double, double> known{{.05, .9032477948}, {.25, 1.8128520986}, {.5, 2.0751255388}, {2, 2.0909881146}};
  std::size_t found = 0;
  ASSERT_EQ(summary["results"].size(), 20U);
  for (const Json& row : summary["results"]) {
    EXPECT_EQ(row["target"], 2);
    const auto at = known.find(number(row, "eta"));
    if (number(row, "horizon") != 3 || at == known.end()) continue;
    EXPECT_NEAR(number(row, "delay_equation"), at->second, 1e-9);
    ++found;
  }
  EXPECT_EQ(found, known.size());
}

TEST_F(DenoisingGaussian, MeansAreTheRecursion) {
  for (const Json& row : summary["results"]) {
    const GaussianDenoising model = model_of(row);
    const int m = static_cast<int>(16 * model.horizon);
    EXPECT_EQ(number(row, "mean_field"), implicit_diffusion::queue_recursion(model, m, 2 * m).back()) << row;
    EXPECT_NEAR(number(row, "expected_error"),
                implicit_diffusion::queue_deviation(model, m, 2 * m, 256).back() / std::sqrt(16.0), 1e-15);
  }
}

// theta is Gaussian, with the recursion as its mean and a known standard deviation: one of the 20 rows is more than 4
// standard errors off for one seed in 800 (20 erfc(4 / sqrt 2)). The sum over rows of 15 (estimated / known variance)
// is chi-square with 300 degrees of freedom, standard deviation sqrt(600): five of them are one seed in two million.
TEST_F(DenoisingGaussian, SamplesHaveTheMeanAndTheSpreadOfTheTheory) {
  double sum = 0, seen = 0;
  for (const Json& row : summary["results"]) {
    const double known = number(row, "expected_error"), mean = number(row, "mean_field");
    EXPECT_LE(std::abs(number(row, "theta") - mean), 4 * known) << row;
    sum += 15 * std::pow(number(row, "standard_error") / known, 2);
    // A gradient a tenth too large would be seen.
    GaussianDenoising wrong = model_of(row);
    wrong.eta *= 1.1;
    const int m = static_cast<int>(16 * wrong.horizon);
    seen = std::max(seen, std::abs(implicit_diffusion::queue_recursion(wrong, m, 2 * m).back() - mean) / known);
  }
  EXPECT_NEAR(sum, 300, 5 * std::sqrt(600.0));
  EXPECT_GT(seen, 8);
}

// Rates that are fitted to the closed form stand below the table of the samples, which says so.
TEST_F(DenoisingGaussian, SaysThatItsRatesAreNotThoseOfTheSamples) {
  const Result result = run(*folder, {"run", "denoising-gaussian", "--quiet", "--no-report", "--set", "horizons=[1.0]",
                                      "--set", "etas=[0.1, 0.5]", "--set", "repeats=2", "--output", "rates"});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::size_t samples = result.out.find("theta(2T)"), rates = result.out.find("Without samples");
  ASSERT_NE(rates, std::string::npos) << result.out;
  EXPECT_LT(samples, rates);
  EXPECT_EQ(result.out.substr(samples, rates - samples).find("rate"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("fitted to T = 3 to 8"), std::string::npos) << result.out;
}

TEST_F(DenoisingGaussian, FittedRatesAreThoseOfTheTheory) {
  ASSERT_EQ(summary["decay_rates"].size(), 5U);
  const std::vector<std::tuple<double, const char*, double>> known{{.05, "exponential", 1 - std::sqrt(.8)},
                                                                   {.1, "exponential", 1 - std::sqrt(.6)},
                                                                   {.25, "critical", 1},
                                                                   {.5, "oscillating", 1},
                                                                   {2, "oscillating", 1}};
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Json& row = summary["decay_rates"][i];
    const auto& [eta, regime, rate] = known[i];
    EXPECT_EQ(row["eta"], eta);
    EXPECT_EQ(row["regime"], regime);
    EXPECT_NEAR(number(row, "theory"), rate, 1e-12);
    EXPECT_NEAR(number(row, "fitted") / rate, 1, 0.05) << row;
  }
}

TEST_F(DenoisingGaussian, KeepsThePathOfOneHorizon) {
  ASSERT_EQ(summary["paths"].size(), 5U);
  for (const Json& path : summary["paths"]) {
    EXPECT_EQ(path["horizon"], 3);
    ASSERT_EQ(path["theta"].size(), 97U);
    for (std::size_t k = 0; k <= 48; ++k) EXPECT_EQ(path["theta"][k], .5) << "no batch has come out";
    EXPECT_NE(path["theta"][49], .5);
    for (const Json& row : summary["results"]) {
      if (row["horizon"] != 3 || row["eta"] != path["eta"]) continue;
      EXPECT_EQ(row["theta"], path["theta"].back());
    }
  }
}

const Words small{"run", "denoising-gaussian", "--quiet", "--set", "horizons=[0.5, 1]", "--set", "repeats=5"};

TEST(DenoisingGaussianRun, ThreadsDoNotChangeTheResults) {
  const Folder folder;
  for (const char* threads : {"1", "2", "3"})
    ASSERT_EQ(run(folder, small + Words{"--no-report", "--threads", threads, "--output", threads}).code, 0);
  const Json one = json(folder / "1/summary.json");
  EXPECT_EQ(one["threads"], 1);
  for (const char* threads : {"2", "3"}) {
    const Json other = json(folder / threads / "summary.json");
    for (const char* key : {"results", "decay_rates", "paths", "gradient_evaluations"})
      EXPECT_EQ(other[key].dump(), one[key].dump()) << key;
  }
  ASSERT_EQ(run(folder, small + Words{"--no-report", "--seed", "1", "--output", "s"}).code, 0);
  const Json seed = json(folder / "s/summary.json");
  EXPECT_NE(seed["results"][0]["theta"], one["results"][0]["theta"]);
  EXPECT_NE(one["results"][0]["theta"], one["results"][1]["theta"]);
}

TEST(DenoisingGaussianRun, ItsConfigurationRepeatsItAndResumeBeginsAnew) {
  const Folder folder;
  ASSERT_EQ(run(folder, small + Words{"--output", "a"}).code, 0);
  ASSERT_EQ(run(folder, {"run", "a/config.toml", "--quiet", "--output", "b"}).code, 0);
  EXPECT_EQ(json(folder / "a/summary.json")["results"], json(folder / "b/summary.json")["results"]);
  const Result again = run(folder, {"run", "a/config.toml", "--resume", "--output", "a"});
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.err.find("continues with 10 parts done"), std::string::npos) << again.err;
  EXPECT_EQ(names(folder / "a"), all_files);
}

TEST(DenoisingGaussianRun, AnInterruptKeepsTheSettingsThatAreDone) {
  const Folder folder;
  Process process(
      Launch{.arguments = {"run", "denoising-gaussian", "--set", "repeats=1000", "--set", "horizons=[0.5, 4]", "--set",
                           "path_horizon=0.5", "--output", "i", "--threads", "1"},
             .folder = folder.path()});
  // A checkpoint is written as soon as the first setting is done.
  while (!fs::exists(folder / "i/checkpoints") || fs::is_empty(folder / "i/checkpoints"))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  const Json s = json(folder / "i/summary.json");
  EXPECT_EQ(s["status"], "interrupted");
  EXPECT_GT(s["results"].size(), 0U);
  EXPECT_LT(s["results"].size(), 10U);
  EXPECT_EQ(names(folder / "i"), all_files);
  EXPECT_NE(contents(folder / "i/report.html").find("The run was interrupted"), std::string::npos);
}

TEST(DenoisingGaussianRun, AQueueThatIsNotStableHasDiverged) {
  const Folder folder;
  const Result result = run(folder, {"run", "denoising-gaussian", "--quiet", "--set", "etas=[0.5, 1000]", "--set",
                                     "horizons=[4]", "--set", "repeats=2", "--output", "d"});
  EXPECT_EQ(result.code, 70) << result.out;
  EXPECT_TRUE(is_error_line(result.err, {"eta = 1000", "T = 4", "diverged at step", "stable below eta = "}));
  const Json s = json(folder / "d/summary.json");
  EXPECT_EQ(s["status"], "diverged");
  EXPECT_EQ(s["results"].size(), 1U);
  EXPECT_NE(contents(folder / "d/report.html").find("diverged"), std::string::npos);
}

TEST(DenoisingGaussianRun, ADamagedSummaryIsRefused) {
  const Folder folder;
  ASSERT_EQ(run(folder, small + Words{"--no-report", "--output", "a"}).code, 0);
  const std::string good = contents(folder / "a/summary.json");
  for (const auto& [from, to, word] : {std::tuple{"\"results\"", "\"result\"", "results"},
                                       {"\"mean_field\"", "\"mean\"", "mean_field"},
                                       {"\"paths\"", "\"path\"", "paths"}}) {
    write(folder / "a/summary.json", changed(good, from, to));
    const Result result = run(folder, {"report", "a"});
    EXPECT_EQ(result.code, 65);
    EXPECT_TRUE(is_error_line(result.err, {"summary.json", word}));
  }
}

TEST(DenoisingGaussianRun, CheckKnowsIt) {
  const Folder folder;
  const Result result = run(folder, {"check", "denoising-gaussian"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("queue of samples"), std::string::npos);
  EXPECT_NE(result.out.find("3 ok, 0 OFF, 2 deliberate errors caught, 0 left out"), std::string::npos) << result.out;
  EXPECT_EQ(result.out, run(folder, {"check", "denoising-gaussian"}).out);
  const Result few = run(folder, {"check", "denoising-gaussian", "--set", "batch=1", "--set", "repeats=2", "--set",
                                  "etas=[1e-3]", "--set", "horizons=[1]"});
  EXPECT_EQ(few.code, 0) << few.out;
  EXPECT_NE(few.out.find("1 left out"), std::string::npos) << few.out;
}

class DenoisingGaussianRefuses : public testing::TestWithParam<Refused> {};
TEST_P(DenoisingGaussianRefuses, WhatMakesNoSense) {
  const Folder folder;
  const Result result = run(folder, Words{"run", "denoising-gaussian"} + GetParam().arguments);
  EXPECT_EQ(result.code, 2) << result.out;
  EXPECT_TRUE(is_error_line(result.err, GetParam().words));
  EXPECT_TRUE(names(folder.path()).empty()) << "nothing is left behind";
}
INSTANTIATE_TEST_SUITE_P(
    Program, DenoisingGaussianRefuses,
    testing::Values(
        Refused{"Steps", {"--steps", "5"}, {"--steps: ", "2 horizon steps_per_time"}},
        Refused{"NoHorizons", {"--set", "horizons=[]"}, {"horizons", "empty"}},
        Refused{"NegativeHorizon", {"--set", "horizons=[-1]"}, {"horizons", "positive"}},
        Refused{"HorizonsThatDescend", {"--set", "horizons=[2, 1]"}, {"horizons", "ascend"}},
        Refused{"HorizonBetweenSteps", {"--set", "horizons=[1.01]"}, {"horizons", "1.01", "whole number of steps"}},
        Refused{"HorizonTooLong", {"--set", "horizons=[101]"}, {"horizons", "more than 100"}},
        Refused{"HorizonThatIsText", {"--set", "horizons=[\"a\"]"}, {"horizons"}},
        Refused{"NoEtas", {"--set", "etas=[]"}, {"etas", "empty"}},
        Refused{"EtaOfNothing", {"--set", "etas=[0]"}, {"etas", "positive"}},
        Refused{"EtaTooSmall", {"--set", "etas=[1e-9]"}, {"etas", "at least 1e-6"}},
        Refused{"EtaTooLarge", {"--set", "etas=[1e9]"}, {"etas", "more than 1000"}},
        Refused{"EtaThatIsNotANumber", {"--set", "etas=[nan]"}, {"etas"}},
        Refused{"AtTheTarget", {"--set", "theta_0=2"}, {"theta_0", "target"}},
        Refused{"FarTarget", {"--set", "target=1e4"}, {"target", "between -1000 and 1000"}},
        Refused{"NoSteps", {"--set", "steps_per_time=0"}, {"steps_per_time", "between 1 and 1000"}},
        Refused{"NoBatch", {"--set", "batch=0"}, {"batch", "between 1 and"}},
        Refused{"TooMuchMemory", {"--set", "batch=100000"}, {"batch", "128 slots", "bytes"}},
        Refused{"OneLoop", {"--set", "repeats=1"}, {"repeats", "between 2 and"}},
        Refused{"PathOfAnotherHorizon", {"--set", "path_horizon=2.5"}, {"path_horizon", "none of the horizons"}},
        Refused{"UnknownKey", {"--set", "eta=1"}, {"eta", "did you mean etas"}}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace program_test
