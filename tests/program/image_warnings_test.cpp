// What finetuning of images warns of: each warning where it should be, and none beside it.
#include "images/warnings.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace program {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> kinds(const FinetuningFigures& f) {
  std::vector<std::string> all;
  for (const Warning& w : warnings_of(f)) all.push_back(w.kind);
  return all;
}
using Kinds = std::vector<std::string>;

// Digits that became brighter, as they should: 60 (0.23 - 0.13) = 6 for 3.4 nats.
FinetuningFigures good() {
  return {.lambda = 60,
          .beta = 1,
          .reward_before = {0.13, 0.001},
          .reward = {0.23, 0.001},
          .path_kl = {3.4, 0.05},
          .entropy_before = 2.2,
          .entropy = 1.9,
          .oracle_entropy = 2.0,
          .population_reward = {none, 0.13, 0.18, 0.23},
          .judge_accuracy = 0.99,
          .population_share = 8.0 / 1000};
}

TEST(ImageWarnings, AreNoneForAGoodRun) {
  EXPECT_EQ(kinds(good()), Kinds{});
  // Darker is as good, where it is asked for.
  FinetuningFigures darker = good();
  darker.lambda = -60;
  darker.reward.mean = 0.075;
  darker.path_kl.mean = 1.5;
  darker.population_reward = {0.13, 0.07};
  EXPECT_EQ(kinds(darker), Kinds{});
  // Nothing is known but rewards and KL; or nothing happened.
  FinetuningFigures plain = good();
  plain.entropy_before = plain.entropy = plain.oracle_entropy = none;
  plain.population_reward = {none, none};
  plain.judge_accuracy = none;
  EXPECT_EQ(kinds(plain), Kinds{});
  FinetuningFigures still = good();
  still.reward.mean = 0.13;
  still.path_kl = {0, 0};
  still.population_reward = {0.13, 0.14};
  EXPECT_EQ(kinds(still), Kinds{});
}

// Four standard errors of 60 R and KL are 4 hypot(0.06, 0.05) = 0.31.
TEST(ImageWarnings, OfAKlThatRunsAway) {
  FinetuningFigures f = good();
  f.path_kl.mean = 6.25;
  EXPECT_EQ(kinds(f), Kinds{});
  f.path_kl.mean = 6.35;
  EXPECT_EQ(kinds(f), Kinds{"kl-runaway"});
  // Without a price, beyond 100 nats.
  f.beta = 0;
  f.path_kl.mean = 99;
  EXPECT_EQ(kinds(f), Kinds{});
  f.path_kl.mean = 101;
  EXPECT_EQ(kinds(f), Kinds{"kl-runaway"});
}

// Below half of what it was, and of the oracle's where that is known: the tilted data may have few classes itself.
TEST(ImageWarnings, OfClassesThatCollapse) {
  FinetuningFigures f = good();
  f.entropy = 1.05;
  EXPECT_EQ(kinds(f), Kinds{}) << "more than half of the oracle's";
  f.entropy = 0.95;
  EXPECT_EQ(kinds(f), Kinds{"class-collapse"});
  f.oracle_entropy = 1.2;
  EXPECT_EQ(kinds(f), Kinds{});
  f.oracle_entropy = none;
  EXPECT_EQ(kinds(f), Kinds{"class-collapse"});
  f.entropy = 1.15;
  EXPECT_EQ(kinds(f), Kinds{});
}

// Four standard errors of a difference are 4 sqrt(2) 0.001 = 0.0057, and sqrt(125) times as many, 0.063, for the eight
// samples of the population.
TEST(ImageWarnings, OfARewardOfThePopulationAlone) {
  FinetuningFigures f = good();
  f.path_kl.mean = 0.1;
  f.reward.mean = 0.135;
  EXPECT_EQ(kinds(f), Kinds{"population-only"});
  f.reward.mean = 0.137;
  EXPECT_EQ(kinds(f), Kinds{}) << "it rose there too";
  f.reward.mean = 0.135;
  f.population_reward = {0.13, 0.19};
  EXPECT_EQ(kinds(f), Kinds{}) << "eight samples may have risen by chance";
  f.lambda = -60;
  f.reward.mean = 0.128;
  f.population_reward = {0.13, 0.06};
  EXPECT_EQ(kinds(f), Kinds{"population-only"});
}

TEST(ImageWarnings, OfAClassifierThatIsOftenWrong) {
  FinetuningFigures f = good();
  f.judge_accuracy = 0.51;
  EXPECT_EQ(kinds(f), Kinds{});
  f.judge_accuracy = 0.49;
  EXPECT_EQ(kinds(f), Kinds{"weak-judge"});
}

}  // namespace
}  // namespace program
