#include "implicit_diffusion/torch/points.hpp"

#include <ATen/ATen.h>

namespace implicit_diffusion {

TensorSamples to_samples(const Population<float>& x, std::size_t shard) {
  const std::size_t d = x.dimension();
  TensorSamples samples(x.size(), {static_cast<std::int64_t>(d)}, at::kFloat, shard);
  auto* to = samples.x().data_ptr<float>();
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < d; ++j) *to++ = x(i, j);
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

std::vector<double> energies_at(const NetworkEnergy& energy, std::span<const double> points, Workers* workers) {
  const TensorSamples x = [&] {
    TensorSamples samples = energy.samples(points.size() / energy.dimension());
    const at::Tensor given = at::empty(samples.x().sizes(), at::kDouble);
    std::copy(points.begin(), points.end(), given.data_ptr<double>());
    samples.x().copy_(given);
    return samples;
  }();
  TensorNumbers v = TensorTiles::numbers(x);
  TensorTiles::for_each(workers, TensorTiles::tiles(x), [&](std::size_t k) {
    energy.add_values(TensorTiles::tile(x, k), 1, TensorTiles::numbers_of(v, k));
  });
  return std::move(v.values);
}

}  // namespace implicit_diffusion
