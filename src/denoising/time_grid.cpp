#include "implicit_diffusion/denoising/time_grid.hpp"

#include "../require.hpp"

#include <cmath>
#include <numbers>

namespace implicit_diffusion {

TimeGrid uniform_grid(double horizon, std::size_t steps) {
  require(horizon > 0 && std::isfinite(horizon), "horizon", "{} must be positive", horizon);
  require(steps != 0, "steps", "0 must be positive");
  TimeGrid grid;
  const double h = horizon / static_cast<double>(steps);
  for (std::size_t m = 0; m < steps; ++m) grid.tau.push_back(horizon - static_cast<double>(m) * h);
  grid.tau.push_back(0);
  return grid;
}

TimeGrid schedule_grid(const std::function<double(double)>& alpha, double begin, std::size_t steps) {
  require(begin > 0 && std::isfinite(begin), "schedule", "its first time, {}, must be positive", begin);
  require(steps != 0, "steps", "0 must be positive");
  TimeGrid grid;
  for (std::size_t m = 0; m < steps; ++m) {
    const double t = begin * static_cast<double>(steps - m) / static_cast<double>(steps);
    const double tau = -std::log(alpha(t));
    require(std::isfinite(tau) && tau > 0 && (m == 0 || tau < grid.tau.back()), "schedule",
            "alpha({}) = {} does not fall from 1 to 0", t, alpha(t));
    grid.tau.push_back(tau);
  }
  grid.tau.push_back(0);
  return grid;
}

double cosine_alpha(double t, double offset) {
  const auto root = [offset](double at) { return std::cos((at + offset) / (1 + offset) * std::numbers::pi / 2); };
  return root(t) / root(0);
}

TimeGrid cosine_grid(std::size_t steps, double begin, double offset) {
  require(begin > 0 && begin < 1, "schedule", "its first time, {}, must be between 0 and 1", begin);
  return schedule_grid([offset](double t) { return cosine_alpha(t, offset); }, begin, steps);
}

TimeGrid log_linear_grid(double horizon, std::size_t steps, double tau_min) {
  require(horizon > 0 && std::isfinite(horizon), "horizon", "{} must be positive", horizon);
  require(steps >= 2, "steps", "{} must be at least 2", steps);
  require(tau_min > 0 && tau_min < horizon, "tau_min", "{} must be between 0 and the horizon, {}", tau_min, horizon);
  TimeGrid grid{{horizon}};
  const double from = std::log(horizon) + horizon, to = std::log(tau_min) + tau_min;
  for (std::size_t m = 1; m + 1 < steps; ++m) {
    const double wanted = from + (to - from) * static_cast<double>(m) / static_cast<double>(steps - 1);
    // Newton's method for u + e^u = wanted, u = ln tau, which is convex: from the right it comes down to the solution.
    double u = std::log(grid.tau.back());
    for (int i = 0; i < 60; ++i) {
      const double next = u - (u + std::exp(u) - wanted) / (1 + std::exp(u));
      if (!(next < u)) break;
      u = next;
    }
    grid.tau.push_back(std::exp(u));
  }
  grid.tau.push_back(tau_min);
  grid.tau.push_back(0);
  return grid;
}

GridErrors grid_errors(const TimeGrid& grid, Dynamics dynamics) {
  GridErrors e{0, 0, 0, 0};
  double v = 1;
  for (std::size_t m = 0; m < grid.steps(); ++m) {
    const double variance = -std::expm1(-2 * grid.tau[m]);
    if (v / variance > e.variance) e.variance = v / variance, e.tau = grid.tau[m];
    const StepCoefficients c = step_coefficients(dynamics, grid.tau[m], grid.step(m));
    const double j = c.growth - c.pull / variance;
    e.mean_deviation = std::abs(j) * std::sqrt(v);
    v = j * j * v + c.noise * c.noise;
  }
  e.deviation = std::sqrt(v);
  return e;
}

StepCoefficients step_coefficients(Dynamics dynamics, double tau, double h) {
  // 1 - e^-2t, without cancellation.
  const auto noise_variance = [](double t) { return -std::expm1(-2 * t); };
  const double e = std::exp(h), here = noise_variance(tau), next = noise_variance(std::max(tau - h, 0.0));
  switch (dynamics) {
    case Dynamics::euler_sde:
      return {1 + h, 2 * h, std::sqrt(2 * h), h};
    case Dynamics::euler_ode:
      return {1 + h, h, 0, h};
    case Dynamics::ddpm: {
      const double pull = e * noise_variance(h), variance = noise_variance(h) * next / here;
      return {e, pull, std::sqrt(variance), pull * pull / (2 * variance)};
    }
    case Dynamics::ddim:
      return {e, e * here - std::sqrt(next * here), 0, h};
  }
  return {};
}

}  // namespace implicit_diffusion
