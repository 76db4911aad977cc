#include "implicit_diffusion/langevin/mixture.hpp"

#include "../require.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "matrices.hpp"

#include <fmt/format.h>

#include <cassert>
#include <limits>
#include <numbers>

namespace implicit_diffusion {

Mixture::Mixture(std::size_t components, std::size_t dimension, MixtureOptions options)
    : n_(components), d_(dimension), options_(options) {
  require(n_ != 0, "components", "0 components");
  require(d_ != 0 && d_ <= largest_dimension, "dimension", "{} is not between 1 and {}", d_, largest_dimension);
  require_positive("kappa", options.kappa);
}

std::optional<std::size_t> Mixture::factorise(std::span<const double> theta, std::size_t i, Matrix& factor) const {
  const double* c = theta.data() + covariance_at(i);
  std::fill_n(factor.begin(), d_ * d_, 0.0);
  if (options_.covariance == CovarianceForm::direct) return detail::cholesky(c, d_, factor.data());
  for (std::size_t a = 0; a < d_; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      const double v = c[a * (a + 1) / 2 + b];
      factor[a * d_ + b] = a == b ? exp(v) : v;
    }
  for (std::size_t a = 0; a < d_; ++a)
    if (const double v = factor[a * d_ + a]; !(v > 0) || !std::isfinite(v)) return a;
  // Positive definite on paper; where a factor has all but vanished beside another, L L' is not in double precision.
  Matrix product, again;
  std::fill_n(product.begin(), d_ * d_, 0.0);
  for (std::size_t a = 0; a < d_; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      for (std::size_t k = 0; k <= b; ++k) product[a * d_ + b] += factor[a * d_ + k] * factor[b * d_ + k];
      product[b * d_ + a] = product[a * d_ + b];
    }
  return detail::cholesky(product.data(), d_, again.data());
}

std::optional<std::size_t> Mixture::find_inadmissible(std::span<const double> theta) const {
  Matrix factor;
  for (std::size_t i = 0; i < n_; ++i)
    if (const auto row = factorise(theta, i, factor))
      return covariance_at(i) + *row +
             (options_.covariance == CovarianceForm::direct ? *row * d_ : *row * (*row + 1) / 2);
  return std::nullopt;
}

void Mixture::prepare(std::span<const double> theta) {
  const double norm = log_sum_exp(theta.first(n_));
  weight_.fill(n_, [&](std::size_t i) { return exp(theta[i] - norm); });
  mean_.fill(n_ * d_, [&](std::size_t k) { return theta[n_ + k]; });
  offset_.resize(n_);
  precision_.resize(n_ * d_ * d_);
  factor_.resize(n_ * d_ * d_);
  Matrix factor, inverse, precision;
  for (std::size_t i = 0; i < n_; ++i) {
    double offset = theta[i] - norm - 0.5 * static_cast<double>(d_) * log(2 * std::numbers::pi);
    if (factorise(theta, i, factor)) {
      offset = std::numeric_limits<double>::quiet_NaN();  // V is not defined here, and says so
      precision.fill(0);
      factor.fill(0);
    } else {
      for (std::size_t a = 0; a < d_; ++a) offset -= log(factor[a * d_ + a]);
      detail::invert_lower(factor.data(), d_, inverse.data());
      detail::precision_from_inverse_factor(inverse.data(), d_, precision.data());
    }
    offset_.set(i, offset);
    for (std::size_t k = 0; k < d_ * d_; ++k) {
      precision_.set(i * d_ * d_ + k, precision[k]);
      factor_.set(i * d_ * d_ + k, factor[k]);
    }
  }
}

std::optional<double> Mixture::largest_stable_step() const {
  constexpr double lightest = 1e-6;
  double steepest = 0;
  for (std::size_t i = 0; i < n_; ++i)
    if (weight_.exact()[i] >= std::min(lightest, 1 / static_cast<double>(n_)))
      steepest = std::max(steepest,
                          2 * options_.kappa * detail::largest_eigenvalue(precision_.exact().data() + i * d_ * d_, d_));
  return 2.0 / steepest;
}

GaussianMixture Mixture::law(std::span<const double> theta) const {
  GaussianMixture m{softmax(theta.first(n_)), {}};
  Matrix factor;
  for (std::size_t i = 0; i < n_; ++i) {
    const double* mean = theta.data() + mean_at(i);
    Gaussian g{{mean, mean + d_}, std::vector<double>(d_ * d_)};
    factorise(theta, i, factor);
    for (std::size_t a = 0; a < d_; ++a)
      for (std::size_t b = 0; b < d_; ++b)
        for (std::size_t k = 0; k <= std::min(a, b); ++k)
          g.covariance[a * d_ + b] += factor[a * d_ + k] * factor[b * d_ + k] / (2 * options_.kappa);
    m.components.push_back(std::move(g));
  }
  return m;
}

std::vector<double> Mixture::parameters_of(std::span<const double> logits, std::span<const Gaussian> components) const {
  assert(logits.size() == n_ && components.size() == n_);
  std::vector<double> theta(parameters());
  std::vector<double> factor(d_ * d_);
  for (std::size_t i = 0; i < n_; ++i) {
    theta[i] = logits[i];
    std::copy(components[i].mean.begin(), components[i].mean.end(),
              theta.begin() + static_cast<std::ptrdiff_t>(mean_at(i)));
    const std::vector<double>& s = components[i].covariance;
    require(!detail::cholesky(s.data(), d_, factor.data()), fmt::format("covariance {}", i + 1),
            "not positive definite");
    double* out = theta.data() + covariance_at(i);
    for (std::size_t a = 0; a < d_; ++a)
      for (std::size_t b = 0; b < d_; ++b)
        if (options_.covariance == CovarianceForm::direct)
          out[a * d_ + b] = s[a * d_ + b];
        else if (b <= a)
          out[a * (a + 1) / 2 + b] = a == b ? log(factor[a * d_ + a]) : factor[a * d_ + b];
  }
  return theta;
}

}  // namespace implicit_diffusion
