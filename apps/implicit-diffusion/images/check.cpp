// What can be checked of an experiment with images: gradients of its network against differences, and what its time
// grid leaves of the noise. Needs LibTorch.
#include "images/evaluation.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"
#include "networks/check_chain.hpp"

#include <ATen/ATen.h>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

std::vector<CheckRow> check(const ImagesConfiguration& c) {
  std::vector<CheckRow> rows;
  const Network network = make_unet(c.network);
  const TensorParameters theta = initial_unet(c.network, Noise(c.seed), false, at::kDouble);
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
  compare_slopes(rows, "score matching, differences", theta, gradient, Noise(c.seed), [&](const TensorParameters& t) {
    loss.estimate(x, t, 0, unused);
    return loss.loss();
  });

  // A chain of 4 steps, with the path KL to the weights of another seed.
  check_chain(rows, {.name = "",
                     .network = network,
                     .means = {prediction, time},
                     .theta = theta,
                     .frozen = initial_unet(c.network, Noise(c.seed + 1), false, at::kDouble),
                     .places = x,
                     .grid = log_linear_grid(c.horizon, 4, 0.1),
                     .dynamics = c.dynamics,
                     .last_step = c.last_step,
                     .reward = brightness_reward(),
                     .objective = {c.lambda, std::max(c.beta, 0.1)},
                     .noise = Noise(c.seed)});

  // Of a pixel whose value is certain: variance met over variance trained on, and what is left at the end.
  const GridErrors left = grid_errors(c.time_grid(c.horizon), c.dynamics);
  const double one = 1, zero = 0, rest = c.last_step == LastStep::mean ? left.mean_deviation : left.deviation;
  // The uniform grid has 1.7, the cosine grid of the paper 3.5 (in its first step) whatever the number of steps.
  rows.push_back(compare("grid: variance over that of training", {&one, 1}, {&left.variance, 1}, 3.0));
  rows.push_back(compare("grid: deviation left at the end", {&zero, 1}, {&rest, 1}, 0.02));
  return rows;
}

}  // namespace

std::vector<Problem> check_images(const ImagesPlan& plan) {
  return {{plan.experiment, [c = static_cast<const ImagesConfiguration&>(plan)] { return check(c); }}};
}

}  // namespace program
