// What the codecs share: see codec.hpp.
#pragma once

#include "damage.hpp"
#include "implicit_diffusion/data/codec.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion::data {

Image decode_png(std::string_view bytes, const std::string& where, std::size_t limit);
Image decode_jpeg(std::string_view bytes, const std::string& where, std::size_t limit);
Image decode_webp(std::string_view bytes, const std::string& where, std::size_t limit);

// Refuses an image that is too large, or larger than its bytes can hold.
void check_size(const std::string& where, std::string_view format, std::size_t height, std::size_t width,
                std::size_t limit, bool bytes_can_hold_it);

// From pixel after pixel to plane after plane, and back.
std::vector<std::uint8_t> to_planes(std::vector<std::uint8_t> interleaved, std::size_t channels);
std::vector<std::uint8_t> to_pixels(const Image& image);

}  // namespace implicit_diffusion::data
