// The denoising diffusion that can be solved: one dimension, one parameter, the score of N(theta, 1) under the forward
// process,
//
//     s(x, t) = -(x - theta e^-t),
//     SDE  dY = (Y + 2 s(Y, T - t)) dt + sqrt2 dB,      ODE  dY = (Y + s(Y, T - t)) dt,      Y_0 ~ N(0, 1)
//
// up to the horizon T. The output is Gaussian, of variance 1 and mean theta c for the SDE, c = 1 - e^-2T, theta (1 -
// e^-T) for the ODE. Two parameters that differ by d have the divergences d^2 c / 2 of the paths and d^2 c^2 / 2 of the
// outputs.
//
// Reward -(x - target)^2. A queue whose outputs were made with the thetas of the last T moves theta by a delay
// equation, from t = T on:
//
//     theta' = -2 eta c (2 psi - target)                       psi(t) = integral over u in [0, T] of theta(t - u) e^-2u
//     psi'   = theta - theta(t - T) e^-2T - 2 psi              theta = theta_0 up to T
//
// On [T, 2T] the delayed term is theta_0 and the system linear, with matrix A = -I + N, N^2 = (1 - kappa) I, kappa = 4
// eta c:
//
//     exp(s A) = e^-s (C I + S N),      C = cosh(d s),      S = sinh(d s) / d,      d^2 = 1 - kappa
//
// where C and S are entire functions of d^2: cosine and sine for kappa > 1, 1 and s at kappa = 1. From theta_0 towards
// the segment's fixed point (target + theta_0 e^-2T, target / 2):
//
//     theta(T + s) = target + theta_0 e^-2T + (theta_0 c - target) e^-s (C + S (1 - kappa / 2))
//     psi(T + s)   = target / 2             + (theta_0 c - target) e^-s (C + S) / 2
//
// so that theta(2T) - target falls with the horizon as e^-rT, r = 1 - sqrt(1 - 4 eta), below 4 eta = 1, as T e^-T at
// it, and as e^-T times an oscillation above. At a fixed T, theta goes on to target / c for every eta < e^4T: where
// stability ends, a mode e^iwt has 2 w = -kappa e^-2T sin(w T) and w^2 = kappa (1 - e^-2T cos(w T)) >= kappa c, hence 2
// sqrt(kappa c) <= kappa e^-2T, eta >= e^4T.
//
// In M steps of Euler's method, h = T / M, the queue with M slots (one iteration takes the time h, theta's step is eta
// h) is, on means,
//
//     w_j = 2 h e^-(T - j h) (1 - h)^(M-1-j)      g = sum_j w_j
//     theta_{k+1} = theta_k - 2 eta h g (sum_j w_j theta_{k-M+j} - target)     for k >= M, theta_0 up to there
//
// exactly; stable while the roots of z^M (z - 1) + 2 eta h g sum_j w_j z^j are in the unit disc, and within O(h) of the
// delay equation.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

// The mean of the output, from Y_0 ~ N(0, 1).
double sde_output_mean(double theta, double horizon);
double ode_output_mean(double theta, double horizon);

// Kullback-Leibler divergences between SDEs whose parameters differ by `difference`: of the paths, of their ends, and
// of the paths of the chain of `steps` Euler steps.
double path_divergence(double difference, double horizon);
double output_divergence(double difference, double horizon);
double path_divergence(double difference, double horizon, int steps);

struct GaussianDenoising {
  double horizon = 3;  // T
  double eta = 0.5;    // theta moves by eta times the gradient in a unit of time
  double theta_0 = 0.5;
  double target = 2;
};

struct DelayState {
  double theta, psi;
};

// The delay equation at `time` in [T, 2T], in closed form; near kappa = 1 as exact as elsewhere.
DelayState delay_solution(const GaussianDenoising& model, double time);
// theta(2T) - target, without cancellation.
double final_gap(const GaussianDenoising& model);
// Where the linear system of [T, 2T] would come to rest, and where theta does: target / c.
DelayState segment_fixed_point(const GaussianDenoising& model);
double delay_limit(const GaussianDenoising& model);
// The eigenvalues of A, -1 + d and -1 - d.
std::array<std::complex<double>, 2> delay_eigenvalues(const GaussianDenoising& model);

