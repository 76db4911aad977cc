// Parts of the program that can be tested apart from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "experiment/common.hpp"
#include "experiment/task_pool.hpp"
#include "few_threads.hpp"
#include "finite_state/timing.hpp"
#include "implicit_diffusion/random/noise.hpp"
#include "langevin/match_components.hpp"

namespace program {
namespace {

using implicit_diffusion::GaussianMixture;
using implicit_diffusion::Noise;
using implicit_diffusion::Route;
using implicit_diffusion::Stream;

// What is timed is the right gradient: rounding of the solutions, refined, and of sums over n states, is far below
// 1e-10.
TEST(GradientTiming, TimesTheRightGradient) {
  const std::vector<std::int64_t> few{10, 100, 300}, many{10, 1000, 30'000};
  for (const Route route : {Route::forward, Route::adjoint}) {
    for (const GradientTiming& row : time_gradients(few, {.dense = true, .route = route})) {
      EXPECT_TRUE(row.dense);
      EXPECT_GT(row.seconds, 0);
      EXPECT_LT(row.gradient_error, 1e-10) << row.states;
    }
    for (const std::size_t width : {1, 3})
      for (const GradientTiming& row : time_gradients(many, {.route = route, .width = width, .repeats = 1})) {
        EXPECT_FALSE(row.dense);
        EXPECT_GT(row.seconds, 0);
        EXPECT_LT(row.gradient_error, 1e-10) << row.states;
      }
  }
}

// Against all orders, on means that are drawn so close to each other that the nearest one is often taken already.
TEST(MatchComponents, FindsTheOrderWithTheLeastSum) {
  const Noise noise(5);
  const auto draw = [&](std::int64_t round, std::size_t n) {
    GaussianMixture m;
    for (std::size_t i = 0; i < n; ++i) {
      m.weights.push_back(1.0 / static_cast<double>(n));
      m.components.push_back({{}, {1, 0, 0, 1}});
      for (std::size_t j = 0; j < 2; ++j)
        m.components.back().mean.push_back(static_cast<double>(noise.bits(Stream::user, {.round = round}, 2, i, j)));
    }
    return m;
  };
  const auto cost = [](const GaussianMixture& a, const GaussianMixture& b, const std::vector<std::size_t>& order) {
    double sum = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        const double gap = a.components[i].mean[j] - b.components[order[i]].mean[j];
        sum += gap * gap;
      }
    return sum;
  };
  std::size_t not_nearest = 0;
  for (std::int64_t round = 0; round < 50; ++round) {
    const std::size_t n = 1 + static_cast<std::size_t>(round) % 6;
    const GaussianMixture a = draw(2 * round, n), b = draw(2 * round + 1, n);
    std::vector<std::size_t> order(n), best;
    std::iota(order.begin(), order.end(), std::size_t{0});
    double least = std::numeric_limits<double>::infinity();
    do {
      if (cost(a, b, order) < least) {
        least = cost(a, b, order);
        best = order;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(match_components(a, b), best) << round;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k) {
        const GaussianMixture from{{1}, {a.components[i]}}, to{{1}, {b.components[k]}},
            matched{{1}, {b.components[best[i]]}};
        if (cost(from, to, {0}) < cost(from, matched, {0})) {
          ++not_nearest;
          break;
        }
      }
  }
  EXPECT_GT(not_nearest, 20U) << "the nearest component of each would do";
}

// Means that ran away: their distances are not finite.
TEST(MatchComponents, EndsWhereMeansAreFarAway) {
  const auto at = [](const std::vector<double>& means) {
    GaussianMixture m;
    for (const double x : means) {
      m.weights.push_back(1 / static_cast<double>(means.size()));
      m.components.push_back({{x}, {1.0}});
    }
    return m;
  };
  EXPECT_EQ(match_components(at({1e300, 1, 2}), at({2.1, 0, 1.1})), (std::vector<std::size_t>{1, 2, 0}));
  std::vector<std::size_t> order = match_components(at({1e300, -1e300, 1e308}), at({-1e308, 0, 1}));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2}));
}

TEST(RunTasks, CallsEachOnceAndThrowsWhatOneThrew) {
  for (const std::size_t threads : {1, 3}) {
    std::vector<std::atomic<int>> calls(20);
    run_tasks(20, threads, [&](std::size_t i) { ++calls[i]; });
    for (const auto& c : calls) EXPECT_EQ(c, 1);
    std::atomic<int> begun{0};
    const auto fail = [&](std::size_t i) {
      ++begun;
      if (i == 2) throw std::runtime_error("two");
    };
    EXPECT_THROW(run_tasks(1000, threads, fail), std::runtime_error);
    EXPECT_LT(begun, 1000) << "no more are begun";
  }
  std::stop_source stop;
  std::atomic<int> begun{0};
  run_tasks(
      100, 1,
      [&](std::size_t) {
        if (++begun == 5) stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(begun, 5);
}

TEST(RunTasks, TakesTheThreadsThatThereAre) {
  for (const int possible : {0, 1, 3}) {
    threads_left = possible;
    std::vector<std::atomic<int>> calls(20);
    run_tasks(calls.size(), 6, [&](std::size_t i) { ++calls[i]; });
    threads_left = std::numeric_limits<int>::max();
    for (const auto& c : calls) EXPECT_EQ(c, 1);
  }
}

TEST(ResolvedConfiguration, IsPrintedAndReadBack) {
  Common c;
  c.resolved.entries = {{"", "title", "\"a = b\""},
                        {"", "seed", "0"},
                        {"", "steps", "5"},
                        {"discrete", "steps", "[1, 2]"},
                        {"discrete", "seed", "7"}};
  const std::string text = "title = \"a = b\"\nseed = 0\nsteps = 5\n\n[discrete]\nsteps = [1, 2]\nseed = 7\n";
  EXPECT_EQ(c.resolved.text(), text);
  EXPECT_EQ(ResolvedConfiguration::from_text(text).text(), text);
  EXPECT_EQ(c.without_steps(), "title = \"a = b\"\nseed = 0\n\n[discrete]\nseed = 7\n");
  c.set_seed(12);
  EXPECT_EQ(c.seed, 12U);
  EXPECT_EQ(c.resolved.entries[1].value, "12");
  EXPECT_EQ(c.resolved.entries[4].value, "7") << "of another table";
}

}  // namespace
}  // namespace program
