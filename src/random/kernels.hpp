// Kernels of the noise: one level's, over one number type.
#pragma once

#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/simd/level.hpp"

namespace implicit_diffusion::kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {

// The normals of Noise::normals().
template <class Real>
void normals(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups, float* out);
// The random bits that normals are made of, as they lie in memory; first_group must be a multiple of 4, and out has room for whole blocks.
template <class Real>
void bits(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups, float* out);

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace implicit_diffusion::kernel
