#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/data/idx.hpp"
#include "implicit_diffusion/error.hpp"

#include <zlib.h>

namespace data = implicit_diffusion::data;

namespace {

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const std::string labels("\0\0\x08\x01\0\0\0\x03\x05\0\x04", 11);
  const std::string images = std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16) + "abcdefghijkl";
  return {labels, images, gzip(labels), gzip(images), gzip(images.substr(0, 9)) + gzip(images.substr(9))};
}

// Accepted or refused, without a crash; what was accepted has the size that it says.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const data::IdxArray array = data::parse_idx(fuzz::text(bytes, size), "input");
    std::size_t count = 1;
    for (const std::size_t n : array.shape) count *= n;
    fuzz::require(count == array.values.size() && count > 0, "there are as many values as the sizes say");
  } catch (const implicit_diffusion::Error& e) {
    fuzz::require(e.kind() == implicit_diffusion::ErrorKind::data, "a refusal is a data Error");
  }
  return 0;
}
