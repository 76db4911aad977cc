#include "implicit_diffusion/denoising/mixture_score.hpp"

#include "../langevin/kernel_table.hpp"
#include "../langevin/matrices.hpp"
#include "../require.hpp"
#include "kernel_table.hpp"

#include <algorithm>
#include <cmath>

namespace implicit_diffusion {

template <Spread form>
MixtureScore<form>::MixtureScore(std::size_t components, std::size_t dimension) : n_(components), d_(dimension) {
  require(n_ != 0 && n_ <= most_components, "components", "{} must be between 1 and {}", n_, most_components);
  require(d_ != 0 && d_ <= largest_dimension, "dimension", "{} must be between 1 and {}", d_, largest_dimension);
  theta_.assign(parameters(), 0.0);
}

namespace {

// L of a Cholesky spread, row by row, the upper triangle 0.
std::vector<double> lower_factor(const double* spread, std::size_t d) {
  std::vector<double> l(d * d, 0.0);
  for (std::size_t a = 0, k = 0; a < d; ++a)
    for (std::size_t b = 0; b <= a; ++b, ++k) l[a * d + b] = a == b ? std::exp(spread[k]) : spread[k];
  return l;
}

std::vector<double> covariance_of(const std::vector<double>& l, std::size_t d) {
  std::vector<double> s(d * d, 0.0);
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = 0; b < d; ++b)
      for (std::size_t k = 0; k <= std::min(a, b); ++k) s[a * d + b] += l[a * d + k] * l[b * d + k];
  return s;
}

}  // namespace

template <Spread form>
std::optional<std::size_t> MixtureScore<form>::find_inadmissible(std::span<const double> theta) const {
  constexpr double largest = 1e15;
  for (std::size_t j = n_; j < theta.size(); ++j) {
    bool logarithm = j >= spread_at(0);
    if (form == Spread::cholesky && logarithm) {
      std::size_t k = (j - spread_at(0)) % spread_size(), row = 0;
      while (k > row) k -= ++row;  // the place in its row
      logarithm = k == row;
    }
    if (!(std::abs(theta[j]) <= (logarithm ? std::log(largest) : largest))) return j;
  }
  return std::nullopt;
}

template <Spread form>
GaussianMixture MixtureScore<form>::law(std::span<const double> theta) const {
  GaussianMixture law;
  const double highest = *std::max_element(theta.begin(), theta.begin() + static_cast<std::ptrdiff_t>(n_));
  double sum = 0;
  for (std::size_t i = 0; i < n_; ++i) sum += law.weights.emplace_back(std::exp(theta[i] - highest));
  for (std::size_t i = 0; i < n_; ++i) {
    law.weights[i] /= sum;
    const double *mean = theta.data() + mean_at(i), *spread = theta.data() + spread_at(i);
    Gaussian g{{mean, mean + d_}, std::vector<double>(d_ * d_, 0.0)};
    if constexpr (form == Spread::cholesky)
      g.covariance = covariance_of(lower_factor(spread, d_), d_);
    else
      for (std::size_t j = 0; j < d_; ++j)
        g.covariance[j * d_ + j] = std::exp(2 * spread[form == Spread::isotropic ? 0 : j]);
    law.components.push_back(std::move(g));
  }
  return law;
}

template <Spread form>
std::vector<double> MixtureScore<form>::parameters_of(const GaussianMixture& law) const {
  require(law.weights.size() == n_ && law.dimension() == d_, "law", "it must have {} components in {} dimensions", n_,
          d_);
  std::vector<double> theta(parameters());
  for (std::size_t i = 0; i < n_; ++i) {
    theta[i] = std::log(law.weights[i]);
    const Gaussian& g = law.components[i];
    std::copy(g.mean.begin(), g.mean.end(), theta.begin() + static_cast<std::ptrdiff_t>(mean_at(i)));
    double* spread = theta.data() + spread_at(i);
    std::vector<double> l(d_ * d_);
    require(!detail::cholesky(g.covariance.data(), d_, l.data()), "law",
            "the covariance of component {} is not positive definite", i + 1);
    for (std::size_t a = 0, k = 0; a < d_; ++a)
      for (std::size_t b = 0; b <= a; ++b, ++k) {
        if constexpr (form == Spread::cholesky) {
          spread[k] = a == b ? std::log(l[a * d_ + a]) : l[a * d_ + b];
        } else {
          const double expected = a != b ? 0.0 : form == Spread::isotropic ? l[0] : l[a * d_ + a];
          require(!(std::abs(l[a * d_ + b] - expected) > 1e-12 * l[0]), "law",
                  "the covariance of component {} is not {}", i + 1,
                  form == Spread::isotropic ? "a multiple of the identity" : "diagonal");
          if (a == b) spread[form == Spread::isotropic ? 0 : a] = std::log(l[a * d_ + a]);
        }
      }
  }
  return theta;
}

