// What is wrong with bytes, in the words of one line.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace implicit_diffusion::data {

[[noreturn]] inline void damaged(const std::string& where, std::size_t byte, const std::string& what) {
  throw Error(ErrorKind::data, where, fmt::format("byte {}: {}", byte, what));
}

// Bytes that do not begin as they should: `meant`, with its article, is what they should be.
inline std::string wrong_contents(std::string_view bytes, std::string_view meant) {
  const std::string other = io::mistaken_content(bytes);
  return other.empty() ? fmt::format("not {}", meant) : fmt::format("{}; {} is meant", other, meant);
}

}  // namespace implicit_diffusion::data
