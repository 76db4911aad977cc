// Laws in the plane to learn: the usual test cases of energy-based models, with their densities, and integrals over the
// plane that say how far a learnt energy is from them.
#pragma once

#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/population.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

// Eight Gaussians of one deviation, evenly around a circle, the first at (radius, 0).
GaussianMixture eight_gaussians(double radius = 2, double deviation = 0.3);

// Two half circles of radius 1 that reach into one another, the upper one around (-1/2, -1/4), the lower one around
// (1/2, 1/4), blurred by a Gaussian of that deviation: a mixture of 64 Gaussians along each, which lie closer together
// than they are wide. Throws a usage Error for a deviation below 0.05, where the mixture would show its parts.
GaussianMixture two_moons(double deviation = 0.1);

// The uniform law on the eight dark squares of a board of 4 x 4 squares of side 1 around the origin.
struct Checkerboard {
  // log of the density: -log 8, or -infinity.
  static double log_density(std::span<const double> x);
  // Independent samples, a pure function of the seed and the round.
  static void draw(Population<float>& x, const Noise& noise, std::int64_t round);
};

// The middles of the cells of side `spacing` that cover [-half_width, half_width]^2, row after row from below. Sums
// over them times the area of a cell are integrals over the plane: for a smooth density that is small at the border the
// error is far below that of single precision once its narrowest part is wider than a cell; for the board above it is
// exact, as no cell lies across an edge.
struct PlaneCells {
  std::size_t half;             // cells on each side of the axes
  double spacing = 1.0 / 16.0;  // a power of two

  std::size_t side() const { return 2 * half; }
  std::size_t count() const { return side() * side(); }
  double half_width() const { return static_cast<double>(half) * spacing; }
  double area() const { return spacing * spacing; }
  double coordinate(std::size_t i) const { return (static_cast<double>(i) + 0.5) * spacing - half_width(); }
};

// An energy V at the middles of cells, and what follows from it.
struct PlaneEnergy {
  PlaneCells cells;
  std::vector<double> values;  // V, cell by cell
  double log_normaliser;       // log of the integral of exp(-V)
};

// V on as many cells as it takes for the outermost to have less than 1e-8 of the mass: the width is doubled from 4 on,
// up to 64. Nothing where that is not enough, or where V is not finite. `values` has V at all points of cells, which it
// is given as (x_1, x_2) one after the other.
std::optional<PlaneEnergy> integrate_energy(
    const std::function<std::vector<double>(std::span<const double> points)>& values);

// KL(p || exp(-V) / Z) and the mean of log exp(-V) / Z under p, for a density p with its mass inside the cells.
struct PlaneDivergence {
  double kl, log_likelihood;
};
PlaneDivergence divergence_from(const PlaneEnergy& energy,
                                const std::function<double(std::span<const double> x)>& log_density);

}  // namespace implicit_diffusion
