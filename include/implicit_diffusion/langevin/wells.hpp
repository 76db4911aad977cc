// Mixtures of equal wells: centres c_1, ..., c_n, a common width q, and a weight for each well that depends on theta.
//
//     V(x, theta) = -log sum_i w_i(theta) exp(-|x - c_i|^2 / q)
//
// q = 2 is the unit covariance of the authors' program; q = 1 is the paper's formula (covariance I/2).
//
//   SoftmaxWells     w = softmax(theta)                  grad_theta_i = w_i - r_i            Z does not depend on theta
//   LogisticWells    w_i = e + (1 - e) sigmoid(theta_i)   grad_theta_i = -r_i w_i' / w_i      Z is proportional to the sum of the w_i
//
// with the responsibilities r_i = w_i exp(-|x - c_i|^2 / q) / sum_j (the same), and for both
//
//     grad_x V = (2 / q) (x - sum_i r_i c_i)
//
// Evaluated as V = |x|^2 / q - logsumexp_i(a_i . x + b_i), a_i = 2 c_i / q, b_i = log w_i - |c_i|^2 / q: linear forms instead of distances,
// in powers of two, and finite however far x is from every well.
#pragma once

#include "implicit_diffusion/langevin/kernel.hpp"
#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/langevin/precisions.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <cstddef>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

// What the two share: everything but how the weights depend on theta.
class EqualWells {
 public:
  // Throws an Error unless there is a centre, all have the same dimension, and q is positive.
  EqualWells(std::vector<std::vector<double>> centres, double q);

  std::size_t dimension() const { return dimension_; }
  std::size_t size() const { return size_; }
  // log w_i = log_weight(i).
  template <class F>
  void set_log_weights(F&& log_weight) {
    offset_.fill(size_, [&](std::size_t i) { return (log_weight(i) - squares_[i] / q_) * unit; });
    update_radius();
  }

  // Returns V; writes dV/dx and slope(i, r_i) for each responsibility, each unless null. D is the dimension and N the number of wells, 0
  // where it is not a constant.
  template <std::size_t D, std::size_t N, class Real, class Slope>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta, Slope&& slope_of) const {
    const std::size_t d = D ? D : dimension_, n = N ? N : size_;
    const auto* slope = slope_.of<Real>();
    const auto* offset = offset_.of<Real>();
    const auto* scale = scale_.of<Real>();
    // a_i . x + b_i, in the units of exp2_fixed().
    const auto line = [&](std::size_t i) __attribute__((always_inline)) {
      Real sum = Real(offset[i]);
      for (std::size_t j = 0; j < d; ++j) sum = fma(x[j], Real(slope[i * d + j]), sum);
      return sum;
    };

    Real total = Real(0), top = Real(0);
    Real fixed_pull[D ? D : 1];  // sum_i e_i a_i
    Real* pull = D ? fixed_pull : grad_x;
    if (grad_x)
      for (std::size_t j = 0; j < d; ++j) pull[j] = Real(0);
    const auto add = [&](std::size_t i, const Real& e) __attribute__((always_inline)) {
      total += e;
      if (grad_theta) grad_theta[i] = e;
      if (grad_x)
        for (std::size_t j = 0; j < d; ++j) pull[j] = fma(e, Real(slope[i * d + j]), pull[j]);
    };

    // Near the wells no term of the sum overflows or vanishes, and nothing needs to be subtracted. Only for samples further out the largest
    // is; a sample never depends on its neighbours.
    Real reach = abs(x[0]);
    for (std::size_t j = 1; j < d; ++j) reach = max(reach, abs(x[j]));
    const auto far = reach > Real(scale[2]);
    if (any(far)) [[unlikely]] {
      top = line(0);
      for (std::size_t i = 1; i < n; ++i) top = max(top, line(i));
      top = select(far, top, Real(0));
      for (std::size_t i = 0; i < n; ++i) add(i, exp2_fixed(max(line(i) - top, Real(exp2_lowest<Real>))));
    } else {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < n; ++i) add(i, exp2_fixed(line(i)));
    }

    const Real inverse = Real(1) / total;
    if (grad_x) {
      const Real inverse_slope = inverse * scale[3];
      for (std::size_t j = 0; j < d; ++j) grad_x[j] = fma(Real(scale[0]), x[j], -(pull[j] * inverse_slope));
    }
    if (grad_theta)
