#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

namespace implicit_diffusion::io {

std::string printable(std::string_view text, std::size_t longest) {
  std::string_view kept = text;
  if (kept.size() > longest) {
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // a continuation byte
    kept = text.substr(0, end);
  }
  std::string out;
  for (const char c : kept) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  if (kept.size() < text.size()) out += "...";
  return out;
}

std::string excerpt(std::string_view text, std::size_t longest) { return "'" + printable(text, longest) + "'"; }

std::string display(const std::filesystem::path& path) { return path.empty() ? "''" : printable(path.native()); }

}  // namespace implicit_diffusion::io
