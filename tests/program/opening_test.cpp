// Every report opens with a paragraph that says what was done, whether it worked, and how one can tell. It is written
// from the results of the run, so it changes with them.
#include <fmt/format.h>

#include "program/run_program.hpp"

namespace program_test {
namespace {

// The paragraph of the report in a folder, with plain minus signs and without the marks that keep words together.
std::string opening(const fs::path& folder) {
  const std::string report = contents(folder / "report.html"), begin = "<p class=\"opening\">";
  const std::size_t at = report.find(begin);
  if (at == std::string::npos) return "";
  std::string text = report.substr(at + begin.size(), report.find("</p>", at) - at - begin.size());
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"−", "-"}, {"\u2060", ""}, {"\u00a0", " "}})
    for (std::size_t k = text.find(from); k != std::string::npos; k = text.find(from, k))
      text.replace(k, from.size(), to);
  return text;
}

testing::AssertionResult says(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos)
      return testing::AssertionFailure() << "\"" << part << "\" is not in: " << text;
  return testing::AssertionSuccess();
}

std::string run_and_read(const Folder& folder, const Words& arguments, const std::string& name, int code = 0) {
  const Result r = run(folder, Words{"run"} + arguments + Words{"--quiet", "--output", name});
  EXPECT_EQ(r.code, code) << r.err;
  return opening(folder / name);
}

// The report of a run whose summary.json is another one.
std::string with_summary(const Folder& folder, const std::string& name, const Json& summary) {
  write(folder / name / "summary.json", summary.dump());
  const Result r = run(folder, {"report", name});
  EXPECT_EQ(r.code, 0) << r.err;
  return opening(folder / name);
}

std::string four_digits(const Json& number) { return fmt::format("{:.4g}", number.get<double>()); }

TEST(Opening, KnowsARunThatStartsAtTheOptimum) {
  const Folder folder;
  const auto gaussian = [&](double learning_rate, const std::string& name) {
    write(folder / "mine.toml",
          fmt::format("steps = 300\nlearning_rate = {}\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0]]\n"
                      "[reference]\ntheta = [0.5]\n[start]\ntheta = [0.5]\n",
                      learning_rate));
    return run_and_read(folder, {"mine.toml"}, name);
  };
  EXPECT_TRUE(says(gaussian(0.001, "stays"), {"It started at the optimum and stayed there: "}));
  EXPECT_TRUE(says(gaussian(1.5, "leaves"), {"It started at the optimum and left it: "}));
}

// From 5000 nats to a few: nearly all of the way, and far from done.
TEST(Opening, DoesNotCallItDoneWithManyNatsLeft) {
  const Folder folder;
  write(folder / "mine.toml",
        "steps = 130\nlearning_rate = 0.02\nstep_size = 0.1\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0]]\n"
        "[reference]\ntheta = [0.0]\n[start]\ntheta = [100.0]\nmean = [100.0]\n");
  const std::string text = run_and_read(folder, {"mine.toml"}, "far");
  const double left = json(folder / "far/summary.json")["exact_kl"].get<double>();
  ASSERT_GT(left, 1);
  ASSERT_LT(left, 250);
  EXPECT_TRUE(says(text, {"It got most of the way: the KL divergence ", "fell from 5000 to "}));
}

// At the horizon 0.3 samples are still nearly the N(0, I) that they began as.
TEST(Opening, OfAShortHorizonSaysThatSamplesDoNotFollow) {
  const Folder folder;
  const auto horizon = [&](const std::string& t) {
    write(folder / "mine.toml",
          "kind = \"denoising-mixture\"\nslots = 1\nsteps = 20\nsteps_per_sample = 128\nhorizon = " + t +
              "\n[base]\nweights = [1.0]\nmeans = [[2.0]]\ndeviations = [0.5]\n[reward]\n"
              "direction = [0.5]\n");
    return run_and_read(folder, {"mine.toml"}, "horizon-" + t);
  };
  EXPECT_TRUE(says(horizon("0.3"), {"The samples do not follow the learnt mixture: they have a mean reward of "}));
  EXPECT_TRUE(says(horizon("4.0"), {"The samples follow the learnt mixture: they have a mean reward of "}));
}

