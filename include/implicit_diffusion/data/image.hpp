// Images as bytes, brought to a wanted shape, and as numbers in [-1, 1].
//
// An image is C x H x W bytes, plane after plane, rows from the top: the order of a tensor (C, H, W).
//
// The box filter gives each pixel of the result the mean of the area that it covers in the original: pixel (u, v) of an
// H' x W' result, from an H x W original p,
//
//     p'(u, v) = (H' W' / (H W)) sum_ij p(i, j) |[i, i+1) x [j, j+1)  n  [u H/H', (u+1) H/H') x [v W/W', (v+1) W/W')|
//
// rounded to the nearest integer, halves up. The sum is taken in integers, so it is exact and the same on every
// machine.
//
// As numbers, byte b is b / 127.5 - 1; back, x is round(255 clamp(x / 2 + 1/2, 0, 1)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace implicit_diffusion::data {

struct ImageShape {
  std::size_t channels = 0;
  std::size_t height = 0;
  std::size_t width = 0;

  std::size_t pixels() const { return height * width; }
  std::size_t values() const { return channels * height * width; }
  bool operator==(const ImageShape&) const = default;
};

struct Image {
  ImageShape shape;
  std::vector<std::uint8_t> values;  // shape.values() of them

  bool operator==(const Image&) const = default;
};

// The box filter. Throws a usage Error unless both shapes have at least one pixel.
Image resize_box(const Image& image, std::size_t height, std::size_t width);

// The height x width pixels in the middle; where one more is left on one side, it is below or on the right. Throws a
// usage Error where the image is smaller.
Image crop_centre(const Image& image, std::size_t height, std::size_t width);

// One channel from three by the weights of ITU-R 601, (19595 R + 38470 G + 7471 B) / 65536, halves up; three from one
// by repeating it. Throws a usage Error for other numbers.
Image with_channels(const Image& image, std::size_t channels);

// The image in the wanted shape: channels as above; scaled by the box filter until it covers the wanted height and
// width, just, keeping its proportions; then its middle.
Image fit(Image image, const ImageShape& wanted);

// The same columns from right to left.
void flip_horizontally(Image& image);

// b / 127.5 - 1 for each byte b. As many `to` as `bytes`.
void to_signed(std::span<const std::uint8_t> bytes, std::span<float> to);
// The nearest byte of a number in [-1, 1]; those beyond are clamped, NaN is 0.
std::uint8_t to_byte(float x);

}  // namespace implicit_diffusion::data
