// What `check` compares of a network as the score of a mixture. Needs LibTorch.
#include "denoising_mixture/results.hpp"
#include "denoising_mixture/score_network.hpp"
#include "implicit_diffusion/torch/points.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"
#include "networks/check_chain.hpp"

namespace program {
namespace {

using namespace implicit_diffusion;

std::vector<CheckRow> check(const DenoisingConfiguration& c) {
  std::vector<CheckRow> rows;
  constexpr std::size_t few = 5, steps = 8;
  const NetworkSteps network = score_network_steps(c, at::kDouble);
  const Noise noise(problem_seed(c.seed, c.experiment));
  const Layout& layout = network.network().layout;
  const TensorParameters theta = initial_parameters(layout, noise, at::kDouble),
                         frozen = initial_parameters(layout, Noise(c.seed + 1), at::kDouble);

  Population<float> points(few, c.base.dimension());
  MixtureSampler(c.base, noise).draw(points, 0);
  const TensorSamples x(to_samples(points).x().to(at::kDouble), {}, few);
  LossGradient loss(network.network(), score_matching_loss({.prediction = network.options().prediction,
                                                            .horizon = c.grid(steps).tau.front(),
                                                            .time = network.options().time,
                                                            .noise = noise}));
  TensorParameters gradient = zeros_like(theta), unused = gradient;
  loss.estimate(x, theta, 0, gradient);
  compare_slopes(rows, "score matching, differences", theta, gradient, noise, [&](const TensorParameters& t) {
    loss.estimate(x, t, 0, unused);
    return loss.loss();
  });
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode})
    check_chain(rows, {.name = dynamics == Dynamics::euler_sde ? "SDE: " : "ODE: ",
                       .network = network.network(),
                       .means = {network.options().prediction, network.options().time},
                       .theta = theta,
                       .frozen = frozen,
                       .places = x,
                       .grid = c.grid(steps),
                       .dynamics = dynamics,
                       .reward = linear_reward(c.direction),
                       .objective = {c.lambda, c.beta},
                       .noise = noise});
  return rows;
}

}  // namespace

std::vector<Problem> check_score_network(const DenoisingConfiguration& c) {
  return {{c.experiment, [c] { return check(c); }}};
}

}  // namespace program
