// The two energy-based models that are trained from samples: seven wells whose weights are sought, and two Gaussians
// with everything free.
#pragma once

#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "problems/hexagon.hpp"

#include <cmath>
#include <vector>

namespace implicit_diffusion::problems {

// Nearly all mass starts in the centre.
struct SevenWells {
  SoftmaxWells wells{hexagon_with_centre(), 2.0};
  std::vector<double> start{-7, -7, -7, -7, -7, -7, 11};
  std::vector<double> target{1.5, 0, 1.5, 0, 1.5, 0, 0};
  double start_divergence = 5.955895163;  // KL(pi*(target) || pi*(start))
};

struct TwoGaussians {
  Mixture mixture;
  std::vector<double> start, target;
  double start_divergence = 8.405334373;

  explicit TwoGaussians(MixtureOptions options = {}) : mixture(2, 2, options) {
    const double a = 2 * std::sqrt(3.0);
    const std::vector<Gaussian> first{{{4, 0}, {1, 0, 0, 1}}, {{-2, a}, {1, 0, 0, 1}}};
    const std::vector<Gaussian> last{{{-4, 0}, {.75, -.5, -.5, 1.5}}, {{2, -a}, {.75, .5, .5, 1.25}}};
    start = mixture.parameters_of(std::vector<double>{0, 0}, first);
    target = mixture.parameters_of(std::vector<double>{1.5, 0}, last);
  }
};

}  // namespace implicit_diffusion::problems
