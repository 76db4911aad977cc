// A diffusion model of images, from a folder or new: network, noise schedule, and samples of it.
#pragma once

#include "implicit_diffusion/denoising/chain.hpp"
#include "implicit_diffusion/denoising/discrete_schedule.hpp"
#include "implicit_diffusion/torch/model.hpp"
#include "implicit_diffusion/torch/steps.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace implicit_diffusion {

struct Diffusion {
  ModelFolder folder;
  Network network;
  TensorParameters theta;
  DiscreteSchedule schedule;
  Prediction prediction;
  double horizon;  // of chains

  std::int64_t classes() const { return folder.network.classes().value_or(0); }
  // What the numbers of the network mean.
  NetworkMeaning meaning() const;
  // Chains of it, with noise of a seed. `frozen`: what those of a frozen network of the same layout mean, where it has
  // learnt something else.
  NetworkSteps steps(const Noise& noise, Workers* workers, std::size_t shard = default_shard,
                     const std::optional<NetworkMeaning>& frozen = {}) const;
};

// A folder without a scheduler is taken to be one of DDPMScheduler's defaults. Throws what load_model throws, and a
// data Error for what chains cannot use: a network that predicts x_0 or a variance too.
Diffusion load_diffusion(const std::filesystem::path& folder);

// A model to be trained here: the cosine schedule of 988 times.
Diffusion new_diffusion(const UNetConfig& network, const Noise& noise, Prediction prediction, double horizon,
                        bool zero_outputs = true);
// The folder of it, or of what it became.
void save_diffusion(const std::filesystem::path& folder, const Diffusion& model, const TensorParameters& theta);

// ---- samples

// n places for samples, with labels i mod classes where there are classes; all here or spread over processes. Throws a
// usage Error where a given label is not one.
TensorSamples places(const Diffusion& model, std::size_t n, std::size_t shard = default_shard,
                     const std::vector<std::int64_t>& labels = {}, Processes* processes = nullptr);

struct ImageSamples {
  TensorSamples images;         // spread as the places are
  std::vector<double> path_kl;  // of each on all processes, to the frozen model; empty where there is none
};
struct ImageChain {
  TimeGrid grid;
  Dynamics dynamics = Dynamics::euler_sde;
  LastStep last_step = LastStep::mean;
};
// The whole chain of every place, at theta; the same seed of `steps` gives the same noise at any theta.
ImageSamples sample_images(const NetworkSteps& steps, const TensorParameters& theta, const ImageChain& options,
                           const TensorSamples& places, const std::optional<TensorParameters>& frozen = {});

// As diffusers samples: `count` of the schedule's times, DDPM or DDIM (eta scales its noise), with clipping where the
// scheduler says so. `start`, where it is defined, is the noise to begin with, of the samples here.
enum class DiscreteSampler { ddpm, ddim };
TensorSamples sample_discrete(const Diffusion& model, const TensorParameters& theta, DiscreteSampler sampler,
                              std::size_t count, double eta, const TensorSamples& places, const Noise& noise,
                              Workers* workers, const at::Tensor& start = {});

}  // namespace implicit_diffusion
