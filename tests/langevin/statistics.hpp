// Means and covariances of what a random test has drawn, with their standard errors.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace implicit_diffusion {

template <class Real>
double mean(std::span<const Real> v) {
  double sum = 0;
  for (const Real x : v) sum += static_cast<double>(x);
  return sum / static_cast<double>(v.size());
}

template <class Real>
double covariance(std::span<const Real> a, std::span<const Real> b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += (static_cast<double>(a[i]) - mean_a) * (static_cast<double>(b[i]) - mean_b);
  return sum / static_cast<double>(a.size() - 1);
}

// Of the mean of independent draws, estimated from them.
inline double standard_error(std::span<const double> v) {
  return std::sqrt(covariance(v, v) / static_cast<double>(v.size()));
}

// Of the sample covariance of n Gaussian pairs with covariance matrix [[aa, ab], [ab, bb]]; for a variance aa = bb =
// ab.
inline double covariance_error(double aa, double bb, double ab, std::size_t n) {
  return std::sqrt((aa * bb + ab * ab) / static_cast<double>(n - 1));
}

}  // namespace implicit_diffusion
