// The reverse chain as a sampling operator, and the noise it starts from.
#pragma once

#include "implicit_diffusion/denoising/chain.hpp"
#include "implicit_diffusion/denoising/model_calls.hpp"
#include "implicit_diffusion/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace implicit_diffusion {

template <class T>
class DenoisingSampler {
 public:
  using Steps = StepsOf<T>;
  using Theta = typename Steps::Theta;

  // The chain must live as long.
  explicit DenoisingSampler(ReverseChain<T>& chain) : chain_(chain) {}

  // T / M steps of every sample.
  void advance(PathBatch<T>& b, const Theta& theta, StepKey) { advance_all({&b, 1}, theta); }

  // The same for several batches, each where it is on its way: their tiles are work for all threads together.
  void advance_all(std::span<PathBatch<T>> batches, const Theta& theta) {
    chain_.prepare(theta);
    const Steps& steps = chain_.engine();
    const std::size_t keep = chain_.keep_every(), stride = chain_.steps() / chain_.slots();
    std::size_t tiles = 0;
    for (PathBatch<T>& b : batches) {
      const std::size_t last = b.step + stride;
      if (!steps.fits(b.points)) throw Error(ErrorKind::usage, "batch", "its dimension is not that of the model");
      if (last > chain_.steps()) throw Error(ErrorKind::usage, "batch", "it has made all its steps");
      while (b.path.size() * keep < last) b.path.push_back(b.points);
      if (chain_.frozen() && b.step == 0) b.penalty = Steps::numbers(b.points);
      tiles += Steps::tiles(b.points);
    }
    Steps::for_each(chain_.workers(), tiles, [&](std::size_t task) {
      std::size_t slot = 0;
      while (task >= Steps::tiles(batches[slot].points)) task -= Steps::tiles(batches[slot++].points);
      advance_tile(batches[slot], task, batches[slot].step + stride);
    });
    for (PathBatch<T>& b : batches) {
      b.step += stride;
      if (!chain_.keeps_all()) b.thetas.push_back({b.step, chain_.share(theta)});
      cost_.evaluations += stride;
      if (chain_.frozen()) cost_.frozen_evaluations += stride;
    }
  }

  // So far.
  const DenoisingCost& cost() const { return cost_; }

 private:
  // A state that is kept is made where it is kept; the first and the last are in b.points.
  void advance_tile(PathBatch<T>& b, std::size_t k, std::size_t last) const {
    const std::size_t keep = chain_.keep_every(), first = b.step;
    const auto y = Steps::tile(b.points, k);
    const auto place = [&](std::size_t n) { return n % keep == 0 && n < last ? Steps::tile(b.path[n / keep], k) : y; };
    if (first % keep == 0) Steps::copy(y, place(first));
    for (std::size_t n = first; n < last; ++n) chain_.forward(b, k, n, n == first ? y : place(n), place(n + 1));
  }

  ReverseChain<T>& chain_;
  DenoisingCost cost_;
};

// Fresh batches: N(0, I), keyed by their birth.
template <class T>
struct DenoisingStart {
  Noise noise{};

  void draw(PathBatch<T>& b, std::int64_t round) const {
    b.birth = round;
    b.step = 0;
    b.thetas.clear();
    StepsOf<T>::clear(b.penalty);
    StepsOf<T>::fill_normals(b.points, noise, Stream::initial, {.round = round});
  }
};

// Compiled in the library, once and at its level of optimisation.
extern template class DenoisingSampler<float>;
extern template class DenoisingSampler<double>;

}  // namespace implicit_diffusion
