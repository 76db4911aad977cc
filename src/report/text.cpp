#include "implicit_diffusion/report/text.hpp"

#include "svg.hpp"

namespace implicit_diffusion::report {

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t length = svg::code_point_length(text);
    const std::string_view sign = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(sign.size());
    const auto byte = static_cast<unsigned char>(sign[0]);
    const bool control = (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f;
    // XML 1.0 also excludes these two noncharacters.
    const bool excluded = sign == "\xef\xbf\xbe" || sign == "\xef\xbf\xbf";
    if (length == 0 || control || excluded) {
      out += "\xef\xbf\xbd";
    } else if (byte == '&') {
      out += "&amp;";
    } else if (byte == '<') {
      out += "&lt;";
    } else if (byte == '>') {
      out += "&gt;";
    } else if (byte == '"') {
      out += "&quot;";
    } else if (byte == '\'') {
      out += "&#39;";
    } else {
      out += sign;
    }
  }
  return out;
}

}  // namespace implicit_diffusion::report
