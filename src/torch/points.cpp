#include "implicit_diffusion/torch/points.hpp"

#include <ATen/ATen.h>

namespace implicit_diffusion {

TensorSamples to_samples(const Population<float>& x, std::size_t shard, Processes* processes) {
  const std::size_t d = x.dimension();
  TensorSamples samples(x.size(), {static_cast<std::int64_t>(d)}, at::kFloat, shard, processes);
  auto* to = samples.x().data_ptr<float>();
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (std::size_t j = 0; j < d; ++j) *to++ = x(samples.first() + i, j);
  return samples;
}

Population<float> to_population(const TensorSamples& x) {
  const at::Tensor numbers = x.x().to(at::kFloat).contiguous();
  const auto* from = numbers.data_ptr<float>();
  Population<float> points(x.size(), x.dimension());
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = 0; j < points.dimension(); ++j) points(i, j) = *from++;
  return points;
}

std::vector<double> energies_at(const NetworkEnergy& energy, std::span<const double> points, Workers* workers,
                                Processes* processes) {
  const std::size_t d = energy.dimension();
  const TensorSamples x = energy.samples(points.size() / d, processes);
  const at::Tensor given = at::empty(x.x().sizes(), at::kDouble);
  std::copy_n(points.begin() + static_cast<std::ptrdiff_t>(x.first() * d), x.size() * d, given.data_ptr<double>());
  x.x().copy_(given);
  TensorNumbers v = TensorTiles::numbers(x);
  TensorTiles::for_each(workers, TensorTiles::tiles(x), [&](std::size_t k) {
    energy.add_values(TensorTiles::tile(x, k), 1, TensorTiles::numbers_of(v, k));
  });
  return gathered(v);
}

}  // namespace implicit_diffusion
