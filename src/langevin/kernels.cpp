// The kernels of the built-in parts. This file is compiled once for each level, with that level's compiler options; its functions are in a
// namespace of the level, and nothing in it may become a symbol that levels share.
//
// With IMPLICIT_DIFFUSION_PLAIN it is compiled over single floats instead of lanes: the reference that tests compare the lanes with.
#include "kernel_table.hpp"

#include "implicit_diffusion/simd/lanes.hpp"

namespace implicit_diffusion::kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {
namespace {

// The normals of Philox blocks, 4 vectors of 16 at a time: with lanes the 16 blocks of a vector at once, without them one after the other.
template <class Real>
[[gnu::always_inline]] inline void fill(const NoiseKey& at, std::size_t block, float* out) {
  const auto base = static_cast<std::uint32_t>(block * noise_lanes);
  if constexpr (width<Real> == noise_lanes) {
    const std::array<Real, 4> z = block_normals<Real>(at, WordLanes::counting_from(base));
    for (std::size_t word = 0; word < 4; ++word) store(z[word], out + word * noise_lanes);
  } else {
    for (std::uint32_t lane = 0; lane < noise_lanes; ++lane) {
      const std::array<Real, 4> z = block_normals<Real>(at, base + lane);
      for (std::size_t word = 0; word < 4; ++word) out[word * noise_lanes + lane] = z[word];
    }
  }
}

template <class Real>
[[gnu::flatten]] void normals(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups, float* out) {
  const std::size_t end = (first_group + groups) * dimension;
  std::size_t vector = first_group * dimension;
  while (vector < end) {
    const std::size_t block = vector / 4;
    if (vector % 4 == 0 && vector + 4 <= end) {
      fill<Real>(at, block, out);
      vector += 4;
      out += 4 * noise_lanes;
    } else {  // a block of which only a part is asked for: the first and the last
      alignas(64) float whole[4 * noise_lanes];
      fill<Real>(at, block, whole);
      const std::size_t stop = end < 4 * (block + 1) ? end : 4 * (block + 1);
      for (std::size_t i = (vector - 4 * block) * noise_lanes; i < (stop - 4 * block) * noise_lanes; ++i) *out++ = whole[i];
      vector = stop;
    }
  }
}

template <class N>
constexpr KernelSet make_set() {
  return {make_potential_kernels<N, Quadratic>(),    make_potential_kernels<N, SoftmaxWells>(),
          make_potential_kernels<N, LogisticWells>(), make_potential_kernels<N, Mixture>(),
          make_reward_kernels<N, HardReward>(),       make_reward_kernels<N, SmoothReward>(),
          make_reward_kernels<N, BumpReward>(),       make_reward_kernels<N, QuadraticReward>(),
          &normals<N>};
}

}  // namespace

#ifdef IMPLICIT_DIFFUSION_PLAIN
extern const KernelSet plain_kernels;
const KernelSet plain_kernels = make_set<float>();
#else
extern const KernelSet lane_kernels;
const KernelSet lane_kernels = make_set<Lanes>();
#endif

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace implicit_diffusion::kernel