TEST(Opening, OfANegativeWeightSaysThatTheRewardIsLowered) {
  const Folder folder;
  EXPECT_TRUE(says(run_and_read(folder, {"langevin-reward", "--steps", "50", "--set", "reward.lambda=-1"}, "low"),
                   {"to lower the mean reward: "}));
}

// No weights of the six wells earn more than the best well alone, 0.2983.
TEST(Opening, OfARewardComparesWithTheBestPossible) {
  const Folder folder;
  const std::string done = run_and_read(folder, {"langevin-reward"}, "done");
  const std::string end = four_digits(json(folder / "done/summary.json")["exact_reward"]);
  EXPECT_TRUE(says(done, {"with the single loop, to raise the mean reward: in each of 5000 steps, 1000 samples",
                          "It worked: the mean reward under π*(θ) rose from 0.07253 to " + end,
                          "No θ earns more than 0.2983, so the run made 98 % of the possible gain.",
                          "differ a little because the steps of the chain are finite: their mean reward is "}));
  const std::string early = run_and_read(folder, {"langevin-reward", "--steps", "300"}, "early");
  EXPECT_TRUE(
      says(early, {"in each of 300 steps", "It got part of the way: ", "so the run made 29 % of the possible gain"}));
  const std::string none = run_and_read(folder, {"langevin-reward", "--steps", "0"}, "none");
  EXPECT_TRUE(says(none, {"No step was taken", "It has not got anywhere yet: ", "stayed at 0.07253"}));
  EXPECT_EQ(none.find("It worked"), std::string::npos);

  EXPECT_TRUE(says(run_and_read(folder, {"langevin-reward", "--steps", "300", "--set", "method=nested"}, "nested"),
                   {"with the nested loop", "took 10 Langevin steps"}));
  EXPECT_TRUE(says(run_and_read(folder, {"langevin-reward", "--set", "method=unrolled"}, "unrolled"),
                   {"by unrolling", "It got most of the way: ", "It was still changing at the end"}));
  EXPECT_TRUE(says(run_and_read(folder, {"langevin-reward", "--set", "method=guided"}, "guided"),
                   {"sampled with guidance", "It raised the reward: ", "without guidance, is 0.07253"}));
  EXPECT_TRUE(says(run_and_read(folder, {"langevin-reward", "--set", "method=langevin-initial"}, "start"),
                   {"This run only sampled", "is 0.07253, in closed form. The samples agree: "}));
  // Samples that start far to the left, where the reward is 0, are still there after one step.
  EXPECT_TRUE(says(run_and_read(folder,
                                {"langevin-reward", "--steps", "1", "--set", "method=langevin-initial", "--set",
                                 "start.mean=[-9.0, 0.0]"},
                                "one"),
                   {"took one Langevin step at", "The samples do not follow that distribution: "}));
}

TEST(Opening, SaysThatARunFailed) {
  const Folder folder;
  const std::string diverged = run_and_read(folder, {"ebm-wells", "--set", "step_size=2.5"}, "diverged", 70);
  const int steps = json(folder / "diverged/summary.json")["steps"].get<int>();
  EXPECT_TRUE(says(diverged, {fmt::format("It failed: the run diverged at step {} of 40000.", steps + 1)}));
  EXPECT_TRUE(says(diverged, {"Until then, the KL divergence of π*(θ) from the reference "}));

  run_and_read(folder, {"langevin-reward", "--steps", "25"}, "cut");
  Json summary = json(folder / "cut/summary.json");
  summary["status"] = "interrupted";
  summary["steps"] = 20;
  EXPECT_TRUE(says(with_summary(folder, "cut", summary), {"It was interrupted after 20 of 25 steps."}));
}

