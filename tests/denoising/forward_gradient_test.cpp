// The adjoint against forward mode: 1e-12 in double and 1e-5 in single precision, relative to the gradient's norm.
#include "denoising/forward_gradient.hpp"

#include "implicit_diffusion/denoising/mixture_score.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace implicit_diffusion {
namespace {

using Vector = std::vector<double>;

// The score of two Gaussians in the plane with full spreads, as it stands in a textbook: no precision matrices, no
// responsibilities kept. theta = (logits, means, then l11, l21, l22 of each, the diagonal as logarithms): 12 numbers.
struct TwoGaussians {
  template <class N>
  void operator()(const N* theta, double tau, const N* y, N* s) const {
    const double a = std::exp(-tau), noise = 1 - a * a;
    N total(0.0), sum[2] = {N(0.0), N(0.0)};
    for (std::size_t i = 0; i < 2; ++i) {
      const N* l = theta + 6 + 3 * i;
      const N l11 = exp(l[0]), l22 = exp(l[2]);
      const N c11 = N(a * a) * l11 * l11 + N(noise), c12 = N(a * a) * l11 * l[1],
              c22 = N(a * a) * (l[1] * l[1] + l22 * l22) + N(noise);
      const N determinant = c11 * c22 - c12 * c12;
      const N u = y[0] - N(a) * theta[2 + 2 * i], v = y[1] - N(a) * theta[3 + 2 * i];
      const N g0 = (c12 * v - c22 * u) / determinant, g1 = (c12 * u - c11 * v) / determinant;
      const N density = exp(theta[i] + N(0.5) * (u * g0 + v * g1)) / sqrt(determinant);
      total = total + density;
      sum[0] = sum[0] + density * g0;
      sum[1] = sum[1] + density * g1;
    }
    s[0] = sum[0] / total;
    s[1] = sum[1] / total;
  }
};

// R(y) = -|y - (1, -1)|^2 / 4 + y_1.
struct Bowl {
  static constexpr bool any_number = true;
  template <class N>
  N operator()(const N* y) const {
    return y[0] - ((y[0] - 1) * (y[0] - 1) + (y[1] + 1) * (y[1] + 1)) / 4;
  }
};

const Vector theta_of_two{.3, -.2, -1, .4, .9, -.7, -.3, .2, .1, .25, -.15, -.4};
const Vector base_of_two{.1, .2, -.8, .5, 1.1, -.4, -.2, .1, -.1, .1, .05, -.2};

template <class Real>
Vector by_adjoint(Dynamics dynamics, const DenoisingObjective& o, std::size_t keep, PathBatch<Real>* batch = nullptr) {
  const MixtureScore<Spread::cholesky> model(2, 2);
  ReverseChain<Real> chain(model, uniform_grid(2, 24),
                           {.dynamics = dynamics, .keep_every = keep, .normals = normals_of<Real>(Noise(5))},
                           std::pair{ScoreModel<Real>(model), base_of_two});
  PathBatch<Real> b;
  b.points = Population<Real>(300, 2);
  DenoisingStart<Real>{Noise(2)}.draw(b, 4);
  DenoisingSampler<Real>(chain).advance(b, theta_of_two, {});
  Vector gradient(12);
  PathGradient<Real>(chain, Bowl{}, o).estimate(b, theta_of_two, 0, gradient);
  if (batch) *batch = b;
  return gradient;
}

double relative_distance(const Vector& a, const Vector& b) {
  double difference = 0, size = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    difference += (a[j] - b[j]) * (a[j] - b[j]);
    size += b[j] * b[j];
  }
  return std::sqrt(difference / size);
}

TEST(ForwardGradient, EqualsTheAdjoint) {
  const MixtureScore<Spread::cholesky> model(2, 2);
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode, Dynamics::ddim})
    for (const double beta : {0.0, 0.6})
      for (const double lambda : {1.2, -0.4}) {
        const DenoisingObjective o{lambda, beta};
        PathBatch<double> b;
        const Vector adjoint = by_adjoint<double>(dynamics, o, 1, &b);
        ReverseChain<double> chain(model, uniform_grid(2, 24),
                                   {.dynamics = dynamics, .normals = normals_of<double>(Noise(5))});
        Vector forward(12);
        ForwardGradient<TwoGaussians, Bowl, 12>(chain, {}, {}, o, base_of_two).estimate(b, theta_of_two, 0, forward);
        EXPECT_LT(relative_distance(adjoint, forward), 1e-12) << static_cast<int>(dynamics) << " " << beta;
        for (const std::size_t keep : {5, 24})
          EXPECT_LT(relative_distance(by_adjoint<double>(dynamics, o, keep), forward), 1e-12);
        for (const std::size_t keep : {1, 5, 24})
          EXPECT_LT(relative_distance(by_adjoint<float>(dynamics, o, keep), forward), 1e-5);
      }
}

}  // namespace
}  // namespace implicit_diffusion
