// The parts below optimise(): a sampler, an estimator, a state and a loop, put together by hand. The problem is that of
// own_potential.cpp with a quadratic potential that comes with the library. You need the parts where optimise() has no
// option for what you want: here, a nested loop that draws its chains anew at every step of theta. 60 inner steps of
// 0.1 forget the start up to 0.9^60 = 0.002; with 30 theta would settle at 3.13.
#include <implicit_diffusion/langevin.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace imd = implicit_diffusion;

int main() {
  const imd::Quadratic potential(std::vector<std::vector<double>>{{1.0}});
  const auto reward = [](const float* x) { return -(x[0] - 3) * (x[0] - 3); };
  imd::Langevin<float> sampler(potential, {.step_size = 0.1, .noise = imd::Noise(1)});
  imd::GradientEstimator<float> estimator(potential, imd::Reward<float>(reward));
  imd::StandardNormalStart<float> start{imd::Noise(1)};

  imd::State<imd::Population<float>, imd::Adam> state{
      .theta = {0.0}, .population = {1000, 1}, .optimizer = imd::Adam(0.05)};
  const auto watch = [](const auto& s) {
    if (s.step % 50 == 0) std::printf("step %3d: theta = %.3f\n", static_cast<int>(s.step), s.theta[0]);
  };
  const imd::Outcome outcome =
      imd::nested_loop(sampler, estimator, start, state, {.steps = 300, .inner_steps = 60, .warm_start = false}, watch);
  if (outcome.status == imd::Status::diverged) std::puts(imd::describe(*outcome.divergence).c_str());
  return outcome.status == imd::Status::completed && std::abs(state.theta[0] - 3) < 0.1 ? 0 : 1;
}
