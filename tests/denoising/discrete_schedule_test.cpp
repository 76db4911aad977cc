// The schedules of diffusers against tensors that its own classes made (a folder of fixtures beside the repository;
// these tests are skipped where it is not there), and against closed forms.
#include "implicit_diffusion/denoising/discrete_schedule.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "implicit_diffusion/io/safetensors.hpp"
#include "io/expect_error.hpp"
#include "models/fixtures.hpp"

namespace implicit_diffusion {
namespace {

using BetaSchedule = SchedulerConfig::BetaSchedule;
using Prediction = SchedulerConfig::Prediction;
using Spacing = SchedulerConfig::Spacing;
using Variance = SchedulerConfig::Variance;

const std::vector<std::pair<std::string, BetaSchedule>> schedules{
    {"linear", BetaSchedule::linear},
    {"scaled_linear", BetaSchedule::scaled_linear},
    {"squaredcos_cap_v2", BetaSchedule::squaredcos_cap_v2},
    {"sigmoid", BetaSchedule::sigmoid},
    {"laplace", BetaSchedule::laplace}};

SchedulerConfig config_of(BetaSchedule schedule) {
  SchedulerConfig config;
  config.beta_schedule = schedule;
  return config;
}

// All tensors of the file, each compared once.
class Fixture {
 public:
  Fixture() : reader_(fixtures() / "scheduler.safetensors") {
    for (const io::TensorInfo& t : reader_.tensors()) left_.insert(t.name);
  }
  template <class T>
  std::vector<T> take(const std::string& name) {
    left_.erase(name);
    return reader_.numbers<T>(name);
  }
  const std::set<std::string>& left() const { return left_; }

 private:
  io::SafetensorsReader reader_;
  std::set<std::string> left_;
};

// `units` is a tolerance in units of the last place of single precision, relative to each value.
void expect_near(const std::vector<float>& got, const std::vector<float>& expected, double units,
                 const std::string& name) {
  ASSERT_EQ(got.size(), expected.size()) << name;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], units * 0x1p-23 * std::abs(expected[i])) << name << " at " << i;
}

std::vector<float> apply(const DiscreteStep& step, const std::vector<float>& x, const std::vector<float>& m,
                         const std::vector<float>& z) {
  std::vector<float> next;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double x0 = std::clamp(step.sample * x[i] + step.output * m[i], -step.clip, step.clip);
    next.push_back(
        static_cast<float>(step.from_x0 * x0 + step.from_sample * x[i] + step.from_output * m[i] + step.noise * z[i]));
  }
  return next;
}

