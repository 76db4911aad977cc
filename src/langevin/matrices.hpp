// Small matrices. Cholesky factors are in plain double arithmetic: they enter theta, so their bits must not depend on
// the machine.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

namespace implicit_diffusion::detail {

// A = L L', row by row; only the symmetric part of A counts. Returns the row whose pivot is not positive, if any. L's
// upper triangle is 0.
inline std::optional<std::size_t> cholesky(const double* a, std::size_t d, double* l) {
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0.5 * (a[i * d + j] + a[j * d + i]);
      for (std::size_t k = 0; k < j; ++k) sum -= l[i * d + k] * l[j * d + k];
      if (i == j) {
        if (!(sum > 0) || !std::isfinite(sum)) return i;
        l[i * d + i] = std::sqrt(sum);
      } else {
        l[i * d + j] = sum / l[j * d + j];
      }
    }
    for (std::size_t j = i + 1; j < d; ++j) l[i * d + j] = 0;
  }
  return std::nullopt;
}

// L^-1, lower triangle.
inline void invert_lower(const double* l, std::size_t d, double* inverse) {
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j) {
      double sum = i == j ? 1.0 : 0.0;
      for (std::size_t k = j; k < i; ++k) sum -= l[i * d + k] * inverse[k * d + j];
      inverse[i * d + j] = j <= i ? sum / l[i * d + i] : 0.0;
    }
}

// P = L^-T L^-1, exactly symmetric.
inline void precision_from_inverse_factor(const double* inverse, std::size_t d, double* p) {
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (std::size_t k = i; k < d; ++k) sum += inverse[k * d + i] * inverse[k * d + j];
      p[i * d + j] = p[j * d + i] = sum;
    }
}

// The largest eigenvalue of a symmetric d x d matrix, by Eigen.
double largest_eigenvalue(const double* matrix, std::size_t d);

}  // namespace implicit_diffusion::detail
