// PNG, by libpng. It reports errors by calling a function that must not return: that one jumps. So there is nothing in
// the functions jumped out of that would have to be destroyed.
#include "codecs.hpp"

#include <png.h>

#include <csetjmp>
#include <cstring>

#include "../require.hpp"

namespace implicit_diffusion::data {
namespace {

struct PngSource {
  std::string_view bytes;
  std::size_t at = 0;
  char reason[160] = {};
};

void fail_png(png_structp png, png_const_charp reason) {
  auto* source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::strncpy(source->reason, reason, sizeof source->reason - 1);
  png_longjmp(png, 1);
}
void ignore_png(png_structp, png_const_charp) {}

void take_png(png_structp png, png_bytep to, std::size_t count) {
  auto* source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (count > source->bytes.size() - source->at) {
    source->at = source->bytes.size();
    png_error(png, "the file ends inside the image");
  }
  std::memcpy(to, source->bytes.data() + source->at, count);
  source->at += count;
}

// A reader, and its end.
struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  PngReader(PngSource& source) : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, fail_png, ignore_png)) {
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) throw std::bad_alloc();
    png_set_read_fn(png, &source, take_png);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

// Reads as far as the size, and asks for 8 bits of grey or colour. False after an error.
bool read_png_header(const PngReader& reader) {
  const png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  // What says nothing of the pixels is not even unpacked: it could be of any size.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_read_info(png, reader.info);
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  return true;
}
bool read_png_pixels(const PngReader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

}  // namespace

Image decode_png(std::string_view bytes, const std::string& where, std::size_t limit) {
  PngSource source{bytes};
  const PngReader reader(source);
  const auto refuse_damage = [&](bool good) {
    if (!good) damaged(where, source.at, fmt::format("damaged PNG: {}", source.reason));
  };
  refuse_damage(read_png_header(reader));
  const std::size_t width = png_get_image_width(reader.png, reader.info);
  const std::size_t height = png_get_image_height(reader.png, reader.info);
  const int bits = png_get_bit_depth(reader.png, reader.info) * png_get_channels(reader.png, reader.info);
  // A line takes a byte more than its pixels, and deflate makes at most 1032 bytes of one.
  const double unpacked = static_cast<double>(height) * (1 + static_cast<double>(width) * bits / 8);
  check_size(where, "PNG", height, width, limit, unpacked <= 1032.0 * static_cast<double>(bytes.size()));
  const bool is_grey = (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_COLOR) == 0;
  const std::size_t channels = is_grey ? 1 : 3;

  if (png_get_interlace_type(reader.png, reader.info) != PNG_INTERLACE_NONE) png_set_interlace_handling(reader.png);
  std::vector<std::uint8_t> interleaved(height * width * channels);
  std::vector<png_bytep> rows(height);
  for (std::size_t i = 0; i < height; ++i) rows[i] = interleaved.data() + i * width * channels;
  refuse_damage(read_png_pixels(reader, rows.data()));
  return {{channels, height, width}, to_planes(std::move(interleaved), channels)};
}

std::string png_bytes(const Image& image) {
  const auto [channels, height, width] = image.shape;
  require((channels == 1 || channels == 3) && image.shape.values() > 0 && image.values.size() == image.shape.values() &&
              image.shape.pixels() <= most_pixels,
          "png_bytes", "{} bytes as an image of {} x {} with {} channels", image.values.size(), height, width,
          channels);
  const std::vector<std::uint8_t> interleaved = to_pixels(image);
  png_image out{};
  out.version = PNG_IMAGE_VERSION;
  out.width = static_cast<png_uint_32>(width);
  out.height = static_cast<png_uint_32>(height);
  out.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(out);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&out, bytes.data(), &size, 0, interleaved.data(), 0, nullptr) == 0)
    throw Error(ErrorKind::io, "png_bytes", out.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace implicit_diffusion::data
