// CIFAR-10 and CIFAR-100 in their binary versions.
//
// A file is records of a label and 3072 bytes: 32 x 32 of red, of green, of blue, row by row. CIFAR-10 has one byte for
// the label, 0 to 9; CIFAR-100 two, the coarse label, 0 to 19, and the fine one, 0 to 99, which is the one used here.
//
// The size tells them apart, a multiple of 3073 or of 3074. A file of 9,446,402 bytes or a multiple could be either:
// there the labels decide, and CIFAR-10 where both fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion::data {

enum class CifarVariant : std::uint8_t { cifar10, cifar100 };

inline constexpr std::size_t cifar_values = 3 * 32 * 32;

struct CifarRecords {
  CifarVariant variant = CifarVariant::cifar10;
  std::vector<std::uint8_t> labels;  // the fine ones
  std::vector<std::uint8_t> values;  // cifar_values for each
};

// `where` is what messages call the bytes. Throws a data Error that names record and byte for what is not such a file;
// with a variant, also for one of the other.
CifarRecords parse_cifar(std::string_view bytes, const std::string& where, std::optional<CifarVariant> variant = {});

}  // namespace implicit_diffusion::data
