// The same with a network of the user's own: an energy that learns the mean of two points.
#include <implicit_diffusion/error.hpp>
#include <implicit_diffusion/langevin.hpp>
#include <implicit_diffusion/torch/energy.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>

namespace imd = implicit_diffusion;

int main() {
  try {
    const imd::Network bowl{
        .layout = {{"mean", {2}}}, .sample = {2}, .forward = [](auto w, const imd::NetworkInput& in) {
          return (in.x - w[0]).square().sum(1) / 2;
        }};
    const imd::TensorSamples points(at::tensor({1.0F, 3.0F, 3.0F, 1.0F}).view({2, 2}));
    const auto learnt = imd::optimise(imd::LangevinProblem<imd::NetworkEnergy>(imd::NetworkEnergy(bowl)).fit(points),
                                      imd::TensorParameters(2, at::kFloat), imd::GradientDescent{0.1},
                                      {.particles = 64, .step_size = 0.1, .steps = 100});
    const auto mean = [&](int j) { return learnt.theta.read()[j].item<double>(); };
    std::printf("mean = %.2f, %.2f\n", mean(0), mean(1));
    // 2 and 2, within five standard errors of 64 samples.
    return learnt.completed() && std::abs(mean(0) - 2) < 0.625 && std::abs(mean(1) - 2) < 0.625 ? 0 : 1;
  } catch (const imd::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 1;
  }
}
