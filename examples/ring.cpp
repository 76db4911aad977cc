// A potential that is no mixture, given by its value alone: V(x, theta) = theta_2 (|x|^2 - theta_1)^2 / 4, a ring of radius sqrt(theta_1).
// Samples of a ring with theta = (4, 1) are all that is known; the single loop finds the ring they came from.
#include <implicit_diffusion/langevin.hpp>

#include <cmath>
#include <cstdio>

namespace imd = implicit_diffusion;

struct Ring {
  static constexpr std::size_t dimension = 2, parameters = 2;

  template <class Real>
  Real operator()(const Real* x, const Real* theta) const {
    const Real u = x[0] * x[0] + x[1] * x[1] - theta[0];
    return theta[1] * u * u / 4;
  }
};

int main() {
  const imd::LangevinOptions dynamics{.step_size = {0.02}, .noise = imd::Noise(1)};
  const std::vector<double> truth{4, 1};

  imd::Population<float> data(10'000, 2);
  imd::StandardNormalStart<float>{imd::Noise(2)}.draw(data, 0);
  imd::Langevin<float> chain(imd::Differentiated<Ring>{}, {.step_size = {0.02}, .noise = imd::Noise(2)});
  for (int k = 0; k < 1000; ++k) chain.advance(data, truth, {.round = k});

  imd::GradientEstimator<float>::Terms terms;
  terms.push_back(std::make_unique<imd::ReferenceTerm<float>>(std::make_unique<imd::FixedReference<float>>(data)));
  imd::LangevinEngine<float> engine(imd::Differentiated<Ring>{}, std::move(terms), dynamics);
  imd::State<imd::Population<float>, imd::Adam> state{0, {2.0, 0.5}, data, imd::Adam{{0.01}}};
  imd::single_loop(engine, engine, state, {.steps = 2000});

  std::printf("theta = (%.3f, %.3f), the data's is (4, 1)\n", state.theta[0], state.theta[1]);
  return std::abs(state.theta[0] - 4) < 0.1 && std::abs(state.theta[1] - 1) < 0.1 ? 0 : 1;
}
