// Encoded images: PNG, JPEG and WebP read, PNG written.
//
// The format is told from the first bytes, not from a name. What is read has one channel (grey) or three (red, green,
// blue) of 8 bits: palettes become colours, 16 bits 8, and transparency is dropped. JPEG images in CMYK are refused,
// and so are animations.
//
// No size is believed before it is checked: an image has at most `most_pixels`, and no more than its bytes can hold. A
// damaged image gives an Error of kind data that names the place and, for PNG and JPEG, the byte. What a JPEG decoder
// would fill with grey, since the file ends early or its bits make no sense, is damage here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "implicit_diffusion/data/image.hpp"

namespace implicit_diffusion::data {

inline constexpr std::size_t most_pixels = std::size_t{1} << 26;  // 8192 x 8192
inline constexpr std::size_t longest_side = 65'535;               // as JPEG has it

// `where` is what messages call the bytes.
Image decode_image(std::string_view bytes, const std::string& where, std::size_t limit = most_pixels);

// An image as the bytes of a PNG file, for io::write_file. One channel or three; at least one pixel.
std::string png_bytes(const Image& image);

// Images in rows of `columns`, with `padding` black pixels between and around them, as torchvision's make_grid lays
// them out: all must have the same shape, and there must be at least one. With fewer images than columns there are as
// many columns as images.
Image image_grid(std::span<const Image> images, std::size_t columns = 8, std::size_t padding = 2);
// The same from numbers in [-1, 1], image after image: values.size() / shape.values() images.
Image image_grid(std::span<const float> values, const ImageShape& shape, std::size_t columns = 8,
                 std::size_t padding = 2);

}  // namespace implicit_diffusion::data
