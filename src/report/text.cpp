#include "implicit_diffusion/report/text.hpp"

#include <fmt/format.h>

#include "svg.hpp"

#include <algorithm>
#include <array>

namespace implicit_diffusion::report {
namespace {

// The bytes of the UTF-8 code point at the front, 0 where the bytes are not UTF-8. The text is not empty.
std::size_t code_point_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer forms than needed, surrogates, and what is beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

// Widths relative to the size of the font, rounded up from common sans-serif faces.
double relative_width(std::string_view sign) {
  if (sign.size() > 1) return sign.size() == 2 ? 0.64 : 0.75;
  constexpr std::string_view narrow = " .,:;'|!ijl()[]";
  constexpr std::string_view wide = "mwMW@%";
  if (narrow.find(sign[0]) != std::string_view::npos) return 0.37;
  if (wide.find(sign[0]) != std::string_view::npos) return 0.98;
  return sign[0] >= 'A' && sign[0] <= 'Z' ? 0.72 : 0.63;
}

}  // namespace

std::string escape(std::string_view text) {
  constexpr std::string_view special = "&<>\"'";
  constexpr std::array<std::string_view, 5> entities{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t length = code_point_length(text);
    const std::string_view sign = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(sign.size());
    const auto byte = static_cast<unsigned char>(sign[0]);
    const bool control = (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f;
    // XML 1.0 also excludes these two noncharacters.
    const bool excluded = sign == "\xef\xbf\xbe" || sign == "\xef\xbf\xbf";
    if (length == 0 || control || excluded)
      out += "\xef\xbf\xbd";
    else if (const std::size_t at = special.find(sign[0]); at != std::string_view::npos)
      out += entities[at];
    else
      out += sign;
  }
  return out;
}

namespace svg {

double text_width(std::string_view text, double size) {
  double width = 0;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, code_point_length(text));
    width += relative_width(text.substr(0, length));
    text.remove_prefix(length);
  }
  return width * size;
}

std::string shorten(std::string_view text, double width, double size) {
  if (text_width(text, size) <= width) return std::string(text);
  double used = size;  // of the ellipsis
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t length = std::max<std::size_t>(1, code_point_length(text.substr(end)));
    used += relative_width(text.substr(end, length)) * size;
    if (used > width) break;
    end += length;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::vector<std::string> wrap(std::string_view text, double width, double size, std::size_t lines) {
  std::vector<std::string> out;
  while (!text.empty() && out.size() + 1 < lines && text_width(text, size) > width) {
    std::size_t end = std::string_view::npos;
    for (std::size_t space = text.find(' '); space != std::string_view::npos; space = text.find(' ', space + 1))
      if (text_width(text.substr(0, space), size) <= width) end = space;
    if (end == std::string_view::npos) break;
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) out.push_back(shorten(text, width, size));
  return out;
}

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string describe_count(std::size_t all, std::size_t inside, std::size_t drawn, const std::string& noun,
                           const std::string& more) {
  if (all == 0) return {};
  std::string text = fmt::format("{} {}{}{}", all, noun, all == 1 ? "" : "s", more);
  if (drawn < inside) text += fmt::format(", {} drawn", drawn);
  if (inside < all) text += fmt::format(", {} outside", all - inside);
  return text + '.';
}

}  // namespace svg
}  // namespace implicit_diffusion::report
