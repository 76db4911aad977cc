// Is a score model's own derivative right? Its vector-Jacobian products against central differences of its score, in double, at random points.
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
  double state_error = 0;  // of s_y' c
  double parameter_error =
      0;  // of s_theta' c; both relative to the largest entry of the exact one, or to 1 where that is smaller
};

// Errors of about 1e-9 are those of the differences themselves; a wrong product has errors of its own size. A model that keeps what it prepares
// in single precision has errors of some 1e-3: differences of 1e-5 see its roundings. Keep doubles, and let kernels convert them.
template <PointScoreModel M>
ScoreCheck check_score_model(M model, std::span<const double> theta, double tau, std::size_t points = 20,
                             Noise noise = Noise(0)) {
  const std::size_t d = model.dimension(), p = model.parameters();
  constexpr double h = 1e-5;
  ScoreCheck worst;
  if (d == 0 || d > largest_denoising_dimension)
    throw Error(ErrorKind::usage, "dimension", "it must lie between 1 and 64, not at " + std::to_string(d));
  if (theta.size() != p)
    throw Error(ErrorKind::usage, "theta",
                std::to_string(theta.size()) + " numbers for a model of " + std::to_string(p) + " parameters");
  const auto score_at = [&](const std::vector<double>& at, std::vector<double> y) {
    model.prepare(at);
    const auto level = model.level(tau);
    y.resize(largest_denoising_dimension);
    std::vector<double> s(largest_denoising_dimension);
    kernel::point_of<double>(level, y.data()).score(s.data());
    return s;
  };
  const std::vector<double> here(theta.begin(), theta.end());
  for (std::size_t k = 0; k < points; ++k) {
    std::vector<double> y(largest_denoising_dimension), c = y, back = y;
    for (std::size_t j = 0; j < d; ++j) {
      y[j] = 2 * static_cast<double>(noise.normal(Stream::initial, {}, 2 * d, k, j));
      c[j] = static_cast<double>(noise.normal(Stream::initial, {}, 2 * d, k, d + j));
    }
    model.prepare(here);
    const auto level = model.level(tau);
    std::vector<double> sums(level.sums(), 0.0), gradient(p, 0.0), s(largest_denoising_dimension);
    const auto point = kernel::point_of<double>(level, y.data());
    point.score(s.data());
    point.pull_back(s.data(), c.data(), back.data(), sums.data());
    level.add_gradient(sums.data(), gradient.data());

    const auto slope = [&](const std::vector<double>& up, const std::vector<double>& down) {
      double sum = 0;
      for (std::size_t j = 0; j < d; ++j) sum += c[j] * (up[j] - down[j]) / (2 * h);
      return sum;
    };
    const auto compare = [&](std::span<const double> found, auto&& exact, double& error) {
      std::vector<double> truth;
      double size = 1;
      for (std::size_t j = 0; j < found.size(); ++j) size = std::max(size, std::abs(truth.emplace_back(exact(j))));
      for (std::size_t j = 0; j < found.size(); ++j) error = std::max(error, std::abs(found[j] - truth[j]) / size);
    };
    compare(
        std::span(back).first(d),
        [&](std::size_t j) {
          std::vector<double> up = y, down = y;
          up[j] += h;
          down[j] -= h;
          return slope(score_at(here, up), score_at(here, down));
        },
        worst.state_error);
    compare(
        gradient,
        [&](std::size_t j) {
          std::vector<double> up = here, down = here;
          up[j] += h;
          down[j] -= h;
          return slope(score_at(up, y), score_at(down, y));
        },
        worst.parameter_error);
  }
  return worst;
}

}  // namespace implicit_diffusion
