// A fuzz target gives bytes that nobody would write to a reader of files. It may refuse them with an Error; what it
// accepts has to keep its promises. Each target is a file that defines these two. It runs under libFuzzer (`make
// fuzz`), and as a test with the mutations of mutate.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT: libFuzzer's name

namespace fuzz {

// Bytes that are accepted, to begin from.
std::vector<std::string> seeds();

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

}  // namespace fuzz
