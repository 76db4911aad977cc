// A score model with everything that can go wrong in it: s(y, tau) = -y + e^-tau b + W tanh(y) in the plane, theta =
// (b, W row by row).
#pragma once

#include "implicit_diffusion/simd/elementary.hpp"

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace implicit_diffusion::problems {

struct ToyScore {
  std::vector<double> theta = std::vector<double>(6);

  std::size_t dimension() const { return 2; }
  std::size_t parameters() const { return 6; }
  void prepare(std::span<const double> t) { theta.assign(t.begin(), t.end()); }

  struct NoiseLevel {
    double decay, b[2], w[4];

    template <class N>
    void score(const N* y, N* s) const {
      using R = Scalar<N>;
      const N t0 = tanh(y[0]), t1 = tanh(y[1]);
      for (std::size_t i = 0; i < 2; ++i)
        s[i] = N(static_cast<R>(decay * b[i])) - y[i] + N(static_cast<R>(w[2 * i])) * t0 +
               N(static_cast<R>(w[2 * i + 1])) * t1;
    }
    template <class N>
    void pull_back(const N* y, const N*, const N* c, N* back, N* sums) const {
      using R = Scalar<N>;
      for (std::size_t j = 0; j < 2; ++j) {
        const N t = tanh(y[j]);
        back[j] = (N(static_cast<R>(w[j])) * c[0] + N(static_cast<R>(w[2 + j])) * c[1]) * (N(R(1)) - t * t) - c[j];
        if (!sums) continue;
        sums[j] = sums[j] + c[j];
        for (std::size_t i = 0; i < 2; ++i) sums[2 + 2 * i + j] = sums[2 + 2 * i + j] + c[i] * t;
      }
    }
    std::size_t sums() const { return 6; }
    void add_gradient(const double* sums, double* gradient) const {
      for (std::size_t j = 0; j < 6; ++j) gradient[j] += (j < 2 ? decay : 1) * sums[j];
    }
  };
  NoiseLevel level(double tau) const {
    return {std::exp(-tau), {theta[0], theta[1]}, {theta[2], theta[3], theta[4], theta[5]}};
  }
};

}  // namespace implicit_diffusion::problems
