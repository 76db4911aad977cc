// How fast the single loop converges, on a model that can be followed without noise: V = (x - theta)^2 / 2 and R = -|x
// - c|. From a Gaussian the population stays one, N(m, v), the objective is l(theta) = E|X - c|, X ~ N(theta, 1), and
//
//     grad l(theta) = erf((theta - c) / sqrt 2)        Gamma(p, theta) = v erf((m - c) / sqrt(2 v))
//
// so that the loop is a recursion of three numbers, with steps gamma_k of the sampler and gamma_k eps_k of theta
// (optimizer/schedule.hpp), from m = theta = 0 and v = 1:
//
//     m <- m - gamma (m - theta)     v <- (1 - gamma)^2 v + 2 gamma     theta <- theta - gamma eps Gamma(p, theta)
//
// and in continuous time, with eps_t = min(1, 1 / sqrt t), the flow
//
//     m' = theta - m                 v' = 2 - 2 v                       theta' = -eps_t Gamma(p, theta).
//
// The theorems bound the average of |grad l|^2 up to K steps, or up to the time T, by a constant times
//
//     K^max(a + b - 1, -a, -b)       for gamma_k = c_1 k^-a, eps_k = k^-b:
//                                    K^(-1/3) at a = b = 1/3, K^0, nothing, at a = b = 1/2
//     T^(-1/2)                       for the flow
//
// up to logarithms and over all problems. On one problem the average falls as 1/K once theta has arrived, faster than
// any bound: what tests the exponent is the worst over c of the average divided by l(theta_0) - inf l, which the bound
// is proportional to.
#pragma once

#include "implicit_diffusion/optimizer/schedule.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace implicit_diffusion {

struct MeanField {
  double theta = 0, m = 0, v = 1;
  double average = 0;  // of |grad l|^2 at the thetas so far
};

// The recursion after each of `steps`, which ascend.
std::vector<MeanField> mean_field_recursion(const SchedulePair& schedules, double c,
                                            std::span<const std::int64_t> steps);

// The flow at each of `times`, which ascend and are multiples of 1 / steps_per_time, by the classical Runge-Kutta
// method. eps_t has a kink at t = 1, which is the end of a step. With 16 steps per unit of time the averages are exact
// to 1e-6.
std::vector<MeanField> mean_field_flow(double c, std::span<const double> times, int steps_per_time = 16);

// l(0) - inf l: sqrt(2/pi) (exp(-c^2 / 2) - 1) + c erf(c / sqrt 2).
double initial_gap(double c);

struct RateRow {
  double horizon;        // K or T
  double worst_average;  // the largest average / (l(theta_0) - inf l)
  double worst_target;   // and the c it is at
};

// c from 1 to `largest`, each `ratio` times the one before.
std::vector<double> rate_targets(double largest, double ratio);

// The worst case over the targets for gamma_k = scale k^-exponent, eps_k = k^-exponent. theta moves 3 scale K^(1/3) in
// K steps of the proved pair: targets beyond that are no worse.
std::vector<RateRow> discrete_rates(double exponent, double scale, std::span<const double> targets,
                                    std::span<const std::int64_t> steps);
// The same for the flow, where theta moves 2 sqrt(T) in the time T.
std::vector<RateRow> flow_rates(std::span<const double> targets, std::span<const double> times,
                                int steps_per_time = 16);

// The exponent of a power of the horizon fitted to the rows: least squares on the logarithms.
double fitted_slope(std::span<const RateRow> rows);

}  // namespace implicit_diffusion
