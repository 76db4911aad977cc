// Are a potential's own derivatives right? dV/dx and dV/dtheta against central differences of V, in double, at random
// points.
#pragma once

#include "implicit_diffusion/differences.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/potential.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace implicit_diffusion {

// The largest errors, relative to the largest entry of the derivative at that point, or to 1 where that is smaller.
struct PotentialCheck {
  double state_error = 0;      // of dV/dx
  double parameter_error = 0;  // of dV/dtheta
};

// Points are N(0, spread^2 I); choose a spread at which V is smooth over steps of a hundredth. Errors below 1e-8 are
// those of the differences themselves; a wrong derivative has errors of its own size. evaluate must accept double, and
// keep what it prepares in double.
template <PointPotential P>
PotentialCheck check_potential(P potential, std::span<const double> theta, double spread = 1, std::size_t points = 20,
                               Noise noise = Noise(0)) {
  const std::size_t d = potential.dimension(), p = potential.parameters();
  if (theta.size() != p)
    throw Error(ErrorKind::usage, "theta",
                std::to_string(theta.size()) + " numbers for a potential of " + std::to_string(p) + " parameters");
  require_positive("spread", spread);
  const std::vector<double> here(theta.begin(), theta.end());
  const auto value = [&](const std::vector<double>& at, const std::vector<double>& x) {
    potential.prepare(at);
    return static_cast<double>(
        potential.evaluate(x.data(), static_cast<double*>(nullptr), static_cast<double*>(nullptr)));
  };
  // The largest error of `found`, whose entry j is the derivative of f(t) where entry j of `at` is moved by t.
  const auto compare = [](const std::vector<double>& found, std::vector<double> at, auto&& f, double& worst) {
    std::vector<double> exact;
    double size = 1;
    for (std::size_t j = 0; j < found.size(); ++j) {
      const double middle = at[j];
      exact.push_back(difference(
          [&](double t) {
            at[j] = middle + t;
            return f(at);
          },
          1));
      at[j] = middle;
      size = std::max(size, std::abs(exact.back()));
    }
    for (std::size_t j = 0; j < found.size(); ++j) {
      const double error = std::abs(found[j] - exact[j]) / size;
      if (!std::isnan(worst) && !(error <= worst)) worst = error;  // what is not a number is the worst of all
    }
  };
  PotentialCheck worst;
  for (std::size_t k = 0; k < points; ++k) {
    std::vector<double> x(d), grad_x(d), grad_theta(p);
    for (std::size_t j = 0; j < d; ++j) x[j] = spread * static_cast<double>(noise.normal(Stream::initial, {}, d, k, j));
    potential.prepare(here);
    (void)potential.evaluate(x.data(), grad_x.data(), grad_theta.data());
    compare(
        grad_x, x, [&](const std::vector<double>& at) { return value(here, at); }, worst.state_error);
    compare(
        grad_theta, here, [&](const std::vector<double>& at) { return value(at, x); }, worst.parameter_error);
  }
  return worst;
}

}  // namespace implicit_diffusion
