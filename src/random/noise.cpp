#include "implicit_diffusion/random/noise.hpp"

#include "../langevin/kernel_table.hpp"

#include <vector>

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
  // From a whole group: one number alone, compiled here, would miss the fma of the kernels.
  std::vector<float> group(dimension * noise_lanes);
  normals(stream, moment, dimension, sample / noise_lanes, 1, group.data());
  return group[coordinate * noise_lanes + sample % noise_lanes];
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
  active_kernels().normals(at(stream, moment), dimension, first_group, groups, out);
}

}  // namespace implicit_diffusion
