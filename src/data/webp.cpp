// WebP, by libwebp.
#include "codecs.hpp"

#include <webp/decode.h>

namespace implicit_diffusion::data {

Image decode_webp(std::string_view bytes, const std::string& where, std::size_t limit) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto check = [&](VP8StatusCode status) {
    constexpr const char* reasons[] = {"",
                                       "out of memory",
                                       "an invalid parameter",
                                       "its bits make no sense",
                                       "an unknown feature",
                                       "decoding stopped",
                                       "interrupted",
                                       "the file ends inside the image"};
    if (status == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
    if (status != VP8_STATUS_OK) damaged(where, 0, fmt::format("damaged WebP: {}", reasons[status]));
  };
  WebPBitstreamFeatures features;
  check(WebPGetFeatures(begin, bytes.size(), &features));
  const auto height = static_cast<std::size_t>(features.height), width = static_cast<std::size_t>(features.width);
  check_size(where, "WebP", height, width, limit, true);  // a few bytes can hold any number of equal pixels
  if (features.has_animation != 0) damaged(where, 0, "an animation; a single image is meant");

  std::vector<std::uint8_t> interleaved(height * width * 3);
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) throw Error(ErrorKind::io, where, "libwebp is of another version");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {interleaved.data(), static_cast<int>(3 * width), interleaved.size()};
  check(WebPDecode(begin, bytes.size(), &config));
  return {{3, height, width}, to_planes(std::move(interleaved), 3)};
}

}  // namespace implicit_diffusion::data
