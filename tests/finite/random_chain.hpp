// Chains and rewards made of noise by key, for tests: the same ones every time.
#pragma once

#include "implicit_diffusion/finite/chain.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <cstdint>
#include <vector>

namespace implicit_diffusion {

// n numbers uniform in (-1, 1).
inline std::vector<double> random_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = 2 * Noise(seed).uniform(Stream::user, {}, 1, i, 0) - 1;
  return out;
}

// P = softmax(A_0 + sum_j theta_j A_j) with A of random numbers.
inline SoftmaxChain random_chain(TransitionMatrix pattern, std::size_t parameters, std::uint64_t seed) {
  const std::size_t entries = pattern.entries();
  std::vector<std::vector<double>> directions;
  for (std::size_t j = 0; j < parameters; ++j) directions.push_back(random_numbers(entries, seed + 1 + j));
  return {std::move(pattern), random_numbers(entries, seed), std::move(directions)};
}

}  // namespace implicit_diffusion