// The chain of M Euler steps of the SDE: output mean sum_j w_j theta_j if step j is made with theta_j.
struct EulerChain {
  double step;                  // h
  std::vector<double> weights;  // w_j, j = 0..M-1
  double gain;                  // g, the derivative of the mean by a common theta
  double variance;              // of the output: v + (1 - h)^2M (1 - v), v = 1 / (1 - h / 2)
};
EulerChain euler_chain(double horizon, int steps);

// theta_0, ..., theta_iterations of the queue. Above the limit of stability they grow without bound.
std::vector<double> queue_recursion(const GaussianDenoising& model, int steps, std::int64_t iterations);

// The queue on samples. The outputs of step k have the mean above plus e_k, normal, of variance chain.variance / batch,
// and those of different steps are independent: each batch has noise of its own. So theta_k is Gaussian, the recursion
// is its mean, and its standard deviation is
//
//     a sqrt(variance / batch) sqrt(sum over i < k - M of r_i^2)          a = 2 eta h g
//     r_0 = 1,    r_{i+1} = r_i - a sum_j w_j r_{i-M+j},    r_i = 0 for i < 0
//
// with r the answer of the recursion to a push. At the steps 0, ..., iterations.
std::vector<double> queue_deviation(const GaussianDenoising& model, int steps, std::int64_t iterations,
                                    std::size_t batch);

// The largest modulus of the roots of the recursion: the factor of an iteration, in the long run.
double recursion_radius(double horizon, int steps, double eta);
// The least eta at which it is 1, to 10 digits: below it the recursion is stable. None where none is found.
std::optional<double> stability_limit(double horizon, int steps);

enum class DecayRegime { exponential, critical, oscillating };  // 4 eta below, at and above 1
DecayRegime decay_regime(double eta);
// r: 1 - sqrt(1 - 4 eta) below, 1 at and above.
double decay_rate(double eta);

// e^-rT times a; a + b T; a cos wT + b sin wT, w = sqrt(4 eta - 1).
struct DecayFit {
  DecayRegime regime;
  double rate, a, b, frequency;
  double misfit;  // what is left of the gaps, in proportion, each times e^rT
  double operator()(double horizon) const;
};

// The form of eta's regime fitted to final gaps at the horizons, for r in [0, 4]. The gaps y_i span orders of magnitude
// and each departs from its form in proportion to e^-rT, so that r, a and b minimise
//
//     sum_i (e^(r (T_i - mean T)) (y_i - form(T_i)))^2,
//
// the maximum of the likelihood for errors of size e^-rT. The mean of T in it matters: it keeps the product of the
// weights at 1, without which the smallest weights would win, r -> -infinity. Dividing by |y_i| would do below 4 eta =
// 1; above, y crosses zero, and the horizons next to a crossing would decide. Unweighted, only the first few horizons
// count.
//
// What the form leaves out: theta_0 e^-2T; that kappa = 4 eta c, c = 0.9975 at T = 3, is not quite 4 eta; and below 4
// eta = 1 the second exponential, e^-(2 - r)T. For horizons from 3 to 8 this moves r by 1 % or less, with two
// exceptions. Next to 1/4 the two exponentials are hard to tell from one, or half an oscillation from a line: r is off
// by 3 % at eta = 0.24, 12 % at 0.2499, 2 % at 0.26. And what decays as e^-rT is in proportion to theta_0 - target:
// from 1 to 1.2 r is off by up to 6 %, and if theta_0 = target there is no such term.
DecayFit fit_decay(double eta, std::span<const double> horizons, std::span<const double> gaps);
// The fit to the final gaps of the model at the horizons, whatever its own horizon.
DecayFit fit_decay(const GaussianDenoising& model, std::span<const double> horizons);
// 3, 3.25, ..., 8.
std::vector<double> decay_horizons();

}  // namespace implicit_diffusion
