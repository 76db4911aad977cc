#include "experiment/console.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace program {

namespace {
bool muted = false;
}

void mute(bool silent) { muted = silent; }

void print(const std::string& text) {
  std::size_t done = muted ? text.size() : 0;
  while (done < text.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw implicit_diffusion::Error(implicit_diffusion::ErrorKind::io, "stdout", std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

void print_error(const std::string& text) {
  if (!muted) std::fputs(text.c_str(), stderr);
}

namespace {

// A long message loses its middle: it begins with a name, which may be of any length, and ends with the reason.
std::string shortened(std::string message) {
  constexpr std::size_t longest = 4096, at_the_end = 3072;
  if (message.size() <= longest) return message;
  const auto is_inside_letter = [&](std::size_t i) { return (static_cast<unsigned char>(message[i]) & 0xC0) == 0x80; };
  std::size_t first = longest - at_the_end, last = message.size() - at_the_end;
  while (is_inside_letter(first)) --first;
  while (is_inside_letter(last)) ++last;
  return message.replace(first, last - first, "...");
}

}  // namespace

std::string to_line(const std::string& message) {
  return shortened(implicit_diffusion::io::printable(message, message.size()));
}

void complain(const std::string& message, bool even_if_muted) {
  if (!muted || even_if_muted) std::fputs(fmt::format("implicit-diffusion: {}\n", to_line(message)).c_str(), stderr);
}

}  // namespace program
