// SHA-256 (FIPS 180-4), by which one file is told from another.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace implicit_diffusion::io {

class Sha256 {
 public:
  void update(std::string_view bytes);
  // Of all bytes so far: 64 hexadecimal digits, in lower case. Nothing may be added after it.
  std::string digits();

 private:
  void digest(const char* block);  // 64 bytes

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string waiting_;  // less than a block
  std::uint64_t size_ = 0;
};

// Of a file, read piece by piece. Throws what FileReader throws.
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace implicit_diffusion::io
