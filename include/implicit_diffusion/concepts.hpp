// The contract of the library: what a loop asks of its parts.
//
// A sampling process that depends on theta is optimised by alternating, or fusing, two operations on a population p
// (the empirical measure of the samples) and a parameter theta:
//
//     p     <- Sigma(p, theta)                 a Sampler: one step of every sample towards pi*(theta)
//     theta <- theta - eta Gamma(p, theta)     a GradientEstimator of grad F(pi*(theta)) and an Optimizer
//
// The loops (loop/) combine the three and know nothing else of them: the population may be particles, a tensor or a
// single number, and theta any value type (parameters.hpp).
#pragma once

#include "implicit_diffusion/parameters.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <cstdint>

namespace implicit_diffusion {

// Moves a population one step towards the law it samples at theta. `at` says which step this is: Sigma_m may depend on
// at.index (m), and all noise is a pure function of `at`.
template <class S, class Population, class Theta>
concept SamplerOf = requires(S& s, Population& p, const Theta& theta, StepKey at) {
  s.advance(p, theta, at);
};

// Writes Gamma(p, theta), an estimate of the gradient of the objective at pi*(theta), from a population that samples
// it.
template <class G, class Population, class Theta>
concept GradientEstimatorOf = requires(G& g, const Population& p, const Theta& theta, std::int64_t step,
                                       Theta& gradient) {
  g.estimate(p, theta, step, gradient);
};

// Moves theta against a gradient.
template <class O, class Theta>
concept OptimizerOf = requires(O& o, Theta& theta, const Theta& gradient, std::int64_t step) {
  o.update(theta, gradient, step);
};

// Draws a population from the law p_0 from which chains start. Different rounds are independent.
template <class S, class Population>
concept StartOf = requires(S& s, Population& p, std::int64_t round) {
  s.draw(p, round);
};

}  // namespace implicit_diffusion
