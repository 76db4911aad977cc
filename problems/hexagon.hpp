// The wells of the paper's Langevin experiments: a regular hexagon of radius 4, with or without its centre.
#pragma once

#include <cmath>
#include <vector>

namespace implicit_diffusion::problems {

inline std::vector<std::vector<double>> hexagon() {
  const double a = 2 * std::sqrt(3.0);
  return {{4, 0}, {2, a}, {-2, a}, {-4, 0}, {-2, -a}, {2, -a}};
}

inline std::vector<std::vector<double>> hexagon_with_centre() {
  auto centres = hexagon();
  centres.push_back({0, 0});
  return centres;
}

}  // namespace implicit_diffusion::problems
