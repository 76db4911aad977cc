// PNG, JPEG and WebP. The libraries that decode them are Debian's, so it is our use of them that is tested, and what
// they take from the heap.
#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/error.hpp"
#include "tests/data/encoded.hpp"

namespace data = implicit_diffusion::data;

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> all;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (const data::Encoded& one : data::encoded) {
    std::string& bytes = all.emplace_back();
    for (const char* c = one.file; *c != '\0'; c += 2) bytes += static_cast<char>(16 * digit(c[0]) + digit(c[1]));
  }
  return all;
}

// Accepted or refused, without a crash; what was accepted, written as PNG, reads back the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::size_t limit = std::size_t{1} << 16;
  data::Image image;
  try {
    image = data::decode_image(fuzz::text(bytes, size), "input", limit);
  } catch (const implicit_diffusion::Error& e) {
    fuzz::require(e.kind() == implicit_diffusion::ErrorKind::data, "a refusal is a data Error");
    return 0;
  }
  fuzz::require(image.shape.pixels() > 0 && image.shape.pixels() <= limit, "the size is within its limit");
  fuzz::require(image.values.size() == image.shape.values(), "there are as many values as the shape says");
  fuzz::require(data::decode_image(data::png_bytes(image), "written") == image, "the image reads back the same");
  return 0;
}
