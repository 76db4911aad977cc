// The kernels of the built-in parts. This file is compiled once for each level, with that level's compiler options; its functions are in a
// namespace of the level, and nothing in it may become a symbol that levels share.
//
// With IMPLICIT_DIFFUSION_PLAIN it is compiled over single floats instead of lanes: the reference that tests compare the lanes with.
#include "kernel_table.hpp"

#include "implicit_diffusion/simd/lanes.hpp"

#include <type_traits>

namespace implicit_diffusion::kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {
namespace {

// The words of a vector of 16 lanes: all lanes at once, or one after the other.
template <class Real>
using Word = std::conditional_t<width<Real> == noise_lanes, WordLanes, std::uint32_t>;

// Philox blocks first_block to last_block - 1: 4 vectors of 16 words each, as bits.
template <class Real>
[[gnu::always_inline]] inline void fill_bits(const NoiseKey& at, std::size_t first_block, std::size_t last_block,
                                             float* out) {
  const PhiloxRounds<Word<Real>> keys(at.key);
  const Word<Real> c1(at.counter[0]), c2(at.counter[1]), c3(at.counter[2]);
  // N blocks at once.
  [[maybe_unused]] const WordLanes index = WordLanes::index();
  const auto some = [&]<std::size_t N>(std::size_t block, float* to, std::integral_constant<std::size_t, N>)
      __attribute__((always_inline)) {
    std::array<Word<Real>, 4> words[N];
    const auto base = [&](std::size_t n) { return static_cast<std::uint32_t>((block + n) * noise_lanes); };
    if constexpr (width<Real> == noise_lanes) {
      for (std::size_t n = 0; n < N; ++n) words[n] = {index + WordLanes(base(n)), c1, c2, c3};
      philox(words, keys);
      for (std::size_t n = 0; n < N; ++n)
        for (std::size_t word = 0; word < 4; ++word)
          store(as_real(static_cast<IntegerLanes>(words[n][word])), to + (4 * n + word) * noise_lanes);
    } else {
      for (std::uint32_t lane = 0; lane < noise_lanes; ++lane) {
        for (std::size_t n = 0; n < N; ++n) words[n] = {base(n) + lane, c1, c2, c3};
        philox(words, keys);
        for (std::size_t n = 0; n < N; ++n)
          for (std::size_t word = 0; word < 4; ++word)
            to[(4 * n + word) * noise_lanes + lane] = as_real(static_cast<std::int32_t>(words[n][word]));
      }
    }
  };
  std::size_t block = first_block;
  for (; block + 2 <= last_block; block += 2, out += 8 * noise_lanes)
    some(block, out, std::integral_constant<std::size_t, 2>{});
  if (block < last_block) some(block, out, std::integral_constant<std::size_t, 1>{});
}

// Pairs of vectors of bits become pairs of vectors of normals, in place. Apart from fill_bits, so that each loop has registers for itself.
template <class Real>
[[gnu::always_inline]] inline void bits_to_normals(std::size_t pairs, float* out) {
  for (std::size_t pair = 0; pair < pairs; ++pair, out += 2 * noise_lanes)
    for (std::size_t lane = 0; lane < noise_lanes; lane += width<Real>) {
      const NormalPair<Real> z =
          box_muller<Real>(as_integer(load<Real>(out + lane)), as_integer(load<Real>(out + noise_lanes + lane)));
      store(z.first, out + lane);
      store(z.second, out + noise_lanes + lane);
    }
}

template <class Real>
[[gnu::flatten]] void normals(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups,
                              float* out) {
  // Vectors first to last - 1 are asked for; whole blocks of 4 among them are made in place, parts of one at either end apart.
  const std::size_t first = first_group * dimension, last = (first_group + groups) * dimension;
  const std::size_t whole_first = (first + 3) / 4, whole_last = last / 4;
  const auto part = [&](std::size_t block, std::size_t from, std::size_t to) {
    alignas(64) float vectors[4 * noise_lanes];
    fill_bits<Real>(at, block, block + 1, vectors);
    bits_to_normals<Real>(2, vectors);
    for (std::size_t i = (from - 4 * block) * noise_lanes; i < (to - 4 * block) * noise_lanes; ++i)
      out[(4 * block - first) * noise_lanes + i] = vectors[i];
  };
  if (whole_first > whole_last) return part(whole_last, first, last);
  if (first < 4 * whole_first) part(whole_first - 1, first, 4 * whole_first);
  // A few blocks at a time, so that the bits are still in the first-level cache.
  constexpr std::size_t some = 16;
  for (std::size_t block = whole_first; block < whole_last; block += some) {
    const std::size_t stop = block + some < whole_last ? block + some : whole_last;
    float* to = out + (4 * block - first) * noise_lanes;
    fill_bits<Real>(at, block, stop, to);
    bits_to_normals<Real>(2 * (stop - block), to);
  }
  if (4 * whole_last < last) part(whole_last, 4 * whole_last, last);
}

template <class Real>
[[gnu::flatten]] void bits(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups,
                           float* out) {
  fill_bits<Real>(at, first_group * dimension / 4, ((first_group + groups) * dimension + 3) / 4, out);
}

// The component is the number of bounds that a uniform number is not below; means and factors follow it bound by bound, without a branch.
template <class Real>
[[gnu::flatten]] void mixture_samples(const MixtureTable& m, const Block<float>& samples, const float* normals,
                                      const float* words) {
  const Block<float> x = samples;
  const std::size_t d = m.dimension, numbers = m.numbers_per_component();
  const auto* bound = m.bounds.of<Real>();
  const auto* component = m.components.of<Real>();
  auto* chosen = static_cast<Real*>(kernel_scratch(numbers * sizeof(Real)));
  for (std::size_t i = 0; i < x.size; i += width<Real>) {
    const std::size_t group = i / noise_lanes, lane = i % noise_lanes;
    const Real u = to_real(shift_right_logical<8>(as_integer(load<Real>(words + i)))) * Real(0x1p-24f);
    for (std::size_t k = 0; k < numbers; ++k) chosen[k] = Real(component[k]);
    for (std::size_t c = 1; c < m.size; ++c) {
      const auto beyond = u >= Real(bound[c - 1]);
      for (std::size_t k = 0; k < numbers; ++k) chosen[k] = select(beyond, Real(component[c * numbers + k]), chosen[k]);
    }
    // x_a = mean_a + sum_b L_ab z_b, b <= a.
    for (std::size_t a = 0, k = d; a < d; ++a) {
      Real sum = chosen[a];
      for (std::size_t b = 0; b <= a; ++b, ++k)
        sum = fma(chosen[k], load<Real>(normals + (group * d + b) * noise_lanes + lane), sum);
      store(sum, x.data + a * x.stride + i);
    }
  }
}

template <class Real>
[[gnu::flatten]] void exponentials(const float* in, std::size_t groups, float* out) {
  for (std::size_t i = 0; i < groups * noise_lanes; i += width<Real>) store(exp2_fixed(load<Real>(in + i)), out + i);
}

template <class N>
constexpr KernelSet make_set() {
  return {make_potential_kernels<N, Quadratic>(),
          make_potential_kernels<N, SoftmaxWells>(),
          make_potential_kernels<N, LogisticWells>(),
          make_potential_kernels<N, Mixture>(),
          make_reward_kernels<N, HardReward>(),
          make_reward_kernels<N, SmoothReward>(),
          make_reward_kernels<N, BumpReward>(),
          make_reward_kernels<N, QuadraticReward>(),
          &normals<N>,
          &bits<N>,
          &mixture_samples<N>,
          &exponentials<N>,
          &pass<N, 2, Wanted::step_and_sums, false, RingByHand>,
          &pass<N, 2, Wanted::step_and_sums, false, RingByDuals>};
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
