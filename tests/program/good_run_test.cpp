// What a run leaves behind, and what can be done with it: the files, their shapes, running it again, starting from it,
// reporting on it.
#include <sched.h>
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "program/run_program.hpp"

namespace program_test {
namespace {

using Shape = std::vector<std::size_t>;

// A run of 25 steps with rows at 0, 10, 20 and 25.
const Words short_run{"run", "langevin-reward", "--steps", "25", "--set", "particles=130", "--quiet"};

Words header(const fs::path& place) { return io::read_csv(place / "metrics.csv", io::EmptyCell::nan).header; }

std::string descr(const fs::path& file) {
  const std::string bytes = contents(file);
  const std::size_t at = bytes.find("'descr': '") + 10;
  return bytes.substr(at, 3);
}

TEST(GoodRun, LeavesTheFilesOfTheContract) {
  const Folder folder;
  const Result result = run(folder, short_run);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const fs::path r = folder / "runs/langevin-reward-0";
  EXPECT_EQ(names(r), files_of_a_run);

  EXPECT_EQ(header(r),
            (Words{"step", "gradient_evaluations", "seconds", "reward", "exact_reward", "exact_kl", "log_likelihood"}));
  EXPECT_EQ(column(r, "step"), (std::vector<double>{0, 10, 20, 25}));
  EXPECT_EQ(column(r, "gradient_evaluations"), (std::vector<double>{0, 10, 20, 25}));
  for (const double kl : column(r, "exact_kl")) EXPECT_TRUE(std::isnan(kl)) << "there is no reference";

  EXPECT_EQ(io::read_npy(r / "theta.npy").shape, (Shape{4, 6}));
  EXPECT_EQ(descr(r / "theta.npy"), "<f8");
  EXPECT_EQ(io::read_npy(r / "samples.npy").shape, (Shape{130, 2}));
  EXPECT_EQ(descr(r / "samples.npy"), "<f4");

  const Json s = json(r / "summary.json");
  EXPECT_EQ(s["experiment"], "langevin-reward");
  EXPECT_EQ(s["method"], "implicit");
  EXPECT_EQ(s["seed"], 0);
  EXPECT_EQ(s["steps"], 25);
  EXPECT_EQ(s["status"], "completed");
  EXPECT_EQ(s["gradient_evaluations"], 25);
  EXPECT_EQ(s["format"], 1);
  EXPECT_TRUE(s["version"].is_string());
  EXPECT_GE(s["threads"], 1);
  EXPECT_NE(run(folder, {"--version"}).out.find(" (kernels: " + s["isa"].get<std::string>() + "; "), std::string::npos);
  EXPECT_GE(s["seconds"], 0.0);
  EXPECT_TRUE(s["exact_kl"].is_null());
  for (const char* key : {"reward", "exact_reward", "log_likelihood"}) EXPECT_EQ(s[key], column(r, key).back()) << key;
  for (const char* key : {"first_step_at", "gradient_evaluations_at"}) {
    EXPECT_EQ(s[key].size(), 2U);
    EXPECT_TRUE(s[key].contains("-5.8") && s[key].contains("-2.0")) << s[key];
  }
  const io::Array theta = io::read_npy(r / "theta.npy");
  EXPECT_EQ(s["theta"].get<std::vector<double>>(), std::vector<double>(theta.values.end() - 6, theta.values.end()));

  const std::string report = contents(r / "report.html");
  EXPECT_TRUE(report.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(report.find("</html>"), std::string::npos);
  EXPECT_EQ(report.find("src=\"http"), std::string::npos) << "it needs no network";
  EXPECT_LT(report.find("Reached −5.8"), report.find("Reached −2.0")) << "in the order of the configuration";
}

TEST(GoodRun, PrintsTheClosingTableAndNothingElse) {
  const Folder folder;
  const auto table = lines(run(folder, short_run).out);
  ASSERT_GE(table.size(), 2U);
  EXPECT_TRUE(table.front().starts_with("langevin-reward (implicit, seed 0): completed, 25 steps in "))
      << table.front();
  for (std::size_t i = 1; i < table.size(); ++i) EXPECT_TRUE(table[i].starts_with("  ")) << table[i];
  EXPECT_NE(table.back().find("runs/langevin-reward-0/report.html"), std::string::npos);
}

TEST(GoodRun, SaysWhatWasReached) {
  const Folder folder;
  const Result result = run(folder, short_run);
  EXPECT_NE(result.out.find("\n  log-likelihood -5.8 reached  never\n"), std::string::npos) << result.out;
}

// The numbers are those of the experiments' files.
TEST(GoodRun, NamesThePartsOfTheta) {
  const Folder folder;
  const Words start{"--steps", "0", "--quiet", "--no-report", "--output"};
  const auto table = [&](const Words& experiment, const char* name) {
    return run(folder, Words{"run"} + experiment + start + Words{name}).out;
  };
  const std::string wells = table({"langevin-reward"}, "wells");
  EXPECT_NE(wells.find("\n  theta: wells 1 to 6          1.500 0.000 1.500 0.000 1.500 0.000\n"), std::string::npos)
      << wells;
  const std::string mixture = table({"ebm-mixture"}, "mixture");
  for (const char* row :
       {"theta: weights, as logits    0.000 0.000", "theta: mean 1                4.000 0.000",
        "theta: mean 2                -2.000 3.464", "theta: covariance 2          1.000 0.000 0.000 1.000"})
    EXPECT_NE(mixture.find(std::string("\n  ") + row + "\n"), std::string::npos) << row << " is not in\n" << mixture;
  const std::string factors = table({"ebm-mixture", "--set", "potential.covariance=cholesky"}, "factors");
  EXPECT_NE(factors.find("\n  theta: Cholesky factor 2     0.000 0.000 0.000\n"), std::string::npos) << factors;
}

// The files of an energy-based model call minus its KL the reward; people read the KL.
TEST(GoodRun, ShowsARewardOnlyWhereThereIsOne) {
  const Folder folder;
  const std::string energy = run(folder, {"run", "ebm-wells", "--steps", "2", "--quiet"}).out;
  EXPECT_EQ(energy.find("reward"), std::string::npos) << energy;
  EXPECT_NE(energy.find("\n  exact KL "), std::string::npos) << energy;
  EXPECT_NE(run(folder, short_run).out.find("\n  reward "), std::string::npos);
}

TEST(GoodRun, HugeNumbersHaveExponents) {
  const Folder folder;
  const Result result = run(folder, short_run + Words{"--set", "start.theta=[1e300, 0, 0, 0, 0, -1e300]"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find(" 1e+300 0.000 "), std::string::npos) << result.out;
  for (const std::string& line : lines(result.out)) EXPECT_LT(line.size(), 120U) << line;
}

// A method without a covariance can do with one particle.
TEST(GoodRun, OneParticleIsEnoughForSampling) {
  const Folder folder;
  for (const char* method : {"langevin-initial", "langevin-optimised", "guided", "unrolled"}) {
    const Result result = run(folder, {"run", "langevin-reward", "--set", std::string("method=") + method, "--set",
                                       "particles=1", "--steps", "25", "--output", method, "--quiet"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(io::read_npy(folder / method / "samples.npy").shape, (Shape{1, 2}));
    EXPECT_TRUE(json(folder / method / "summary.json")["reward"].is_number());
  }
}

// Guided samples are of another law than pi*(theta): figures of that one would tell nothing about them.
TEST(GoodRun, GuidedHasNoExactFigures) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--set", "method=guided", "--output", "r"}).code, 0);
  const Json guided = json(folder / "r/summary.json");
  EXPECT_TRUE(guided["exact_reward"].is_null() && guided["exact_kl"].is_null());
  EXPECT_TRUE(guided["reward"].is_number() && guided["log_likelihood"].is_number());
  for (const double v : column(folder / "r", "exact_reward")) EXPECT_TRUE(std::isnan(v));
}

// The weight of the smooth reward is a factor of the gradient: after one step theta has gone lambda times as far. It is
// that of the reward unless it is given.
TEST(GoodRun, UnrolledWeighsItsRewardByLambda) {
  const Folder folder;
  int count = 0;
  const auto step = [&](const Words& changes) {
    const std::string name = "r" + std::to_string(++count);
    EXPECT_EQ(run(folder, Words{"run", "langevin-reward", "--set", "method=unrolled", "--set", "particles=130",
                                "--steps", "1", "--quiet", "--no-report", "--output", name} +
                              changes)
                  .code,
              0);
    return json(folder / name / "summary.json")["theta"][0].get<double>() - 1.5;
  };
  const double one = step({});
  ASSERT_GT(std::abs(one), 1e-6);
  for (const double lambda : {5.0, 1000.0, -1.0, 0.0}) {
    const Words smooth{"--set", "smooth_reward.lambda=" + std::to_string(lambda)};
    const Words hard{"--set", "reward.lambda=" + std::to_string(lambda)};
    EXPECT_NEAR(step(smooth), lambda * one, 1e-9 * std::abs(lambda)) << lambda;
    EXPECT_NEAR(step(hard), lambda * one, 1e-9 * std::abs(lambda)) << lambda;
  }
  const double both = step({"--set", "reward.lambda=7", "--set", "smooth_reward.lambda=2"});
  EXPECT_NEAR(both, 2 * one, 1e-9);
}

// A target so far away that the gradient of the reward is the same at every sample: theta's steps are its rate alone.
// The samples are within 5 of the origin, the target at 10,000: a step differs by 0.1 % at most.
TEST(GoodRun, UnrolledHasTheRateOfItsSchedule) {
  const Folder folder;
  write(folder / "x.toml", R"(method = "unrolled"
particles = 100
steps = 27
step_size = 0.1
learning_rate = 1e-9
log_every = 1
[potential]
kind = "quadratic"
precision = [[1.0]]
[smooth_reward]
kind = "quadratic"
centre = [10000.0]
[start]
theta = [0.0]
)");
  const std::map<std::string, double> exponents{{"constant", 0}, {"inverse-sqrt", -0.5}, {"cube-root", -2.0 / 3}};
  for (const auto& [schedule, exponent] : exponents) {
    ASSERT_EQ(
        run(folder, {"run", "x.toml", "--set", "schedule=" + schedule, "--output", schedule, "--quiet", "--no-report"})
            .code,
        0);
    const std::vector<double> theta = io::read_npy(folder / schedule / "theta.npy").values;
    ASSERT_EQ(theta.size(), 28U);
    for (const std::size_t k : {1, 7, 26})
      EXPECT_NEAR((theta[k + 1] - theta[k]) / theta[1] / std::pow(static_cast<double>(k + 1), exponent), 1, 2e-3)
          << schedule << ", step " << k;
  }
}

// A hundredth of a standard deviation is 2^23 / 100 = 83886 of them from the origin: this side of it is not refused.
TEST(GoodRun, FarFromTheOriginButNotTooFar) {
  const Folder folder;
  write(folder / "x.toml", changed(small_experiment, "theta = [0.0]", "theta = [80000.0]\nmean = [80000.0]"));
  EXPECT_EQ(run(folder, {"run", "x.toml"}).code, 0);
}

TEST(GoodRun, CountsTheInnerStepsAsGradientEvaluations) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--set", "method=nested", "--output", "r"}).code, 0);
  EXPECT_EQ(json(folder / "r/summary.json")["gradient_evaluations"], 250) << "10 inner steps unless given";
  EXPECT_EQ(column(folder / "r", "gradient_evaluations"), (std::vector<double>{0, 100, 200, 250}));
}

TEST(GoodRun, OfNoStepsWritesTheStart) {
  const Folder folder;
  ASSERT_EQ(run(folder, {"run", "langevin-reward", "--steps", "0", "--output", "r"}).code, 0);
  EXPECT_EQ(names(folder / "r"), files_of_a_run);
  EXPECT_EQ(column(folder / "r", "step"), (std::vector<double>{0}));
  EXPECT_EQ(io::read_npy(folder / "r/theta.npy").values, (std::vector<double>{1.5, 0, 1.5, 0, 1.5, 0}));
  EXPECT_EQ(json(folder / "r/summary.json")["steps"], 0);
  // N(0, I): the mean of 1000 has standard error 0.032.
  const io::Array x = io::read_npy(folder / "r/samples.npy");
  double sum = 0;
  for (const double v : x.values) sum += v;
  EXPECT_NEAR(sum / 2000, 0, 5 / std::sqrt(2000.0));
}

TEST(GoodRun, ConfigTomlGivesTheSameRun) {
  const Folder folder;
  for (const Words& change : {Words{"langevin-reward"}, Words{"ebm-wells"}, Words{"ebm-mixture"},
                              Words{"langevin-reward", "--set", "method=guided"},
                              Words{"langevin-reward", "--set", "method=nested", "--set", "optimizer=adam"},
                              Words{"langevin-reward", "--set", "schedule=cube-root", "--set", "order=authors"}}) {
    const Words options{"--steps", "25", "--seed", "7", "--output"};
    ASSERT_EQ(run(folder, Words{"run"} + change + options + Words{"a", "--overwrite"}).code, 0);
    ASSERT_EQ(run(folder, {"run", "a/config.toml", "--output", "b", "--overwrite"}).code, 0);
    EXPECT_TRUE(same_bytes(folder / "a", folder / "b", {"theta.npy", "samples.npy", "config.toml"})) << change.back();
    for (const std::string& name : header(folder / "a"))
      if (name != "seconds") {
        const auto first = column(folder / "a", name), second = column(folder / "b", name);
        ASSERT_EQ(first.size(), second.size());
        for (std::size_t i = 0; i < first.size(); ++i)
          EXPECT_TRUE(first[i] == second[i] || (std::isnan(first[i]) && std::isnan(second[i]))) << name;
      }
  }
}

TEST(GoodRun, PrintedConfigurationIsAFixedPoint) {
  const Folder folder;
  for (const char* name : {"langevin-reward", "ebm-wells", "ebm-mixture"}) {
    const Result first = run(folder, {"run", name, "--print-config", "--seed", "3", "--set", "log_every=7"});
    ASSERT_EQ(first.code, 0);
    EXPECT_EQ(first.err, "");
    EXPECT_NE(first.out.find("\nseed = 3\n"), std::string::npos);
    EXPECT_NE(first.out.find("\nlog_every = 7\n"), std::string::npos);
    write(folder / "x.toml", first.out);
    const Result second = run(folder, {"run", "x.toml", "--print-config"});
    EXPECT_EQ(second.code, 0) << second.err;
    EXPECT_EQ(second.out, first.out);
  }
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

TEST(GoodRun, OverwriteReplacesTheRunAndNothingElse) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--output", "r", "--repeats", "2"}).code, 0);
  write(folder / "r/notes.txt", "mine");
  write(folder / "r/seed-old/notes.txt", "mine");
  for (int i = 0; i < 2; ++i) {
    const Result result = run(folder, short_run + Words{"--output", "r", "--overwrite"});
    EXPECT_EQ(result.code, 0) << result.err;
    Words expected = files_of_a_run + Words{"notes.txt", "seed-old", "seed-old/notes.txt"};
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(names(folder / "r"), expected);
  }
  EXPECT_EQ(contents(folder / "r/notes.txt"), "mine");
}

// One run and repeats of it have the same folder unless told otherwise: the second is refused, or takes the place of
// all that the first left.
TEST(GoodRun, OneRunAndRepeatsDoNotMix) {
  const Words repeated = short_run + Words{"--repeats", "2"};
  for (const auto& [first, second] : {std::pair{short_run, repeated}, std::pair{repeated, short_run}}) {
    const Folder folder, fresh;
    ASSERT_EQ(run(folder, first).code, 0);
    const auto before = tree(folder.path());
    const Result refused = run(folder, second);
    EXPECT_EQ(refused.code, 73);
    EXPECT_TRUE(is_error_line(refused.err, {"runs/langevin-reward-0: ", "not empty", "--overwrite"}));
    EXPECT_TRUE(tree(folder.path()) == before);
    ASSERT_EQ(run(folder, second + Words{"--overwrite"}).code, 0);
    ASSERT_EQ(run(fresh, second).code, 0);
    EXPECT_EQ(names(folder.path()), names(fresh.path()));
  }
}

// The configuration may lie in the folder that is overwritten.
TEST(GoodRun, OverwritesItself) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--output", "r"}).code, 0);
  const std::string theta = contents(folder / "r/theta.npy");
  for (const Words& more : {Words{}, Words{"--repeats", "2"}}) {
    const Result result = run(folder, Words{"run", "r/config.toml", "--output", "r", "--overwrite", "--quiet"} + more);
    EXPECT_EQ(result.code, 0) << result.err;
  }
  EXPECT_EQ(contents(folder / "r/seed-0/theta.npy"), theta);
}

TEST(GoodRun, WithoutAReportSaysWhereItsFilesAre) {
  const Folder folder;
  const Result result = run(folder, short_run + Words{"--no-report", "--output", "r"});
  ASSERT_EQ(result.code, 0);
  EXPECT_FALSE(fs::exists(folder / "r/report.html"));
  EXPECT_NE(result.out.find("files"), std::string::npos);
  EXPECT_EQ(run(folder, {"report", "r"}).out, "r/report.html\n");
  EXPECT_TRUE(fs::exists(folder / "r/report.html"));
}

TEST(GoodRun, RepeatsAreTheSingleRuns) {
  const Folder folder;
  const Result result = run(folder, short_run + Words{"--seed", "4", "--repeats", "3", "--output", "r"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json top = json(folder / "r/summary.json");
  EXPECT_EQ(top["seeds"], (Json{4, 5, 6}));
  ASSERT_EQ(top["runs"].size(), 3U);
  for (const char* key : {"experiment", "method", "seed", "steps", "status", "theta", "reward", "gradient_evaluations",
                          "seconds", "threads", "version", "format"})
    EXPECT_TRUE(top.contains(key)) << key;
  EXPECT_TRUE(fs::exists(folder / "r/report.html"));

  ASSERT_EQ(run(folder, short_run + Words{"--seed", "5", "--output", "alone"}).code, 0);
  EXPECT_TRUE(same_bytes(folder / "r/seed-5", folder / "alone", {"theta.npy", "samples.npy", "config.toml"}));
  EXPECT_EQ(top["runs"][1]["theta"], json(folder / "alone/summary.json")["theta"]);
  EXPECT_EQ(top["runs"][1], json(folder / "r/seed-5/summary.json"));
}

TEST(GoodRun, ReportsAreMadeAgainAndCompare) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--output", "a"}).code, 0);
  ASSERT_EQ(run(folder, short_run + Words{"--output", "b", "--set", "method=nested"}).code, 0);
  ASSERT_EQ(run(folder, short_run + Words{"--output", "c", "--repeats", "2"}).code, 0);
  const std::string before = contents(folder / "a/report.html");
  EXPECT_EQ(run(folder, {"report", "a"}).out, "a/report.html\n");
  EXPECT_EQ(contents(folder / "a/report.html"), before);
  EXPECT_EQ(run(folder, {"report", "a/"}).code, 0);
  EXPECT_EQ(run(folder, {"report", "c"}).code, 0);

  EXPECT_EQ(run(folder, {"report", "a", "--output", "a.html"}).out, "a.html\n");
  EXPECT_EQ(contents(folder / "a.html"), before);
  EXPECT_EQ(run(folder, {"report", "a", "b", "c"}).out, "report.html\n");
  const std::string comparison = contents(folder / "report.html");
  EXPECT_NE(comparison.find(">nested T=10<"), std::string::npos);
  EXPECT_NE(comparison.find("Curves over the number of gradient evaluations"), std::string::npos)
      << "a nested step costs ten";
  EXPECT_EQ(run(folder, {"report", "a", "b", "--output", "both.html"}).out, "both.html\n");
  EXPECT_TRUE(fs::exists(folder / "both.html"));
  // A file that nobody named stays; one that was named is replaced.
  write(folder / "report.html", "mine");
  const Result refused = run(folder, {"report", "a", "b"});
  EXPECT_EQ(refused.code, 73);
  EXPECT_TRUE(is_error_line(refused.err, {"report.html: exists", "--output"}));
  EXPECT_EQ(contents(folder / "report.html"), "mine");
  EXPECT_EQ(run(folder, {"report", "a", "b", "--output", "report.html"}).code, 0);
  EXPECT_NE(contents(folder / "report.html"), "mine");
  const Result nowhere = run(folder, {"report", "a", "b", "--output", "no/both.html"});
  EXPECT_EQ(nowhere.code, 73);
  EXPECT_TRUE(is_error_line(nowhere.err, {"no/both.html"}));
}

// The text between two marks of a report, as a browser shows it.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from);
  if (begin == std::string::npos) return "(no " + from + ")";
  std::string found = text.substr(begin + from.size(), text.find(to, begin) - begin - from.size());
  for (std::size_t at = found.find("&#39;"); at != std::string::npos; at = found.find("&#39;"))
    found.replace(at, 5, "'");
  return found;
}

TEST(Report, ShowsTheDataBesideTheSamples) {
  const Folder folder;
  write(folder / "plane.csv", "x,y\n4,0\n-4,0\n2,1\n");
  const Words options{"--steps", "5", "--quiet", "--output"};
  ASSERT_EQ(run(folder, Words{"run", "ebm-wells", "--set", "reference.data=plane.csv"} + options + Words{"data"}).code,
            0);
  ASSERT_EQ(run(folder, Words{"run", "ebm-wells"} + options + Words{"law"}).code, 0);
  ASSERT_EQ(run(folder, Words{"run", "langevin-reward"} + options + Words{"reward"}).code, 0);

  const std::string data = contents(folder / "data/report.html");
  EXPECT_EQ(occurrences(data, "class=\"crosses\""), 2U) << "at the start and at the end";
  EXPECT_EQ(occurrences(data, "3 points of the data."), 4U) << "in the picture and in its description";
  EXPECT_NE(data.find(">data</text>"), std::string::npos) << "the legend";
  const std::string law = contents(folder / "law/report.html");
  EXPECT_EQ(occurrences(law, "class=\"crosses\""), 3U) << "and in the picture of the reference";
  EXPECT_NE(law.find(">reference</text>"), std::string::npos);
  EXPECT_EQ(contents(folder / "reward/report.html").find("class=\"crosses\""), std::string::npos);
  for (const std::string& report : {data, law}) EXPECT_LT(report.size(), 500'000U);

  fs::remove(folder / "plane.csv");
  EXPECT_EQ(run(folder, {"report", "data"}).code, 0) << "a report needs the run's own files only";
  const std::string without = contents(folder / "data/report.html");
  EXPECT_EQ(without.find("class=\"crosses\""), std::string::npos);
  EXPECT_NE(without.find("The pictures do not show the data"), std::string::npos);
}

TEST(Report, ShowsDataOnALine) {
  const Folder folder;
  write(folder / "line.csv", "1\n2.5\n-0.5\n4\n");
  write(folder / "mine.toml",
        "steps = 5\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0]]\n[reference]\ndata = \"line.csv\"\n"
        "[start]\ntheta = [0.25]\n");
  ASSERT_EQ(run(folder, {"run", "mine.toml", "--quiet", "--output", "r"}).code, 0);
  const std::string report = contents(folder / "r/report.html");
  EXPECT_EQ(occurrences(report, "class=\"stairs\""), 2U);
  EXPECT_NE(report.find("<tr><td>start</td><td class=\"number\">0.250</td>"), std::string::npos);
}

// A report whose cells do not tell the names of their columns, which small screens show beside them.
std::string without_cell_names(const std::string& report) {
  return std::regex_replace(report, std::regex("(<td[^>]*) data-label=\"[^\"]*\""), "$1");
}

// The numbers of the start and of the reference are those of the experiment's file.
TEST(Report, NamesTheParameters) {
  const Folder folder;
  const Words options{"--steps", "5", "--quiet", "--output"};
  ASSERT_EQ(run(folder, Words{"run", "ebm-mixture"} + options + Words{"mixture"}).code, 0);
  ASSERT_EQ(run(folder, Words{"run", "ebm-wells"} + options + Words{"wells"}).code, 0);
  const std::string mixture = contents(folder / "mixture/report.html");
  for (const char* name : {"weight 2", "mean 2, x₁", "var 1, x₂", "cov 2, x₁x₂"})
    EXPECT_NE(mixture.find("data-label=\"" + std::string(name) + "\""), std::string::npos) << name;
  const auto row = [](const Words& cells) {
    std::string text = "<tr>";
    for (const std::string& c : cells)
      text += (c == "start" || c == "reference" ? "<td>" : "<td class=\"number\">") + c + "</td>";
    return text + "</tr>";
  };
  const std::string plain = without_cell_names(mixture);
  EXPECT_NE(plain.find(row({"2", "start", "0.5000", "−2.000", "3.464", "1.000", "0.0000", "1.000"})),
            std::string::npos);
  // exp(1.5) / (exp(1.5) + 1) = 0.8176
  EXPECT_NE(plain.find(row({"1", "reference", "0.8176", "−4.000", "0.000", "0.750", "−0.5000", "1.500"})),
            std::string::npos);

  const std::string named = contents(folder / "wells/report.html"), wells = without_cell_names(named);
  EXPECT_NE(named.find("data-label=\"well 7\""), std::string::npos);
  // exp(1.5) / (3 exp(1.5) + 4) = 0.2569
  const std::size_t first = wells.find("<tr><td class=\"number\">1</td><td class=\"number\">4.000</td>");
  ASSERT_NE(first, std::string::npos);
  EXPECT_TRUE(between(wells.substr(first), "<tr>", "</tr>").ends_with(">0.2569</td>"));
}

TEST(Report, SaysHowTheRunEnded) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--output", "done"}).code, 0);
  EXPECT_EQ(contents(folder / "done/report.html").find("class=\"notice\""), std::string::npos);

  // An interrupted run differs by its summary.
  write(folder / "done/summary.json", changed(contents(folder / "done/summary.json"), "completed", "interrupted"));
  ASSERT_EQ(run(folder, {"report", "done"}).code, 0);
  EXPECT_TRUE(between(contents(folder / "done/report.html"), "class=\"notice\">", "</p>")
                  .starts_with("The run was interrupted after step 25 of 25"));

  // The wells of width 2 need a step below 2.
  const Words unstable{"run", "ebm-wells", "--set", "step_size=2.5", "--quiet", "--output"};
  ASSERT_EQ(run(folder, unstable + Words{"unstable"}).code, 70);
  const std::string notice = between(contents(folder / "unstable/report.html"), "class=\"notice\">", "</p>");
  const auto steps = json(folder / "unstable/summary.json")["steps"].get<int>();
  EXPECT_TRUE(notice.starts_with("The run diverged at step " + std::to_string(steps + 1) + " of 40000")) << notice;
  EXPECT_NE(notice.find("stable below 2."), std::string::npos) << notice;

  ASSERT_EQ(run(folder, unstable + Words{"three", "--repeats", "3"}).code, 70);
  EXPECT_TRUE(between(contents(folder / "three/report.html"), "class=\"notice\">", "</p>")
                  .starts_with("3 of 3 runs diverged: seed-0 after step "));
  ASSERT_EQ(run(folder, {"report", "done", "unstable", "--output", "both.html"}).code, 0);
  EXPECT_TRUE(between(contents(folder / "both.html"), "class=\"notice\">", "</p>")
                  .starts_with("1 of 2 runs diverged: unstable after step "));

  // A seed that was never begun has left nothing but the status of the whole.
  ASSERT_EQ(run(folder, short_run + Words{"--output", "two", "--repeats", "2"}).code, 0);
  write(folder / "two/summary.json", changed(contents(folder / "two/summary.json"), "completed", "interrupted"));
  ASSERT_EQ(run(folder, {"report", "two"}).code, 0);
  EXPECT_TRUE(between(contents(folder / "two/report.html"), "class=\"notice\">", "</p>")
                  .starts_with("The run was interrupted"));
}

// Chains at N(theta, 1) start ten away from it. After 3000 steps of 0.05 their law is N(theta, 1 / (1 - 0.05 / 2)), of
// which 89.6 % lies where N(theta, 1) has 90 %; the share of 4000 samples has standard error 0.5 %. theta goes to the
// mean of the data with a time constant of 20 steps at the large rate, and is on its way there at the small one.
TEST(Report, CaptionsJudge) {
  const Folder folder;
  write(folder / "line.csv", "1\n2.5\n-0.5\n4\n");
  write(folder / "mine.toml",
        "steps = 3000\nparticles = 4000\nstep_size = 0.05\nlearning_rate = 0.05\n[potential]\nkind = \"quadratic\"\n"
        "precision = [[1.0]]\n[reference]\ndata = \"line.csv\"\n[start]\ntheta = [0.0]\nmean = [10.0]\n");
  ASSERT_EQ(run(folder, {"run", "mine.toml", "--quiet", "--output", "done"}).code, 0);
  ASSERT_EQ(run(folder, {"run", "mine.toml", "--quiet", "--output", "slow", "--set", "learning_rate=0.0003"}).code, 0);
  const std::string done = contents(folder / "done/report.html"), slow = contents(folder / "slow/report.html");
  EXPECT_TRUE(between(done, "The samples before the first step. ", "of the samples").starts_with("0")) << done;
  const double share = std::stod(between(done, "The samples after the last step. ", "of the samples"));
  EXPECT_NEAR(share, 89.6, 5 * 0.5 + 0.5);
  EXPECT_EQ(done.find("still changing"), std::string::npos);
  EXPECT_NE(slow.find("still changing"), std::string::npos);
}

TEST(Report, CommandToRepeatWorksAsShown) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--output", "it's mine"}).code, 0);
  const std::string command = between(contents(folder / "it's mine/report.html"),
                                      "<figcaption>Command</figcaption><pre tabindex=\"0\">\n", "</pre>");
  EXPECT_EQ(command, "implicit-diffusion run 'it'\\''s mine/config.toml' --output again");
  const fs::path here = folder / ".";
  const std::string in_shell = "cd '" + here.string() + "' && PATH='" +
                               fs::path(IMPLICIT_DIFFUSION_PROGRAM).parent_path().string() + "' && " + command +
                               " --quiet >again.txt";
  ASSERT_EQ(std::system(in_shell.c_str()), 0) << in_shell;
  EXPECT_TRUE(same_bytes(folder / "it's mine", folder / "again", {"theta.npy", "samples.npy", "config.toml"}));
}

TEST(Report, CommandToRepeatTakesAFolderForNoOption) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--output=-x"}).code, 0);
  EXPECT_NE(contents(folder / "-x/report.html").find(">\nimplicit-diffusion run ./-x/config.toml --output again<"),
            std::string::npos);
}

// As of a run that diverged in double precision.
TEST(Report, OfAThetaThatRanAway) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "r"}).code, 0);
  io::write_file(folder / "r/theta.npy", io::npy_bytes(std::vector<double>(4, 1e308), std::vector<std::size_t>{4, 1}));
  for (const Words& command : {Words{"report", "r"}, Words{"report", "r", "r", "--output", "two.html"}}) {
    const Result result = run(folder, command);
    EXPECT_EQ(result.code, 0) << result.err;
  }
}

