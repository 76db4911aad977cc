// Populations to and from plain arrays row by row, a sample after the other, as files have them.
#pragma once

#include "implicit_diffusion/io/pieces.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace implicit_diffusion {

// Appends x_11, ..., x_1d, x_21, ..., of the samples here.
template <class Real>
void append_rows(std::vector<Real>& rows, const Population<Real>& x) {
  rows.reserve(rows.size() + x.size() * x.dimension());
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < x.dimension(); ++j) rows.push_back(x(i, j));
}
template <class Real>
std::vector<Real> to_rows(const Population<Real>& x) {
  std::vector<Real> rows;
  append_rows(rows, x);
  return rows;
}

// The same piece by piece, in C order. Of a population that processes share, the first one's sink is given all rows.
template <class Real>
void give_rows(const Population<Real>& x, const PieceSink& sink) {
  constexpr std::size_t numbers_at_once = std::size_t{1} << 17;
  const auto own = [&x](const PieceSink& to) {
    std::vector<Real> rows;
    for (std::size_t b = 0; b < x.blocks(); ++b) {
      const auto block = x.block(b);
      for (std::size_t i = 0; i < block.size; ++i)
        for (std::size_t j = 0; j < block.dimension; ++j) rows.push_back(block(i, j));
      if (rows.size() < numbers_at_once && b + 1 < x.blocks()) continue;
      give_pieces(rows, to);
      rows.clear();
    }
  };
  give_in_turn(x.processes(), own, sink);
}

// Up to `most` of its samples, evenly spaced, on every process: sample k n / most of n.
template <class Real>
Population<Real> some_of(const Population<Real>& x, std::size_t most) {
  const std::size_t n = std::min(x.total(), most), d = x.dimension();
  Population<Real> some(n, d);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t sample = k * x.total() / n;
    if (sample < x.first() || sample >= x.first() + x.size()) continue;
    for (std::size_t j = 0; j < d; ++j) some(k, j) = x(sample - x.first(), j);
  }
  if (!x.processes()) return some;
  // Those of a rank are next to each other.
  const auto first_of = [&](std::size_t rank) {
    const std::size_t sample = std::min(x.tiles().first_of(rank) * block_size, x.total());
    return n == 0 ? 0 : (sample * n + x.total() - 1) / x.total();
  };
  std::vector<std::size_t> sizes;
  for (std::size_t r = 0; r < x.processes()->ranks(); ++r)
    sizes.push_back((first_of(r + 1) - first_of(r)) * sizeof(Real));
  for (std::size_t j = 0; j < d; ++j) x.processes()->gather(sizes, as_message(some.coordinate(j)));
  return some;
}

// A population of rows of d numbers of any type, each converted.
template <class Real, class Number>
Population<Real> from_rows(std::span<const Number> rows, std::size_t d) {
  Population<Real> x(rows.size() / d, d);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < d; ++j) x(i, j) = static_cast<Real>(rows[i * d + j]);
  return x;
}

}  // namespace implicit_diffusion
