// What the tests of data sets share.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/encoded.hpp"
#include "implicit_diffusion/data/image.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"

namespace implicit_diffusion::data {

// Numbers that look random and are the same everywhere.
class Mixer {
 public:
  explicit Mixer(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_;
};

inline Image random_image(const ImageShape& shape, std::uint64_t seed) {
  Image image{shape, std::vector<std::uint8_t>(shape.values())};
  Mixer mixer(seed);
  for (std::uint8_t& v : image.values) v = static_cast<std::uint8_t>(mixer.next());
  return image;
}

inline std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(16 * digit(hex[i]) + digit(hex[i + 1]));
  return bytes;
}
inline Image image_of(const Encoded& one) {
  const std::string values = from_hex(one.values);
  return {one.shape, {values.begin(), values.end()}};
}

inline std::string gzip(std::string_view bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// An IDX file of bytes.
inline std::string idx_bytes(const std::vector<std::size_t>& shape, std::string_view values) {
  std::string bytes{0, 0, 8, static_cast<char>(shape.size())};
  for (const std::size_t n : shape)
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(n >> shift);
  return bytes.append(values);
}

// Data sets that are not part of the project: a test that needs one is skipped where it is not there.
inline const std::filesystem::path shared_data = IMPLICIT_DIFFUSION_SHARED_DATA;
inline const std::filesystem::path fashion_mnist = "/usr/share/datasets/fashion-mnist";
#define NEEDS(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << (path) << " is not there"

}  // namespace implicit_diffusion::data
