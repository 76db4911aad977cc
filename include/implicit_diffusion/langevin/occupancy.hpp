// How a population is spread over the modes of the law that it stands for.
//
// Langevin dynamics rarely cross between modes where the barrier is high: the rate falls as exp(-barrier). A population
// that does not cross keeps the shares that it began with, whatever weights theta gives the modes, and every estimate
// from it is of another law than pi*(theta).
#pragma once

#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/population.hpp"

#include <cstddef>
#include <vector>

namespace implicit_diffusion {

struct Occupancy {
  // Of each component, the mean of its responsibilities: for samples of the law that is its weight.
  std::vector<double> shares;
  double total_variation = 0;  // half of sum_i |share_i - weight_i|
  double deviation = 0;        // the largest |share_i - weight_i| / sqrt(w_i (1 - w_i) / n): in standard errors
  std::size_t furthest = 0;    // the component with the largest |share_i - weight_i|
};

// Of at most `most` samples, taken evenly.
Occupancy occupancy(const Population<float>& x, const GaussianMixture& law, std::size_t most = 10'000);

}  // namespace implicit_diffusion
