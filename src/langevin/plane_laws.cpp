#include "implicit_diffusion/langevin/plane_laws.hpp"

#include "../require.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace implicit_diffusion {

namespace {

Gaussian round_gaussian(double x, double y, double deviation) {
  const double v = deviation * deviation;
  return {{x, y}, {v, 0, 0, v}};
}

}  // namespace

GaussianMixture eight_gaussians(double radius, double deviation) {
  require(radius >= 0 && std::isfinite(radius), "radius", "{} must not be negative", radius);
  require(deviation > 0 && std::isfinite(deviation), "deviation", "{} must be positive", deviation);
  GaussianMixture m{std::vector<double>(8, 1.0 / 8), {}};
  for (int k = 0; k < 8; ++k) {
    const double angle = k * std::numbers::pi / 4;
    m.components.push_back(round_gaussian(radius * std::cos(angle), radius * std::sin(angle), deviation));
  }
  return m;
}

GaussianMixture two_moons(double deviation) {
  require(deviation >= 0.05 && std::isfinite(deviation), "deviation", "{} must be at least 0.05", deviation);
  constexpr int parts = 64;
  GaussianMixture m{std::vector<double>(2 * parts, 0.5 / parts), {}};
  for (const double side : {1.0, -1.0})
    for (int k = 0; k < parts; ++k) {
      const double angle = (k + 0.5) * std::numbers::pi / parts;
      m.components.push_back(
          round_gaussian(side * (std::cos(angle) - 0.5), side * (std::sin(angle) - 0.25), deviation));
    }
  return m;
}

double Checkerboard::log_density(std::span<const double> x) {
  const double column = std::floor(x[0]), row = std::floor(x[1]);
  const bool inside = column >= -2 && column < 2 && row >= -2 && row < 2;
  const bool dark = std::fmod(column + row + 4, 2) == 0;
  return inside && dark ? -std::log(8.0) : -std::numeric_limits<double>::infinity();
}

void Checkerboard::draw(Population<float>& x, const Noise& noise, std::int64_t round) {
  require(x.dimension() == 2, "samples", "they have {} coordinates, the board has 2", x.dimension());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto uniform = [&](std::size_t j) { return noise.uniform(Stream::reference, {round, 0}, 3, i, j); };
    // Rows of a board have two dark squares each, every other row beginning with one.
    const auto square = std::min(7, static_cast<int>(8 * uniform(0)));
    const int row = square / 2 - 2, column = 2 * (square % 2) - 2 + (row & 1);
    // A float that is rounded up to the square's edge would lie in the next one.
    const auto within = [](int corner, double u) {
      const auto end = static_cast<float>(corner + 1);
      return std::min(static_cast<float>(corner + u), std::nextafter(end, static_cast<float>(corner)));
    };
    x(i, 0) = within(column, uniform(1));
    x(i, 1) = within(row, uniform(2));
  }
}

std::optional<PlaneEnergy> integrate_energy(
    const std::function<std::vector<double>(std::span<const double> points)>& values) {
  constexpr double most_outside = 1e-8, widest = 64;
  for (PlaneCells cells{.half = 64}; cells.half_width() <= widest; cells.half *= 2) {
    std::vector<double> points;
    points.reserve(2 * cells.count());
    for (std::size_t i = 0; i < cells.side(); ++i)
      for (std::size_t j = 0; j < cells.side(); ++j) {
        points.push_back(cells.coordinate(j));
        points.push_back(cells.coordinate(i));
      }
    std::vector<double> v = values(points);
    require(v.size() == cells.count(), "energy", "{} values for {} points", v.size(), cells.count());
    if (!std::ranges::all_of(v, [](double e) { return std::isfinite(e); })) return std::nullopt;
    const double least = std::ranges::min(v);
    double sum = 0, border = 0;
    for (std::size_t i = 0; i < cells.side(); ++i)
      for (std::size_t j = 0; j < cells.side(); ++j) {
        const double mass = std::exp(least - v[i * cells.side() + j]);
        sum += mass;
        if (i == 0 || j == 0 || i + 1 == cells.side() || j + 1 == cells.side()) border += mass;
      }
    if (border < most_outside * sum) return PlaneEnergy{cells, std::move(v), std::log(sum * cells.area()) - least};
  }
  return std::nullopt;
}

PlaneDivergence divergence_from(const PlaneEnergy& energy,
                                const std::function<double(std::span<const double> x)>& log_density) {
  const PlaneCells& cells = energy.cells;
  PlaneDivergence d{0, 0};
  for (std::size_t i = 0; i < cells.side(); ++i)
    for (std::size_t j = 0; j < cells.side(); ++j) {
      const double x[] = {cells.coordinate(j), cells.coordinate(i)};
      const double log_p = log_density(x), mass = std::exp(log_p) * cells.area();
      if (mass == 0) continue;
      const double log_model = -energy.values[i * cells.side() + j] - energy.log_normaliser;
      d.kl += mass * (log_p - log_model);
      d.log_likelihood += mass * log_model;
    }
  return d;
}

}  // namespace implicit_diffusion
