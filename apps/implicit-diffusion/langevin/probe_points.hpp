// A potential at one theta, seen from points of its law: what a check needs to choose its steps and tolerances by,
// whatever units the user's experiment is in.
//
// Points are drawn from all components of the law alike, however small their weights. The unit of a coordinate of x or
// theta is what moves V by about one,
//
//     unit_x_j = 1 / max_i |dV/dx_j (x_i)|        unit_theta_j = 1 / max_i |dV/dtheta_j (x_i)|
//
// or less where V is flat at the points and not beside them: a unit along x moves V by 4 at most and is at most the
// deviation of the narrowest component, and a unit of theta is at most the scale of its parameter
// (potential_specs.hpp). V hardly depends on a component of weight 1e-9, but within its deviation.
#pragma once

#include "langevin/method.hpp"

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

  // The largest |R| at the points and at the reward's centre.
  double height(const RewardSpec& spec) const;
  // The numbers of these parameters.
  std::vector<double> chosen(std::span<const double> all) const;
  // theta with the k-th of these parameters moved by t.
  std::vector<double> moved(std::size_t k, double t) const;
};

// Noise for what a check draws itself: another than that of the run, whose seeds are below 2^63.
inline Noise check_noise(std::uint64_t seed) { return Noise(~seed); }

// By coordinate: dV/dx_j (x_i), or dR/dx_j, at [j * n + i], n points, and likewise dV/dtheta of the parameters at
// `chosen`. The potential is prepared.
template <class Function, class Real>
std::vector<double> gradients_x(const Function& potential, const Population<Real>& x) {
  using namespace implicit_diffusion;
  const std::size_t n = x.size(), d = x.dimension();
  std::vector<double> out(n * d);
  BlockArray<Real> slope(d);
  for (std::size_t b = 0; b < x.blocks(); ++b) {
    const Block<const Real> block = x.block(b);
    potential.gradient(block, slope.data());
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t i = 0; i < block.size; ++i)
        out[j * n + block.first + i] = static_cast<double>(slope[j * block_size + i]);
  }
  return out;
}
// The kernels give sums over samples: here each sample is alone.
template <class Real>
std::vector<double> gradients_theta(const Potential<Real>& potential, const Population<Real>& x,
                                    std::span<const std::size_t> chosen) {
  const std::size_t n = x.size();
  std::vector<double> out(n * chosen.size());
  Population<Real> one(1, x.dimension());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < x.dimension(); ++j) one(0, j) = x(i, j);
    std::vector<double> sums(1 + 2 * potential.parameters());
    potential.evaluate(one.block(0), {.sums = sums.data()});
    for (std::size_t k = 0; k < chosen.size(); ++k) out[k * n + i] = sums[1 + chosen[k]];
  }
  return out;
}
// V(x_i), or R(x_i).
template <class Function, class Real>
std::vector<double> values(const Function& f, const Population<Real>& x) {
  std::vector<double> out;
  implicit_diffusion::BlockArray<Real> v;
  for (std::size_t b = 0; b < x.blocks(); ++b) {
    f.values(x.block(b), v.data());
    for (std::size_t i = 0; i < x.block(b).size; ++i) out.push_back(static_cast<double>(v[i]));
  }
  return out;
}

Population<float> in_single_precision(const Population<double>& x);

double largest(std::span<const double> numbers);  // of their absolute values
inline double unit_of(double slope) { return slope > 0 ? 1 / slope : 1; }
double mean_of(const std::vector<double>& numbers);
std::vector<double> scaled(std::vector<double> numbers, double factor);
inline void append(std::vector<double>& all, const std::vector<double>& part) {
  all.insert(all.end(), part.begin(), part.end());
}

}  // namespace program