#pragma GCC unroll 8
      for (std::size_t i = 0; i < n; ++i) grad_theta[i] = slope_of(i, grad_theta[i] * inverse);
    Real square = Real(0);
    for (std::size_t j = 0; j < d; ++j) square = fma(x[j], x[j], square);
    return fma(Real(scale[1]), square, -fma(top, Real(scale[3]), log(total)));
  }

  // Far from all wells V is a parabola of curvature 2/q.
  std::optional<double> largest_stable_step() const { return q_; }
  // Normalises the weights.
  GaussianMixture law(std::span<const double> weights) const;

 private:
  // From natural logarithms to the units of exp2_fixed().
  static constexpr double unit = std::numbers::log2e * exp2_unit;
  void update_radius();

  std::size_t dimension_, size_;
  double q_;
  std::vector<std::vector<double>> centres_;
  std::vector<double> squares_;  // |c_i|^2
  Constants slope_;    // a_i, n x d, in the units of exp2_fixed()
  Constants offset_;   // b_i, likewise
  Constants scale_;    // 2/q, 1/q, the radius, and what turns those units into logarithms
};

class SoftmaxWells {
 public:
  static constexpr bool any_number = true;
  static constexpr std::size_t fixed_parameters = 8;  // up to so many wells in the plane have kernels of their own

  SoftmaxWells(std::vector<std::vector<double>> centres, double q) : wells_(std::move(centres), q) {}

  std::size_t dimension() const { return wells_.dimension(); }
  std::size_t parameters() const { return wells_.size(); }
  void prepare(std::span<const double> theta);

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    return evaluate_in<0, 0>(x, grad_x, grad_theta);
  }
  template <std::size_t D, std::size_t N, class Real>
  [[gnu::always_inline]] Real evaluate_in(const Real* x, Real* grad_x, Real* grad_theta) const {
    const auto* weight = weight_.of<Real>();
    return wells_.evaluate<D, N>(x, grad_x, grad_theta,
                                 [&](std::size_t i, const Real& r) __attribute__((always_inline)) { return weight[i] - r; });
  }

  std::optional<double> largest_stable_step() const { return wells_.largest_stable_step(); }
  GaussianMixture law(std::span<const double> theta) const;

 private:
  EqualWells wells_;
  Constants weight_;  // softmax(theta)
};

class LogisticWells {
 public:
  static constexpr bool any_number = true;

  // e = floor, the smallest weight, in (0, 1).
  LogisticWells(std::vector<std::vector<double>> centres, double q, double floor);

  std::size_t dimension() const { return wells_.dimension(); }
  std::size_t parameters() const { return wells_.size(); }
  void prepare(std::span<const double> theta);

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    return evaluate_in<0, 0>(x, grad_x, grad_theta);
  }
  template <std::size_t D, std::size_t N, class Real>
  [[gnu::always_inline]] Real evaluate_in(const Real* x, Real* grad_x, Real* grad_theta) const {
    const auto* log_slope = log_slope_.of<Real>();
    return wells_.evaluate<D, N>(x, grad_x, grad_theta,
                                 [&](std::size_t i, const Real& r) __attribute__((always_inline)) { return -(log_slope[i] * r); });
  }

  std::optional<double> largest_stable_step() const { return wells_.largest_stable_step(); }
  GaussianMixture law(std::span<const double> theta) const;

 private:
  EqualWells wells_;
  double floor_;
  Constants log_slope_;  // w_i' / w_i
};

// Their kernels, for the level in use.
template <class Real>
const PotentialKernels<Real, SoftmaxWells>& potential_kernels(const SoftmaxWells&);
template <class Real>
const PotentialKernels<Real, LogisticWells>& potential_kernels(const LogisticWells&);

// softmax(t) in double precision, the same bits on every machine.
std::vector<double> softmax(std::span<const double> t);

}  // namespace implicit_diffusion
