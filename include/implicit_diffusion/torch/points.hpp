// Points in R^d between the two forms of samples: populations of the SIMD engine, and tensors.
#pragma once

#include "implicit_diffusion/langevin/terms.hpp"
#include "implicit_diffusion/population.hpp"
#include "implicit_diffusion/torch/energy.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// Of a population that is all here; of processes, each keeps its part.
TensorSamples to_samples(const Population<float>& x, std::size_t shard = default_shard, Processes* processes = nullptr);
// Of those that are here.
Population<float> to_population(const TensorSamples& x);

// What is drawn for particles, for a network: reference samples of the one as those of the other. Processes draw all of
// them, which costs little beside a network, and each keeps its part.
class PointsReference final : public Reference<NetworkEnergy> {
 public:
  explicit PointsReference(std::unique_ptr<Reference<float>> points, std::size_t shard = default_shard,
                           Processes* processes = nullptr)
      : points_(std::move(points)), shard_(shard), processes_(processes) {}

  const TensorSamples& batch(std::int64_t step) override {
    batch_ = to_samples(points_->batch(step), shard_, processes_);
    return batch_;
  }

 private:
  std::unique_ptr<Reference<float>> points_;
  std::size_t shard_;
  Processes* processes_;
  TensorSamples batch_;
};

// V at points, (x_1, ..., x_d) one after the other; energy.prepare() was called. Processes share the work, and all have
// the result.
std::vector<double> energies_at(const NetworkEnergy& energy, std::span<const double> points, Workers* workers = nullptr,
                                Processes* processes = nullptr);

}  // namespace implicit_diffusion
