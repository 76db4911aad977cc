// Which states of a finite set are neighbours: an undirected graph without loops.
#pragma once

#include "implicit_diffusion/finite/transition_matrix.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

class Graph {
 public:
  // From its edges, in any order, each once. Throws a usage Error for a loop, an edge given twice, a state that is not
  // below n or has no neighbour.
  Graph(std::size_t n, std::span<const std::pair<std::uint32_t, std::uint32_t>> edges);
  // n states in a circle, each with the `width` next ones on either side: n > 2 width.
  static Graph ring(std::size_t n, std::size_t width = 1);
  // All n states are neighbours of each other: n > 1.
  static Graph complete(std::size_t n);

  std::size_t states() const { return starts_.size() - 1; }
  std::size_t degree(std::size_t i) const { return starts_[i + 1] - starts_[i]; }
  // In ascending order.
  std::span<const std::uint32_t> neighbours(std::size_t i) const {
    return std::span(neighbours_).subspan(starts_[i], degree(i));
  }

 private:
  Graph() = default;
  std::vector<std::size_t> starts_{0};
  std::vector<std::uint32_t> neighbours_;
};

// A place for every move to a neighbour, and for staying. Dense where all states are neighbours.
TransitionMatrix move_pattern(const Graph& graph);

}  // namespace implicit_diffusion
