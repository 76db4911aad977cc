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

#include <cmath>

namespace implicit_diffusion {

struct LangevinOptions {
  Schedule step_size{.scale = 1e-2};  // g, as a function of the outer step
  Noise noise{};
  Workers* workers = nullptr;  // null: the calling thread alone
};

template <class Real>
class Langevin {
 public:
  explicit Langevin(Potential<Real> potential, LangevinOptions options = {})
      : potential_(std::move(potential)), options_(options) {}

  void advance(Population<Real>& x, std::span<const double> theta, Moment at) {
    potential_.prepare(theta);
    const double g = options_.step_size(at.round);
    const auto step = static_cast<Real>(g);
    const auto scale = static_cast<Real>(std::sqrt(2.0 * g));
    const std::size_t d = x.dimension();

    for_each_block(options_.workers, x, [&](std::size_t b) {
      const Block<Real> block = x.block(b);
      detail::Scratch<Real, 4 * block_size> slope(d * block_size);
      detail::Scratch<float, 4 * block_size> z(d * block_size);
      const std::size_t groups = (block.size + lanes_per_group - 1) / lanes_per_group;
      potential_.gradient(block, slope.data());
      options_.noise.normals(Stream::sampling, at, d, block.first / lanes_per_group, groups, z.data());
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t i = 0; i < block.size; ++i) {
          const Real normal = z[(i / lanes_per_group * d + j) * lanes_per_group + i % lanes_per_group];
          block(i, j) += scale * normal - step * slope[j * block_size + i];
        }
    });
  }

 private:
  Potential<Real> potential_;
  LangevinOptions options_;
};

// Calls task(b) for every block of a population.
template <class Real, class Task>
void for_each_block(Workers* workers, const Population<Real>& x, Task&& task) {
  if (workers) return workers->for_each(x.blocks(), blocks_per_thread, task);
  for (std::size_t b = 0; b < x.blocks(); ++b) task(b);
}

// Chains start from N(0, I).
template <class Real>
struct StandardNormalStart {
  Noise noise{};

  void draw(Population<Real>& x, std::int64_t round) const {
    const std::size_t d = x.dimension();
    std::vector<float> z(d * block_size);
    for (std::size_t b = 0; b < x.blocks(); ++b) {
      const Block<Real> block = x.block(b);
      const std::size_t groups = (block.size + lanes_per_group - 1) / lanes_per_group;
      noise.normals(Stream::initial, {.round = round}, d, block.first / lanes_per_group, groups, z.data());
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t i = 0; i < block.size; ++i)
          block(i, j) = z[(i / lanes_per_group * d + j) * lanes_per_group + i % lanes_per_group];
    }
  }
};

}  // namespace implicit_diffusion
