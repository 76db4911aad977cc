// What a loop carries along on a finite set: the law itself, or samples of it.
#pragma once

#include "implicit_diffusion/parameters.hpp"
#include "implicit_diffusion/population.hpp"

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

// n samples, each a state.
struct StatePopulation {
  std::vector<std::uint32_t> states;

  std::size_t size() const { return states.size(); }
  friend bool operator==(const StatePopulation&, const StatePopulation&) = default;
};

// Samples over all states in turn: the uniform law as nearly as n allows.
inline StatePopulation spread_population(std::size_t n, std::size_t states) {
  StatePopulation x{std::vector<std::uint32_t>(n)};
  for (std::size_t i = 0; i < n; ++i) x.states[i] = static_cast<std::uint32_t>(i * states / n);
  return x;
}

// The share of the samples in each state.
inline void empirical(const StatePopulation& x, std::span<double> p) {
  for (double& share : p) share = 0;
  for (const std::uint32_t state : x.states) p[state] += 1.0;
  for (double& share : p) share /= static_cast<double>(x.size());
}

}  // namespace implicit_diffusion
