#include "experiment/console.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace program {

void print(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw implicit_diffusion::Error(implicit_diffusion::ErrorKind::io, "stdout", std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

void print_error(const std::string& text) { std::fputs(text.c_str(), stderr); }

void complain(const std::string& message) {
  print_error(fmt::format("implicit-diffusion: {}\n", implicit_diffusion::io::printable(message)));
}

}  // namespace program
