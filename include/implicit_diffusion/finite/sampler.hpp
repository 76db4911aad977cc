// One step of a chain: the sampling operator of its stationary law.
//
//     p <- p P(theta)                 of the law itself, without noise
//     x <- k with probability P_xk    of every sample
//
// A sample's step is its row summed up to a uniform number of 32 bits, a pure function of (seed, step, sample).
#pragma once

#include "implicit_diffusion/finite/chain.hpp"
#include "implicit_diffusion/finite/gibbs.hpp"
#include "implicit_diffusion/finite/population.hpp"
#include "implicit_diffusion/parallel.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

struct ChainOptions {
  Noise noise{};
  Workers* workers = nullptr;  // of samples; null: the calling thread alone
};

template <FiniteChain C>
class ChainSampler {
 public:
  explicit ChainSampler(C chain, ChainOptions options = {}) : chain_(std::move(chain)), options_(options) {}

  void advance(Distribution& d, std::span<const double> theta, StepKey) {
    chain_.prepare(theta);
    next_.resize(d.p.size());
    chain_.matrix().multiply_left(d.p, next_);
    d.p.swap(next_);
  }

  void advance(StatePopulation& x, std::span<const double> theta, StepKey at) {
    chain_.prepare(theta);
    detail::for_each_sample(options_.workers, x.size(), [&](std::size_t sample) {
      const TransitionRow row = chain_.matrix().row(x.states[sample]);
      double left = options_.noise.uniform(Stream::sampling, at, 1, x.first() + sample, 0);
      std::size_t s = 0;
      while (s + 1 < row.size() && left >= row.values[s]) left -= row.values[s++];
      x.states[sample] = static_cast<std::uint32_t>(row.column(s));
    });
  }

 private:
  C chain_;
  ChainOptions options_;
  std::vector<double> next_;
};

}  // namespace implicit_diffusion
