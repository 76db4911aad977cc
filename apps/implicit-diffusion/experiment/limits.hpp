// What numbers of a file must keep so that single precision can compute with them.
#pragma once

#include "experiment/table_reader.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace program {

// A point that particles are compared with: squares of distances must be single-precision numbers too.
void check_coordinates(const TableReader& t, std::string_view key, std::span<const double> point);

// Far from the origin single-precision numbers are far apart: a complaint where that is more, at v, than a hundredth of
// a standard deviation.
std::optional<std::string> describe_if_too_far(double v, double deviation);

// Where two entries of a matrix, d x d row by row, that ought to be equal are not, but for rounding: a millionth of
// what the diagonal allows.
std::optional<std::string> find_asymmetry(std::span<const double> matrix, std::size_t d);

}  // namespace program
