// All kernels of one level, and the choice among the levels.
#pragma once

#include "builtin.hpp"
#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/simd/isa.hpp"
#include "ring.hpp"

#include <tuple>

namespace implicit_diffusion {

// An empty place for the kernels of each of the built-in parts.
template <class Real, class... P, class... R>
constexpr auto all_kernels(TypeList<P...>, TypeList<R...>) {
  return std::tuple<PotentialKernels<Real, P>..., RewardKernels<Real, R>...>();
}

struct ScoreKernelSet;  // src/denoising/kernel_table.hpp

// The kernels of the built-in parts over one number type.
struct KernelSet {
  decltype(all_kernels<float>(BuiltinPotentials(), BuiltinRewards())) parts;
  const ScoreKernelSet& (*scores)();
  // The normals of Noise::normals().
  void (*normals)(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups, float* out);
  // The random bits that normals are made of, as they lie in memory; first_group must be a multiple of 4, and out has
  // room for whole blocks.
  void (*bits)(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups, float* out);
  // Samples of a mixture from normals and, for the choice of the component, bits of a stream of dimension 1.
  void (*mixture_samples)(const MixtureTable& mixture, const Block<float>& x, const float* normals, const float* bits);
  // exp2_fixed() of 16 numbers of each group, for benchmarks.
  void (*exponentials)(const float* in, std::size_t groups, float* out);
  // The joint pass of a ring, for benchmarks.
  void (*ring_by_hand)(const RingByHand& v, const Block<float>& x, const Pass<float>& request);
  void (*ring_by_duals)(const RingByDuals& v, const Block<float>& x, const Pass<float>& request);
};

const KernelSet& kernels_of(Isa level);
const KernelSet& active_kernels();

}  // namespace implicit_diffusion
