// Arrays in the IDX format, in which MNIST and Fashion-MNIST come.
//
//     0, 0, type (1 byte), dimensions (1 byte), sizes (4 bytes each, big-endian), values
//
// Read are values of type 08, bytes, in 1 to 4 dimensions; plain or compressed by gzip, which the first two bytes tell.
// No size is believed before it is checked against the file, and nothing may follow the values. A damaged file gives an
// Error of kind data that names the file and the byte (of the unpacked file, where it was compressed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion::data {

// Values in C order (last index fastest); their number is the product of the shape.
struct IdxArray {
  std::vector<std::size_t> shape;
  std::vector<std::uint8_t> values;
};

// `where` is what messages call the bytes.
IdxArray parse_idx(std::string_view bytes, const std::string& where);

}  // namespace implicit_diffusion::data