// A mixture's KL from its reference is 8.405 at the start and 1.31 after 4000 steps.
TEST(Opening, OfAnEnergyBasedModelTellsTheDivergence) {
  const Folder folder;
  const std::string quick = run_and_read(folder, {"ebm-mixture", "--quick"}, "quick");
  EXPECT_TRUE(says(quick, {"to match a reference distribution",
                           "It got most of the way: the KL divergence of π*(θ) from "
                           "the reference fell from 8.405 to " +
                               four_digits(json(folder / "quick/summary.json")["exact_kl"]) + " nats",
                           "so the run removed 84 % of the divergence"}));
  EXPECT_TRUE(says(run_and_read(folder, {"ebm-mixture", "--steps", "5"}, "short"), {"It has not got anywhere yet: "}));

  write(folder / "line.csv", "1\n2.5\n-0.5\n4\n");
  write(folder / "mine.toml",
        "steps = 300\nstep_size = 0.05\nlearning_rate = 0.05\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0]]\n"
        "[reference]\ndata = \"line.csv\"\n[start]\ntheta = [0.0]\n");
  EXPECT_TRUE(says(run_and_read(folder, {"mine.toml"}, "data"),
                   {"to fit the data", "The mean log-likelihood of the data under π*(θ) rose from "}));
  // A start at the mean of the data, 1.75, and samples far away: theta runs away from it.
  EXPECT_TRUE(says(
      run_and_read(folder, {"mine.toml", "--steps", "20", "--set", "start.theta=[1.75]", "--set", "start.mean=[9.0]"},
                   "away"),
      {"It did not fit the data better: "}));
}

TEST(Opening, OfRepeatsTellsTheirSpread) {
  const Folder folder;
  const std::string text = run_and_read(folder, {"langevin-reward", "--steps", "300", "--repeats", "3"}, "three");
  EXPECT_TRUE(says(text, {"These are 3 independent runs", "the exact reward rose from 0.07253 to",
                          "it improved in 3 of 3 runs, which ended between "}));
  EXPECT_EQ(text.find("Only"), std::string::npos);
  EXPECT_TRUE(says(run_and_read(folder, {"ebm-wells", "--set", "step_size=2.5", "--repeats", "2"}, "failed", 70),
                   {"None of them completed its steps."}));
}

TEST(Opening, OfAComparisonCountsTheClaims) {
  const Folder folder;
  const Words small{"langevin-comparison",
                    "--set",
                    "comparison.inner_steps=[1, 3]",
                    "--set",
                    "comparison.seeds=2",
                    "--set",
                    "particles=100",
                    "--steps",
                    "60",
                    "--set",
                    "thresholds=[-20.0, -15.0]",
                    "--set",
                    "snapshots=[]"};
  const std::string all = run_and_read(folder, small, "c");
  EXPECT_TRUE(says(all, {"This comparison ran 11 settings", "with 2 seeds and 60 steps each.", "The optimisation ",
                         "Of the paper’s 6 claims", "and 0 remain undecided."}));
  fs::remove_all(folder / "c/settings/unrolled-3/seed-1");
  ASSERT_EQ(run(folder, {"report", "c"}).code, 0);
  EXPECT_TRUE(
      says(opening(folder / "c"), {"It is not complete: 21 of 22 runs have ended.", "and 1 remain undecided."}));
}

TEST(Opening, OfAFiniteStateSpaceComparesWithTheOptimum) {
  const Folder folder;
  const Words small{"finite-state",   "--set", "states=60",          "--set", "width=20", "--set",
                    "particles=2000", "--set", "timing={dense=[10]}"};
  const std::string done = run_and_read(folder, small, "done");
  EXPECT_TRUE(
      says(done, {"a Markov chain on 60 states", "with 200 steps of θ each", "It worked: with samples",
                  "the objective fell from 0 to -0.1", "Of the other loops, the one with the exact distribution went ",
                  ", the one with samples of a Gibbs distribution went ",
                  "were also compared with exact ones: their largest relative error is "}));
  const std::string early = run_and_read(folder, small + Words{"--steps", "2"}, "early");
  EXPECT_TRUE(says(early, {"with 2 steps of θ each"}));
  EXPECT_EQ(early.find("It worked"), std::string::npos) << early;
}

