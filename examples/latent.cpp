// Maximum marginal likelihood of a latent-variable model by particles. The model has 100 latent variables and one
// parameter,
//
//     x_i ~ N(theta, 1),    y_i ~ N(x_i, 1),    i = 1, ..., 100,
//
// and y is known. The potential is V(x, theta) = -log p(x, y | theta) up to a constant; its law is the posterior of x,
// which the particles sample while theta climbs the likelihood of y. The best theta is the mean of y.
#include <implicit_diffusion/langevin.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace imd = implicit_diffusion;

struct Posterior {
  static constexpr bool any_number = true;
  std::vector<double> y;
  double theta = 0;

  std::size_t dimension() const { return y.size(); }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> t) { theta = t[0]; }

  template <class Real>
  Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    using Number = imd::Scalar<Real>;
    Real value = Real(Number(0)), slope = Real(Number(0));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const Real prior = x[i] - Real(Number(theta)), error = x[i] - Real(Number(y[i]));
      value = value + (prior * prior + error * error) / 2;
      slope = slope - prior;
      if (grad_x) grad_x[i] = prior + error;
    }
    if (grad_theta) grad_theta[0] = slope;
    return value;
  }
};

int main() {
  Posterior posterior;
  double mean = 0;
  const imd::Noise data(5);
  for (std::size_t i = 0; i < 100; ++i) {  // theta = 1: x + noise has variance 2
    posterior.y.push_back(1 + std::sqrt(2.0) * data.normal(imd::Stream::user, {}, 1, i, 0));
    mean += posterior.y.back() / 100;
  }
  const auto result = imd::optimise(imd::LangevinProblem(posterior).fit_marginal(), {0.0}, imd::GradientDescent{0.005},
                                    {.particles = 100, .step_size = 0.05, .steps = 1000, .seed = 1});
  std::puts(imd::describe(result).c_str());
  std::printf("the best theta is %.3f\n", mean);
  return result.completed() && std::abs(result.theta[0] - mean) < 0.05 ? 0 : 1;
}
