#include "implicit_diffusion/data/image.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "../require.hpp"

namespace implicit_diffusion::data {
namespace {

// A line of `from` pixels becomes one of `to`, of which `count` are wanted, beginning with `first`.
struct Line {
  std::size_t from, to, first, count;
};

// What a pixel of the result covers of the original. In units of 1 / (from to) of the line, pixel i of the original is
// [i to, (i + 1) to), and pixel o of the result is [o from, (o + 1) from).
struct Overlap {
  std::size_t first;                   // of the original
  std::vector<std::uint32_t> weights;  // their sum is `from`
};

std::vector<Overlap> overlaps(const Line& line) {
  std::vector<Overlap> all(line.count);
  for (std::size_t o = 0; o < line.count; ++o) {
    const std::size_t begin = (line.first + o) * line.from, end = begin + line.from;
    all[o].first = begin / line.to;
    for (std::size_t i = all[o].first; i * line.to < end; ++i)
      all[o].weights.push_back(
          static_cast<std::uint32_t>(std::min(end, (i + 1) * line.to) - std::max(begin, i * line.to)));
  }
  return all;
}

// A part of the image as the box filter makes it: what is not wanted of a long and narrow image would fill the memory.
Image filtered(const Image& image, const Line& vertical, const Line& horizontal) {
  const auto [channels, h, w] = image.shape;
  const std::vector<Overlap> rows = overlaps(vertical), columns = overlaps(horizontal);
  Image result{{channels, rows.size(), columns.size()}, {}};
  result.values.resize(result.shape.values());
  std::vector<std::uint64_t> line(w);  // the rows that one row of the result covers, summed
  const std::uint64_t total = std::uint64_t{h} * w;
  std::uint8_t* to = result.values.data();
  for (std::size_t c = 0; c < channels; ++c)
    for (const Overlap& row : rows) {
      std::fill(line.begin(), line.end(), 0);
      for (std::size_t k = 0; k < row.weights.size(); ++k) {
        const std::uint8_t* from = image.values.data() + (c * h + row.first + k) * w;
        for (std::size_t j = 0; j < w; ++j) line[j] += std::uint64_t{row.weights[k]} * from[j];
      }
      for (const Overlap& column : columns) {
        std::uint64_t sum = 0;
        for (std::size_t k = 0; k < column.weights.size(); ++k) sum += column.weights[k] * line[column.first + k];
        *to++ = static_cast<std::uint8_t>((2 * sum + total) / (2 * total));
      }
    }
  return result;
}

const std::array<float, 256> signed_values = [] {
  std::array<float, 256> all{};
  for (std::size_t b = 0; b < 256; ++b) all[b] = static_cast<float>(static_cast<double>(b) / 127.5 - 1);
  return all;
}();

}  // namespace

Image resize_box(const Image& image, std::size_t height, std::size_t width) {
  const std::size_t h = image.shape.height, w = image.shape.width;
  require(image.shape.values() > 0 && height > 0 && width > 0, "resize_box", "an image of {} x {} to {} x {}", h, w,
          height, width);
  if (height == h && width == w) return image;
  return filtered(image, {h, height, 0, height}, {w, width, 0, width});
}

Image crop_centre(const Image& image, std::size_t height, std::size_t width) {
  const auto [channels, h, w] = image.shape;
  require(height <= h && width <= w, "crop_centre", "{} x {} of an image of {} x {}", height, width, h, w);
  if (height == h && width == w) return image;
  const std::size_t top = (h - height) / 2, left = (w - width) / 2;
  Image result{{channels, height, width}, {}};
  result.values.reserve(result.shape.values());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < height; ++i) {
      const auto from = image.values.begin() + static_cast<std::ptrdiff_t>((c * h + top + i) * w + left);
      result.values.insert(result.values.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
  return result;
}

Image with_channels(const Image& image, std::size_t channels) {
  const std::size_t pixels = image.shape.pixels();
  if (image.shape.channels == channels) return image;
  Image result{{channels, image.shape.height, image.shape.width}, {}};
  if (image.shape.channels == 1 && channels == 3) {
    for (int c = 0; c < 3; ++c) result.values.insert(result.values.end(), image.values.begin(), image.values.end());
  } else {
    require(image.shape.channels == 3 && channels == 1, "channels", "{} cannot be made of {}", channels,
            image.shape.channels);
    result.values.resize(pixels);
    const std::uint8_t *red = image.values.data(), *green = red + pixels, *blue = green + pixels;
    for (std::size_t i = 0; i < pixels; ++i)
      result.values[i] =
          static_cast<std::uint8_t>((19595U * red[i] + 38470U * green[i] + 7471U * blue[i] + 0x8000U) >> 16);
  }
  return result;
}

Image fit(Image image, const ImageShape& wanted) {
  if (image.shape == wanted) return image;
  image = with_channels(image, wanted.channels);
  const std::size_t h = image.shape.height, w = image.shape.width;
  require(image.shape.values() > 0 && wanted.values() > 0, "size", "an image of {} x {} to {} x {}", h, w,
          wanted.height, wanted.width);
  // The side that is shorter than it should be decides the scale; the other is rounded.
  const auto scaled = [](std::size_t side, std::size_t to, std::size_t from) {
    return (2 * side * to + from) / (2 * from);
  };
  const bool is_wide = h * wanted.width <= w * wanted.height;
  const std::size_t height = is_wide ? wanted.height : std::max(wanted.height, scaled(h, wanted.width, w));
  const std::size_t width = is_wide ? std::max(wanted.width, scaled(w, wanted.height, h)) : wanted.width;
  return filtered(image, {h, height, (height - wanted.height) / 2, wanted.height},
                  {w, width, (width - wanted.width) / 2, wanted.width});
}

void flip_horizontally(Image& image) {
  const auto width = static_cast<std::ptrdiff_t>(image.shape.width);
  for (auto row = image.values.begin(); width > 0 && row != image.values.end(); row += width)
    std::reverse(row, row + width);
}

void to_signed(std::span<const std::uint8_t> bytes, std::span<float> to) {
  require(bytes.size() == to.size(), "to_signed", "{} bytes to {} numbers", bytes.size(), to.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) to[i] = signed_values[bytes[i]];
}

std::uint8_t to_byte(float x) {
  const float unit = x / 2 + 0.5F;
  if (!(unit > 0)) return 0;
  return static_cast<std::uint8_t>(std::lround(std::min(unit, 1.0F) * 255.0F));
}

}  // namespace implicit_diffusion::data