template <Spread form>
typename MixtureScore<form>::NoiseLevel MixtureScore<form>::level(double tau) const {
  const double a = std::exp(-tau), noise = -std::expm1(-2 * tau), unit = 2 * NoiseLevel::half_unit;
  NoiseLevel level;
  level.n_ = n_;
  level.d_ = d_;
  level.decay_ = a;
  const std::size_t size = form == Spread::isotropic ? 1 : form == Spread::diagonal ? d_ : d_ * d_;
  level.each_ = 2 + d_ + size;
  level.components_.resize(n_ * level.each_);
  const auto set = [&](std::size_t i, std::size_t k, double value) {
    level.components_.set(i * level.each_ + k, value);
  };
  std::vector<double> offsets;
  for (std::size_t i = 0; i < n_; ++i) {
    const double* spread = theta_.data() + spread_at(i);
    double log_determinant = 0;
    set(i, 1, -NoiseLevel::half_unit);
    for (std::size_t j = 0; j < d_; ++j) set(i, 2 + j, a * theta_[mean_at(i) + j]);
    if constexpr (form == Spread::cholesky) {
      const std::vector<double> l = lower_factor(spread, d_);
      std::vector<double> c = covariance_of(l, d_), factor(d_ * d_), inverse(d_ * d_), p(d_ * d_);
      for (std::size_t k = 0; k < d_ * d_; ++k) c[k] = a * a * c[k] + (k % (d_ + 1) == 0 ? noise : 0.0);
      (void)detail::cholesky(c.data(), d_, factor.data());  // positive definite: the noise is positive
      detail::invert_lower(factor.data(), d_, inverse.data());
      detail::precision_from_inverse_factor(inverse.data(), d_, p.data());
      for (std::size_t k = 0; k < d_ * d_; ++k) set(i, 2 + d_ + k, p[k]);
      for (std::size_t j = 0; j < d_; ++j) log_determinant += 2 * std::log(factor[j * d_ + j]);
      level.spread_.insert(level.spread_.end(), l.begin(), l.end());
    } else {
      for (std::size_t k = 0; k < size; ++k) {
        const double variance = a * a * std::exp(2 * spread[k]), p = 1 / (variance + noise);
        set(i, 2 + d_ + k, p);
        if (form == Spread::isotropic) set(i, 1, -NoiseLevel::half_unit * p);
        log_determinant += std::log(variance + noise) * (form == Spread::isotropic ? static_cast<double>(d_) : 1.0);
        level.spread_.push_back(2 * variance);
      }
    }
    offsets.push_back(unit * (theta_[i] - log_determinant / 2));
  }
  const double top = *std::max_element(offsets.begin(), offsets.end());
  for (std::size_t i = 0; i < n_; ++i) set(i, 0, offsets[i] - top);
  return level;
}

template <Spread form>
void MixtureScore<form>::NoiseLevel::add_gradient(const double* sums, double* gradient) const {
  for (std::size_t i = 0; i < n_; ++i) {
    const double* own = sums + i * sums_each(d_);
    gradient[i] += own[0];
    const double by_mean = form == Spread::isotropic ? decay_ * *precision<double>(i) : decay_;
    for (std::size_t j = 0; j < d_; ++j) gradient[n_ + i * d_ + j] += by_mean * own[1 + j];
    double* spread = gradient + n_ * (1 + d_) + i * spread_size(d_);
    const double* by_covariance = own + 1 + d_;
    if constexpr (form == Spread::cholesky) {
      // C = a^2 L L' + ...: dF = tr(G dC) has dF/dL = 2 a^2 G L.
      const double* l = spread_.data() + i * d_ * d_;
      const auto entry = [&](std::size_t a, std::size_t b) {
        return by_covariance[a >= b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a];
      };
      for (std::size_t a = 0, k = 0; a < d_; ++a)
        for (std::size_t b = 0; b <= a; ++b, ++k) {
          double sum = 0;
          for (std::size_t c = b; c < d_; ++c) sum += entry(a, c) * l[c * d_ + b];
          spread[k] += 2 * decay_ * decay_ * sum * (a == b ? l[a * d_ + a] : 1.0);
        }
    } else if constexpr (form == Spread::isotropic) {
      *spread +=
          spread_[i] * *precision<double>(i) * (0.5 * own[1 + d_] - (0.5 * static_cast<double>(d_) + 1) * own[0]);
    } else {
      for (std::size_t k = 0; k < spread_size(d_); ++k)
        spread[k] += spread_[i * spread_size(d_) + k] * by_covariance[k];
    }
  }
}

template <Spread form>
const ScoreKernels<float, typename MixtureScore<form>::NoiseLevel>& MixtureScore<form>::NoiseLevel::lane_kernels() {
  return std::get<ScoreKernels<float, NoiseLevel>>(active_kernels().scores().all);
}

GaussianMixture tilted_law(const GaussianMixture& p, std::span<const double> t) {
  GaussianMixture law = p;
  const std::size_t d = p.dimension();
  double sum = 0;
  std::vector<double> exponents;
  for (Gaussian& g : law.components) {
    double exponent = 0;
    const std::vector<double> mean = g.mean;
    for (std::size_t a = 0; a < d; ++a) {
      double shift = 0;
      for (std::size_t b = 0; b < d; ++b) shift += g.covariance[a * d + b] * t[b];
      exponent += t[a] * (mean[a] + shift / 2);
      g.mean[a] += shift;
    }
    exponents.push_back(exponent);
  }
  const double highest = *std::max_element(exponents.begin(), exponents.end());
  for (std::size_t i = 0; i < exponents.size(); ++i) sum += law.weights[i] *= std::exp(exponents[i] - highest);
  for (double& w : law.weights) w /= sum;
  return law;
}

template class MixtureScore<Spread::isotropic>;
template class MixtureScore<Spread::diagonal>;
template class MixtureScore<Spread::cholesky>;

}  // namespace implicit_diffusion
