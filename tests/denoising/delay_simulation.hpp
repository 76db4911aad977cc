// The delay equation of denoising/gaussian_theory.hpp without its closed form: what that is compared with.
#pragma once

#include "implicit_diffusion/denoising/gaussian_theory.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace implicit_diffusion {

// At the times 0, T / n, 2 T / n, ..., horizons T: the classical Runge-Kutta method, the delayed theta in the middle of
// a step from the cubic through its stored values and slopes. Of order 4.
inline std::vector<DelayState> delay_simulation(const GaussianDenoising& model, std::size_t horizons, std::size_t n) {
  const double c = sde_output_mean(1, model.horizon), faded = std::exp(-2 * model.horizon);
  const double h = model.horizon / static_cast<double>(n);
  const auto slope = [&](double psi) { return -2 * model.eta * c * (2 * psi - model.target); };
  const auto speed = [&](const DelayState& y, double delayed) {
    return DelayState{slope(y.psi), y.theta - faded * delayed - 2 * y.psi};
  };
  const auto along = [](const DelayState& y, double step, const DelayState& k) {
    return DelayState{y.theta + step * k.theta, y.psi + step * k.psi};
  };

  std::vector<DelayState> out(n + 1, {model.theta_0, model.theta_0 * c / 2});
  out.reserve(horizons * n + 1);
  for (std::size_t k = n; k < horizons * n; ++k) {
    const DelayState y = out[k], before = out[k - n], after = out[k - n + 1];
    // Up to T psi is constant: the slopes, which theta does not follow yet, cancel.
    const double middle = (before.theta + after.theta) / 2 + h / 8 * (slope(before.psi) - slope(after.psi));
    const DelayState k1 = speed(y, before.theta), k2 = speed(along(y, h / 2, k1), middle);
    const DelayState k3 = speed(along(y, h / 2, k2), middle), k4 = speed(along(y, h, k3), after.theta);
    out.push_back({y.theta + h / 6 * (k1.theta + 2 * k2.theta + 2 * k3.theta + k4.theta),
                   y.psi + h / 6 * (k1.psi + 2 * k2.psi + 2 * k3.psi + k4.psi)});
  }
  return out;
}

}  // namespace implicit_diffusion
