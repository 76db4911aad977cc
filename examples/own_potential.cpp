// A potential and a reward of your own: V(x, theta) = (x - theta)^2 / 2 and R(x) = -(x - 3)^2. Samples follow N(theta,
// 1), so E R is largest at theta = 3, and the single loop finds it.
#include <implicit_diffusion/langevin.hpp>

#include <cmath>
#include <cstdio>

namespace imd = implicit_diffusion;

struct Shifted {
  static constexpr bool any_number = true;  // evaluate is a template: it runs on 16 samples at a time
  double centre = 0;

  std::size_t dimension() const { return 1; }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> theta) { centre = theta[0]; }

  template <class Real>
  Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    const Real u = x[0] - Real(imd::Scalar<Real>(centre));
    if (grad_x) grad_x[0] = u;
    if (grad_theta) grad_theta[0] = -u;
    return u * u / 2;
  }
};

int main() {
  const auto reward = [](const float* x) { return -(x[0] - 3) * (x[0] - 3); };
  const auto result = imd::optimise(imd::LangevinProblem(Shifted{}, reward), {0.0}, imd::GradientDescent{0.02},
                                    {.particles = 1000, .step_size = 0.1, .steps = 2000, .seed = 1});
  std::puts(imd::describe(result).c_str());
  return result.completed() && std::abs(result.theta[0] - 3) < 0.1 ? 0 : 1;
}
