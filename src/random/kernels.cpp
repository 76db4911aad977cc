// The kernels of the noise, compiled once for each level as those of src/langevin/kernels.cpp are.
#include "kernels.hpp"

#include <array>
#include <type_traits>

namespace implicit_diffusion::kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {
namespace {

constexpr std::size_t block_floats = 4 * noise_lanes;  // a block of Philox serves 4 vectors

// Philox at one key.
template <class Real>
class Bits {
 public:
  // The words of a vector of 16 lanes: all lanes at once, or one after the other.
  using Word = std::conditional_t<width<Real> == noise_lanes, WordLanes, std::uint32_t>;

  [[gnu::always_inline]] explicit Bits(const NoiseKey& at)
      : keys_(at.key), c1_(at.counter[0]), c2_(at.counter[1]), c3_(at.counter[2]) {}

  // N blocks from `block` on, as bits; lanes have between(round) in between.
  template <std::size_t N, class Between = Nothing>
  [[gnu::always_inline]] void fill(std::size_t block, float* out, const Between& between = {}) const {
    std::array<Word, 4> words[N];
    const auto base = [&](std::size_t n) { return static_cast<std::uint32_t>((block + n) * noise_lanes); };
    if constexpr (width<Real> == noise_lanes) {
      for (std::size_t n = 0; n < N; ++n) words[n] = {index_ + WordLanes(base(n)), c1_, c2_, c3_};
      philox(words, keys_, between);
      for (std::size_t n = 0; n < N; ++n)
        for (std::size_t word = 0; word < 4; ++word)
          store(as_real(static_cast<IntegerLanes>(words[n][word])), out + n * block_floats + word * noise_lanes);
    } else {
      for (std::uint32_t lane = 0; lane < noise_lanes; ++lane) {
        for (std::size_t n = 0; n < N; ++n) words[n] = {base(n) + lane, c1_, c2_, c3_};
        philox(words, keys_);
        for (std::size_t n = 0; n < N; ++n)
          for (std::size_t word = 0; word < 4; ++word)
            out[n * block_floats + word * noise_lanes + lane] = as_real(static_cast<std::int32_t>(words[n][word]));
      }
    }
  }
  [[gnu::always_inline]] void fill(std::size_t block, std::size_t last, float* out) const {
    for (; block + 2 <= last; block += 2, out += 2 * block_floats) fill<2>(block, out);
    if (block < last) fill<1>(block, out);
  }

 private:
  PhiloxRounds<Word> keys_;
  Word c1_, c2_, c3_;
  WordLanes index_ = WordLanes::index();
};

// Pairs of vectors of bits become pairs of vectors of normals, in place.
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

// Blocks first to last - 1 as normals: bits and normals in loops of their own, over so few blocks that the bits are
// still in the first-level cache.
template <class Real>
[[gnu::always_inline]] inline void fill_normals(const NoiseKey& at, std::size_t first, std::size_t last, float* out) {
  const Bits<Real> generator(at);
  constexpr std::size_t some = 16;
  for (; first < last; first += some, out += some * block_floats) {
    const std::size_t stop = first + some < last ? first + some : last;
    generator.fill(first, stop, out);
    bits_to_normals<Real>(2 * (stop - first), out);
  }
}

// The same, two blocks at a time: their bits, and between the rounds of Philox the normals of the two before, step by
// step. Philox keeps the units for shifts and logic busy, Box and Muller those for products; it takes 32 registers.
// Returns the first block that is left.
[[gnu::always_inline]] inline std::size_t fill_normals_between_rounds(const NoiseKey& at, std::size_t first,
                                                                      std::size_t last, float* out) {
  if (first + 2 > last) return first;
  const Bits<Lanes> generator(at);
  generator.fill<2>(first, out);
  for (first += 2; first + 2 <= last; first += 2, out += 2 * block_floats) {
    BoxMullerSteps<Lanes> z[4];
    const auto between = [&](auto round) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k) {
        float* pair = out + k * 2 * noise_lanes;
        if constexpr (round == 0) {
          z[k].begin(as_integer(load<Lanes>(pair)), as_integer(load<Lanes>(pair + noise_lanes)));
        } else if constexpr (round < 9) {
          z[k].template next<round>();
        } else {
          const NormalPair<Lanes> normal = z[k].end();
          store(normal.first, pair);
          store(normal.second, pair + noise_lanes);
        }
      }
    };
    generator.fill<2>(first, out + 2 * block_floats, between);
  }
  bits_to_normals<Lanes>(4, out);
  return first;
}

// Vectors from to to - 1 of a block.
template <class Real>
[[gnu::flatten, gnu::noinline]] void part_of_normals(const NoiseKey& at, std::size_t block, std::size_t from,
                                                     std::size_t to, float* out) {
  alignas(64) float vectors[block_floats];
  fill_normals<Real>(at, block, block + 1, vectors);
  for (std::size_t i = from * noise_lanes; i < to * noise_lanes; ++i) *out++ = vectors[i];
}

}  // namespace

template <class Real>
[[gnu::flatten]] void normals(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups,
                              float* out) {
  // Vectors first to last - 1 are asked for; whole blocks of 4 among them are made in place, parts of one at either end
  // apart.
  const std::size_t first = first_group * dimension, last = (first_group + groups) * dimension;
  std::size_t block = first / 4;
  const auto place = [&] { return out + (4 * block - first) * noise_lanes; };
  if (last / 4 == block && first % 4 != 0) return part_of_normals<Real>(at, block, first % 4, last % 4, out);
  if (first % 4 != 0) part_of_normals<Real>(at, block++, first % 4, 4, out);
  if constexpr (width<Real> == noise_lanes && native_parts == 1)
    block = fill_normals_between_rounds(at, block, last / 4, place());
  if (block < last / 4) fill_normals<Real>(at, block, last / 4, place());
  block = last / 4;
  if (last % 4 != 0) part_of_normals<Real>(at, block, 0, last % 4, place());
}

template <class Real>
[[gnu::flatten]] void bits(const NoiseKey& at, std::size_t dimension, std::size_t first_group, std::size_t groups,
                           float* out) {
  Bits<Real>(at).fill(first_group * dimension / 4, ((first_group + groups) * dimension + 3) / 4, out);
}

template void normals<Chosen>(const NoiseKey&, std::size_t, std::size_t, std::size_t, float*);
template void bits<Chosen>(const NoiseKey&, std::size_t, std::size_t, std::size_t, float*);

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace implicit_diffusion::kernel
