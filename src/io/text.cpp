#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace implicit_diffusion::io {

namespace {

// How many bytes the letter at the beginning of the text has; 0 where it is not UTF-8.
std::size_t letter_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return size;
}

// U+0000 to U+001F and U+007F to U+009F: terminals obey them.
bool is_control(std::string_view letter) {
  const auto first = static_cast<unsigned char>(letter[0]);
  return first < 0x20 || first == 0x7F || (first == 0xC2 && static_cast<unsigned char>(letter[1]) < 0xA0);
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  std::string_view kept = text;
  if (kept.size() > longest) {
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // a continuation byte
    kept = text.substr(0, end);
  }
  std::string out;
  const bool whole = kept.size() == text.size();
  while (!kept.empty()) {
    const std::size_t size = letter_size(kept);
    const std::string_view letter = kept.substr(0, std::max<std::size_t>(size, 1));
    if (size > 0 && !is_control(letter))
      out += letter;
    else
      for (const char c : letter) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    kept.remove_prefix(letter.size());
  }
  if (!whole) out += "...";
  return out;
}

std::string excerpt(std::string_view text, std::size_t longest) { return "'" + printable(text, longest) + "'"; }

std::string mistaken_content(std::string_view beginning) {
  if (beginning.empty()) return "the file is empty";
  if (beginning.starts_with("version https://git-lfs"))
    return "a Git LFS pointer in place of the file; `git lfs pull` fetches it";
  if (beginning.starts_with("PK\x03\x04")) return "a zip archive, perhaps of pickled Python objects";
  if (beginning.starts_with("\x80\x02") || beginning.starts_with("\x80\x04")) return "pickled Python objects";
  beginning.remove_prefix(std::min(beginning.find_first_not_of(" \t\r\n"), beginning.size()));
  for (const std::string_view html : {"<!DOCTYPE html", "<!doctype html", "<html", "<HTML"})
    if (beginning.starts_with(html)) return "an HTML page, perhaps the error page of a download";
  return "";
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+,:@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string display(const std::filesystem::path& path) { return path.empty() ? "''" : printable(path.native()); }

}  // namespace implicit_diffusion::io
