#include "implicit_diffusion/random/noise.hpp"

#include <algorithm>

namespace implicit_diffusion {
namespace {

// Where a request is found: block c0, word of it.
struct Place {
  std::uint32_t block;
  std::size_t word;
};

Place place(std::size_t dimension, std::size_t sample, std::size_t coordinate) {
  const std::size_t vector = (sample / noise_lanes) * dimension + coordinate;
  return {static_cast<std::uint32_t>((vector / 4) * noise_lanes + sample % noise_lanes), vector % 4};
}

std::array<std::uint32_t, 4> words(const NoiseKey& at, std::uint32_t block) {
  return philox<std::uint32_t>({block, at.counter[0], at.counter[1], at.counter[2]}, at.key);
}

// Vectors 4 block to 4 block + 3.
[[gnu::always_inline]] inline void fill_block(const NoiseKey& at, std::size_t block, float* out) {
  for (std::size_t lane = 0; lane < noise_lanes; ++lane) {
    const std::array<float, 4> z = block_normals<float>(at, static_cast<std::uint32_t>(block * noise_lanes + lane));
    for (std::size_t word = 0; word < 4; ++word) out[word * noise_lanes + lane] = z[word];
  }
}

}  // namespace

NoiseKey Noise::at(Stream stream, Moment moment) const {
  const auto round = static_cast<std::uint64_t>(moment.round);
  const auto high = static_cast<std::uint32_t>(round >> 32) & 0xffffffu;
  return {{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)},
          {static_cast<std::uint32_t>(moment.index), static_cast<std::uint32_t>(round),
           static_cast<std::uint32_t>(stream) << 24 | high}};
}

float Noise::normal(Stream stream, Moment moment, std::size_t dimension, std::size_t sample,
                    std::size_t coordinate) const {
  const Place p = place(dimension, sample, coordinate);
  const std::array<std::uint32_t, 4> w = words(at(stream, moment), p.block);
  const std::size_t pair = p.word & ~std::size_t{1};
  const NormalPair<float> z =
      box_muller<float>(static_cast<std::int32_t>(w[pair]), static_cast<std::int32_t>(w[pair + 1]));
  return p.word == pair ? z.first : z.second;
}

std::uint32_t Noise::bits(Stream stream, Moment moment, std::size_t dimension, std::size_t sample,
                          std::size_t coordinate) const {
  const Place p = place(dimension, sample, coordinate);
  return words(at(stream, moment), p.block)[p.word];
}

double Noise::uniform(Stream stream, Moment moment, std::size_t dimension, std::size_t sample,
                      std::size_t coordinate) const {
  return (bits(stream, moment, dimension, sample, coordinate) + 0.5) * 0x1p-32;
}

void Noise::normals(Stream stream, Moment moment, std::size_t dimension, std::size_t first_group, std::size_t groups,
                    float* out) const {
  const NoiseKey key = at(stream, moment);
  const std::size_t end = (first_group + groups) * dimension;
  std::size_t vector = first_group * dimension;
  while (vector < end) {
    const std::size_t block = vector / 4;
    if (vector % 4 == 0 && vector + 4 <= end) {
      fill_block(key, block, out);
      vector += 4;
      out += 4 * noise_lanes;
    } else {  // a block of which only a part is asked for: the first and the last
      float whole[4 * noise_lanes];
      fill_block(key, block, whole);
      const std::size_t stop = std::min(end, 4 * (block + 1));
      out = std::copy(whole + vector % 4 * noise_lanes, whole + (stop - 4 * block) * noise_lanes, out);
      vector = stop;
    }
  }
}

}  // namespace implicit_diffusion
