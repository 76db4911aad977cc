// Warnings: each of them where a result cannot be trusted, and none where it can.
#include <fmt/format.h>

#include "program/run_program.hpp"

namespace program_test {
namespace {

Words kinds(const Json& summary) {
  Words all;
  for (const Json& w : summary.at("warnings")) all.push_back(w.at("kind"));
  return all;
}

// Runs mine.toml and compares the kinds of its warnings; each is a line on stderr, an entry of the summary and a note
// in the report.
void expect_warnings(const std::string& toml, const Words& expected, const Words& words = {}, const Words& more = {}) {
  const Folder folder;
  write(folder / "mine.toml", toml);
  const Result result = run(folder, Words{"run", "mine.toml", "--quiet", "--output", "run"} + more);
  ASSERT_EQ(result.code, 0) << result.err;
  const Json summary = json(folder / "run/summary.json");
  EXPECT_EQ(kinds(summary), expected) << summary["warnings"];
  const std::string report = contents(folder / "run/report.html");
  EXPECT_EQ(report.find("Warning:") != std::string::npos, !expected.empty());
  const Words said = lines(result.err);
  ASSERT_EQ(said.size(), expected.size()) << result.err;
  for (std::size_t i = 0; i < said.size(); ++i)
    EXPECT_EQ(said[i], "implicit-diffusion: warning: " + summary["warnings"][i]["message"].get<std::string>());
  for (const std::string& word : words)
    EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
}

// ---- the step size

std::string wells(double step, double distance, const std::string& more = "") {
  return fmt::format("step_size = {}\nsteps = 1000\n", step) + more +
         fmt::format(
             "[potential]\nkind = \"wells\"\nwidth = 2.0\ncentres = [[-{0}], [{0}]]\n"
             "[reward]\nkind = \"bump\"\ncentre = [1.0]\nwidth = 2.0\n[start]\ntheta = [0.0, 0.0]\n",
             distance);
}

// At 1.9 of a limit of 2 the variance is 1 / (1 - 0.95) = 20 times the law's.
TEST(Warnings, OfAStepNearItsLimit) {
  expect_warnings(wells(1.9, 1), {"step-size"},
                  {"95 %", "largest stable step at the last theta (2)", "20 times the variance"});
  expect_warnings(wells(1.0, 1), {"step-size"}, {"50 %", "2 times the variance"});
  expect_warnings(wells(0.9, 1), {});
}

TEST(Warnings, OfTheStepAtTheEndOfASchedule) {
  // 1.9 / cbrt(1000) = 0.19 is no reason for a warning. The schedule slows theta down too, which has not settled.
  expect_warnings(wells(1.9, 1, "schedule = \"cube-root\"\n"), {"still-moving"});
}

TEST(Warnings, CheckRefusesAnUnstableStep) {
  const Folder folder;
  write(folder / "mine.toml", wells(5, 1));
  const Result result = run(folder, {"check", "mine.toml"});
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_TRUE(is_error_line(result.err, {"1 of ", "mine (step_size over the largest stable)"}));
  write(folder / "mine.toml", wells(2, 1));  // the limit itself
  EXPECT_EQ(run(folder, {"check", "mine.toml"}).code, 1);
  write(folder / "mine.toml", wells(1.99, 1));
  EXPECT_EQ(run(folder, {"check", "mine.toml"}).code, 0);
}

// ---- theta still moving

std::string gaussian(double learning_rate) {
  return fmt::format(
      "step_size = 0.1\nlearning_rate = {}\nsteps = 2000\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0]]\n"
      "[reward]\nkind = \"quadratic\"\ncentre = [3.0]\n[start]\ntheta = [0.0]\n",
      learning_rate);
}

// theta - 3 falls as e^(-rate k) with a rate of about learning_rate: by 2e-4 of the way after 2000 steps, or by all of
// it.
TEST(Warnings, OfThetaThatStillMoves) {
  expect_warnings(gaussian(1e-4), {"still-moving"}, {"exact reward", "of its total change", "--steps"});
  expect_warnings(gaussian(0.05), {});
}

// It begins next to the optimum and creeps on by a few millionths: no reason to go on, for the warning as for the
// report, which follow one rule.
TEST(Warnings, SpareChangesThatDoNotMatter) {
  const auto reference = [](double start) {
    return fmt::format(
        "step_size = 0.1\nlearning_rate = 1e-4\nsteps = 2000\nparticles = 20000\n[potential]\nkind = \"quadratic\"\n"
        "precision = [[1.0]]\n[reference]\ntheta = [0.0]\nbatch = 20000\n[start]\ntheta = [{0}]\nmean = [{0}]\n",
        start);
  };
  for (const auto& [start, moves] : {std::pair{0.05, false}, {1.0, true}}) {
    expect_warnings(reference(start), moves ? Words{"still-moving"} : Words{});
    const Folder folder;
    write(folder / "mine.toml", reference(start));
    ASSERT_EQ(run(folder, {"run", "mine.toml", "--quiet", "--output", "run"}).code, 0);
    EXPECT_EQ(contents(folder / "run/report.html").find("still changing") != std::string::npos, moves);
  }
}

TEST(Warnings, SpareARunThatIsShortOnPurpose) {
  expect_warnings(gaussian(1e-4) + "[quick]\nsteps = 1500\n", {}, {}, {"--quick"});
}

// Without a table of that name --quick makes nothing shorter.
TEST(Warnings, DoNotSpareAWholeRunThatIsCalledQuick) {
  expect_warnings(gaussian(1e-4), {"still-moving"}, {}, {"--quick"});
}

TEST(Warnings, SpareARunThatHasBarelyBegun) {
  expect_warnings(gaussian(1e-4), {}, {}, {"--steps", "0"});
  expect_warnings(gaussian(1e-4), {}, {}, {"--steps", "50"});  // six rows
}

// ---- mixing

// The barrier between wells of variance 1 at -m and m is m^2 / 2 high: 18 or 1.1.
std::string sampled(double distance) {
  return fmt::format(
      "method = \"langevin-initial\"\nstep_size = 0.1\nsteps = 1000\n[potential]\nkind = \"wells\"\ncentres = "
      "[[-{0}], [{0}]]\n[reward]\nkind = \"bump\"\ncentre = [1.0]\nwidth = 2.0\n[start]\ntheta = [0.0, 0.0]\nmean = "
      "[-{0}]\nscale = 0.5\n",
      distance);
}
TEST(Warnings, OfSamplesThatDoNotCross) {
  expect_warnings(sampled(6), {"mixing"}, {"mode 1 holds 100.0 % of the samples but 50.0 %", "variation 0.50"});
  expect_warnings(sampled(1.5), {});
}

std::string double_well(double barrier) {
  return fmt::format(
      "method = \"langevin-initial\"\nstep_size = 0.005\nsteps = 3000\n[potential]\nkind = \"double-well\"\ndimension "
      "= "
      "2\n[reward]\nkind = \"bump\"\ncentre = [1.0, 0.0]\nwidth = 2.0\n[start]\ntheta = [{}]\nmean = [-1.0, "
      "0.0]\nscale "
      "= 0.1\n",
      barrier);
}
TEST(Warnings, OfSamplesThatStayInOneHalfOfADoubleWell) {
  expect_warnings(double_well(12), {"mixing"}, {"mode 1 holds 100.0 %"});
  expect_warnings(double_well(1), {});
}

// A well of 5 % that no sample is in: the total variation is only 0.05.
TEST(Warnings, OfALightModeWithoutSamples) {
  const auto sampled_at = [](double distance, double logit) {
    return fmt::format(
        "method = \"langevin-initial\"\nstep_size = 0.1\nsteps = 1000\nparticles = 2000\n[potential]\nkind = "
        "\"wells\"\ncentres = [[0.0], [{0}]]\n[reward]\nkind = \"bump\"\ncentre = [1.0]\nwidth = 2.0\n[start]\n"
        "theta = [0.0, {1}]\n",
        distance, logit);
  };
  expect_warnings(sampled_at(14, -2.944), {"mixing"}, {"mode 2 holds 0.0 % of the samples but 5.0 %"});
  expect_warnings(sampled_at(2, -2.944), {});
  expect_warnings(sampled_at(14, -6), {});  // 5 of 2000 samples are too few to miss
}

// Steps of 90 % of the limit make the narrow one of two concentric Gaussians ten times as wide: that is no matter of
// crossings.
TEST(Warnings, DoNotBlameCrossingsForABiasedStep) {
  const auto concentric = [](double step) {
    return fmt::format(
        "method = \"langevin-initial\"\nstep_size = {}\nsteps = 2000\n[potential]\nkind = \"mixture\"\ncomponents = "
        "2\ndimension = 1\n[reward]\nkind = \"bump\"\ncentre = [1.0]\nwidth = 2.0\n[start]\nmeans = [[0.0], [0.0]]\n"
        "covariances = [[[0.01]], [[1.0]]]\n",
        step);
  };
  expect_warnings(concentric(0.018), {"step-size"}, {"90 %"});
  expect_warnings(concentric(0.001), {});
}

// ---- the step of a double well, of guidance, and beside a component that nobody is in

// The limit of the wells alone is 0.25, and at 0.2 every run is lost. The curvature further out counts: the limit is
// 2 / (8 + 12 sqrt 2) = 0.08.
TEST(Warnings, KnowThatADoubleWellIsSteepOutside) {
  const auto steps_of = [](double step) {
    return fmt::format(
        "method = \"langevin-initial\"\nstep_size = {}\nsteps = 2000\n[potential]\nkind = \"double-well\"\ndimension = "
        "1\n[reward]\nkind = \"bump\"\ncentre = [1.0]\nwidth = 2.0\n[start]\ntheta = [1.0]\nscale = 0.5\n",
        step);
  };
  const Folder folder;
  write(folder / "mine.toml", steps_of(0.2));
  EXPECT_EQ(run(folder, {"run", "mine.toml", "--quiet", "--output", "run"}).code, 70);
  EXPECT_EQ(run(folder, {"check", "mine.toml"}).code, 1);
  expect_warnings(steps_of(0.06), {"step-size"}, {"largest stable step at the last theta (0.080"});
  expect_warnings(steps_of(0.01), {});
}

// exp(-V + lambda R) with V = x^2 / 2 and R = -x^2 has the curvature 1 + 2 lambda.
TEST(Warnings, CountTheRewardOfGuidance) {
  const auto guided = [](double lambda) {
    return fmt::format(
        "method = \"guided\"\nstep_size = 0.1\nsteps = 500\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0, "
        "0.0], "
        "[0.0, 0.5]]\n[reward]\nkind = \"quadratic\"\ncentre = [0.0, 0.0]\n[smooth_reward]\nkind = \"quadratic\"\n"
        "centre = [0.0, 0.0]\nlambda = {}\n[start]\ntheta = [0.0, 0.0]\n",
        lambda);
  };
  expect_warnings(guided(9), {"step-size"}, {"95 %", "largest stable step at the last theta (0.105"});
  expect_warnings(guided(1), {});
}

// The narrow component has the weight 2e-9 and the limit 2e-4; the other 2.
TEST(Warnings, PassByAComponentThatNobodyIsIn) {
  const std::string text =
      "method = \"langevin-initial\"\nstep_size = 0.1\nsteps = 500\n[potential]\nkind = \"mixture\"\ncomponents = 2\n"
      "dimension = 1\n[reward]\nkind = \"bump\"\ncentre = [1.0]\nwidth = 2.0\n[start]\nlogits = [0.0, -20.0]\nmeans = "
      "[[0.0], [3.0]]\ncovariances = [[[1.0]], [[0.0001]]]\n";
  expect_warnings(text, {});
  const Folder folder;
  write(folder / "mine.toml", text);
  const Result result = run(folder, {"check", "mine.toml"});
  EXPECT_EQ(result.code, 0) << result.err;
}

// ---- worse than at the start

// With samples that lag behind it, theta swings further and further beyond the centre of the reward.
TEST(Warnings, OfAnObjectiveThatGotWorse) {
  const auto gaussian = [](double learning_rate) {
    return fmt::format(
        "steps = 300\nstep_size = 0.1\nlearning_rate = {}\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0]]\n"
        "[reward]\nkind = \"quadratic\"\ncentre = [1.0]\n[start]\ntheta = [0.0]\n",
        learning_rate);
  };
  const Folder folder;
  write(folder / "mine.toml", gaussian(1.0));
  const Result result = run(folder, {"run", "mine.toml", "--quiet", "--output", "run"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Words found = kinds(json(folder / "run/summary.json"));
  EXPECT_EQ(std::count(found.begin(), found.end(), "worse"), 1) << result.err;
  EXPECT_NE(result.err.find("the objective got worse: it was 2 at the start and is "), std::string::npos) << result.err;
  expect_warnings(gaussian(0.01), {});
}

// ---- heavy tails

std::string diffusion(double distance, const std::string& more = "") {
  return "kind = \"denoising-mixture\"\nslots = 1\nsteps = 400\nbatch = 400\n" + more +
         fmt::format(
             "[base]\nweights = [0.95, 0.05]\nmeans = [[-{0}], [{0}]]\ndeviations = [0.3, 0.3]\n"
             "[reward]\ndirection = [1.0]\n",
             distance);
}

TEST(Warnings, OfGradientsThatRestOnAFewSamples) {
  for (const double distance : {1.5, 3.0}) {
    const Folder folder;
    write(folder / "mine.toml", diffusion(distance));
    const Result result = run(folder, {"run", "mine.toml", "--quiet", "--output", "run"});
    ASSERT_EQ(result.code, 0) << result.err;
    const Words found = kinds(json(folder / "run/summary.json"));
    EXPECT_EQ(std::count(found.begin(), found.end(), "heavy-tails"), 1) << distance;
    EXPECT_NE(result.err.find("implicit-diffusion: warning: the gradient rests on a few samples"), std::string::npos);
    EXPECT_NE(contents(folder / "run/report.html").find("the gradient rests on a few samples"), std::string::npos);
  }
  expect_warnings(diffusion(0.4), {});
}

// On the line the exact gradient is known. The noise has a fixed seed; right numbers are off for one in 25,000.
TEST(Warnings, CheckComparesBatchesWithTheExactGradient) {
  const Folder folder;
  write(folder / "mine.toml", diffusion(0.4));
  const Result near = run(folder, {"check", "mine.toml"});
  EXPECT_EQ(near.code, 0) << near.out << near.err;
  EXPECT_NE(near.out.find("gradient of 100 batches, exact density"), std::string::npos);
  EXPECT_EQ(near.out.find("exact density left out"), std::string::npos);
  for (const double distance : {1.5, 3.0}) {
    write(folder / "mine.toml", diffusion(distance));
    const Result far = run(folder, {"check", "mine.toml"});
    EXPECT_EQ(far.code, 1) << far.out;
    EXPECT_NE(far.err.find("gradient, share of its largest 1 %"), std::string::npos) << far.err;
  }
}

// ---- several runs

TEST(Warnings, OfRepeatsAreOneLineForEachKind) {
  const Folder folder;
  write(folder / "mine.toml", wells(1.9, 1));
  const Result result = run(folder, {"run", "mine.toml", "--quiet", "--output", "run", "--repeats", "3"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(is_error_line(result.err, {"warning: 3 of 3 runs, here seed 0: step_size"}));
  const Json summary = json(folder / "run/summary.json");
  EXPECT_EQ(kinds(summary), Words{"step-size"});
  for (const Json& one : summary["runs"]) EXPECT_EQ(kinds(one), Words{"step-size"});
  EXPECT_NE(contents(folder / "run/report.html").find("Warning:"), std::string::npos);
}

TEST(Warnings, OfAComparisonNameTheSetting) {
  const Folder folder;
  const Words base{"run",
                   "langevin-comparison",
                   "--quiet",
                   "--set",
                   "comparison.methods=[\"implicit\", \"unrolled\"]",
                   "--set",
                   "comparison.inner_steps=[1]",
                   "--set",
                   "comparison.variants=[]",
                   "--set",
                   "comparison.seeds=2",
                   "--set",
                   "steps=1000"};
  const Result fine = run(folder, base + Words{"--output", "fine"});
  ASSERT_EQ(fine.code, 0) << fine.err;
  EXPECT_EQ(fine.err, "") << "which method is slower is what a comparison shows";
  EXPECT_EQ(kinds(json(folder / "fine/summary.json")), Words{});

  const Result coarse = run(folder, base + Words{"--output", "coarse", "--set", "step_size=1.5"});
  ASSERT_EQ(coarse.code, 0) << coarse.err;
  EXPECT_NE(coarse.err.find("warning: 4 of 4 runs, here "), std::string::npos) << coarse.err;
  const std::string report = contents(folder / "coarse/report.html");
  EXPECT_NE(report.find("Warning:"), std::string::npos);
  ASSERT_EQ(run(folder, {"report", "coarse"}).code, 0);
  EXPECT_EQ(contents(folder / "coarse/report.html"), report);
}

// A run that goes on ends with the warnings of one that was never stopped.
TEST(Warnings, AreTheSameAfterAResumption) {
  const Folder folder;
  write(folder / "mine.toml", gaussian(1e-4));
  ASSERT_EQ(run(folder, {"run", "mine.toml", "--quiet", "--output", "whole"}).code, 0);
  ASSERT_EQ(run(folder, {"run", "mine.toml", "--quiet", "--output", "parts", "--steps", "700"}).code, 0);
  const Result rest = run(folder, {"run", "mine.toml", "--quiet", "--output", "parts", "--resume"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(json(folder / "parts/summary.json")["warnings"], json(folder / "whole/summary.json")["warnings"]);
}

}  // namespace
}  // namespace program_test
