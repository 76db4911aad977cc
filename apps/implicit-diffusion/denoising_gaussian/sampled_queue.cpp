// Compiled at -O2: the score of this experiment is no model of the library, so that its kernels are instantiated here.
#include "denoising_gaussian/experiment.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"

namespace program {

using namespace implicit_diffusion;

SampledQueue sampled_queue(const DenoisingGaussianConfiguration& c, const GaussianDenoising& model, std::size_t setting,
                           std::size_t repeat, std::stop_token stop, const std::function<void(std::int64_t)>& observe) {
  const int slots = c.slots(model.horizon);
  const auto m = static_cast<std::size_t>(slots);
  const StepKey at{.round = static_cast<std::int64_t>(setting), .index = static_cast<std::int64_t>(repeat)};
  const auto half = [&](std::size_t k) -> std::uint64_t { return Noise(c.seed).bits(Stream::user, at, 2, 0, k); };
  const Noise noise(half(1) << 32 | half(0));
  ReverseChain<float> chain(
      GaussianScore{}, uniform_grid(model.horizon, m),
      {.dynamics = Dynamics::euler_sde, .slots = m, .keep_every = 1, .normals = normals_of<float>(noise)});
  DenoisingSampler<float> sampler(chain);
  PathGradient<float> estimator(chain, QuadraticReward({model.target}));
  DenoisingStart<float> start{noise};
  PathBatch<float> empty;
  empty.points = Population<float>(static_cast<std::size_t>(c.batch), 1);

  const double h = model.horizon / slots;
  QueueState<PathBatch<float>, GradientDescent> s{0, {model.theta_0}, {}, GradientDescent{{model.eta * h}}};
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
