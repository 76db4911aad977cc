// Noise schedules, and the grids of noise levels on which reverse chains run.
//
// The forward process is Ornstein-Uhlenbeck, dX = -X dt + sqrt(2) dB: at noise time tau
//
//     X_tau = a X_0 + s eps,     a = e^-tau,     s^2 = 1 - e^-2tau.
//
// Any variance-preserving schedule alpha(t) is the same process in another clock, tau = u(t) = -log alpha(t): so a
// schedule is nothing but the grid tau_0 > tau_1 > ... > tau_T = 0 that T steps from noise to data go through. The
// cosine schedule,
//
//     alpha^2(t) = f(t) / f(0),     f(t) = cos^2((t + o) / (1 + o) pi / 2),
//
// has u(1) = infinity: its grid begins at a time below 1.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace implicit_diffusion {

struct TimeGrid {
  std::vector<double> tau;  // descending, the last is 0

  std::size_t steps() const { return tau.size() - 1; }
  double step(std::size_t m) const { return tau[m] - tau[m + 1]; }  // h_m
};

// T equal steps from the horizon to 0: the Ornstein-Uhlenbeck schedule. Throws a usage Error unless both are positive.
TimeGrid uniform_grid(double horizon, std::size_t steps);

// T equal steps of t from `begin` to 0 in the clock -log alpha(t), alpha falling from alpha(0) = 1. Throws a usage
// Error where it does not, or where alpha(begin) is not positive.
TimeGrid schedule_grid(const std::function<double(double t)>& alpha, double begin, std::size_t steps);

double cosine_alpha(double t, double offset = 0.008);
// The cosine schedule, clipped: 0 < begin < 1.
TimeGrid cosine_grid(std::size_t steps, double begin = 0.99, double offset = 0.008);

// T - 1 equal steps of ln tau + tau from the horizon to tau_min, and one to 0: steps that shrink with tau where tau is
// small, and do not grow beyond all bounds where it is large. Made for images, whose pixels are nearly certain at the
// end. Throws a usage Error unless 0 < tau_min < horizon and T >= 2.
TimeGrid log_linear_grid(double horizon, std::size_t steps, double tau_min = 0.01);

// The steps of a chain from tau to tau - h:
//
//     y <- growth y + pull s(y, tau) + noise xi,     xi ~ N(0, I)
//
//     Euler-Maruyama for the reverse SDE, dY = (Y + 2 s) dt + sqrt(2) dB     1 + h     2 h                    sqrt(2 h)
//     Euler for the probability-flow ODE, dY = (Y + s) dt                    1 + h     h                      0
//     DDPM: the posterior given the denoised point                           e^h       e^h (1 - e^-2h)        see below
//     DDIM: the same without noise, exact where s is constant in x_0         e^h       e^h s_t^2 - s_s s_t    0
//
// with s_t^2 = 1 - e^-2tau, s_s^2 = 1 - e^-2(tau - h); the variance of DDPM is (1 - e^-2h) s_s^2 / s_t^2, which is 0 in
// the last step.
//
// `penalty` is what |s_theta - s_0|^2 costs in the path KL to a frozen model (denoising/objective.hpp): of a Gaussian
// step pull^2 / (2 noise^2), which is h for Euler-Maruyama. Steps without noise take h too, the SDE's.
enum class Dynamics { euler_sde, euler_ode, ddpm, ddim };
struct StepCoefficients {
  double growth, pull, noise, penalty;
};
StepCoefficients step_coefficients(Dynamics dynamics, double tau, double h);

// What the last step returns: with noise, as the others; or the mean of that. The mean has no less to do with theta,
// and its penalty stays: -lambda E[R(mean)] + beta KL is differentiated exactly, as the penalty never sees the last
// noise.
enum class LastStep { noise, mean };

// What a grid does to a coordinate whose value is certain, such as the background of an image: the score is linear,
// -(y - a x_0) / s_t^2, and the variance of the chain, from 1 at the horizon, follows v <- j^2 v + noise^2 with j =
// growth - pull / s_t^2.
struct GridErrors {
  double variance;        // the largest v / s_t^2 that the model meets: 1 is what it was trained on
  double tau;             // where
  double deviation;       // what is left of v at the end, as a standard deviation
  double mean_deviation;  // the same where the last step returns its mean
};
GridErrors grid_errors(const TimeGrid& grid, Dynamics dynamics = Dynamics::euler_sde);

}  // namespace implicit_diffusion
