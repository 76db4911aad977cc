// A batch of samples on their way from noise to data: the population of the finite-time loops.
//
// Besides where they are, samples carry what their adjoint needs: the path so far, as a whole or every `keep_every`-th state of it with the
// thetas that made the steps between (they are replayed, bit for bit, with the same noise), and U, their path KL to a frozen model so far.
#pragma once

#include "implicit_diffusion/population.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace implicit_diffusion {

template <class Real>
struct PathBatch {
  std::int64_t birth = 0;              // the round at which it was drawn
  std::size_t step = 0;                // n: steps made
  Population<Real> points;             // y_n
  std::vector<Population<Real>> path;  // y_0, y_k, y_2k, ... below n, k = keep_every; what is beyond is memory for more
  std::vector<Real> penalty;           // U of each sample; empty where there is no frozen model
  // The thetas of the steps, for replays: the i-th made the steps up to `until`. Empty where the whole path is kept.
  struct Stretch {
    std::size_t until;
    std::vector<double> theta;
    friend bool operator==(const Stretch&, const Stretch&) = default;
  };
  std::vector<Stretch> thetas;

  friend bool operator==(const PathBatch&, const PathBatch&) = default;

  // What it takes in memory, but for a few words.
  std::size_t bytes() const {
    std::size_t numbers = points.size() * points.dimension() * (1 + path.size()) + penalty.size();
    std::size_t doubles = 0;
    for (const Stretch& s : thetas) doubles += s.theta.size();
    return numbers * sizeof(Real) + doubles * sizeof(double);
  }
};

template <class Real>
std::optional<SampleCoordinate> find_nonfinite(const PathBatch<Real>& b) {
  return find_nonfinite(b.points);
}

}  // namespace implicit_diffusion
