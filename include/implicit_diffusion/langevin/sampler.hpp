// Overdamped Langevin dynamics: the sampling operator of the Gibbs law of V.
//
//     dX = -grad_x V(X, theta) dt + sqrt(2) dB,       law -> exp(-V(., theta)) / Z
//
// advance() is one Euler-Maruyama step of size g for every sample (the unadjusted Langevin algorithm):
//
//     x <- x - g grad_x V(x, theta) + sqrt(2 g) z,    z ~ N(0, I)
//
// The chain is biased by O(g). For V(x) = a x^2 / 2 it is stable for g < 2 / a and its variance is 1 / (a (1 - a g / 2)), not 1 / a.
#pragma once

#include "implicit_diffusion/langevin/potential.hpp"
#include "implicit_diffusion/optimizer/schedule.hpp"
#include "implicit_diffusion/parallel.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <algorithm>
#include <cmath>

namespace implicit_diffusion {

struct LangevinOptions {
  Schedule step_size{.scale = 1e-2};  // g, as a function of the outer step
  Noise noise{};
  Workers* workers = nullptr;  // null: the calling thread alone
};

// Calls task(b) for every block of a population.
template <class Real, class Task>
void for_each_block(Workers* workers, const Population<Real>& x, Task&& task) {
  if (workers) return workers->for_each(x.blocks(), blocks_per_thread, task);
  for (std::size_t b = 0; b < x.blocks(); ++b) task(b);
}

// The normals of a block's samples, as Noise::normals lays them out.
template <class Real>
void block_noise(const Noise& noise, Stream stream, Moment at, const Block<Real>& block, float* out) {
  noise.normals(stream, at, block.dimension, block.first / lanes_per_group,
                (block.size + lanes_per_group - 1) / lanes_per_group, out);
}

template <class Real>
class Langevin {
 public:
  explicit Langevin(Potential<Real> potential, LangevinOptions options = {})
      : potential_(std::move(potential)), options_(options) {}

  void advance(Population<Real>& x, std::span<const double> theta, Moment at) {
    begin(x, theta);
    for_each_block(options_.workers, x, [&](std::size_t b) { pass(x.block(b), at, {}); });
  }

  // Whether the last step left finite numbers only; then nobody needs to search.
  bool all_finite() const {
    return std::none_of(nonfinite_.begin(), nonfinite_.end(), [](const Flag& f) { return f.up; });
  }

  // The step of one block, and whatever else is asked of the same pass. For each step of a population: begin(), then pass() for every block.
  void begin(const Population<Real>& x, std::span<const double> theta) {
    potential_.prepare(theta);
    nonfinite_.assign(x.blocks(), {});
  }
  void pass(const Block<Real>& block, Moment at, Pass<Real> request) {
    BlockArray<float> z(block.dimension);
    block_noise(options_.noise, Stream::sampling, at, block, z.data());
    const double g = options_.step_size(at.round);
    request.noise = z.data();
    request.step = static_cast<Real>(g);
    request.scale = static_cast<Real>(std::sqrt(2.0 * g));
    request.nonfinite = &nonfinite_[block.first / block_size].up;
    potential_.pass(block, request);
  }

  const Potential<Real>& potential() const { return potential_; }
  const LangevinOptions& options() const { return options_; }

 private:
  struct Flag {
    bool up = false;
  };
  Potential<Real> potential_;
  LangevinOptions options_;
  std::vector<Flag> nonfinite_;  // one for each block
};

// Chains start from N(0, I).
template <class Real>
struct StandardNormalStart {
  Noise noise{};

  void draw(Population<Real>& x, std::int64_t round) const {
    const std::size_t d = x.dimension();
    for (std::size_t b = 0; b < x.blocks(); ++b) {
      const Block<Real> block = x.block(b);
      BlockArray<float> z(d);
      block_noise(noise, Stream::initial, {.round = round}, block, z.data());
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t i = 0; i < block.size; ++i)
          block(i, j) = z[(i / lanes_per_group * d + j) * lanes_per_group + i % lanes_per_group];
    }
  }
};

}  // namespace implicit_diffusion