TEST(DiscreteSchedule, EqualsDiffusersTensors) {
  if (!have_fixtures()) GTEST_SKIP() << no_fixtures;
  Fixture f;
  for (const auto& [name, schedule] : schedules) {
    const DiscreteSchedule s(config_of(schedule));
    // Evenly spaced numbers a + i step are made with two roundings here, with two or three in torch (its vectors add a
    // lane's multiple of the step to the first lane's number): five halves of a unit of the largest term, which is the
    // number itself for a > 0. Squares double that, and each of the two programs rounds its square: 6 units. From -6 to
    // 6 it is 15 units in the exponent of a sigmoid, and 3 for the sigmoid itself. Functions of i / T are taken in
    // double and rounded once.
    const double units = schedule == BetaSchedule::sigmoid         ? 18
                         : schedule == BetaSchedule::scaled_linear ? 6
                         : schedule == BetaSchedule::linear        ? 2.5
                                                                   : 1;
    expect_near(s.betas(), f.take<float>("betas_" + name), units, name);
    // Betas are small beside 1: that changes the rounding of 1 - beta only now and then.
    expect_near(s.abar(), f.take<float>("alphas_cumprod_" + name), 4, name);
  }
  {
    SchedulerConfig config;
    config.rescale_betas_zero_snr = true;
    const DiscreteSchedule s(config), linear{SchedulerConfig()};
    const std::vector<float> expected = f.take<float>("betas_linear_zero_snr");
    ASSERT_EQ(s.betas().size(), expected.size());
    // sqrt(abar_i) is 2.5 units off (4 for abar, and a root), so the difference d_i = sqrt(abar_i) - sqrt(abar_999) is
    // 2.5 (sqrt(abar_i) + sqrt(abar_999)) / d_i units of itself off, and half a unit more for its rounding. A beta is 1
    // minus the square of a quotient of two such differences; abar_i is the square of scale d_i.
    const double last = std::sqrt(double{linear.abar().back()});
    const auto off = [&](std::size_t i) {
      const double root = std::sqrt(double{linear.abar()[i]});
      return 2.5 * (root + last) / (root - last) + 0.5;
    };
    double product = 1;
    for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
      ASSERT_NEAR(s.betas()[i], expected[i], 4 * 0x1p-23 * off(i)) << i;
      product *= 1 - double{expected[i]};
      // The quotients' product telescopes, but each of its factors is rounded.
      ASSERT_NEAR(s.abar()[i] / product, 1, (2 * off(i) + 2 * off(0) + static_cast<double>(i) + 2) * 0x1p-23) << i;
    }
    // The scale leaves the first one where it was.
    EXPECT_NEAR(s.betas()[0], linear.betas()[0], 2 * 0x1p-23);
    EXPECT_EQ(s.betas().back(), 1);
    EXPECT_EQ(expected.back(), 1);
    EXPECT_TRUE(std::isinf(s.tau(999)));
    EXPECT_EQ(s.horizon(), 4);
    EXPECT_EQ(s.network_time(1e9), 998);
  }
  for (const auto& [name, spacing] : std::vector<std::pair<std::string, Spacing>>{
           {"leading", Spacing::leading}, {"linspace", Spacing::linspace}, {"trailing", Spacing::trailing}}) {
    SchedulerConfig config;
    config.timestep_spacing = spacing;
    const DiscreteSchedule s(config);
    for (const std::size_t count : {10U, 50U, 64U, 1000U}) {
      EXPECT_EQ(s.timesteps(count), f.take<std::int64_t>("timesteps_" + name + "_" + std::to_string(count)))
          << name << count;
    }
  }

  const std::vector<float> x = f.take<float>("step_sample"), m = f.take<float>("step_model_output"),
                           z = f.take<float>("step_noise");
  // diffusers computes steps in single precision, some ten operations, from an abar that may be a few units in the last
  // place off ours: 32 units.
  const auto compare = [&](const DiscreteStep& step, const std::string& name) {
    const std::vector<float> got = apply(step, x, m, z), expected = f.take<float>(name);
    ASSERT_EQ(got.size(), expected.size());
    double largest = 0;
    for (const float e : expected) largest = std::max(largest, std::abs(double{e}));
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 32 * 0x1p-23 * largest) << name << " at " << i;
  };
  for (const auto& [prediction_name, prediction] :
       std::vector<std::pair<std::string, Prediction>>{{"epsilon", Prediction::epsilon},
                                                       {"sample", Prediction::sample},
                                                       {"v_prediction", Prediction::v_prediction}}) {
    for (const std::int64_t t : {0, 500, 980}) {
      for (const auto& [variance_name, variance] :
           std::vector<std::pair<std::string, Variance>>{{"fixed_small", Variance::fixed_small},
                                                         {"fixed_small_log", Variance::fixed_small_log},
                                                         {"fixed_large", Variance::fixed_large}})
        for (const int clip : {0, 1}) {
          SchedulerConfig config;
          config.prediction_type = prediction;
          config.variance_type = variance;
          config.clip_sample = clip == 1;
          compare(DiscreteSchedule(config).ddpm_step(t, t - 20),
                  fmt::format("ddpm_step_{}_{}_clip{}_n50_t{}", prediction_name, variance_name, clip, t));
        }
      for (const int eta : {0, 1}) {
        SchedulerConfig config;
        config.prediction_type = prediction;
        config.clip_sample = false;
        const std::string name = "ddim_step_" + prediction_name + "_eta" + std::to_string(eta) + "_n50_t";
        compare(DiscreteSchedule(config).ddim_step(t, t - 20, eta), name + std::to_string(t));
      }
    }
  }

  const DiscreteSchedule linear{SchedulerConfig()};
  const std::vector<std::int64_t> times = f.take<std::int64_t>("add_noise_t");
  const std::vector<float> noisy = f.take<float>("add_noise_out"), velocity = f.take<float>("velocity_out");
  const std::size_t pixels = x.size() / times.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto [data, noise] = linear.amplitudes(times[i / pixels]);
    // Two products and a sum, each rounded.
    EXPECT_NEAR(data * x[i] + noise * z[i], noisy[i], 3 * 0x1p-23 * (std::abs(x[i]) + std::abs(z[i]))) << i;
    EXPECT_NEAR(data * z[i] - noise * x[i], velocity[i], 3 * 0x1p-23 * (std::abs(x[i]) + std::abs(z[i]))) << i;
  }
  EXPECT_TRUE(f.left().empty()) << f.left().size() << " tensors were not compared, the first is " << *f.left().begin();
}

