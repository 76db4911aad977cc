// check_potential: right derivatives pass, wrong ones are seen.
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/check.hpp"
#include "implicit_diffusion/langevin/double_well.hpp"
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "problems/hexagon.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace implicit_diffusion {
namespace {

// V = theta x^2 / 2 with factors on its derivatives.
struct Scaled {
  double x_factor = 1, theta_factor = 1, theta = 1;
  std::size_t dimension() const { return 1; }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> t) { theta = t[0]; }
  template <class Real>
  Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    if (grad_x) grad_x[0] = static_cast<Real>(x_factor * theta) * x[0];
    if (grad_theta) grad_theta[0] = static_cast<Real>(theta_factor * 0.5) * x[0] * x[0];
    return static_cast<Real>(0.5 * theta) * x[0] * x[0];
  }
};

TEST(CheckPotential, AcceptsRightDerivatives) {
  const auto expect_right = [](const auto& potential, const std::vector<double>& theta) {
    const PotentialCheck check = check_potential(potential, theta, 0.8);
    EXPECT_LT(check.state_error, 1e-8);
    EXPECT_LT(check.parameter_error, 1e-8);
  };
  expect_right(Scaled{}, {1.3});
  expect_right(SoftmaxWells(problems::hexagon(), 2.0), {0.1, 0.5, -0.3, 0.2, 0, 1});
  expect_right(DoubleWell(3, 1.2, 0.7), {1.5});
}

TEST(CheckPotential, SeesWrongOnes) {
  const std::vector<double> theta{1.3};
  EXPECT_GT(check_potential(Scaled{.x_factor = 1.001}, theta).state_error, 1e-4);
  EXPECT_LT(check_potential(Scaled{.x_factor = 1.001}, theta).parameter_error, 1e-8);
  EXPECT_GT(check_potential(Scaled{.theta_factor = -1}, theta).parameter_error, 0.1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(check_potential(Scaled{.x_factor = nan}, theta).state_error < 1);
  // A NaN in one coordinate is not forgotten over the next.
  struct FirstIsNan {
    std::size_t dimension() const { return 2; }
    std::size_t parameters() const { return 1; }
    void prepare(std::span<const double>) {}
    double evaluate(const double* x, double* grad_x, double* grad_theta) const {
      if (grad_x) grad_x[0] = std::numeric_limits<double>::quiet_NaN(), grad_x[1] = x[1];
      if (grad_theta) grad_theta[0] = 0;
      return (x[0] * x[0] + x[1] * x[1]) / 2;
    }
    float evaluate(const float*, float*, float*) const { return 0; }
  };
  EXPECT_FALSE(check_potential(FirstIsNan{}, theta).state_error < 1);
  EXPECT_THROW((void)check_potential(Scaled{}, std::vector<double>{1, 2}), Error);
}

}  // namespace
}  // namespace implicit_diffusion
