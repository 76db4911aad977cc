// What is timed is the right gradient: rounding of the solutions, refined, and of sums over n states, is far below 1e-10.
#include "implicit_diffusion/finite/timing.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace implicit_diffusion {
namespace {

TEST(GradientTiming, TimesTheRightGradient) {
  const std::vector<std::size_t> few{10, 100, 300}, many{10, 1000, 30'000};
  for (const Route route : {Route::forward, Route::adjoint}) {
    for (const GradientTiming& row : time_dense_gradients(few, {.route = route})) {
      EXPECT_TRUE(row.dense);
      EXPECT_GT(row.seconds, 0);
      EXPECT_LT(row.gradient_error, 1e-10) << row.states;
    }
    for (const std::size_t width : {1, 3})
      for (const GradientTiming& row : time_banded_gradients(many, {.route = route, .width = width, .repeats = 1})) {
        EXPECT_FALSE(row.dense);
        EXPECT_GT(row.seconds, 0);
        EXPECT_LT(row.gradient_error, 1e-10) << row.states;
      }
  }
}

}  // namespace
}  // namespace implicit_diffusion
