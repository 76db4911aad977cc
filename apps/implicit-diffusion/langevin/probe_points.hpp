// A potential at one theta, seen from points of its law: what a check needs to choose its steps and tolerances by,
// whatever units the user's experiment is in.
//
// Points are drawn from all components of the law alike, however small their weights. The unit of a coordinate of x or
// theta is what moves V by about one,
//
//     unit_x_j = 1 / max_i |dV/dx_j (x_i)|        unit_theta_j = 1 / max_i |dV/dtheta_j (x_i)|
//
// and at most 1 for a parameter that is a logarithm, of a weight or a diagonal.
#pragma once

#include "langevin/method.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace program {

struct ProbePoints {
  // Points are drawn from the law of c's potential at theta; where it is not known, they are where a short chain leads
  // from the start.
  ProbePoints(const LangevinConfiguration& c, const std::vector<double>& theta);

  Potential<float> fast;    // the kernels that runs use
  Potential<double> exact;  // prepared at theta
  std::vector<double> theta;
  std::optional<GaussianMixture> law;  // where it is known
  Population<double> points;
  std::vector<std::size_t> parameters;  // those that are looked at: all, or some of many
  std::vector<double> unit_x, unit_theta;
  double rounding;  // in single precision, of a point relative to its unit and of a sum over coordinates

  // The numbers of these parameters.
  std::vector<double> chosen(std::span<const double> all) const;
  // theta with the k-th of these parameters moved by t.
  std::vector<double> moved(std::size_t k, double t) const;
};

// Noise for what a check draws itself: another than that of the run, whose seeds are below 2^63.
inline Noise check_noise(std::uint64_t seed) { return Noise(~seed); }

// By coordinate: dV/dx_j (x_i) at [j * n + i], n points, and likewise dV/dtheta of the parameters at `chosen`. The
// potential is prepared.
template <class Real>
std::vector<double> gradients_x(const Potential<Real>& potential, const Population<Real>& x);
template <class Real>
std::vector<double> gradients_theta(const Potential<Real>& potential, const Population<Real>& x,
                                    std::span<const std::size_t> chosen);
template <class Real>
std::vector<double> values(const Potential<Real>& potential, const Population<Real>& x);

// R(x_i).
template <class Real>
std::vector<double> values(const Reward<Real>& reward, const Population<Real>& x);

Population<float> in_single_precision(const Population<double>& x);

double largest(std::span<const double> numbers);  // of their absolute values

}  // namespace program
