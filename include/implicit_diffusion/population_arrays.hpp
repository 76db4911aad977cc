// Populations to and from plain arrays row by row, a sample after the other, as files have them.
#pragma once

#include "implicit_diffusion/population.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace implicit_diffusion {

// Appends x_11, ..., x_1d, x_21, ...
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

// A population of rows of d numbers of any type, each converted.
template <class Real, class Number>
Population<Real> from_rows(std::span<const Number> rows, std::size_t d) {
  Population<Real> x(rows.size() / d, d);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < d; ++j) x(i, j) = static_cast<Real>(rows[i * d + j]);
  return x;
}

}  // namespace implicit_diffusion
