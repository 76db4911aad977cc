// A batch of samples on their way from noise to data: the population of the finite-time loops.
//
// Besides where they are, samples carry what their adjoint needs: the path so far, as a whole or every `keep_every`-th
// state of it with the thetas that made the steps between (they are replayed, bit for bit, with the same noise), and U,
// their path KL to a frozen model so far.
#pragma once

#include "implicit_diffusion/denoising/pointwise.hpp"
#include "implicit_diffusion/io/pieces.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// What knows that processes share it: its functions of io/pieces.hpp are those of the whole.
template <class T>
concept KnowsItsSpread = requires(const T& x) {
  x.tiles;
}
|| requires(const T& x) { x.tiles(); };

// T: float or double, or an engine (denoising/steps.hpp).
template <class T>
struct PathBatch {
  using Theta = typename StepsOf<T>::Theta;
  using Samples = typename StepsOf<T>::Samples;
  using Numbers = typename StepsOf<T>::Numbers;

  // A batch of these samples that has made no step.
  static PathBatch of(Samples samples) {
    PathBatch b;
    b.points = std::move(samples);
    return b;
  }

  std::int64_t birth = 0;     // the round at which it was drawn
  std::size_t step = 0;       // n: steps made
  Samples points;             // y_n
  std::vector<Samples> path;  // y_0, y_k, y_2k, ... below n, k = keep_every; what is beyond is memory for more
  Numbers penalty;            // U of each sample; empty where there is no frozen model
  // The thetas of the steps, for replays: the i-th made the steps up to `until`. Empty where the whole path is kept.
  // Batches that were advanced together share them.
  struct Stretch {
    std::size_t until;
    std::shared_ptr<const Theta> theta;
    friend bool operator==(const Stretch& a, const Stretch& b) { return a.until == b.until && *a.theta == *b.theta; }
  };
  std::vector<Stretch> thetas;

  friend bool operator==(const PathBatch&, const PathBatch&) = default;

  // What it takes in memory, on all processes, but for a few words. Thetas that it shares with others count in each.
  std::size_t bytes() const {
    const std::size_t penalties = size_in_bytes(penalty);
    std::size_t sum =
        size_in_bytes(points) + (KnowsItsSpread<Numbers> ? penalties : on_all(spread_of(points), penalties));
    for (const Samples& state : path) sum += size_in_bytes(state);
    for (const Stretch& s : thetas) sum += size_in_bytes(*s.theta);
    return sum;
  }
};

template <class T>
auto find_nonfinite(const PathBatch<T>& b) {
  return find_nonfinite(b.points);
}
template <class T>
auto find_nonfinite_here(const PathBatch<T>& b) requires requires {
  find_nonfinite_here(b.points);
}
{ return find_nonfinite_here(b.points); }
template <class T>
Range spread_of(const PathBatch<T>& b) {
  return spread_of(b.points);
}

}  // namespace implicit_diffusion