// Values that diffusers' own classes gave.
TEST(DiscreteSchedule, HasTheKnownValues) {
  const DiscreteSchedule linear{SchedulerConfig()}, cosine(config_of(BetaSchedule::squaredcos_cap_v2));
  EXPECT_NEAR(linear.abar()[999], 4.03583e-5, 5e-11);
  EXPECT_NEAR(cosine.betas()[0], 4.12842e-5, 5e-11);
  EXPECT_NEAR(cosine.betas()[1], 4.61418e-5, 5e-11);
  EXPECT_EQ(cosine.betas()[999], 0.999F);
}

// Counts whose increment is not exact in binary round as numpy.arange does: these entries are diffusers' own.
TEST(DiscreteSchedule, TrailingTimesRoundAsInDiffusers) {
  SchedulerConfig config;
  config.timestep_spacing = SchedulerConfig::Spacing::trailing;
  const std::vector<std::int64_t> times = DiscreteSchedule(config).timesteps(48);
  ASSERT_EQ(times.size(), 48U);
  EXPECT_EQ(times.front(), 999);
  for (const std::int64_t t : {936, 686, 436, 186}) EXPECT_EQ(std::ranges::count(times, t), 1) << t;
}

// The last step of DDIM leads to the data, or to the least noise that the schedule has.
TEST(DiscreteSchedule, LastStepOfDdimGoesWhereItIsToldTo) {
  for (const bool to_one : {true, false}) {
    SchedulerConfig config;
    config.set_alpha_to_one = to_one;
    const DiscreteSchedule s(config);
    EXPECT_NEAR(s.ddim_step(20, -1, 0).from_x0, to_one ? 1 : std::sqrt(1 - 1e-4), 1e-7);
  }
}

TEST(DiscreteSchedule, IsAClock) {
  const DiscreteSchedule s{SchedulerConfig()};
  EXPECT_EQ(s.horizon(), 4);  // below tau_999 = 5.06
  for (const std::size_t i : {0U, 1U, 500U, 999U}) EXPECT_DOUBLE_EQ(s.network_time(s.tau(i)), static_cast<double>(i));
  // Linear in ln tau: the geometric mean is half way.
  EXPECT_NEAR(s.network_time(std::sqrt(s.tau(500) * s.tau(501))), 500.5, 1e-9);
  EXPECT_EQ(s.network_time(0), 0);
  EXPECT_EQ(s.network_time(s.tau(0) / 2), 0);
  EXPECT_EQ(s.network_time(100), 999);

  SchedulerConfig few;
  few.num_train_timesteps = 10;
  EXPECT_NEAR(DiscreteSchedule(few).horizon(), DiscreteSchedule(few).tau(9), 0);
  EXPECT_LT(DiscreteSchedule(few).horizon(), 4);
}

// The noise levels of a grid are those of its indices, and a step of DDIM and of DDPM on it is the library's: the same
// step from a score, which is -eps / sqrt(1 - abar).
TEST(DiscreteSchedule, StepsAreThoseOfTheGrid) {
  SchedulerConfig config;
  config.clip_sample = false;
  const DiscreteSchedule s(config);
  const std::vector<std::int64_t> times = s.timesteps(50);
  const TimeGrid grid = s.grid(times);
  ASSERT_EQ(grid.steps(), 50U);
  for (std::size_t k = 0; k + 1 < 50; ++k) {
    const double tau = grid.tau[k], sigma = std::sqrt(-std::expm1(-2 * tau));
    const double x = 0.7, eps = -1.3;
    for (const Dynamics dynamics : {Dynamics::ddpm, Dynamics::ddim}) {
      const StepCoefficients c = step_coefficients(dynamics, tau, grid.step(k));
      const DiscreteStep d =
          dynamics == Dynamics::ddpm ? s.ddpm_step(times[k], times[k + 1]) : s.ddim_step(times[k], times[k + 1], 0);
      const double x0 = d.sample * x + d.output * eps;
      const double next = d.from_x0 * x0 + d.from_sample * x + d.from_output * eps;
      EXPECT_NEAR(next, c.growth * x + c.pull * (-eps / sigma), 1e-9) << k;
      EXPECT_NEAR(d.noise, c.noise, 1e-9) << k;
    }
  }
}

