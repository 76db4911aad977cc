#include "implicit_diffusion/report/pixels.hpp"

#include "../require.hpp"
#include "implicit_diffusion/report/text.hpp"

#include <cstdint>

namespace implicit_diffusion::report {

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view three = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < three.size() ? static_cast<unsigned char>(three[k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= three.size() ? digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string to_img(std::string_view png, const std::string& description, std::size_t enlarged) {
  require(png.size() > 24 && png.starts_with("\x89PNG\r\n\x1a\n") && png.substr(12, 4) == "IHDR", "to_img",
          "{} bytes that are not PNG", png.size());
  require(enlarged >= 1 && enlarged <= 64, "to_img", "an enlargement of {}", enlarged);
  const auto side = [&](std::size_t at) {
    std::size_t n = 0;
    for (const char c : png.substr(at, 4)) n = n << 8 | static_cast<unsigned char>(c);
    return n * enlarged;
  };
  return fmt::format("<img class=\"pixels\" alt=\"{}\" width=\"{}\" height=\"{}\" src=\"data:image/png;base64,{}\"/>",
                     escape(description), side(16), side(20), base64(png));
}

}  // namespace implicit_diffusion::report
