// Components of a mixture have no order of their own: which of one law is which of another?
#pragma once

#include "implicit_diffusion/langevin/law.hpp"

namespace program {

// For each component of one mixture a component of the other, all different, so that the sum of the squared distances
// between their means is least. Both have the same number of components.
std::vector<std::size_t> match_components(const implicit_diffusion::GaussianMixture& one,
                                          const implicit_diffusion::GaussianMixture& other);

}  // namespace program
