// The keys of a finite-state experiment: a ring of states whose chain is tuned to a reward (finite/ring.hpp), and the sizes of the chains whose
// gradients are timed.
#pragma once

#include "experiment/document.hpp"
#include "implicit_diffusion/finite/gibbs.hpp"
#include "implicit_diffusion/finite/ring.hpp"

#include <cstdint>
#include <vector>

namespace program {

struct FiniteStateConfiguration : Common {
  implicit_diffusion::RingOptions ring;
  std::vector<double> reward;  // coefficients of its harmonics
  double beta = 0.5;
  implicit_diffusion::Rule rule = implicit_diffusion::Rule::metropolis;  // of the moves on the Gibbs law
  std::int64_t particles = 10'000, steps = 1000, log_every = 10;
  double learning_rate = 1;
  std::vector<double> start;                          // theta: drift, then two for each harmonic
  std::vector<std::int64_t> dense_sizes, band_sizes;  // of the chains whose gradients are timed
};
FiniteStateConfiguration read_finite_state_configuration(const Document& d);

}  // namespace program
