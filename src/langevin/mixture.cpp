#include "implicit_diffusion/langevin/mixture.hpp"

#include "cholesky.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "spectrum.hpp"

#include <fmt/format.h>

#include <cassert>
#include <limits>
#include <numbers>

namespace implicit_diffusion {

Mixture::Mixture(std::size_t components, std::size_t dimension, MixtureOptions options)
    : n_(components), d_(dimension), options_(options) {
  if (n_ == 0) throw Error(ErrorKind::usage, "potential.components", "0 components");
  if (d_ == 0 || d_ > largest_dimension)
    throw Error(ErrorKind::usage, "potential.dimension",
                fmt::format("{} is not between 1 and {}", d_, largest_dimension));
  require_positive("potential.kappa", options.kappa);
}

bool Mixture::factorise(std::span<const double> theta, std::size_t i, std::vector<double>& factor,
                        std::size_t& pivot) const {
  const double* c = theta.data() + covariance_at(i);
  factor.assign(d_ * d_, 0.0);
  if (options_.covariance == CovarianceForm::direct) {
    const auto failed = detail::cholesky(c, d_, factor.data());
    pivot = failed.value_or(0);
    return !failed;
  }
  for (std::size_t a = 0; a < d_; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      const double v = c[a * (a + 1) / 2 + b];
      factor[a * d_ + b] = a == b ? exp(v) : v;
    }
  for (pivot = 0; pivot < d_; ++pivot)
    if (const double v = factor[pivot * d_ + pivot]; !(v > 0) || !std::isfinite(v)) return false;
  // Positive definite on paper; where a factor has all but vanished beside another, L L' is not in double precision.
  std::vector<double> product(d_ * d_), again(d_ * d_);
  for (std::size_t a = 0; a < d_; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      for (std::size_t k = 0; k <= b; ++k) product[a * d_ + b] += factor[a * d_ + k] * factor[b * d_ + k];
      product[b * d_ + a] = product[a * d_ + b];
    }
  const auto failed = detail::cholesky(product.data(), d_, again.data());
  pivot = failed.value_or(0);
  return !failed;
}

std::optional<std::size_t> Mixture::find_inadmissible(std::span<const double> theta) const {
  std::vector<double> factor;
  for (std::size_t i = 0; i < n_; ++i)
    if (std::size_t pivot = 0; !factorise(theta, i, factor, pivot))
      return covariance_at(i) +
             (options_.covariance == CovarianceForm::direct ? pivot * d_ + pivot : pivot * (pivot + 1) / 2 + pivot);
  return std::nullopt;
}

void Mixture::prepare(std::span<const double> theta) {
  const std::vector<double> weight = softmax(theta.first(n_));
  std::vector<double> offset(n_),
      mean(theta.begin() + static_cast<std::ptrdiff_t>(n_), theta.begin() + static_cast<std::ptrdiff_t>(n_ * (1 + d_)));
  std::vector<double> precisions(n_ * d_ * d_), factors(n_ * d_ * d_), factor, inverse(d_ * d_);
  for (std::size_t i = 0; i < n_; ++i) {
    offset[i] = log(weight[i]) - 0.5 * static_cast<double>(d_) * log(2 * std::numbers::pi);
    if (std::size_t pivot = 0; !factorise(theta, i, factor, pivot)) {
      offset[i] = std::numeric_limits<double>::quiet_NaN();  // V is not defined here, and says so
      continue;
    }
    for (std::size_t a = 0; a < d_; ++a) offset[i] -= log(factor[a * d_ + a]);
    detail::invert_lower(factor.data(), d_, inverse.data());
    detail::precision_from_inverse_factor(inverse.data(), d_, precisions.data() + i * d_ * d_);
    std::copy(factor.begin(), factor.end(), factors.begin() + static_cast<std::ptrdiff_t>(i * d_ * d_));
  }
  weight_.assign(weight);
  offset_.assign(offset);
  mean_.assign(mean);
  precision_.assign(precisions);
  factor_.assign(factors);
}

std::optional<double> Mixture::largest_stable_step() const {
  double steepest = 0;
  for (std::size_t i = 0; i < n_; ++i)
    steepest = std::max(steepest,
                        2 * options_.kappa * detail::largest_eigenvalue(precision_.exact().data() + i * d_ * d_, d_));
  return 2.0 / steepest;
}

GaussianMixture Mixture::law(std::span<const double> theta) const {
  GaussianMixture m{softmax(theta.first(n_)), {}};
  std::vector<double> factor;
  for (std::size_t i = 0; i < n_; ++i) {
    const double* mean = theta.data() + mean_at(i);
    Gaussian g{{mean, mean + d_}, std::vector<double>(d_ * d_)};
    std::size_t pivot = 0;
    factorise(theta, i, factor, pivot);
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
    if (detail::cholesky(s.data(), d_, factor.data()))
      throw Error(ErrorKind::usage, fmt::format("covariance {}", i + 1), "not positive definite");
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
