// How a step size changes with the outer step k = 0, 1, 2, ...:
//
//     scale (k + 1)^(-exponent)
//
// exponent 0 is a constant step, 1/2 the usual 1/sqrt(k + 1). The pair for which the single loop is proved to converge
// is
//
//     gamma_k = c (k + 1)^(-1/3)                  the sampler's step
//     gamma_k eps_k = c (k + 1)^(-2/3)            the step of theta, eps_k = (k + 1)^(-1/3)
//
// which bounds the average squared gradient by K^(-1/3) (the square roots in the paper's statement would give K^0,
// nothing).
#pragma once

#include <cstdint>

namespace implicit_diffusion {

struct Schedule {
  double scale, exponent;

  constexpr Schedule(double scale_ = 1, double exponent_ = 0)
      : scale(scale_), exponent(exponent_) {}  // implicit: 0.1 is a step

  // The same bits on every machine: roots by sqrt, other powers through our own exp and log.
  double operator()(std::int64_t k) const;
};

struct SchedulePair {
  Schedule sampler;
  Schedule optimizer;
};

// The proved pair. c = min(1/L_X, 1/L_Theta, 1/mu, mu / (4 L_X^2)) for a potential that satisfies the log-Sobolev
// inequality with mu.
SchedulePair cube_root_pair(double c);
// Both exponents, each with a scale of its own.
SchedulePair cube_root_pair(double sampler, double optimizer);

}  // namespace implicit_diffusion
