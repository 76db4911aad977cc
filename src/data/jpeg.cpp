// JPEG, by libjpeg(-turbo). It reports errors by calling a function that must not return: that one jumps. So there is
// nothing in the functions jumped out of that would have to be destroyed.
#include "codecs.hpp"

#include <cstdio>  // jpeglib.h does not include it

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>

namespace implicit_diffusion::data {
namespace {

struct JpegReader {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump;
  char reason[JMSG_LENGTH_MAX] = {};

  JpegReader() {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = [](j_common_ptr c) {
      auto* reader = static_cast<JpegReader*>(c->client_data);
      c->err->format_message(c, reader->reason);
      std::longjmp(reader->jump, 1);
    };
    // A warning says that pixels are made up, but for some that do not concern pixels.
    errors.emit_message = [](j_common_ptr c, int level) {
      const int code = c->err->msg_code;
      if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM)
        c->err->error_exit(c);
    };
    errors.output_message = [](j_common_ptr) {};
    // Each scan of a progressive image passes over all of it: a small file may have a thousand of them, which take
    // minutes. Encoders make ten or so.
    progress.progress_monitor = [](j_common_ptr c) {
      constexpr int most_scans = 200;
      auto* reader = static_cast<JpegReader*>(c->client_data);
      if (reader->jpeg.input_scan_number <= most_scans) return;
      std::snprintf(reader->reason, sizeof reader->reason, "it has more than %d scans", most_scans);
      std::longjmp(reader->jump, 1);
    };
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
};

bool read_jpeg_header(JpegReader& reader, std::string_view bytes) {
  if (setjmp(reader.jump) != 0) return false;
  jpeg_create_decompress(&reader.jpeg);
  jpeg_mem_src(&reader.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&reader.jpeg, TRUE);
  return true;
}
bool read_jpeg_pixels(JpegReader& reader, std::uint8_t* to) {
  if (setjmp(reader.jump) != 0) return false;
  jpeg_decompress_struct& jpeg = reader.jpeg;
  jpeg.progress = &reader.progress;
  jpeg_start_decompress(&jpeg);
  const std::size_t line = std::size_t{jpeg.output_width} * static_cast<std::size_t>(jpeg.output_components);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = to + jpeg.output_scanline * line;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const std::string& where, std::size_t limit) {
  JpegReader reader;
  const jpeg_decompress_struct& jpeg = reader.jpeg;
  const auto refuse_damage = [&](bool good) {
    // Before the end, the source has no more bytes; at it, libjpeg has put an end of its own in their place.
    const std::size_t left = jpeg.src != nullptr ? jpeg.src->bytes_in_buffer : 0;
    if (!good)
      damaged(where, bytes.size() - std::min(left, bytes.size()), fmt::format("damaged JPEG: {}", reader.reason));
  };
  refuse_damage(read_jpeg_header(reader, bytes));
  const std::size_t height = jpeg.image_height, width = jpeg.image_width;
  // Each block of 8 x 8 pixels of the finest component takes at least a bit.
  check_size(where, "JPEG", height, width, limit, height <= 512 * bytes.size() / std::max<std::size_t>(1, width));
  if (jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK)
    damaged(where, 0, "a JPEG image in CMYK; save it in RGB");
  const bool is_grey = jpeg.jpeg_color_space == JCS_GRAYSCALE;
  reader.jpeg.out_color_space = is_grey ? JCS_GRAYSCALE : JCS_RGB;
  const std::size_t channels = is_grey ? 1 : 3;
  std::vector<std::uint8_t> interleaved(height * width * channels);
  refuse_damage(read_jpeg_pixels(reader, interleaved.data()));
  return {{channels, height, width}, to_planes(std::move(interleaved), channels)};
}

}  // namespace implicit_diffusion::data