TEST(Report, OfAFolderInBrackets) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--output", "[1,2]"}).code, 0);
  fs::remove(folder / "[1,2]/report.html");
  EXPECT_EQ(run(folder, {"report", "[1,2]"}).code, 0);
  EXPECT_TRUE(fs::exists(folder / "[1,2]/report.html"));
  EXPECT_EQ(run(folder, {"report", "[1,2]", "[1,2]", "--output", "[both]"}).code, 0);
  EXPECT_TRUE(fs::exists(folder / "[both]"));
}

TEST(GoodRun, TitleMayHaveControlCharacters) {
  const Folder folder;
  write(folder / "x.toml", std::string("title = \"a\\u007f\\u0085\\u001bb\"\n") + small_experiment);
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "r"}).code, 0);
  const Result again = run(folder, {"run", "r/config.toml", "--quiet", "--output", "s"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(contents(folder / "s/config.toml"), contents(folder / "r/config.toml"));
}

TEST(GoodRun, TakesTheThreadsThatThereAre) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more memory than the limit";
#endif
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "all"}).code, 0);
  const Result r = run(Launch{.arguments = {"run", "x.toml", "--threads", "1024", "--output", "few"},
                              .folder = folder.path(),
                              .most_memory = rlim_t{1} << 30});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("of 1024 threads could be started"), std::string::npos) << r.err;
  EXPECT_TRUE(same_bytes(folder / "all", folder / "few"));
}

