#include "implicit_diffusion/images/diffusion.hpp"

#include "implicit_diffusion/denoising/sampler.hpp"
#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace implicit_diffusion {

namespace {

using Scheduled = SchedulerConfig::Prediction;

Prediction prediction_of(const SchedulerConfig& config, const std::string& where) {
  if (config.prediction_type == Scheduled::epsilon) return Prediction::epsilon;
  if (config.prediction_type == Scheduled::v_prediction) return Prediction::v;
  throw Error(ErrorKind::data, where, "a network that predicts the sample itself cannot be used here");
}

}  // namespace

NetworkMeaning Diffusion::meaning() const {
  return {prediction, [times = std::make_shared<const DiscreteSchedule>(schedule)](double tau) {
            return times->network_time(tau);
          }};
}

NetworkSteps Diffusion::steps(const Noise& noise, Workers* workers, std::size_t shard,
                              const std::optional<NetworkMeaning>& frozen) const {
  NetworkMeaning own = meaning();
  return NetworkSteps(network, {.prediction = own.prediction,
                                .time = std::move(own.time),
                                .frozen = frozen,
                                .noise = noise,
                                .workers = workers,
                                .shard = shard,
                                .classes = classes()});
}

Diffusion load_diffusion(const std::filesystem::path& folder) {
  NetworkModel model = load_model(folder);
  const SchedulerConfig scheduler = model.folder.scheduler.value_or(SchedulerConfig{});
  const UNetConfig& net = model.folder.network;
  if (net.out_channels != net.in_channels)
    throw Error(ErrorKind::data, folder.string(),
                fmt::format("a network of {} channels that predicts {} cannot be used here", net.in_channels,
                            net.out_channels));
  if (net.class_embed_type)
    throw Error(ErrorKind::data, folder.string(),
                "labels that are embedded otherwise than by a table are not used here");
  const auto schedule = [&] {
    try {
      return DiscreteSchedule(scheduler);
    } catch (const Error& e) {
      throw Error(ErrorKind::data, folder.string(), e.what());
    }
  }();
  const double horizon = model.folder.origin ? model.folder.origin->horizon : schedule.horizon();
  return {std::move(model.folder),
          std::move(model.network),
          std::move(model.theta),
          schedule,
          prediction_of(scheduler, folder.string()),
          horizon};
}

Diffusion new_diffusion(const UNetConfig& network, const Noise& noise, Prediction prediction, double horizon,
                        bool zero_outputs) {
  SchedulerConfig scheduler = cosine_scheduler_config();
  scheduler.prediction_type = prediction == Prediction::v ? Scheduled::v_prediction : Scheduled::epsilon;
  scheduler.clip_sample = false;
  ModelOrigin origin;
  origin.horizon = horizon;
  origin.patch = network.patch;
  origin.prediction = scheduler.prediction_type;
  return {{.network = network, .scheduler = scheduler, .origin = origin, .index_keys = {}},
          make_unet(network),
          initial_unet(network, noise, zero_outputs),
          DiscreteSchedule(scheduler),
          prediction,
          horizon};
}

void save_diffusion(const std::filesystem::path& folder, const Diffusion& model, const TensorParameters& theta) {
  save_model(folder, model.folder, theta);
}

TensorSamples places(const Diffusion& model, std::size_t n, std::size_t shard, const std::vector<std::int64_t>& labels,
                     Processes* processes) {
  TensorSamples plain(n, model.network.sample, at::kFloat, shard, processes);
  const std::int64_t classes = model.classes();
  if (classes == 0) {
    if (!labels.empty()) throw Error(ErrorKind::usage, "labels", "the model has none");
    return plain;
  }
  const at::Tensor all = at::empty({static_cast<std::int64_t>(n)}, at::kLong);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t label = labels.empty() ? static_cast<std::int64_t>(i) % classes : labels[i % labels.size()];
    if (label < 0 || label >= classes)
      throw Error(ErrorKind::usage, "labels", fmt::format("{}: the model has classes 0 to {}", label, classes - 1));
    all.data_ptr<std::int64_t>()[i] = label;
  }
  plain.set_labels(all);
  return plain;
}

ImageSamples sample_images(const NetworkSteps& steps, const TensorParameters& theta, const ImageChain& options,
                           const TensorSamples& places, const std::optional<TensorParameters>& frozen) {
  std::optional<std::pair<NetworkWeights, TensorParameters>> to;
  if (frozen) to.emplace(NetworkSteps::model(), *frozen);
  ReverseChain<NetworkSteps> chain(
      steps, options.grid,
      {.dynamics = options.dynamics, .keep_every = options.grid.steps(), .last_step = options.last_step},
      std::move(to));
  auto batch = PathBatch<NetworkSteps>::of(places);
  DenoisingStart<NetworkSteps>{steps.options().noise}.draw(batch, 0);
  DenoisingSampler<NetworkSteps>(chain).advance(batch, theta, {});
  std::vector<double> path_kl = gathered(batch.penalty);
  return {std::move(batch.points), std::move(path_kl)};
}

TensorSamples sample_discrete(const Diffusion& model, const TensorParameters& theta, DiscreteSampler sampler,
                              std::size_t count, double eta, const TensorSamples& places, const Noise& noise,
                              Workers* workers, const at::Tensor& start) {
  const std::vector<std::int64_t> times = model.schedule.timesteps(count);
  std::vector<DiscreteStep> steps;
  for (std::size_t n = 0; n < times.size(); ++n) {
    const std::int64_t next = n + 1 < times.size() ? times[n + 1] : -1;
    const std::int64_t stride = static_cast<std::int64_t>(model.schedule.size() / count);
    steps.push_back(sampler == DiscreteSampler::ddpm
                        ? model.schedule.ddpm_step(times[n], next)
                        : model.schedule.ddim_step(times[n], std::max<std::int64_t>(times[n] - stride, -1), eta));
  }
  TensorSamples x = places;
  if (start.defined())
    x.x().copy_(start);
  else
    TensorTiles::fill_normals(x, noise, Stream::initial, {});
  const std::vector<at::Tensor> weights = weights_of(model.network.layout, theta);
  TensorTiles::for_each(workers, TensorTiles::tiles(x), [&](std::size_t k) {
    const at::NoGradGuard no_graph;
    const TensorTile tile = TensorTiles::tile(x, k);
    const at::Tensor labels = detail::fill_up(tile.labels, tile.shard);
    for (std::size_t n = 0; n < steps.size(); ++n) {
      const at::Tensor y = detail::fill_up(tile.x, tile.shard);
      const at::Tensor t = at::full({y.size(0)}, static_cast<double>(times[n]), y.options());
      const at::Tensor m = evaluate(model.network, weights, {y, t, labels}).narrow(0, 0, tile.size());
      const DiscreteStep& s = steps[n];
      at::Tensor x0 = s.sample * tile.x + s.output * m;
      if (std::isfinite(s.clip)) x0.clamp_(-s.clip, s.clip);
      at::Tensor next = s.from_x0 * x0 + s.from_sample * tile.x + s.from_output * m;
      if (s.noise > 0)
        next.add_(detail::normals(noise, Stream::sampling, {.index = static_cast<std::int64_t>(n)}, tile), s.noise);
      tile.x.copy_(next);
    }
  });
  return x;
}

}  // namespace implicit_diffusion
