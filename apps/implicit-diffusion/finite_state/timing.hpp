// The time that one gradient takes against the number of states, on chains whose gradient is known: heat baths of the
// same potential on a ring (finite/ring.hpp), of all states with all (dense) or with the `width` next ones (banded).
// Both have its Gibbs law, whose gradient is a covariance.
//
// A gradient is all that a step of theta asks for: the probabilities at theta, the factorisation, the law, and the
// solves of the route. The pattern of a banded chain is analysed once, before the clock starts.
#pragma once

#include "implicit_diffusion/finite/estimator.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace program {

struct GradientTimingOptions {
  bool dense = false;
  implicit_diffusion::Route route = implicit_diffusion::Route::adjoint;
  std::size_t width = 1;    // of banded chains
  std::size_t repeats = 3;  // at as many different theta; the median counts
};

struct GradientTiming {
  std::size_t states;
  bool dense;
  double seconds;         // a gradient, median
  double gradient_error;  // the largest |difference from the covariance| / the largest |covariance|
};

// One row for each size. A dense chain of n states takes 20 n^2 bytes, 320 MB for 4000; a banded one of 10^6 states 600
// MB at width 1.
std::vector<GradientTiming> time_gradients(std::span<const std::int64_t> states,
                                           const GradientTimingOptions& options = {});

}  // namespace program
