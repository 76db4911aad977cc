// What can be checked of an experiment with images: gradients of its network against differences, and what its time
// grid leaves of the noise. Needs LibTorch.
#include "images/evaluation.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"

#include <ATen/ATen.h>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

// The derivative along a direction, from the gradient and from central differences, and a gradient a tenth too long.
void compare_slopes(std::vector<CheckRow>& rows, const std::string& what, const TensorParameters& theta,
                    const TensorParameters& gradient, const at::Tensor& direction,
                    const std::function<double(const TensorParameters&)>& value) {
  const double slope = (gradient.read() * direction).sum().item<double>(), h = 1e-5;
  const auto at = [&](double t) { return value(TensorParameters(theta.read() + t * direction)); };
  const double difference = (at(h) - at(-h)) / (2 * h);
  // Errors of central differences: h^2 times a third derivative, and rounding over h.
  const double allowed = 1e-5 * (std::abs(difference) + 1e-3), wrong = 1.1 * slope;
  rows.push_back(compare(what, {&difference, 1}, {&slope, 1}, allowed));
  rows.push_back(must_be_off(compare("  1.1 times the gradient", {&difference, 1}, {&wrong, 1}, allowed)));
}

std::vector<CheckRow> check(const ImagesConfiguration& c) {
  std::vector<CheckRow> rows;
  const Network network = make_unet(c.network);
  const TensorParameters theta = initial_unet(c.network, Noise(c.seed), false, at::kDouble);
  at::Tensor direction = at::empty({static_cast<std::int64_t>(theta.size())}, at::kDouble);
  for (std::int64_t j = 0; j < direction.numel(); ++j)
    direction.data_ptr<double>()[j] =
        Noise(c.seed).normal(Stream::user, {}, 1, static_cast<std::size_t>(j), 0) / std::sqrt(theta.size());
  const Prediction prediction = c.predicts_v ? Prediction::v : Prediction::epsilon;
  const auto time = [](double tau) { return 1000 * std::acos(std::exp(-tau)) * 2 / M_PI; };
  const at::Tensor labels = c.conditional ? at::tensor({std::int64_t{0}, c.classes - 1}) : at::Tensor();

  TensorSamples x(at::zeros({2, static_cast<std::int64_t>(c.shape.channels), static_cast<std::int64_t>(c.shape.height),
                             static_cast<std::int64_t>(c.shape.width)},
                            at::kDouble),
                  labels, 2);
  TensorTiles::fill_normals(x, Noise(c.seed), Stream::reference, {});
  LossGradient loss(network, score_matching_loss({.prediction = prediction,
                                                  .law = c.uniform_levels ? LevelLaw::uniform : LevelLaw::cosine,
                                                  .horizon = c.horizon,
                                                  .time = time,
                                                  .noise = Noise(c.seed)}));
  TensorParameters gradient = zeros_like(theta), unused = gradient;
  loss.estimate(x, theta, 0, gradient);
  compare_slopes(rows, "score matching, differences", theta, gradient, direction, [&](const TensorParameters& t) {
    loss.estimate(x, t, 0, unused);
    return loss.loss();
  });

  // A chain of 4 steps, with the path KL to the weights of another seed.
  const TensorReward reward = brightness_reward();
  const DenoisingObjective objective{c.lambda, std::max(c.beta, 0.1)};
  ReverseChain<NetworkSteps> chain(
      NetworkSteps(network,
                   {.prediction = prediction, .time = time, .noise = Noise(c.seed), .shard = 2, .type = at::kDouble}),
      log_linear_grid(c.horizon, 4, 0.1), {.dynamics = c.dynamics, .last_step = c.last_step},
      std::pair{NetworkSteps::model(), initial_unet(c.network, Noise(c.seed + 1), false, at::kDouble)});
  PathGradient<NetworkSteps> path(chain, reward, objective);
  const auto sample = [&](const TensorParameters& t, TensorParameters& into) {
    auto batch = PathBatch<NetworkSteps>::of(x);
    DenoisingStart<NetworkSteps>{Noise(c.seed)}.draw(batch, 0);
    path.sample_and_estimate(batch, t, {}, into);
    return objective_of<NetworkSteps>(batch, reward, objective).value;
  };
  (void)sample(theta, gradient);
  compare_slopes(rows, "path gradient, differences", theta, gradient, direction,
                 [&](const TensorParameters& t) { return sample(t, unused); });

  // Of a pixel whose value is certain: variance met over variance trained on, and what is left at the end.
  const GridErrors left = grid_errors(c.time_grid(c.horizon), c.dynamics);
  const double one = 1, zero = 0, rest = c.last_step == LastStep::mean ? left.mean_deviation : left.deviation;
  rows.push_back(compare("grid: variance over that of training", {&one, 1}, {&left.variance, 1}, 1.0));
  rows.push_back(compare("grid: deviation left at the end", {&zero, 1}, {&rest, 1}, 0.02));
  return rows;
}

}  // namespace

std::vector<Problem> check_images(const ImagesPlan& plan) {
  return {{plan.experiment, [c = static_cast<const ImagesConfiguration&>(plan)] { return check(c); }}};
}

}  // namespace program
