// What the library and implicit-diffusion-lmdb say to each other, over a socket that is the latter's standard input and
// output. All numbers are little-endian.
//
// The program begins: a frame `key` for each entry, in the order of the keys, then `end`. After that it answers each
// request, 4 bytes of length and a key, by a frame `value`. Instead of any of these it may send `error`, a text, and
// end.
//
//     frame: kind (1 byte), length (4 bytes), so many bytes
#pragma once

#include <cstddef>
#include <cstdint>

namespace implicit_diffusion::data::lmdb {

enum class Frame : char { key = 'k', end = '.', value = 'v', error = 'e' };

inline constexpr std::size_t frame_head = 5;
inline constexpr std::size_t longest_key = 511;                     // liblmdb's limit
inline constexpr std::size_t longest_value = std::size_t{1} << 28;  // of an encoded image
inline constexpr std::size_t longest_error = 4096;
inline constexpr unsigned longest_silence = 60;  // seconds

}  // namespace implicit_diffusion::data::lmdb
