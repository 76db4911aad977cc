#include "implicit_diffusion/random/noise.hpp"

#include "../langevin/kernel_table.hpp"

#include <vector>

namespace implicit_diffusion {

NoiseKey Noise::at(Stream stream, StepKey step) const {
  const auto round = static_cast<std::uint64_t>(step.round);
  const auto high = static_cast<std::uint32_t>(round >> 32) & 0xffffffu;
  return {{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)},
          {static_cast<std::uint32_t>(step.index), static_cast<std::uint32_t>(round),
           static_cast<std::uint32_t>(stream) << 24 | high}};
}

float Noise::normal(Stream stream, StepKey step, std::size_t dimension, std::size_t sample,
                    std::size_t coordinate) const {
  // From a whole group: one number alone, compiled here, would miss the fma of the kernels.
  std::vector<float> group(dimension * noise_lanes);
  normals(stream, step, dimension, sample / noise_lanes, 1, group.data());
  return group[coordinate * noise_lanes + sample % noise_lanes];
}

std::uint32_t Noise::bits(Stream stream, StepKey step, std::size_t dimension, std::size_t sample,
                          std::size_t coordinate) const {
  const NoiseKey key = at(stream, step);
  const std::size_t vector = (sample / noise_lanes) * dimension + coordinate;
  const auto block = static_cast<std::uint32_t>((vector / 4) * noise_lanes + sample % noise_lanes);
  return philox<std::uint32_t>({block, key.counter[0], key.counter[1], key.counter[2]}, key.key)[vector % 4];
}

double Noise::uniform(Stream stream, StepKey step, std::size_t dimension, std::size_t sample,
                      std::size_t coordinate) const {
  return (bits(stream, step, dimension, sample, coordinate) + 0.5) * 0x1p-32;
}

void Noise::normals(Stream stream, StepKey step, std::size_t dimension, std::size_t first_group, std::size_t groups,
                    float* out) const {
  active_kernels().normals(at(stream, step), dimension, first_group, groups, out);
}

}  // namespace implicit_diffusion
