// What a loop carries along on a finite set: the law itself, or samples of it.
#pragma once

#include "implicit_diffusion/parameters.hpp"
#include "implicit_diffusion/population.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

// A probability vector: the law p_k, without noise.
struct Distribution {
  std::vector<double> p;

  friend bool operator==(const Distribution&, const Distribution&) = default;
};

inline Distribution uniform_distribution(std::size_t states) {
  return {std::vector<double>(states, 1.0 / static_cast<double>(states))};
}

// The first state whose probability is not a finite number; it is the "coordinate", there is one sample.
inline std::optional<SampleCoordinate> find_nonfinite(const Distribution& d) {
  const auto i = first_nonfinite(d.p);
  return i ? std::optional(SampleCoordinate{0, *i}) : std::nullopt;
}

// n samples, each a state; all of them here, or those of the blocks here.
struct StatePopulation {
  std::vector<std::uint32_t> states;
  Range blocks{};       // with several processes
  std::size_t all = 0;  // samples, likewise

  std::size_t size() const { return states.size(); }
  std::size_t total() const { return blocks.processes ? all : states.size(); }
  std::size_t first() const { return blocks.first * block_size; }
  friend bool operator==(const StatePopulation&, const StatePopulation&) = default;
};

// Samples over all states in turn: the uniform law as nearly as n allows.
inline StatePopulation spread_population(std::size_t n, std::size_t states, Processes* processes = nullptr) {
  const Range blocks(processes, (n + block_size - 1) / block_size);
  StatePopulation x{{}, blocks, n};
  const std::size_t end = std::min(n, (blocks.first + blocks.count) * block_size);
  for (std::size_t i = x.first(); i < end; ++i) x.states.push_back(static_cast<std::uint32_t>(i * states / n));
  return x;
}
// All of its samples, on every process.
StatePopulation whole(const StatePopulation& x);

// Adds the numbers that other processes have. Counts are exact in any order.
void add_counts(Processes* processes, std::span<double> counts);

// The share of the samples in each state.
inline void empirical(const StatePopulation& x, std::span<double> p) {
  for (double& share : p) share = 0;
  for (const std::uint32_t state : x.states) p[state] += 1.0;
  if (x.blocks.processes) add_counts(x.blocks.processes, p);
  for (double& share : p) share /= static_cast<double>(x.total());
}

}  // namespace implicit_diffusion
