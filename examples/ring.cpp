// A potential that is no mixture, given by its value alone: V(x, theta) = theta_2 (|x|^2 - theta_1)^2 / 4, a ring of
// radius sqrt(theta_1). Samples of a ring with theta = (4, 1) are all that is known; the single loop finds the ring
// they came from.
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
  const imd::Differentiated<Ring> ring;
  const imd::LangevinProblem nothing(ring);  // no objective: theta stays, samples move to its law
  const auto data = imd::optimise(nothing, {4, 1}, imd::Hold{}, {.particles = 10'000, .step_size = 0.02, .seed = 2});

  const auto result = imd::optimise(imd::LangevinProblem(ring).fit(data.samples), {2.0, 0.5}, imd::Adam(0.01),
                                    {.step_size = 0.02, .steps = 2000, .seed = 1, .start = data.samples});
  std::puts(imd::describe(result).c_str());
  std::puts("the data's theta is (4, 1)");
  return result.completed() && std::abs(result.theta[0] - 4) < 0.1 && std::abs(result.theta[1] - 1) < 0.1 ? 0 : 1;
}
