#include "denoising_gaussian/queue.hpp"

#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"

namespace program {

using namespace implicit_diffusion;

std::uint64_t loop_seed(std::uint64_t seed, std::size_t setting, std::size_t repeat) {
  const Noise noise(seed);
  const Moment at{.round = static_cast<std::int64_t>(setting), .index = static_cast<std::int64_t>(repeat)};
  const std::uint64_t low = noise.bits(Stream::user, at, 2, 0, 0), high = noise.bits(Stream::user, at, 2, 0, 1);
  return high << 32 | low;
}

SampledQueue sampled_queue(const GaussianDenoising& model, int slots, std::int64_t batch, std::uint64_t seed,
                           std::stop_token stop, const std::function<void(std::int64_t)>& observe) {
  const auto m = static_cast<std::size_t>(slots);
  const Noise noise(seed);
  ReverseChain<float> chain(
      GaussianScore{}, uniform_grid(model.horizon, m),
      {.dynamics = Dynamics::euler_sde, .slots = m, .keep_every = 1, .normals = normals_of<float>(noise)});
  DenoisingSampler<float> sampler(chain);
  PathGradient<float> estimator(chain, QuadraticReward({model.target}));
  DenoisingStart<float> start{noise};
  PathBatch<float> empty;
  empty.points = Population<float>(static_cast<std::size_t>(batch), 1);

  const double h = model.horizon / slots;
  QueueState<PathBatch<float>, GradientDescent> s{0, {model.theta_0}, {}, GradientDescent{{.scale = model.eta * h}}};
  const QueueOptions options{.steps = 2 * std::int64_t{slots}, .slots = slots, .warm_start = false};
  start_queue(sampler, start, s, options, empty);
  SampledQueue result;
  result.outcome = queue_loop(
      sampler, estimator, start, s, options,
      [&](const auto& now) {
        result.theta.push_back(now.theta[0]);
        if (observe) observe(now.step);
      },
      stop);
  result.evaluations = static_cast<std::int64_t>(sampler.cost().evaluations);
  return result;
}

}  // namespace program
