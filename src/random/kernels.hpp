// What the kernels.cpp of the folders make for the table of a level (src/langevin/kernels.cpp), over the number type
// that they are compiled for.
#pragma once

#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/simd/lanes.hpp"

namespace implicit_diffusion {
struct ScoreKernelSet;

namespace kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {

#ifdef IMPLICIT_DIFFUSION_PLAIN
using Chosen = float;
#else
using Chosen = Lanes;
#endif

// The normals of Noise::normals().
template <class Real>
void normals(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups, float* out);
// The random bits that normals are made of, as they lie in memory; first_group must be a multiple of 4, and out has
// room for whole blocks.
template <class Real>
void bits(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups, float* out);

// The kernels of the built-in score models.
template <class Real>
const ScoreKernelSet& score_kernels();

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace kernel
}  // namespace implicit_diffusion
