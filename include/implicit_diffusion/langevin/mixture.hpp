// The full Gaussian mixture: weights, means and covariances are all parameters.
//
//     V(x, theta) = -log sum_i s_i (2 pi)^(-d/2) det(S_i)^(-1/2) exp(-kappa (x - m_i)' S_i^-1 (x - m_i)),
//     s = softmax(w)
//
// kappa = 1/2 is the density of N(m_i, S_i). (kappa = 1, the paper's printed formula, has covariances S_i / 2; it is
// kept for comparison.) With P_i = S_i^-1, y_i = P_i (x - m_i) and responsibilities r_i:
//
//     grad_x V = sum_i 2 kappa r_i y_i
//     dV/dw_i = s_i - r_i          dV/dm_i = -2 kappa r_i y_i          dV/dS_i = r_i (P_i / 2 - kappa y_i y_i')
//
// theta = (w, then all m_i, then all covariances). A covariance is either
//
//   direct     the d x d entries of S_i as independent numbers. A symmetric start stays symmetric;
//              a step may leave the positive definite cone, which find_inadmissible() notices.
//   cholesky   the lower triangle of L_i, row by row, with the logarithm of its diagonal:
//              S_i = L_i L_i' is positive definite always.
//              dV/dL_ab = r (delta_ab / L_aa - 2 kappa y_a u_b), u = L' y, a >= b.
//
// Step sizes do not carry over from one to the other.
#pragma once

#include "implicit_diffusion/langevin/constants.hpp"
#include "implicit_diffusion/langevin/kernel.hpp"
#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

enum class CovarianceForm { direct, cholesky };

struct MixtureOptions {
  CovarianceForm covariance = CovarianceForm::direct;
  double kappa = 0.5;
};

class Mixture {
 public:
  static constexpr bool any_number = true;
  using BuiltIn = Mixture;
  static constexpr std::size_t largest_dimension = 32;

  Mixture(std::size_t components, std::size_t dimension, MixtureOptions options = {});

  std::size_t dimension() const { return d_; }
  std::size_t components() const { return n_; }
  std::size_t parameters() const { return n_ * (1 + d_ + covariance_size()); }
  // Numbers that describe one covariance.
  std::size_t covariance_size() const {
    return options_.covariance == CovarianceForm::direct ? d_ * d_ : d_ * (d_ + 1) / 2;
  }
  // Where in theta the mean and the covariance of component i begin.
  std::size_t mean_at(std::size_t i) const { return n_ + i * d_; }
  std::size_t covariance_at(std::size_t i) const { return n_ * (1 + d_) + i * covariance_size(); }

  void prepare(std::span<const double> theta);

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    std::array<Real, largest_dimension> y;
    Real top = log_term(0, x, y.data());
    for (std::size_t i = 1; i < n_; ++i) top = max(top, log_term(i, x, y.data()));

    // Sums of e_i = r_i total, divided by the total at the end.
    const auto two_kappa = Scalar<Real>(2 * options_.kappa);
    Real total = Real(0);
    if (grad_x)
      for (std::size_t a = 0; a < d_; ++a) grad_x[a] = Real(0);
    for (std::size_t i = 0; i < n_; ++i) {
      const Real e = exp(log_term(i, x, y.data()) - top);
      total += e;
      if (grad_x)
        for (std::size_t a = 0; a < d_; ++a) grad_x[a] += two_kappa * (e * y[a]);
      if (grad_theta) {
        grad_theta[i] = e;
        for (std::size_t a = 0; a < d_; ++a) grad_theta[mean_at(i) + a] = -(two_kappa * (e * y[a]));
        write_covariance_gradient(i, e, y.data(), grad_theta + covariance_at(i));
      }
    }

    const Real inverse = Real(1) / total;
    if (grad_x)
      for (std::size_t a = 0; a < d_; ++a) grad_x[a] *= inverse;
    if (grad_theta) {
      const auto* weight = weight_.of<Real>();
      for (std::size_t i = 0; i < n_; ++i) grad_theta[i] = weight[i] - grad_theta[i] * inverse;
      for (std::size_t j = n_; j < parameters(); ++j) grad_theta[j] *= inverse;
    }
    return -(top + log(total));
  }

  // The first diagonal entry of a covariance that is not positive definite.
  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const;
  // By the narrowest component. One of a weight below 1e-6 does not count: hardly any sample ever is in it.
  std::optional<double> largest_stable_step() const;
  GaussianMixture law(std::span<const double> theta) const;

  // theta of the mixture with these weights (their logarithms), means and covariances; for kappa other than 1/2 the
  // S_i, not the laws'.
  std::vector<double> parameters_of(std::span<const double> logits, std::span<const Gaussian> components) const;

 private:
  // log of the i-th term of the sum at x; writes y = P_i (x - m_i).
  template <class Real>
  [[gnu::always_inline]] Real log_term(std::size_t i, const Real* x, Real* y) const {
    const auto* mean = mean_.of<Real>() + i * d_;
    const auto* precision = precision_.of<Real>() + i * d_ * d_;
    Real form = Real(0);
    for (std::size_t a = 0; a < d_; ++a) {
      y[a] = Real(0);
      for (std::size_t b = 0; b < d_; ++b) y[a] = fma(Real(precision[a * d_ + b]), x[b] - mean[b], y[a]);
      form = fma(x[a] - mean[a], y[a], form);
    }
    return offset_.of<Real>()[i] - Scalar<Real>(options_.kappa) * form;
  }

  template <class Real>
  [[gnu::always_inline]] void write_covariance_gradient(std::size_t i, const Real& e, const Real* y, Real* out) const {
    if (options_.covariance == CovarianceForm::direct) {
      const auto* precision = precision_.of<Real>() + i * d_ * d_;
      const auto kappa = Scalar<Real>(options_.kappa);
      for (std::size_t a = 0; a < d_; ++a)
        for (std::size_t b = 0; b < d_; ++b)
          out[a * d_ + b] = e * (Scalar<Real>(0.5) * precision[a * d_ + b] - kappa * (y[a] * y[b]));
      return;
    }
    const auto* factor = factor_.of<Real>() + i * d_ * d_;
    const auto two_kappa = Scalar<Real>(2 * options_.kappa);
    for (std::size_t b = 0; b < d_; ++b) {
      Real u = Real(0);
      for (std::size_t a = b; a < d_; ++a) u = fma(Real(factor[a * d_ + b]), y[a], u);
      for (std::size_t a = b; a < d_; ++a) {
        Real& slope = out[a * (a + 1) / 2 + b];
        slope = a == b ? e * (Scalar<Real>(1) - two_kappa * (factor[a * d_ + a] * y[a] * u))
                       : -(two_kappa * (e * y[a] * u));
      }
    }
  }

  // Writes L_i, lower triangle in a d x d array; returns the row that failed where S_i is not positive definite.
  using Matrix = std::array<double, largest_dimension * largest_dimension>;
  std::optional<std::size_t> factorise(std::span<const double> theta, std::size_t i, Matrix& factor) const;

  std::size_t n_, d_;
  MixtureOptions options_;
  Constants weight_;     // s_i
  Constants offset_;     // log s_i - log det L_i - d/2 log 2 pi
  Constants mean_;       // n x d
  Constants precision_;  // P_i, n x d x d
  Constants factor_;     // L_i, n x d x d
};

}  // namespace implicit_diffusion
