// Arrays in NumPy's .npy format.
//
//     \x93NUMPY, version (2 bytes), header length (2 bytes in version 1, else 4), header, values
//
// The header is a Python dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, padded with blanks so
// that the values begin at a multiple of 64 bytes. Read are versions 1 to 3 with values '<f4', '<f8', '<i4', '<i8' and
// '|u1', in either order; written is version 1, C order, byte for byte as NumPy 1.24 does.
//
// No size is believed before it is checked against the file, and nothing may follow the values. A damaged file gives an
// Error of kind data that names the file and the byte. Of a file whose header does not fit its size no more is read
// than the first MiB, which must hold the header.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion::io {

// Values in C order (last index fastest); their number is the product of the shape. The shape () is a single number.
struct Array {
  std::vector<std::size_t> shape;
  std::vector<double> values;
};

// Integers beyond 2^53 are rounded to the nearest double. Values that are not finite are not refused: see
// find_nonfinite.
Array read_npy(const std::filesystem::path& path);

// The same from bytes at hand; where is what messages call them.
Array parse_npy(std::string_view bytes, const std::string& where);

// The position in values of the first NaN or infinity.
std::optional<std::size_t> find_nonfinite(const Array& array);

// The bytes of a file, for write_file. Throws a usage Error unless the shape has as many entries as there are values,
// and at most 32 dimensions.
std::string npy_bytes(std::span<const float> values, std::span<const std::size_t> shape);
std::string npy_bytes(std::span<const double> values, std::span<const std::size_t> shape);
// What comes before the values, for files that are written piece by piece.
std::string npy_header_of_floats(std::span<const std::size_t> shape);

}  // namespace implicit_diffusion::io
