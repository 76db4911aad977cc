// `check`: what its comparisons say of right and wrong, and the program on its own problems and on files of the user's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "experiment/check_rows.hpp"
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "program/run_program.hpp"

namespace program_test {
namespace {

using program::BatchMeans;
using program::CheckedProblem;
using program::CheckRow;
using program::compare;
using program::compare_means;
using program::must_be_off;
using program::Verdict;
using Numbers = std::vector<double>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Comparison, ShowsTheCoordinateThatIsFurthestOff) {
  const CheckRow row = compare("x", Numbers{1, 2, 3}, Numbers{1, 2.5, 3.1}, Numbers{1, 1, 0.15});
  EXPECT_EQ(row.verdict, Verdict::ok);
  EXPECT_EQ(row.what, "x [3]");
  EXPECT_EQ(row.expected, 3);
  EXPECT_NEAR(row.error, 0.1, 1e-15);
  EXPECT_EQ(compare("x", Numbers{1, 2}, Numbers{1, 2.5}, 0.4).verdict, Verdict::off);
  EXPECT_EQ(compare("x", Numbers{1}, Numbers{1}, 0.0).verdict, Verdict::ok);
}

TEST(Comparison, WhatIsNotANumberIsOff) {
  for (const Numbers& got : {Numbers{nan, 2}, Numbers{1, nan}}) {
    EXPECT_EQ(compare("x", Numbers{1, 2}, got, 10).verdict, Verdict::off);
    EXPECT_EQ(compare_means("x", Numbers{1, 2}, got, Numbers{1, 1}).verdict, Verdict::off);
    EXPECT_EQ(must_be_off(compare("x", Numbers{1, 2}, got, 10)).verdict, Verdict::off) << "that is no way to be caught";
  }
  EXPECT_EQ(compare_means("x", Numbers{1}, Numbers{1.5}, Numbers{nan}).verdict, Verdict::off);
  EXPECT_EQ(compare_means("x", Numbers{1}, Numbers{1.5}, Numbers{0}).verdict, Verdict::off);
}

TEST(Comparison, AllowsMeansFourAndAHalfStandardErrors) {
  const auto verdict = [](double got) { return compare_means("x", Numbers{1}, Numbers{got}, Numbers{0.1}).verdict; };
  EXPECT_EQ(verdict(1.44), Verdict::ok);
  EXPECT_EQ(verdict(1.46), Verdict::off);
  EXPECT_EQ(verdict(0.54), Verdict::off);
  const CheckRow row = compare_means("x", Numbers{1, 1}, Numbers{1.1, 0.8}, Numbers{0.1, 0.1});
  EXPECT_EQ(row.what, "x [2]");
  EXPECT_NEAR(row.z.value(), -2, 1e-12);
}

TEST(Comparison, SomethingWrongMustBeOff) {
  EXPECT_EQ(must_be_off(compare("x", Numbers{1}, Numbers{2}, 0.1)).verdict, Verdict::caught);
  EXPECT_EQ(must_be_off(compare("x", Numbers{1}, Numbers{1.05}, 0.1)).verdict, Verdict::off);
}

TEST(Comparison, SaysHowManyAreOffAndWhich) {
  const CheckRow right = compare("x", Numbers{1}, Numbers{1}, 0.1), wrong = compare("y", Numbers{1}, Numbers{2}, 0.1);
  const CheckRow missed = must_be_off(compare("  z", Numbers{1}, Numbers{1}, 0.1));
  const CheckRow none = program::left_out("w", "there is none");
  std::vector<CheckedProblem> problems{{"a", {right, none, must_be_off(wrong)}}};
  EXPECT_FALSE(what_is_off(problems));
  problems.push_back({"b", {wrong, missed}});
  EXPECT_EQ(what_is_off(problems).value(), "2 of 4 checks are off: b (y), b (z)");
  const Words table = lines(check_table(problems));
  ASSERT_EQ(table.size(), 7U);
  EXPECT_NE(table[2].find("left out: there is none"), std::string::npos);
  EXPECT_TRUE(table[3].ends_with(" caught"));
  EXPECT_TRUE(table[4].ends_with(" OFF"));
  EXPECT_EQ(table[6], "1 ok, 2 OFF, 1 deliberate error caught, 1 left out");

  // Two numbers with noise, each off with probability 6.8e-6; what is wrong on purpose does not count.
  const CheckRow mean = compare_means("x", Numbers{1, 1}, Numbers{1.1, 0.8}, Numbers{0.1, 0.1});
  const CheckRow shifted = must_be_off(compare_means("x", Numbers{1}, Numbers{2}, Numbers{0.1}));
  problems = {{"a", {mean, shifted}}};
  EXPECT_EQ(lines(check_table(problems)).back(),
            "1 ok, 0 OFF, 1 deliberate error caught, 0 left out; chance alone puts one of the 2 random values off for "
            "about one seed in 73580");
}

TEST(BatchMeans, HaveTheirStandardErrors) {
  BatchMeans means(2);
  for (const double v : {1.0, 2.0, 4.0, 5.0}) means.add(Numbers{v, 1e9 + v});
  EXPECT_NEAR(means.mean()[0], 3, 1e-15);
  EXPECT_NEAR(means.mean()[1], 1e9 + 3, 1e-6);
  // Squares of deviations 4 + 1 + 1 + 4; over 3, over 4.
  for (const double error : means.standard_error()) EXPECT_NEAR(error, std::sqrt(10.0 / 12), 1e-6);
}

// The estimator of the library passes, and ways to get it wrong do not: weights that are not centred, the other sign, n
// for n - 1. Z of logistic wells depends on theta, so E[dV/dtheta] is not zero and centring counts.
TEST(Comparison, TellsARightEstimatorFromWrongOnes) {
  namespace imd = implicit_diffusion;
  const imd::LogisticWells wells({{2, 0}, {-1, 1.7}, {-1, -1.7}}, 1.0, 0.1);
  const Numbers theta{.5, -1, 2};
  const imd::BumpReward reward({1, .5}, 2.0);
  Numbers expected;
  for (std::size_t j = 0; j < 3; ++j) {
    const auto objective = [&](double t) {
      Numbers there = theta;
      there[j] += t;
      return -imd::Reward<double>(reward).expectation(wells.law(there)).value();
    };
    expected.push_back((objective(1e-5) - objective(-1e-5)) / 2e-5);
  }

  constexpr std::size_t n = 10;
  imd::GradientEstimator<double> estimator(wells, reward);
  imd::LogisticWells prepared = wells;
  prepared.prepare(theta);
  BatchMeans right(3), not_centred(3);
  imd::Population<double> x(n, 2);
  for (std::int64_t b = 0; b < 20'000; ++b) {
    imd::MixtureSampler(wells.law(theta), imd::Noise(1)).draw(x, b);
    Numbers gradient(3), plain(3), slope(3);
    estimator.estimate(x, theta, b, gradient);
    right.add(gradient);
    for (std::size_t i = 0; i < n; ++i) {
      const double point[2] = {x(i, 0), x(i, 1)};
      prepared.evaluate(point, static_cast<double*>(nullptr), slope.data());
      for (std::size_t j = 0; j < 3; ++j) plain[j] += reward(point) * slope[j] / n;
    }
    not_centred.add(plain);
  }
  const auto verdict = [&](const BatchMeans& means, double factor) {
    Numbers mean = means.mean();
    for (double& g : mean) g *= factor;
    return compare_means("gradient", expected, mean, means.standard_error()).verdict;
  };
  EXPECT_EQ(verdict(right, 1), Verdict::ok);
  EXPECT_EQ(verdict(right, -1), Verdict::off);
  EXPECT_EQ(verdict(right, (n - 1.0) / n), Verdict::off);
  EXPECT_EQ(verdict(not_centred, 1), Verdict::off);
}

// ---- the program

// The table: every row ends in a verdict or says why there is none; the last line counts them.
testing::AssertionResult is_table_of_good_rows(const std::string& out) {
  const Words rows = lines(out);
  if (rows.size() < 5 || !rows.front().starts_with("problem ")) return testing::AssertionFailure() << out;
  if (rows.back().find(" 0 OFF, ") == std::string::npos) return testing::AssertionFailure() << rows.back();
  for (std::size_t i = 1; i + 1 < rows.size(); ++i) {
    const std::string& row = rows[i];
    if (!row.ends_with(" ok") && !row.ends_with(" caught") && row.find(" left out: ") == std::string::npos)
      return testing::AssertionFailure() << row;
    if (row.size() > 120) return testing::AssertionFailure() << row.size() << " columns: " << row;
  }
  return testing::AssertionSuccess();
}
testing::AssertionResult has(const std::string& out, const std::string& problem, const std::string& what,
                             const std::string& verdict = "ok") {
  for (const std::string& row : lines(out))
    if (row.starts_with(problem + " ") && row.find(" " + what) != std::string::npos &&
        row.find(" " + verdict) != std::string::npos)
      return testing::AssertionSuccess();
  return testing::AssertionFailure() << problem << ": no row " << what << " that is " << verdict << " in\n" << out;
}

TEST(Check, AllProblemsAreRight) {
  const Folder folder;
  const Result result = run(folder, {"check"});
  EXPECT_EQ(result.code, 0) << result.err;
#ifdef IMPLICIT_DIFFUSION_NETWORKS
  EXPECT_EQ(result.err, "");
#else
  EXPECT_NE(result.err, "");
  for (const std::string& line : lines(result.err))
    EXPECT_TRUE(line.ends_with(" is not checked: it needs networks, which were not built")) << line;
#endif
  EXPECT_TRUE(is_table_of_good_rows(result.out));
  EXPECT_TRUE(names(folder.path()).empty());
  RecordProperty("milliseconds", static_cast<int>(1000 * result.seconds));
  for (const char* problem : {"langevin-reward", "ebm-wells", "ebm-mixture", "quadratic", "logistic-wells",
                              "mixture-cholesky", "double-well"}) {
    for (const char* what : {"dV/dx, central differences", "dV/dx, single precision", "dV/dtheta, central differences",
                             "dV/dtheta, single precision", "one step: mean", "one step: variance"})
      EXPECT_TRUE(has(result.out, problem, what));
    EXPECT_TRUE(has(result.out, problem, "  with noise sqrt(g) z", "caught"));
    if (problem == std::string("double-well")) continue;  // its law, and so its gradients, have no closed form
    EXPECT_TRUE(has(result.out, problem, "  1.1 times the estimate", "caught"));
    EXPECT_TRUE(has(result.out, problem, "three blocks, written out"));
    EXPECT_TRUE(has(result.out, problem, "three blocks and a step"));
    EXPECT_TRUE(has(result.out, problem, "  without the last block", "caught"));
  }
  EXPECT_TRUE(has(result.out, "langevin-reward", "grad -E[R]"));
  EXPECT_TRUE(has(result.out, "langevin-reward", "unrolled, differences, same noise"));
  EXPECT_TRUE(has(result.out, "langevin-reward", "guided: drift, central differences"));
  EXPECT_TRUE(has(result.out, "ebm-wells", "grad KL(reference || pi)"));
  EXPECT_TRUE(has(result.out, "quadratic", "covariance after 64 steps"));
  EXPECT_TRUE(has(result.out, "quadratic", "  without the bias of the step", "caught"));
  EXPECT_TRUE(has(result.out, "quadratic", "grad of the sum"));
  EXPECT_TRUE(has(result.out, "logistic-wells", "grad KL(pi || base) elsewhere"));
  for (const char* problem : {"finite Gibbs law", "softmax chain", "ring chain"}) {
    EXPECT_TRUE(has(result.out, problem, "Gamma, forward route, differences"));
    EXPECT_TRUE(has(result.out, problem, "Gamma, adjoint route, differences"));
    EXPECT_TRUE(has(result.out, problem, "Gamma from samples"));
  }
  for (const char* moves : {"ring, heat bath: ", "ring, Metropolis: ", "star, heat bath: ", "star, Metropolis: "})
    for (const char* what : {"matrix", "law", "Gamma, forward", "Gamma, adjoint", "one move"})
      EXPECT_TRUE(has(result.out, "finite Gibbs law", std::string(moves) + what));
  for (const char* what : {"F at another p", "Gamma of F, differences", "Gamma of F at the law",
                           "Gamma of F from samples", "Gamma from shares of samples"})
    EXPECT_TRUE(has(result.out, "finite Gibbs law", what));
  for (const char* what : {"Gamma at the law", "Gamma at another p, adjoint", "Gamma at another p, forward",
                           "a step of another p", "one move of samples"})
    EXPECT_TRUE(has(result.out, "softmax chain", what));
  for (const char* what : {"after 1000 steps, known numbers", "l(0) - inf l, quadrature", "flow, midpoint rule",
                           "worst of the flow", "worst of the recursion", "fitted slope"})
    EXPECT_TRUE(has(result.out, "rates", what));
  EXPECT_TRUE(has(result.out, "denoising-gaussian", "theta(2T), queue of samples"));
  for (const char* what :
       {"law after 16 steps", "DDPM, mean after 16 steps", "weak order of Euler-Maruyama, SDE",
        "weak order of Euler, ODE", "weak order of DDPM", "weak order of DDIM", "toy: adjoint of the ODE",
        "toy: adjoint of the SDE", "toy: with the path KL", "toy: queues of the SDE", "toy: queues of the ODE",
        "toy: paths found again", "toy: double queue"})
    EXPECT_TRUE(has(result.out, "reverse chains", what));
  for (const char* mistake :
       {"  with noise sqrt(h) xi", "  with the drift of the SDE", "  with half of the variance",
        "  with twice the score", "  with half of beta", "  with the adjoint of the last step", "  a step earlier"})
    EXPECT_TRUE(has(result.out, "reverse chains", mistake, "caught"));
  for (const char* what : {"adjoint of the SDE, differences", "adjoint of the ODE, differences", "path KL against"})
    EXPECT_TRUE(has(result.out, "denoising-mixture", what));
}

TEST(Check, IsAFunctionOfTheSeed) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const Result one = run(folder, {"check", "x.toml", "--seed", "7"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, run(folder, {"check", "x.toml", "--seed", "7"}).out);
  EXPECT_EQ(one.out, run(folder, {"check", "x.toml", "--set", "seed=7"}).out);
  EXPECT_NE(one.out, run(folder, {"check", "x.toml"}).out);
}

TEST(Check, AcceptsItsExample) {
  const Folder folder;
  const Result result = run(folder, {"check", "langevin-reward", "--set", "potential.width=1"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(is_table_of_good_rows(result.out));
  EXPECT_NE(result.out, run(folder, {"check", "langevin-reward"}).out);
  EXPECT_FALSE(has(result.out, "ebm-wells", "dV/dx"));
}

// Experiments that are not one Langevin run: each method of a comparison, a ring, the recursion.
TEST(Check, KnowsEveryKindOfExperiment) {
  const Folder folder;
  const Words quick_comparison{"check", "langevin-comparison", "--set",
                               "comparison.methods=[\"implicit\", \"guided\"]"};
  const Result comparison = run(folder, quick_comparison);
  EXPECT_EQ(comparison.code, 0) << comparison.err;
  EXPECT_TRUE(is_table_of_good_rows(comparison.out));
  EXPECT_TRUE(has(comparison.out, "implicit", "grad -E[R]"));
  EXPECT_TRUE(has(comparison.out, "guided", "guided: drift, central differences"));

  const Result ring = run(folder, {"check", "finite-state", "--set", "states=100", "--set", "width=3"});
  EXPECT_EQ(ring.code, 0) << ring.err;
  EXPECT_TRUE(is_table_of_good_rows(ring.out));
  EXPECT_TRUE(has(ring.out, "finite-state", "Gamma, adjoint route, differences"));
  EXPECT_TRUE(has(ring.out, "finite-state", "Gamma from samples"));
  EXPECT_TRUE(has(ring.out, "finite-state", "law after ten moves from it"));
  for (const char* what :
       {"nearby, forward route, differences", "nearby, adjoint route, differences", "Gibbs: Gamma nearby, differences",
        "Gibbs: Gamma nearby from samples", "Gibbs: law nearby after ten moves"})
    EXPECT_TRUE(has(ring.out, "finite-state", what));

  const Result rates = run(folder, {"check", "rates"});
  EXPECT_EQ(rates.code, 0) << rates.err;
  EXPECT_TRUE(has(rates.out, "rates", "after 1000 steps, known numbers"));
}

TEST(Check, PassesAtEveryLevel) {
  const Folder folder;
  const Result result = run(folder, {"check", "langevin-reward", "--isa", "baseline"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(is_table_of_good_rows(result.out));
}

// A component with deviation 0.01 falls between the nodes of any Gauss-Hermite rule of the wide ones. Five seeds: a
// right estimator is off by chance for one in a thousand.
TEST(Check, SeesNarrowComponents) {
  const Folder folder;
  write(folder / "mine.toml", R"(step_size = 1e-5
[potential]
kind = "mixture"
components = 2
dimension = 1
[reference]
means = [[-1.0], [1.0]]
covariances = [[[1.0]], [[1.0]]]
[base]
means = [[0.0], [0.4]]
covariances = [[[2.0]], [[0.0004]]]
[start]
means = [[0.37], [0.0]]
covariances = [[[0.0001]], [[2.0]]]
)");
  for (const char* seed : {"0", "1", "2", "3", "4"}) {
    const Result result = run(folder, {"check", "mine.toml", "--seed", seed});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(is_table_of_good_rows(result.out)) << result.out;
    for (const char* what : {"grad KL(reference || pi)", "grad KL(pi || base)", "grad of the sum"})
      EXPECT_TRUE(has(result.out, "mine", what));
  }
}

// From N(0, I) some points of a steep double well run away with the step of the run, which starts nearer to the wells.
TEST(Check, FindsPointsOfASteepDoubleWell) {
  const Folder folder;
  write(folder / "mine.toml",
        "step_size = 0.02\n[potential]\nkind = \"double-well\"\ndimension = 1\nhalf_distance = 1.0\n"
        "[reward]\nkind = \"bump\"\ncentre = [1.0]\n[start]\ntheta = [3.0]\nscale = 0.3\n");
  const Result result = run(folder, {"check", "mine.toml"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out.find("nan"), std::string::npos) << result.out;
}

// Potentials so wide that single precision, or the points of a short chain, see nothing of them: a wrong number that
// cannot be told from a right one is left out, and what is too small for a run is no alarm.
TEST(Check, LeavesOutWhatIsTooSmallToBeSeen) {
  const Folder folder;
  const auto check = [&](const std::string& text) {
    write(folder / "mine.toml", text);
    const Result result = run(folder, {"check", "mine.toml"});
    EXPECT_EQ(result.code, 0) << result.err << text;
    EXPECT_TRUE(is_table_of_good_rows(result.out));
    return result.out;
  };
  const std::string start = "[start]\ntheta = [1.0]\n", bump = "[reward]\nkind = \"bump\"\ncentre = [1.0]\n";
  const std::string flat = check(
      "step_size = 0.001\n[potential]\nkind = \"double-well\"\ndimension = 1\n"
      "half_distance = 1e9\n" +
      bump + start);
  EXPECT_TRUE(has(flat, "mine", "  dV/dx times 1.001", "left out"));
  const std::string less_flat = check(
      "step_size = 0.001\n[potential]\nkind = \"double-well\"\ndimension = 1\n"
      "half_distance = 1e4\n" +
      bump + start);
  EXPECT_TRUE(has(less_flat, "mine", "  dV/dx times 1.001", "caught"));
  // The reward of all samples, but for a few denormal numbers, is 0.
  check("[potential]\nkind = \"quadratic\"\nprecision = [[1.5e-11]]\n" + bump + start);
  // V and the base's V are both some units, and differ in the last digits.
  check("[potential]\nkind = \"quadratic\"\nprecision = [[1e-15]]\n[base]\ntheta = [1.5]\n" + start);
  // R is below 1e-30 wherever there are samples.
  check("step_size = 27\n[potential]\nkind = \"wells\"\nwidth = 2e6\ncentres = [[0.0], [1.0]]\n" + bump +
        "[smooth_reward]\ncentre = [1.0]\n[start]\ntheta = [0.0, 0.5]\n");
  // beta is so small that half of it makes no difference.
  const Result diffusion = run(folder, {"check", "denoising-mixture", "--set", "beta=1e-9", "--set", "lambda=1e-9"});
  EXPECT_EQ(diffusion.code, 0) << diffusion.err;
}

// ---- files of many kinds. scripts/check-files runs them for twenty seeds.

const fs::path check_files = fs::path(IMPLICIT_DIFFUSION_GOLDEN) / "../check_files";

Words names_of_check_files() {
  Words all;
  for (const auto& entry : fs::directory_iterator(check_files))
    if (entry.path().extension() == ".toml") all.push_back(entry.path().stem().string());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(CheckFiles, AreTwenty) { EXPECT_EQ(names_of_check_files().size(), 20U); }

class EachCheckFile : public testing::TestWithParam<std::string> {};

// A row that a file names after `# off: ` is rightly off; no other is, and every deliberate error is caught.
TEST_P(EachCheckFile, HasNoFalseAlarm) {
  const Folder folder;
  const fs::path file = check_files / (GetParam() + ".toml");
  std::string rightly_off;
  for (const std::string& line : lines(contents(file)))
    if (line.starts_with("# off: ")) rightly_off = line.substr(7);
  for (const char* seed : {"0", "7"}) {
    const Result result = run(folder, {"check", file.string(), "--seed", seed});
    bool off = false;
    std::size_t ok = 0;
    for (const std::string& row : lines(result.out)) {
      if (row.ends_with(" ok")) ++ok;
      if (!row.ends_with(" OFF")) continue;
      off = true;
      EXPECT_TRUE(!rightly_off.empty() && row.find(" " + rightly_off) != std::string::npos) << row;
    }
    EXPECT_GE(ok, 3U) << result.out << result.err;
    EXPECT_EQ(result.code, off ? 1 : 0) << result.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Program, EachCheckFile, testing::ValuesIn(names_of_check_files()), [](const auto& name) {
  std::string word = name.param;
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
});

// A file of the user's: a potential, the rest of the file, and rows that it must have.
struct Case {
  std::string name, potential, rest;
  std::vector<std::pair<std::string, std::string>> rows{};  // what, verdict
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class CheckFile : public testing::TestWithParam<Case> {};

TEST_P(CheckFile, IsRight) {
  const Case& c = GetParam();
  const Folder folder;
  std::string points;
  for (int i = 0; i < 60; ++i) points += std::to_string(std::sin(7 * i)) + "," + std::to_string(std::cos(5 * i)) + "\n";
  write(folder / "points.csv", points);
  write(folder / "mine.toml", "step_size = 0.05\n[potential]\n" + c.potential + c.rest);
  const Result result = run(folder, {"check", "mine.toml"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(is_table_of_good_rows(result.out));
  for (const auto& [what, verdict] : c.rows) EXPECT_TRUE(has(result.out, "mine", what, verdict));
}

const std::string quadratic_reward = "[reward]\nkind = \"quadratic\"\ncentre = [1.0, 0.0]\n";
const std::string hard_reward = "[reward]\nkind = \"hard\"\ncentre = [1.0, 0.0]\nwidth = 5.0\n";
const std::string points_reference = "[reference]\ndata = \"points.csv\"\n";
const std::string two_components =
    "means = [[1.0, 0.0], [-1.0, 0.5]]\ncovariances = [[[1.0, 0.2], [0.2, 1.0]], [[0.5, 0.0], [0.0, 2.0]]]\n";

// The limit is 2 / 50 = 0.04. What does not depend on the step is right as ever.
TEST(Check, SaysThatAStepIsNotStable) {
  const Folder folder;
  write(folder / "mine.toml",
        "step_size = 0.05\n[potential]\nkind = \"quadratic\"\nprecision = [[50.0, 0.0], [0.0, 1.0]]\n" +
            quadratic_reward + "[start]\ntheta = [0.0, 0.5]\n");
  const Result result = run(folder, {"check", "mine.toml"});
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_TRUE(is_error_line(result.err, {"1 of ", "mine (step_size over the largest stable)"}));
  EXPECT_TRUE(has(result.out, "mine", "step_size over the largest stable", "OFF"));
  EXPECT_TRUE(has(result.out, "mine", "covariance after 64 steps", "left out"));
  EXPECT_TRUE(has(result.out, "mine", "grad -E[R]", "ok"));
}

INSTANTIATE_TEST_SUITE_P(
    Program, CheckFile,
    testing::Values(
        Case{"Quadratic",
             "kind = \"quadratic\"\nprecision = [[1.0, 0.3], [0.3, 2.0]]\n",
             quadratic_reward + "[start]\ntheta = [0.0, 0.5]\n",
             {{"covariance after 64 steps", "ok"}, {"grad -E[R]", "ok"}}},
        Case{"Wells",
             "kind = \"wells\"\ncentres = [[0.0, 1.0], [2.0, 0.0]]\n",
             hard_reward + "[base]\ntheta = [0.0, 0.0]\n[start]\ntheta = [0.0, 0.0]\n",
             {{"grad KL(pi || base) elsewhere", "ok"}, {"grad of the sum", "ok"}}},
        Case{"OneWell",
             "kind = \"wells\"\ncentres = [[0.0, 1.0]]\n",
             hard_reward + "[start]\ntheta = [0.0]\n",
             {{"grad -E[R]", "ok"}, {"a wrong gradient", "left out"}}},
        Case{"WellsInManyDimensions",
             "kind = \"wells\"\ncentres = [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]]\n",
             "[reference]\ntheta = [1.0, 0.0]\n[reward]\ncentre = [1.0, 0.0, 0.0, 0.0]\n[start]\ntheta = [0.0, 0.0]\n",
             {{"grad -E[R]", "ok"}, {"grad KL(reference || pi)", "left out: no quadrature beyond 3 dimensions"}}},
        Case{"LogisticWells",
             "kind = \"logistic-wells\"\ncentres = [[0.0, 1.0], [2.0, 0.0]]\n",
             hard_reward + "[start]\ntheta = [0.0, 1.0]\n",
             {{"grad -E[R]", "ok"}}},
        Case{"Mixture",
             "kind = \"mixture\"\n",
             points_reference + "batch = 20\n[start]\n" + two_components,
             {{"grad KL(reference || pi)", "ok"}}},
        Case{"MixtureByCholesky",
             "kind = \"mixture\"\ncovariance = \"cholesky\"\n",
             quadratic_reward + points_reference + "[start]\n" + two_components,
             {{"grad of the sum", "ok"}}}),
    [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace program_test
