// KL(p || q) = sum_i w_i E_i [log p - log q] between mixtures of Gaussians, whatever the widths of their components.
//
// The expectation over a component N(m, L L') of p is an integral over z, x = m + L z, in a cube of 8 deviations. The
// cube is cut into cells, each with a product of Gauss-Legendre rules:
//
//     first    a cell is halved while a component of either law is within 5 deviations of it and narrower than its half
//     then     the cell whose halves differ most from it is halved, until the differences sum to the tolerance
//
// So no component falls between the nodes, and the sum of the differences is the estimate of the error.
#pragma once

#include "implicit_diffusion/langevin/law.hpp"

#include <array>
#include <cstddef>
#include <vector>

namespace implicit_diffusion::detail {

class AdaptiveDivergence {
 public:
  // Of at most three dimensions.
  AdaptiveDivergence(const GaussianMixture& p, const GaussianMixture& q);

  // The smallest deviation of a component of either law, seen from a component of p, in deviations of that one.
  double narrowest() const;

  struct Estimate {
    double value, error;
  };
  // The error is infinite where the effort is too small for a first estimate.
  Estimate operator()(const DivergenceEffort& effort) const;

 private:
  using Point = std::array<double, MixtureDivergence::largest_dimension>;

  // A component of either law as a component of p sees it: at z its distance in its own deviations is |offset + matrix
  // z|, and one step along an axis moves that by at most the slope.
  struct View {
    Point offset{}, slope{};
    std::array<Point, MixtureDivergence::largest_dimension> matrix{};
  };
  struct Component {
    double weight;
    Point mean{};
    std::array<Point, MixtureDivergence::largest_dimension> factor{};  // L
    std::vector<View> views{};
  };
  struct Cell {
    const Component* component;
    Point middle{}, half{};  // in z
    double value = 0, error = 0;
    std::size_t axis = 0;  // along which it is to be halved
  };
  struct Halves {
    Cell low, high;
  };

  static Halves halves(const Cell& c, std::size_t axis);
  // The axis along which a cell is too wide for a component nearby; d where it is not.
  std::size_t too_wide(const Cell& c) const;
  std::vector<Cell> first_cells(std::size_t most) const;
  void evaluate(Cell& c) const;
  // The halves, evaluated; each has half of their difference from the whole as its error.
  Halves halve(const Cell& c) const;

  std::size_t dimension_;
  std::size_t points_ = 1;  // of a cell
  MixtureLogDensity log_p_, log_q_;
  Quadrature rule_;
  std::vector<double> top_;  // of the values at the rule's nodes these make the highest Legendre coefficient
  std::vector<Component> components_;
};

}  // namespace implicit_diffusion::detail