TEST(Opening, OfRatesComparesWithTheTheorems) {
  const Folder folder;
  const Words small{"rates",
                    "--set",
                    "discrete.steps=[100, 464, 2154, 10000]",
                    "--set",
                    "flow.times=[10.0, 100.0, 1000.0]",
                    "--set",
                    "flow.largest_target=100.0"};
  EXPECT_TRUE(says(run_and_read(folder, small, "r"), {"The measurements agree with the theorems: 3 of 3 fitted slopes",
                                                      "for a = b = 1/3, where the theorem promises -1/3"}));
  // An average that grows with the number of steps contradicts every theorem.
  Json summary = json(folder / "r/summary.json");
  for (Json& row : summary["results"])
    if (row["kind"] == "flow") row["worst_average"] = row["steps"];
  EXPECT_TRUE(says(with_summary(folder, "r", summary),
                   {"Not all measurements agree with the theorems: 2 of 3 fitted slopes", "1 for the flow"}));
}

TEST(Opening, OfTheGaussianDiffusionComparesWithItsTheory) {
  const Folder folder;
  const Words small{"denoising-gaussian", "--set", "horizons=[1.0, 2.0]", "--set", "etas=[0.25, 0.5]", "--set",
                    "repeats=4"};
  EXPECT_TRUE(says(run_and_read(folder, small, "g"), {"for 4 settings of the horizon", "Each setting was run 4 times.",
                                                      "The samples agree with the theory: θ(2T) differs"}));
  // Six standard errors: once in 500 million, and there are four numbers.
  Json summary = json(folder / "g/summary.json");
  Json& row = summary["results"][1];
  row["theta"] = row["mean_field"].get<double>() + 6 * row["expected_error"].get<double>();
  EXPECT_TRUE(says(with_summary(folder, "g", summary),
                   {"The samples do not agree with the theory: ", "by at most 6.00 standard errors"}));
  summary["results"].erase(3);
  summary["status"] = "interrupted";
  EXPECT_TRUE(says(with_summary(folder, "g", summary), {"It was interrupted: 3 of 4 settings are here."}));
}

TEST(Opening, OfTheMixtureDiffusionComparesWithTheBestDistribution) {
  const Folder folder;
  const Words one{"denoising-mixture",
                  "--set",
                  "comparison.settings=[]",
                  "--set",
                  "steps_per_sample=32",
                  "--set",
                  "slots=1",
                  "--set",
                  "learning_rate=0.05",
                  "--set",
                  "batch=500"};
  const std::string done = run_and_read(folder, one + Words{"--steps", "150"}, "done");
  EXPECT_TRUE(says(done, {"This run finetuned a denoising diffusion of 4 Gaussians",
                          "It worked: the best distribution is "
                          "known, and the KL divergence from it to the learnt one fell from ",
                          "Meanwhile the mean reward of the learnt mixture rose from "}));
  const std::string early = run_and_read(folder, one + Words{"--steps", "3"}, "early");
  EXPECT_EQ(early.find("It worked"), std::string::npos) << early;
  EXPECT_TRUE(says(early, {"the KL divergence from it to the learnt one fell from "}));

  const Words two{"denoising-mixture", "--set", "steps_per_sample=64", "--set",
                  "comparison.settings=[\"slots=1\", \"slots=4\"]"};
  EXPECT_TRUE(says(run_and_read(folder, two + Words{"--steps", "3"}, "two"),
                   {"These 2 runs finetuned", "None of them worked: ", "0 of the 2 runs removed at least 95 %",
                    "In the first run, "}));
}

}  // namespace
}  // namespace program_test
