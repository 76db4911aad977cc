#include "implicit_diffusion/data/idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/ranges.h>

#include "damage.hpp"

namespace implicit_diffusion::data {
namespace {

constexpr std::size_t most_dimensions = 4;

// The bytes of a file one after another, however they are stored. What is asked for in excess is not given.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::size_t take(std::uint8_t* to, std::size_t count) = 0;
  // An upper bound of all that can come.
  virtual double most() const = 0;
};

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(std::string_view bytes) : bytes_(bytes) {}
  std::size_t take(std::uint8_t* to, std::size_t count) override {
    count = std::min(count, bytes_.size());
    if (count > 0) std::memcpy(to, bytes_.data(), count);
    bytes_.remove_prefix(count);
    return count;
  }
  double most() const override { return static_cast<double>(bytes_.size()); }

 private:
  std::string_view bytes_;
};

class GzipSource : public ByteSource {
 public:
  GzipSource(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override { inflateEnd(&stream_); }

  std::size_t take(std::uint8_t* to, std::size_t count) override {
    std::size_t given = 0;
    while (given < count && !at_end_) {
      const std::size_t in = std::min(bytes_.size() - at_, most_at_once), out = std::min(count - given, most_at_once);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + at_));
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = to + given;
      stream_.avail_out = static_cast<uInt>(out);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      at_ += in - stream_.avail_in;
      given += out - stream_.avail_out;
      if (result == Z_STREAM_END)
        next_member();
      else if (result == Z_MEM_ERROR)
        throw std::bad_alloc();
      else if (result != Z_OK && result != Z_BUF_ERROR)
        fail(stream_.msg != nullptr ? stream_.msg : "it cannot be unpacked");
      else if (at_ == bytes_.size() && stream_.avail_out > 0)
        fail("the file ends before its compressed data does");
    }
    return given;
  }
  double most() const override { return 1032.0 * static_cast<double>(bytes_.size()); }  // what deflate can do

 private:
  static constexpr std::size_t most_at_once = std::size_t{1} << 30;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::data, where_, fmt::format("byte {} of the gzip file: {}", at_, what));
  }
  // A gzip file may have several parts, one after the other.
  void next_member() {
    at_end_ = at_ == bytes_.size();
    if (at_end_) return;
    if (!bytes_.substr(at_).starts_with("\x1f\x8b"))
      fail(fmt::format("{} bytes follow the compressed data", bytes_.size() - at_));
    inflateReset(&stream_);
  }

  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
  bool at_end_ = false;
  z_stream stream_{};
};

[[noreturn]] void refuse_type(unsigned type, const std::string& where) {
  constexpr std::pair<unsigned, const char*> others[] = {
      {9, "signed bytes"}, {11, "16-bit integers"}, {12, "32-bit integers"}, {13, "floats"}, {14, "doubles"}};
  for (const auto& [code, name] : others)
    if (code == type)
      damaged(where, 2, fmt::format("values are {} (type {:02X}); bytes (type 08) are meant", name, type));
  damaged(where, 2, fmt::format("type {:02X} of values is not known; bytes (type 08) are meant", type));
}

IdxArray read_array(ByteSource& source, std::string_view stored, const std::string& where) {
  std::uint8_t head[4 + 4 * most_dimensions];
  const std::size_t got = source.take(head, 4);
  const std::string_view beginning(reinterpret_cast<const char*>(head), got);
  const bool is_swapped = got == 4 && head[3] == 0 && head[2] == 0 && head[1] == 8 && head[0] > 0;
  if (is_swapped) damaged(where, 0, "an IDX file with its bytes swapped; IDX is big-endian");
  if (got < 2 || head[0] != 0 || head[1] != 0) {
    // Of a compressed file only the beginning is at hand.
    const bool is_plain = stored.substr(0, got) == beginning;
    damaged(where, 0, wrong_contents(is_plain ? stored : beginning, "an IDX file (it begins with two zero bytes)"));
  }
  if (got < 4) damaged(where, got, "the file ends before the sizes");
  if (head[2] != 8) refuse_type(head[2], where);
  const std::size_t dimensions = head[3];
  if (dimensions < 1 || dimensions > most_dimensions)
    damaged(where, 3, fmt::format("an array of {} dimensions; 1 to {} are meant", dimensions, most_dimensions));
  const std::size_t begin = 4 + 4 * dimensions;
  if (const std::size_t n = source.take(head + 4, 4 * dimensions); n < 4 * dimensions)
    damaged(where, 4 + n, "the file ends before the sizes");

  IdxArray array;
  double count = 1;  // four sizes of 32 bits overflow no double, and beyond 2^53 it is too large for any file
  for (std::size_t k = 0; k < dimensions; ++k) {
    const std::uint8_t* b = head + 4 + 4 * k;
    array.shape.push_back(std::size_t{b[0]} << 24 | std::size_t{b[1]} << 16 | std::size_t{b[2]} << 8 | b[3]);
    count *= static_cast<double>(array.shape.back());
  }
  const auto shape = [&] { return fmt::format("sizes ({})", fmt::join(array.shape, ", ")); };
  if (count == 0) damaged(where, 4, fmt::format("{} are of an empty array", shape()));
  if (count > source.most())
    damaged(where, 4, fmt::format("{} take {:.0f} bytes, more than the file can hold", shape(), count));
  // Memory is taken as bytes arrive: a file may declare a thousand times what it holds.
  const auto wanted = static_cast<std::size_t>(count);
  std::size_t filled = 0;
  while (filled < wanted) {
    constexpr std::size_t first = std::size_t{1} << 24;
    array.values.resize(std::min(wanted, std::max(first, 2 * filled)));
    const std::size_t room = array.values.size() - filled, n = source.take(array.values.data() + filled, room);
    filled += n;
    if (n < room)
      damaged(where, begin + filled,
              fmt::format("{} take {} bytes, but the file has {} here", shape(), wanted, filled));
  }
  if (std::uint8_t more = 0; source.take(&more, 1) > 0)
    damaged(where, begin + filled,
            fmt::format("{} take {} bytes, but the file has more", shape(), array.values.size()));
  return array;
}

}  // namespace

IdxArray parse_idx(std::string_view bytes, const std::string& where) {
  if (bytes.starts_with("\x1f\x8b")) {
    GzipSource source(bytes, where);
    return read_array(source, {}, where);
  }
  PlainSource source(bytes);
  return read_array(source, bytes, where);
}

}  // namespace implicit_diffusion::data
