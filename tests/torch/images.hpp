// A reverse chain of small images, which tests of the network engine share.
#pragma once

#include "implicit_diffusion/denoising/sampler.hpp"
#include "torch/networks.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace implicit_diffusion::torch_tests {

using Batch = PathBatch<NetworkSteps>;
using Chain = ReverseChain<NetworkSteps>;

inline const Noise noise(7);
inline const DenoisingStart<NetworkSteps> fresh{Noise(9)};
inline constexpr DenoisingObjective objective{.lambda = 1.3, .beta = 0.7};

inline std::optional<std::pair<NetworkWeights, TensorParameters>> frozen_at(const TensorParameters& theta) {
  return std::pair{NetworkWeights{}, theta};
}

// A network with weights, those of a frozen one, and 11 places for samples.
struct Images {
  Network network = small_images();
  TimeGrid grid = cosine_grid(6);
  TensorParameters theta, frozen;
  TensorSamples start;

  explicit Images(at::ScalarType type, std::size_t n = 11, std::size_t shard = default_shard, bool labelled = true)
      : theta(initial_parameters(network.layout, Noise(1), type)),
        frozen(initial_parameters(network.layout, Noise(2), type)) {
    at::Tensor labels;
    if (labelled) labels = at::arange(static_cast<std::int64_t>(n), at::kLong).remainder(3);
    // A weight that begins at zero would hide what it is multiplied with.
    for (TensorParameters* p : {&theta, &frozen})
      p->edit().narrow(0, static_cast<std::int64_t>(p->size()) - 12, 12).fill_(0.3);
    start = TensorSamples(at::zeros({static_cast<std::int64_t>(n), 1, 6, 6}, type), labels, shard);
  }
  NetworkSteps steps(Prediction prediction, Workers* workers = nullptr) const {
    return NetworkSteps(network,
                        {.prediction = prediction, .noise = noise, .workers = workers, .shard = start.shard()});
  }
};

}  // namespace implicit_diffusion::torch_tests
