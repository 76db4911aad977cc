// Is a score model's own derivative right? Its vector-Jacobian products against central differences of its score, in
// double, at random points.
#pragma once

#include "implicit_diffusion/denoising/score_model.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace implicit_diffusion {

struct ScoreCheck {
  // Of s_y' c and of s_theta' c, both relative to the largest entry of the exact one, or to 1 where that is smaller.
  double state_error = 0, parameter_error = 0;
};

// Errors of about 1e-9 are those of the differences themselves; a wrong product has errors of its own size. A model
// that keeps what it prepares in single precision has errors of some 1e-3: differences of 1e-5 see its roundings. Keep
// doubles, and let kernels convert them.
template <PointScoreModel M>
ScoreCheck check_score_model(M model, std::span<const double> theta, double tau, std::size_t points = 20,
                             Noise noise = Noise(0)) {
  constexpr std::size_t most = largest_denoising_dimension;
  constexpr double h = 1e-5;
  const std::size_t d = model.dimension(), p = model.parameters();
  if (d == 0 || d > most)
    throw Error(ErrorKind::usage, "dimension", "it must lie between 1 and 64, not at " + std::to_string(d));
  if (theta.size() != p)
    throw Error(ErrorKind::usage, "theta",
                std::to_string(theta.size()) + " numbers for a model of " + std::to_string(p) + " parameters");
  std::vector<double> at(theta.begin(), theta.end()), y(most), c(most);
  ScoreCheck worst;
  for (std::size_t k = 0; k < points; ++k) {
    for (std::size_t j = 0; j < d; ++j) {
      y[j] = 2 * static_cast<double>(noise.normal(Stream::initial, {}, 2 * d, k, j));
      c[j] = static_cast<double>(noise.normal(Stream::initial, {}, 2 * d, k, d + j));
    }
    const auto score = [&] {
      model.prepare(at);
      const auto level = model.level(tau);
      std::vector<double> s(most);
      kernel::point_of<double>(level, y.data()).score(s.data());
      return s;
    };
    // `found` against the derivatives of c . s by the first numbers of `by`, which is y or at.
    const auto compare = [&](std::span<const double> found, std::vector<double>& by, double& error) {
      std::vector<double> exact;
      double size = 1;
      for (std::size_t j = 0; j < found.size(); ++j) {
        const double here = by[j];
        by[j] = here + h;
        const std::vector<double> up = score();
        by[j] = here - h;
        const std::vector<double> down = score();
        by[j] = here;
        exact.push_back(0);
        for (std::size_t i = 0; i < d; ++i) exact[j] += c[i] * (up[i] - down[i]) / (2 * h);
        size = std::max(size, std::abs(exact[j]));
      }
      for (std::size_t j = 0; j < found.size(); ++j) {
        const double off = std::abs(found[j] - exact[j]) / size;
        if (!std::isnan(error) && !(off <= error)) error = off;  // what is not a number is the worst of all
      }
    };

    model.prepare(at);
    const auto level = model.level(tau);
    std::vector<double> sums(level.sums(), 0.0), gradient(p, 0.0), s(most), back(most);
    const auto point = kernel::point_of<double>(level, y.data());
    point.score(s.data());
    point.pull_back(s.data(), c.data(), back.data(), sums.data());
    level.add_gradient(sums.data(), gradient.data());
    compare(std::span(back).first(d), y, worst.state_error);
    compare(gradient, at, worst.parameter_error);
  }
  return worst;
}

}  // namespace implicit_diffusion
