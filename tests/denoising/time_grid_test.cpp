// Schedules and steps against known numbers, and the laws of whole chains where everything is Gaussian.
#include "implicit_diffusion/denoising/time_grid.hpp"

#include "io/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace implicit_diffusion {
namespace {

TEST(TimeGrid, OfTheCosineSchedule) {
  for (const auto& [t, alpha, u] : {std::tuple{.5, .702740058941, .352768215235},
                                    {.9, std::exp(-1.862943447068), 1.862943447068},
                                    {.99, std::exp(-4.161518413327), 4.161518413327}}) {
    EXPECT_NEAR(cosine_alpha(t), alpha, 1e-11);
    EXPECT_NEAR(-std::log(cosine_alpha(t)), u, 1e-11);
  }
  const TimeGrid grid = cosine_grid(8);
  const std::vector<double> known{2.58617698, .63531634, .35988088, .23520423,
                                  .15915286,  .1044146,  .06022439, .02114813};
  ASSERT_EQ(grid.steps(), 8U);
  for (std::size_t m = 0; m < 8; ++m) EXPECT_NEAR(grid.step(m), known[m], 1e-8);
  EXPECT_EQ(grid.tau.back(), 0);
}

TEST(TimeGrid, AnyScheduleIsAChangeOfClock) {
  const TimeGrid linear = schedule_grid([](double t) { return std::exp(-t); }, 3, 6), uniform = uniform_grid(3, 6);
  for (std::size_t m = 0; m <= 6; ++m) EXPECT_NEAR(linear.tau[m], uniform.tau[m], 1e-15);
  EXPECT_EQ(uniform.tau.front(), 3);
}

TEST(TimeGrid, LogLinearHasEqualStepsInItsClock) {
  const TimeGrid grid = log_linear_grid(4, 32, .01);
  ASSERT_EQ(grid.steps(), 32U);
  EXPECT_EQ(grid.tau.front(), 4);
  EXPECT_EQ(grid.tau[31], .01);
  EXPECT_EQ(grid.tau.back(), 0);
  const auto clock = [](double tau) { return std::log(tau) + tau; };
  for (std::size_t m = 0; m < 31; ++m)
    EXPECT_NEAR(clock(grid.tau[m]) - clock(grid.tau[m + 1]), (clock(4) - clock(.01)) / 31, 1e-13) << m;
  EXPECT_EQ(log_linear_grid(4, 2, .01).tau, (std::vector<double>{4, .01, 0}));
}

// Known numbers of an independent program, to the digits it printed.
TEST(TimeGrid, ErrorsForACertainValueAreTheKnownOnes) {
  const double end = std::acos(std::exp(-4.));
  const TimeGrid cosine = schedule_grid([end](double u) { return std::cos(u * end); }, 1, 64);
  EXPECT_NEAR(cosine.step(0), .84, .005);
  for (const auto& [grid, variance, deviation, digits] : {std::tuple{uniform_grid(4, 64), 1.68, .354, .005},
                                                          {cosine, 3.49, .024, .005},
                                                          {log_linear_grid(4, 64, .002), 1.20, .063, .005},
                                                          {log_linear_grid(4, 32, .002), 1.45, .063, .005},
                                                          {log_linear_grid(4, 64, .01), 1.164, .141, .0005},
                                                          {log_linear_grid(4, 32, .01), 1.361, .141, .0005},
                                                          {log_linear_grid(4, 16, .01), 1.891, .141, .0005}}) {
    const GridErrors e = grid_errors(grid);
    EXPECT_NEAR(e.variance, variance, digits) << grid.steps();
    EXPECT_NEAR(e.deviation, deviation, .0005) << grid.steps();
    EXPECT_LE(e.mean_deviation, .0035) << grid.steps();
  }
  // Many small steps do no harm.
  EXPECT_NEAR(grid_errors(log_linear_grid(4, 100'000, 1e-6)).variance, 1, 1e-3);
}

TEST(TimeGrid, RefusesWhatIsNoSchedule) {
  EXPECT_ERROR(log_linear_grid(4, 1), usage, "steps: 1");
  EXPECT_ERROR(log_linear_grid(4, 8, 4), usage, "tau_min: 4");
  EXPECT_ERROR(log_linear_grid(4, 8, NAN), usage, "tau_min: nan");
  EXPECT_ERROR(log_linear_grid(INFINITY, 8), usage, "horizon: inf");
  EXPECT_ERROR(uniform_grid(0, 4), usage, "horizon: 0");
  EXPECT_ERROR(uniform_grid(NAN, 4), usage, "horizon: nan");
  EXPECT_ERROR(uniform_grid(2, 0), usage, "steps");
  EXPECT_ERROR(cosine_grid(4, 1), usage, "schedule");
  EXPECT_ERROR(schedule_grid([](double t) { return 1 + t; }, 1, 4), usage, "schedule");
  EXPECT_ERROR(schedule_grid([](double) { return 0.0; }, 1, 4), usage, "schedule");
}

TEST(Steps, HaveTheKnownMeansAndDeviations) {
  const double x = .8, s = -.5, tau = .7, h = .2;
  const auto mean = [&](const StepCoefficients& c) { return c.growth * x + c.pull * s; };
  const StepCoefficients em = step_coefficients(Dynamics::euler_sde, tau, h),
                         ddpm = step_coefficients(Dynamics::ddpm, tau, h);
  EXPECT_NEAR(mean(em), .76, 1e-11);
  EXPECT_NEAR(em.noise, .632455532034, 1e-11);
  EXPECT_NEAR(mean(ddpm), .775786203987, 1e-11);
  EXPECT_NEAR(ddpm.noise, .525935571428, 1e-11);
  EXPECT_NEAR(mean(step_coefficients(Dynamics::ddim, tau, h)), .862069215164, 1e-11);
  EXPECT_EQ(step_coefficients(Dynamics::ddpm, .2, .2).noise, 0) << "its last step";
  // The KL of two Gaussian steps: |difference of the means|^2 / (2 variance).
  EXPECT_NEAR(em.penalty, em.pull * em.pull / (2 * em.noise * em.noise), 1e-15);
  EXPECT_NEAR(ddpm.penalty, ddpm.pull * ddpm.pull / (2 * ddpm.noise * ddpm.noise), 1e-15);
  // Steps without noise have the penalty of Euler's step of the SDE, h.
  EXPECT_EQ(em.penalty, h);
  EXPECT_EQ(step_coefficients(Dynamics::euler_ode, tau, h).penalty, h);
  EXPECT_EQ(step_coefficients(Dynamics::ddim, tau, h).penalty, h);
}

// Mean and variance of the last state, for the exact score of data N(1.5, 0.25), from N(0, 1).
std::pair<double, double> last_law(Dynamics dynamics, std::size_t steps) {
  const TimeGrid grid = uniform_grid(2, steps);
  double mean = 0, variance = 1;
  for (std::size_t m = 0; m < steps; ++m) {
    const double a = std::exp(-grid.tau[m]), v = .25 * a * a + 1 - a * a;
    const StepCoefficients c = step_coefficients(dynamics, grid.tau[m], grid.step(m));
    mean = (c.growth - c.pull / v) * mean + c.pull * 1.5 * a / v;
    variance = std::pow(c.growth - c.pull / v, 2) * variance + c.noise * c.noise;
  }
  return {mean, variance};
}

TEST(Steps, LeadToTheKnownLaws) {
  for (const auto& [dynamics, steps, mean, variance] : {std::tuple{Dynamics::euler_sde, 16, 1.46854619, .39862026},
                                                        {Dynamics::euler_sde, 256, 1.49173616, .25750824},
                                                        {Dynamics::ddpm, 16, 1.49303597, .10020776},
                                                        {Dynamics::ddpm, 256, 1.49303597, .21466467},
                                                        {Dynamics::euler_ode, 16, 1.32751359, .32805903},
                                                        {Dynamics::ddim, 16, 1.43241487, .11084030}}) {
    const auto [m, v] = last_law(dynamics, static_cast<std::size_t>(steps));
    EXPECT_NEAR(m, mean, 1e-7) << static_cast<int>(dynamics) << " " << steps;
    EXPECT_NEAR(v, variance, 1e-7) << static_cast<int>(dynamics) << " " << steps;
  }
  // The weak order of Euler's steps is one, towards the limits in continuous time.
  const std::pair<double, double> sde{1.49303597, .25001617}, ode{1.39779412, .25348201};
  for (const auto& [dynamics, limit] : {std::pair{Dynamics::euler_sde, sde}, {Dynamics::euler_ode, ode}}) {
    const auto [m1, v1] = last_law(dynamics, 2000);
    const auto [m2, v2] = last_law(dynamics, 4000);
    EXPECT_NEAR((v1 - limit.second) / (v2 - limit.second), 2, 0.02) << static_cast<int>(dynamics);
    EXPECT_NEAR(m2, limit.first, 2e-3);
  }
}

}  // namespace
}  // namespace implicit_diffusion
