// A network of your own: a layout and a function. Here it is the score of a diffusion in the plane, -y and a layer of
// 16 units, whose last weights are 0 at first: then the law is N(0, I). It is finetuned to the reward x_1, close to
// where it began. The best law is known: N(0, I) times exp(lambda R / beta) has the mean (lambda / beta, 0).
//
// torch/unet.hpp, torch/mlp.hpp and torch/classifier.hpp have larger ones, and torch/model.hpp reads and writes those
// of other programs.
#include <implicit_diffusion/denoising.hpp>
#include <implicit_diffusion/torch/steps.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>

namespace imd = implicit_diffusion;

int main() {
  const imd::Network network{
      .layout = {{"in.weight", {16, 3}}, {"in.bias", {16}}, {"out", {2, 16}}},
      .sample = {2},
      .forward = [](std::span<const at::Tensor> w, const imd::NetworkInput& in) {
        const at::Tensor features = at::cat({in.x, at::exp(-in.t).unsqueeze(1)}, 1);  // the time is tau
        return at::linear(at::silu(at::linear(features, w[0], w[1])), w[2]) - in.x;
      }};
  const imd::NetworkSteps model(network, {.prediction = imd::Prediction::score, .shard = 128});
  const imd::TensorReward first_coordinate([](const at::Tensor& x) { return x.select(1, 0); });
  const imd::TensorParameters start = initial_parameters(network.layout, imd::Noise(1));
  constexpr double lambda = 1, beta = 1;

  constexpr std::int64_t steps = 120, last = 40;  // over the last ones the mean of x_1 is taken
  double mean = 0;
  const auto watch = [&](const auto& seen) {
    if (seen.step == 0) return;
    const double now = seen.samples.x().select(1, 0).mean().template item<double>();
    if (seen.step % 20 == 0) std::printf("step %3d: mean of x_1 %.3f\n", static_cast<int>(seen.step), now);
    if (seen.step > steps - last) mean += now / last;
  };
  const auto result =
      optimise(imd::DenoisingProblem<imd::NetworkSteps>(model, first_coordinate, lambda).stay_close(start, beta), start,
               imd::BasicAdam<imd::TensorParameters>(0.02),
               {.batch = 256, .grid = imd::uniform_grid(3, 32), .steps = steps, .seed = 1, .threads = 2}, watch);
  std::puts(imd::describe(result).c_str());

  // 40 x 256 samples of variance 1 have a mean with a standard error of 0.01, and steps of size h = 3 / 32 make the
  // variance, and with it the shift of the mean, larger by h / 2 = 0.05.
  std::printf("mean of x_1 %.3f; the best law has %.3f\n", mean, lambda / beta);
  return result.completed() && std::abs(mean - lambda / beta) < 0.1 ? 0 : 1;
}
