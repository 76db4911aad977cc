#include "implicit_diffusion/finite/graph.hpp"

#include "../require.hpp"

#include <algorithm>

namespace implicit_diffusion {

Graph::Graph(std::size_t n, std::span<const std::pair<std::uint32_t, std::uint32_t>> edges) : starts_(n + 1, 0) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arrows;
  for (const auto& [i, k] : edges) {
    require(i < n && k < n && i != k, "graph", "{}-{} is not an edge between two of {} states", i, k, n);
    arrows.emplace_back(i, k);
    arrows.emplace_back(k, i);
  }
  std::ranges::sort(arrows);
  for (const auto& [i, k] : arrows) {
    ++starts_[i + 1];
    neighbours_.push_back(k);
  }
  for (std::size_t i = 0; i < n; ++i) {
    require(starts_[i + 1] > 0, "graph", "state {} has no neighbour", i);
    starts_[i + 1] += starts_[i];
  }
  if (const auto twice = std::ranges::adjacent_find(arrows); twice != arrows.end())
    require(false, "graph", "the edge {}-{} is given twice", twice->first, twice->second);
}

Graph Graph::ring(std::size_t n, std::size_t width) {
  require(width > 0 && n > 2 * width, "ring", "{} states are too few for neighbours at {}", n, width);
  Graph g;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t s = 1; s <= width; ++s) {
      g.neighbours_.push_back(static_cast<std::uint32_t>((i + s) % n));
      g.neighbours_.push_back(static_cast<std::uint32_t>((i + n - s) % n));
    }
    std::sort(g.neighbours_.end() - static_cast<std::ptrdiff_t>(2 * width), g.neighbours_.end());
    g.starts_.push_back(g.neighbours_.size());
  }
  return g;
}

Graph Graph::complete(std::size_t n) {
  require(n >= 2, "graph", "{} states have no neighbours", n);
  Graph g;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k)
      if (k != i) g.neighbours_.push_back(static_cast<std::uint32_t>(k));
    g.starts_.push_back(g.neighbours_.size());
  }
  return g;
}

TransitionMatrix move_pattern(const Graph& graph) {
  bool complete = true;
  for (std::size_t i = 0; i < graph.states(); ++i) complete = complete && graph.degree(i) + 1 == graph.states();
  if (complete) return TransitionMatrix::dense(graph.states());
  std::vector<std::size_t> starts{0};
  std::vector<std::uint32_t> columns;
  for (std::size_t i = 0; i < graph.states(); ++i) {
    const auto neighbours = graph.neighbours(i);
    const auto above = std::ranges::upper_bound(neighbours, i);
    columns.insert(columns.end(), neighbours.begin(), above);
    columns.push_back(static_cast<std::uint32_t>(i));
    columns.insert(columns.end(), above, neighbours.end());
    starts.push_back(columns.size());
  }
  return TransitionMatrix::sparse(std::move(starts), std::move(columns));
}

}  // namespace implicit_diffusion