// abar_i = cos^2(pi (i + 1) / 2000): the index is 1000 (2 / pi) acos(e^-tau) - 1.
TEST(DiscreteSchedule, OfOurOwnModels) {
  const SchedulerConfig config = cosine_scheduler_config();
  const DiscreteSchedule s(config);
  EXPECT_EQ(s.size(), 988U);
  EXPECT_EQ(config.prediction_type, Prediction::v_prediction);
  EXPECT_NEAR(s.horizon(), -std::log(std::cos(0.494 * std::numbers::pi)), 1e-4);
  for (std::size_t i = 0; i < s.size(); ++i) {
    const double index = static_cast<double>(i);
    // Each of the i + 1 factors 1 - beta, and the product itself, is rounded by at most 2^-25 of it: ln abar is off by
    // (i + 2) 2^-25, and with d ln abar = -2 tan(angle) d angle the index by 1000 / pi of that over the tangent. Twice
    // that, for the rounding of betas.
    const double angle = std::numbers::pi * (index + 1) / 2000;
    const double tolerance = (index + 2) * 0x1p-24 * 1000 / std::numbers::pi / std::tan(angle);
    EXPECT_NEAR(1000 * 2 / std::numbers::pi * std::acos(std::exp(-s.tau(i))) - 1, index, tolerance) << i;
    EXPECT_LT(tolerance, 0.05);
  }
}

TEST(DiscreteSchedule, RefusesWhatIsNoSchedule) {
  const auto make = [](auto change) {
    SchedulerConfig config;
    change(config);
    return DiscreteSchedule(config);
  };
  EXPECT_ERROR(make([](auto& c) { c.num_train_timesteps = 0; }), usage, "num_train_timesteps: 0 is not between");
  EXPECT_ERROR(make([](auto& c) { c.num_train_timesteps = 2'000'000; }), usage, "num_train_timesteps: 2000000");
  EXPECT_ERROR(make([](auto& c) { c.beta_end = 1.5; }), usage, "which is not between 0 and 1");
  EXPECT_ERROR(make([](auto& c) { c.beta_start = -1; }), usage, "beta 0 is -1");
  EXPECT_ERROR(make([](auto& c) { c.beta_start = NAN; }), usage, "beta 0 is nan");
  EXPECT_ERROR(make([](auto& c) { c.trained_betas = {0.1}; }), usage, "trained_betas: 1 numbers for 1000");
  EXPECT_ERROR(make([](auto& c) { c.clip_sample_range = 0; }), usage, "clip_sample_range");
  EXPECT_ERROR(make([](auto&) {}).timesteps(1001), usage, "steps: 1001 is not between 1 and 1000");
  EXPECT_ERROR(make([](auto& c) { c.steps_offset = 1; }).timesteps(1000), usage, "steps_offset: 1 leads beyond");
  EXPECT_ERROR(make([](auto& c) { c.steps_offset = std::numeric_limits<std::int64_t>::max(); }).timesteps(10), usage,
               "steps_offset: 9223372036854775807 leads beyond");
  EXPECT_ERROR(make([](auto&) {}).ddpm_step(1000, 980), usage, "timestep: 1000 is not between 0 and 999");
  EXPECT_ERROR(make([](auto&) {}).ddpm_step(-1, -1), usage, "timestep: -1");
  EXPECT_ERROR(make([](auto&) {}).ddim_step(10, 20, 1), usage, "a step from 10 to 20 leads to more noise");
  EXPECT_ERROR(make([](auto&) {}).grid({5, -1}), usage, "timestep: -1");
  EXPECT_ERROR(make([](auto& c) { c.thresholding = true; }).ddpm_step(10, 9), usage, "thresholding");
  EXPECT_ERROR(make([](auto& c) { c.variance_type = Variance::learned; }).ddpm_step(10, 9), usage, "variance_type");
  EXPECT_ERROR(make([](auto& c) { c.rescale_betas_zero_snr = true; }).ddpm_step(999, 998), usage, "no signal is left");
}

}  // namespace
}  // namespace implicit_diffusion
