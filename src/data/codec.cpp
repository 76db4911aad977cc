#include "implicit_diffusion/data/codec.hpp"

#include "codecs.hpp"

#include <algorithm>

#include "../require.hpp"

namespace implicit_diffusion::data {
namespace {

Image lay_out(std::size_t count, const ImageShape& shape, std::size_t columns, std::size_t padding) {
  require(count > 0 && columns > 0 && shape.values() > 0, "image_grid", "{} images of {} x {} in {} columns", count,
          shape.height, shape.width, columns);
  columns = std::min(columns, count);
  const std::size_t rows = (count + columns - 1) / columns;
  Image grid{{shape.channels, rows * (shape.height + padding) + padding, columns * (shape.width + padding) + padding},
             {}};
  require(grid.shape.pixels() <= most_pixels, "image_grid", "{} x {} pixels are too many", grid.shape.height,
          grid.shape.width);
  grid.values.resize(grid.shape.values());
  return grid;
}

// Calls put(to, from) for each value of image n, the index in the grid and in the image.
template <class Put>
void place(const Image& grid, const ImageShape& shape, std::size_t n, std::size_t padding, Put put) {
  const std::size_t columns = (grid.shape.width - padding) / (shape.width + padding);
  const std::size_t top = padding + n / columns * (shape.height + padding);
  const std::size_t left = padding + n % columns * (shape.width + padding);
  std::size_t from = 0;
  for (std::size_t c = 0; c < shape.channels; ++c)
    for (std::size_t i = 0; i < shape.height; ++i)
      for (std::size_t j = 0; j < shape.width; ++j)
        put((c * grid.shape.height + top + i) * grid.shape.width + left + j, from++);
}

}  // namespace

Image decode_image(std::string_view bytes, const std::string& where, std::size_t limit) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(bytes, where, limit);
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes, where, limit);
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return decode_webp(bytes, where, limit);
  damaged(where, 0, wrong_contents(bytes, "a PNG, JPEG or WebP image"));
}

void check_size(const std::string& where, std::string_view format, std::size_t height, std::size_t width,
                std::size_t limit, bool bytes_can_hold_it) {
  if (height == 0 || width == 0) damaged(where, 0, fmt::format("a {} image of {} x {} pixels", format, height, width));
  if (height > longest_side || width > longest_side)
    damaged(
        where, 0,
        fmt::format("a {} image of {} x {} pixels, with a side of more than {}", format, height, width, longest_side));
  if (height > limit / width)
    damaged(where, 0, fmt::format("a {} image of {} x {} pixels, more than {}", format, height, width, limit));
  if (!bytes_can_hold_it)
    damaged(where, 0, fmt::format("a {} image of {} x {} pixels, more than its bytes can hold", format, height, width));
}

std::vector<std::uint8_t> to_planes(std::vector<std::uint8_t> interleaved, std::size_t channels) {
  if (channels == 1) return interleaved;
  const std::size_t pixels = interleaved.size() / channels;
  std::vector<std::uint8_t> planes(interleaved.size());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) planes[c * pixels + i] = interleaved[i * channels + c];
  return planes;
}

std::vector<std::uint8_t> to_pixels(const Image& image) {
  if (image.shape.channels == 1) return image.values;
  const std::size_t channels = image.shape.channels, pixels = image.shape.pixels();
  std::vector<std::uint8_t> interleaved(image.values.size());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) interleaved[i * channels + c] = image.values[c * pixels + i];
  return interleaved;
}

Image image_grid(std::span<const Image> images, std::size_t columns, std::size_t padding) {
  require(!images.empty(), "image_grid", "no images");
  const ImageShape shape = images.front().shape;
  Image grid = lay_out(images.size(), shape, columns, padding);
  for (std::size_t n = 0; n < images.size(); ++n) {
    const ImageShape& own = images[n].shape;
    require(own == shape, "image_grid", "image {} is {} x {} x {}, not {} x {} x {}", n, own.channels, own.height,
            own.width, shape.channels, shape.height, shape.width);
    place(grid, shape, n, padding, [&](std::size_t to, std::size_t from) { grid.values[to] = images[n].values[from]; });
  }
  return grid;
}

Image image_grid(std::span<const float> values, const ImageShape& shape, std::size_t columns, std::size_t padding) {
  require(shape.values() > 0 && values.size() % shape.values() == 0, "image_grid", "{} numbers for images of {}",
          values.size(), shape.values());
  const std::size_t count = values.size() / shape.values();
  Image grid = lay_out(count, shape, columns, padding);
  for (std::size_t n = 0; n < count; ++n)
    place(grid, shape, n, padding,
          [&](std::size_t to, std::size_t from) { grid.values[to] = to_byte(values[n * shape.values() + from]); });
  return grid;
}

}  // namespace implicit_diffusion::data