TEST(GoodRun, QuickIsShorter) {
  const Folder folder;
  EXPECT_NE(run(folder, {"run", "ebm-wells", "--quick", "--print-config"}).out.find("\nsteps = 4000\n"),
            std::string::npos);
  EXPECT_NE(run(folder, {"run", "ebm-wells", "--quick", "--steps", "9", "--print-config"}).out.find("\nsteps = 9\n"),
            std::string::npos);
}

TEST(Commands, ListNamesTheExperimentsAtOnce) {
  const Folder folder;
  const Result result = run(folder, {"list"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* name : {"langevin-reward ", "ebm-wells ", "ebm-mixture "})
    EXPECT_NE(result.out.find(name), std::string::npos) << name;
  RecordProperty("milliseconds", static_cast<int>(1000 * result.seconds));
  EXPECT_LT(result.seconds, 2) << "it takes a few milliseconds on a machine that is not busy";
}

TEST(Commands, HelpHasAnExampleThatTheProgramAccepts) {
  const Folder folder;
  for (const Words& command : {Words{}, Words{"list"}, Words{"run"}, Words{"check"}, Words{"report"}}) {
    const Result result = run(folder, command + Words{"--help"});
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_NE(result.out.find("Example: implicit-diffusion "), std::string::npos) << result.out;
  }
  EXPECT_EQ(run(folder, {"run", "langevin-reward", "--seed", "1", "--set", "method=nested", "--set", "inner_steps=10",
                         "--print-config"})
                .code,
            0);
  const Result version = run(folder, {"--version"});
  EXPECT_TRUE(version.out.starts_with("implicit-diffusion ")) << version.out;
  EXPECT_EQ(lines(version.out).size(), 1U) << version.out;
}

TEST(Commands, ProgressGoesToStderrInPlainLines) {
  const Folder folder;
  const Result result = run(folder, {"run", "langevin-reward", "--steps", "20", "--repeats", "2", "--output", "r"});
  ASSERT_EQ(result.code, 0);
  EXPECT_EQ(lines(result.err).size(), 2U) << result.err;
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << "no terminal, no colours";
  EXPECT_EQ(result.err.find('\r'), std::string::npos);
}

// Fitting the mean of a Gaussian to data by KL(data || pi*(theta)) is a linear recursion in the mean of the particles
// and theta,
//
//     x <- x - h P (x - theta) + sqrt(2 h / n) z,      theta <- theta + eta P (m - x),
//
// so its law after K steps is known: five standard deviations of theta around the mean it has then.
void fit_mean(const std::string& csv, const Eigen::MatrixXd& precision, const Eigen::VectorXd& mean) {
  const Folder folder;
  constexpr double h = 0.1, eta = 0.05;
  constexpr int n = 2000, steps = 1000;
  const Eigen::Index d = mean.size();
  std::string rows, zeros;
  for (Eigen::Index i = 0; i < d; ++i) {
    std::string row;
    for (Eigen::Index j = 0; j < d; ++j) row += (j ? ", " : "") + std::to_string(precision(i, j));
    rows += (i ? ", [" : "[") + row + "]";
    zeros += i ? ", 0.0" : "0.0";
  }
  write(folder / "data/points.csv", csv);
  write(folder / "mine.toml",
        "particles = " + std::to_string(n) + "\nsteps = " + std::to_string(steps) +
            "\nstep_size = 0.1\nlearning_rate = 0.05\n[potential]\nkind = \"quadratic\"\nprecision = [" + rows +
            "]\n[reference]\ndata = \"data/points.csv\"\n[start]\ntheta = [" + zeros + "]\n");
  const Result result = run(folder, {"run", "mine.toml", "--quiet"});
  ASSERT_EQ(result.code, 0) << result.err;
  const fs::path r = folder / "runs/mine-0";
  EXPECT_EQ(header(r).back(), "data_log_likelihood");
  EXPECT_GT(column(r, "data_log_likelihood").back(), column(r, "data_log_likelihood").front());
  EXPECT_EQ(names(r), files_of_a_run);

  const Eigen::MatrixXd one = Eigen::MatrixXd::Identity(d, d);
  Eigen::MatrixXd a(2 * d, 2 * d);
  a << one - h * precision, h * precision, -eta * precision, one;
  Eigen::VectorXd constant = Eigen::VectorXd::Zero(2 * d), expected = Eigen::VectorXd::Zero(2 * d);
  constant.tail(d) = eta * precision * mean;
  Eigen::MatrixXd noise = Eigen::MatrixXd::Zero(2 * d, 2 * d), covariance = noise;
  noise.topLeftCorner(d, d) = one * (2 * h / n);
  covariance.topLeftCorner(d, d) = one / n;
  for (int k = 0; k < steps; ++k) {
    expected = a * expected + constant;
    covariance = a * covariance * a.transpose() + noise;
  }
  const auto theta = json(r / "summary.json")["theta"].get<std::vector<double>>();
  for (Eigen::Index j = 0; j < d; ++j) {
    const double sigma = std::sqrt(covariance(d + j, d + j));
    EXPECT_NEAR(theta[static_cast<std::size_t>(j)], expected(d + j), 5 * sigma + 1e-5);
    EXPECT_NEAR(expected(d + j), mean(j), 1e-3) << "it has arrived";
    EXPECT_LT(5 * sigma, 0.1) << "the test can tell";
  }
}

TEST(OwnData, MeanInOneDimension) {
  fit_mean("value\n1.0\n2.5\n-0.5\n4.0\n", Eigen::MatrixXd::Constant(1, 1, 1.0), Eigen::VectorXd::Constant(1, 1.75));
}

TEST(OwnData, MeanInThreeDimensions) {
  Eigen::MatrixXd precision(3, 3);
  precision << 2, 0.5, 0, 0.5, 1, 0, 0, 0, 1.5;
  fit_mean("# x y z\n1;2;-3\n3;2;-1\n2;2.5;-2\n", precision, Eigen::Vector3d(2, 6.5 / 3, -2));
}

// Three in four points lie around -1.5, the others around 1.5, at the quantiles of N(., 1): the most likely weights are
// 3/4 and 1/4. Over seeds the learnt weight has a standard deviation of .008, and the chain's step adds .007: five of
// the one and the other.
TEST(OwnData, EnergyBasedModelLearnsTheWeightsOfWells) {
  const Folder folder;
  std::string csv;
  const auto quantile = [](double p) {  // of N(0, 1), by bisection
    double low = -8, high = 8;
    for (int i = 0; i < 60; ++i) {
      const double middle = 0.5 * (low + high);
      (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
    }
    return low;
  };
  for (int i = 0; i < 300; ++i) csv += std::to_string(-1.5 + quantile((i + 0.5) / 300)) + "\n";
  for (int i = 0; i < 100; ++i) csv += std::to_string(1.5 + quantile((i + 0.5) / 100)) + "\n";
  write(folder / "points.csv", csv);
  write(folder / "mine.toml", R"(steps = 3000
particles = 2000
step_size = 0.1
learning_rate = 0.05
[potential]
kind = "wells"
width = 2.0
centres = [[-1.5], [1.5]]
[reference]
data = "points.csv"
[start]
theta = [0.0, 0.0]
)");
  const Result result = run(folder, {"run", "mine.toml", "--quiet"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto theta = json(folder / "runs/mine-0/summary.json")["theta"].get<std::vector<double>>();
  EXPECT_NEAR(1 / (1 + std::exp(theta[1] - theta[0])), 0.75, 0.05);
}

TEST(OwnData, TakesThePlaceOfTheReferenceOfAnExperiment) {
  const Folder folder;
  write(folder / "points.csv", "x,y\n4,0\n-4,0\n");
  const Result result = run(
      folder, {"run", "ebm-wells", "--steps", "5", "--set", "reference.data=points.csv", "--output", "r", "--quiet"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(header(folder / "r").back(), "data_log_likelihood");
  EXPECT_TRUE(json(folder / "r/summary.json")["exact_kl"].is_null());
}

// KL(N(theta, 1) || N(3, 1)) = (theta - 3)^2 / 2, in every row, in the summary, in the closing table and in the report.
TEST(Base, ItsDivergenceIsReported) {
  const Folder folder;
  write(folder / "x.toml", changed(small_experiment, "[start]", "[base]\ntheta = [3.0]\n[start]"));
  const Result result = run(folder, {"run", "x.toml", "--quiet", "--output", "r"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(header(folder / "r").back(), "base_kl");
  const std::vector<double> theta = io::read_npy(folder / "r/theta.npy").values, kl = column(folder / "r", "base_kl");
  ASSERT_EQ(kl.size(), theta.size());
  for (std::size_t i = 0; i < kl.size(); ++i)
    EXPECT_NEAR(kl[i], (theta[i] - 3) * (theta[i] - 3) / 2, 1e-12 * kl[i]) << i;
  EXPECT_EQ(json(folder / "r/summary.json")["base_kl"].get<double>(), kl.back());
  EXPECT_NE(result.out.find("KL to the base"), std::string::npos) << result.out;
  EXPECT_NE(contents(folder / "r/report.html").find("KL divergence to the base"), std::string::npos);

  write(folder / "without.toml", small_experiment);
  ASSERT_EQ(run(folder, {"run", "without.toml", "--quiet", "--output", "w"}).code, 0);
  EXPECT_EQ(header(folder / "w").back(), "log_likelihood");
  EXPECT_FALSE(json(folder / "w/summary.json").contains("base_kl"));
}

// theta.npy and samples.npy of one run as the start of another.
TEST(Start, FromAnotherRun) {
  const Folder folder;
  ASSERT_EQ(run(folder, short_run + Words{"--output", "first"}).code, 0);
  const Words from_first{"--set", "start.theta_file=first/theta.npy", "--set", "start.samples=first/samples.npy"};
  const Result none = run(folder, short_run + from_first + Words{"--steps", "0", "--output", "same"});
  EXPECT_EQ(none.code, 2) << "--steps twice";
  const Words no_step{"run", "langevin-reward", "--set", "particles=130", "--steps", "0", "--output", "same"};
  ASSERT_EQ(run(folder, no_step + from_first).code, 0);
  EXPECT_EQ(json(folder / "same/summary.json")["theta"], json(folder / "first/summary.json")["theta"]);
  EXPECT_EQ(contents(folder / "same/samples.npy"), contents(folder / "first/samples.npy"));

  // What config.toml says of theta does not depend on the other run any more.
  ASSERT_EQ(run(folder, short_run + Words{"--output", "second"} + from_first).code, 0);
  fs::remove(folder / "first/theta.npy");
  ASSERT_EQ(run(folder, {"run", "second/config.toml", "--output", "third", "--quiet"}).code, 0);
  EXPECT_TRUE(same_bytes(folder / "second", folder / "third"));
  fs::remove_all(folder / "first");
  EXPECT_EQ(run(folder, {"report", "second"}).code, 0) << "a report needs the run's own files only";
}

// By default a run has no more threads than it has processors: here it is bound to one of them.
TEST(GoodRun, HasTheThreadsThatItIsBoundTo) {
  const Folder folder;
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int k = 0; k < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++k)
    if (CPU_ISSET(k, &before)) CPU_SET(k, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const Result r = run(folder, short_run + Words{"--output", "bound"});
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(json(folder / "bound/summary.json")["threads"], 1);
}

}  // namespace
}  // namespace program_test
