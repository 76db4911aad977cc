#include "experiment/limits.hpp"

#include <fmt/format.h>

#include <cmath>

namespace program {

void check_coordinates(const TableReader& t, std::string_view key, std::span<const double> point) {
  constexpr double largest_coordinate = 1e18;
  for (const double v : point)
    if (std::abs(v) > largest_coordinate) t.fail(key, fmt::format("{} is too large for single precision", v));
}

std::optional<std::string> describe_if_too_far(double v, double deviation) {
  const double spacing = std::abs(v) * 0x1p-23;
  if (spacing <= deviation / 100) return std::nullopt;
  return fmt::format(
      "{} is too far from the origin for a standard deviation of {:.3g}: single-precision numbers are {:.3g} apart "
      "there; shift centres, means and data towards 0",
      v, deviation, spacing);
}

std::optional<std::string> find_asymmetry(std::span<const double> m, std::size_t d) {
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const double one = m[a * d + b], other = m[b * d + a], scale = std::sqrt(std::abs(m[a * d + a] * m[b * d + b]));
      if (std::abs(one - other) > 1e-6 * scale)
        return fmt::format("entries {} and {} at ({}, {})", one, other, a + 1, b + 1);
    }
  return std::nullopt;
}

}  // namespace program
