// The smallest problem on which every loop can be followed by hand: the population is a single number, nothing is
// random.
//
//     Sigma_m(p, theta) = p / 2 + 0.3 theta + m / 10        Gamma(p, theta) = p + theta / 10
//     p_0 = 1        theta_0 = 2        eta = 0.2
//
// The answers are theta_1, theta_2, ... of each algorithm, from an implementation of their index form that shares no
// code with ours.
#pragma once

#include "implicit_diffusion/random/noise.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace implicit_diffusion::problems {

struct ToySampler {
  void advance(double& p, std::span<const double> theta, StepKey at) const {
    p = 0.5 * p + 0.3 * theta[0] + 0.1 * static_cast<double>(at.index);
  }
};

struct ToyGradient {
  void estimate(double p, std::span<const double> theta, std::int64_t, std::span<double> gradient) const {
    gradient[0] = p + 0.1 * theta[0];
  }
};

struct ToyStart {
  void draw(double& p, std::int64_t) const { p = 1.0; }
};

struct ToyAnswers {
  static constexpr double theta_0 = 2.0, p_0 = 1.0, eta = 0.2;

  std::vector<double> nested_cold_3{1.675, 1.390625, 1.141796875, .924072265625, .733563232422};
  std::vector<double> nested_warm_3{1.675, 1.38, 1.1248125, .9057625, .71797296875};
  std::vector<double> single_paper{1.76, 1.5048, 1.259104, 1.03583392, .8405270016};
  std::vector<double> single_authors{1.74, 1.4908, 1.264336, 1.06486512, .8925838304};
  std::vector<double> queue_warm_3{1.675, 1.3565, 1.06387, .8059526, .585181348, .39785696504};
  std::vector<double> queue_cold_3{2, 2, 2, 1.675, 1.3565, 1.06387, .8059526, .585181348};
};

}  // namespace implicit_diffusion::problems
