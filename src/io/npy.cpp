#include "implicit_diffusion/io/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/parameters.hpp"

namespace implicit_diffusion::io {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are in the file");

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t alignment = 64;
constexpr std::size_t longest_number = 21;  // digits that NumPy leaves room for, so that an array can grow in place
constexpr std::size_t most_dimensions = 32;

[[noreturn]] void damaged(const std::string& where, std::size_t byte, const std::string& what) {
  throw Error(ErrorKind::data, where, fmt::format("byte {}: {}", byte, what));
}

// The number of elements of a shape; nothing where it does not fit. A dimension of 0 makes any shape empty.
std::optional<std::size_t> element_count(std::span<const std::size_t> shape) {
  if (std::find(shape.begin(), shape.end(), std::size_t{0}) != shape.end()) return 0;
  std::size_t count = 1;
  for (const std::size_t n : shape)
    if (__builtin_mul_overflow(count, n, &count)) return std::nullopt;
  return count;
}

template <class T>
std::vector<double> convert(std::string_view bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

struct Type {
  std::string_view descr;
  std::size_t width;
  std::vector<double> (*convert)(std::string_view bytes);
};

constexpr std::array<Type, 5> types{{{"<f4", 4, convert<float>},
                                     {"<f8", 8, convert<double>},
                                     {"<i4", 4, convert<std::int32_t>},
                                     {"<i8", 8, convert<std::int64_t>},
                                     {"|u1", 1, convert<std::uint8_t>}}};

struct Header {
  const Type* type = nullptr;
  bool fortran_order = false;
  std::vector<std::size_t> shape;
};

// Reads the dictionary of the header, which is the bytes [begin, end) of the file. Of Python's literals it knows what a
// header can hold: strings without escapes, True, False, and tuples of integers.
class HeaderParser {
 public:
  HeaderParser(std::string_view file, std::size_t begin, std::size_t end, const std::string& where)
      : text_(file.substr(0, end)), begin_(begin), at_(begin), where_(where) {}

  Header parse() {
    Header header;
    std::set<std::string_view> seen;
    if (!take("{")) not_a_dictionary();
    while (!take("}")) {
      blanks();
      const std::size_t key_at = at_;
      const std::string_view key = string();
      if (!take(":")) not_a_dictionary();
      if (key != "descr" && key != "fortran_order" && key != "shape")
        damaged(where_, key_at, fmt::format("unknown key {} in the header", excerpt(key)));
      if (!seen.insert(key).second) damaged(where_, key_at, fmt::format("key {} twice in the header", excerpt(key)));
      if (key == "descr")
        header.type = type();
      else if (key == "fortran_order")
        header.fortran_order = boolean();
      else
        header.shape = shape();
      if (!take(",")) {
        if (!take("}")) not_a_dictionary();
        break;
      }
    }
    blanks();
    if (at_ != text_.size() || seen.size() != 3) not_a_dictionary();
    return header;
  }

 private:
  [[noreturn]] void not_a_dictionary() const {
    damaged(where_, begin_, "header is not a dictionary with descr, fortran_order and shape");
  }

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view word) {
    blanks();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::string_view string() {
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) not_a_dictionary();
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) not_a_dictionary();
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return content;
  }

  const Type* type() {
    blanks();
    const std::size_t at = at_;
    if (take("[")) damaged(where_, at, "a structured array; an array of numbers is meant");
    const std::string_view descr = string();
    if (descr.starts_with('>'))
      damaged(
          where_, at,
          fmt::format("values are big-endian ({}); save them as '<{}'", excerpt(descr), printable(descr.substr(1), 8)));
    for (const Type& known : types)
      if (descr == known.descr) return &known;
    damaged(where_, at,
            fmt::format("values are of type {}, not one of '<f4', '<f8', '<i4', '<i8', '|u1'", excerpt(descr)));
  }

  bool boolean() {
    if (take("True")) return true;
    if (take("False")) return false;
    damaged(where_, at_, "fortran_order is neither True nor False");
  }

  std::vector<std::size_t> shape() {
    std::vector<std::size_t> sizes;
    if (!take("(")) damaged(where_, at_, "shape is not a tuple of sizes");
    while (!take(")")) {
      blanks();
      std::size_t n = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (error == std::errc::result_out_of_range) damaged(where_, at_, "a size in shape is too large");
      if (error != std::errc()) damaged(where_, at_, "shape is not a tuple of sizes");
      if (sizes.size() == most_dimensions)
        damaged(where_, at_, fmt::format("shape has more than {} dimensions", most_dimensions));
      at_ = static_cast<std::size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote
      sizes.push_back(n);
      if (!take(",")) {
        if (!take(")")) damaged(where_, at_, "shape is not a tuple of sizes");
        break;
      }
    }
    return sizes;
  }

  std::string_view text_;
  std::size_t begin_;
  std::size_t at_;
  const std::string& where_;
};

// From first index fastest to last index fastest.
std::vector<double> to_c_order(const std::vector<double>& values, const std::vector<std::size_t>& shape) {
  std::vector<std::size_t> stride(shape.size(), 1);
  for (std::size_t k = 1; k < shape.size(); ++k) stride[k] = stride[k - 1] * shape[k - 1];

  std::vector<double> out(values.size());
  std::vector<std::size_t> index(shape.size(), 0);
  std::size_t from = 0;
  for (double& value : out) {
    value = values[from];
    for (std::size_t k = shape.size(); k-- > 0;) {
      from += stride[k];
      if (++index[k] < shape[k]) break;
      from -= shape[k] * stride[k];
      index[k] = 0;
    }
  }
  return out;
}

// What a file without the magic string is.
std::string what_it_is(std::string_view bytes) {
  const std::string other = mistaken_content(bytes);
  return other.empty() ? "not a .npy file: it does not begin with \\x93NUMPY" : other + "; a .npy file is meant";
}

std::string header_of(std::span<const std::size_t> shape, std::string_view descr) {
  const std::string tuple = fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, tuple);
  if (!shape.empty()) header.append(longest_number - std::to_string(shape[0]).size(), ' ');
  // As NumPy counts: between 1 and 64 blanks, not between 0 and 63.
  const std::size_t before = npy_magic.size() + 4;
  header.append(alignment - (before + header.size() + 1) % alignment, ' ');
  header += '\n';

  std::string bytes(npy_magic);
  bytes += {'\x01', '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  return bytes + header;
}

template <class T>
std::string encode(std::span<const T> values, std::span<const std::size_t> shape, std::string_view descr) {
  if (shape.size() > most_dimensions || element_count(shape) != values.size())
    throw Error(ErrorKind::usage, "shape",
                fmt::format("({}) is not the shape of {} values", fmt::join(shape, ", "), values.size()));
  std::string bytes = header_of(shape, descr);
  bytes.reserve(bytes.size() + values.size_bytes());
  if (!values.empty()) bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return bytes;
}

// What the beginning of a file says of the rest.
struct Layout {
  Header header;
  std::size_t data;  // where the values begin
};

// Read from the first bytes of a file of `size` bytes, which the values must fill.
Layout read_layout(std::string_view bytes, std::uint64_t size, const std::string& where) {
  if (!bytes.starts_with(npy_magic)) damaged(where, 0, what_it_is(bytes));
  if (bytes.size() < npy_magic.size() + 4) damaged(where, bytes.size(), "the file ends before the header");
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(bytes[i])}; };

  const std::size_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0)
    damaged(where, 6, fmt::format("version {}.{} of the format is not known", version, byte(7)));
  const std::size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) damaged(where, bytes.size(), "the file ends before the header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > size - begin)
    damaged(where, 8, fmt::format("a header of {} bytes, but the file has {} more", length, size - begin));
  if (length > bytes.size() - begin) damaged(where, 8, fmt::format("a header of {} bytes is too long", length));

  const std::size_t data = begin + length;
  Header header = HeaderParser(bytes, begin, data, where).parse();
  const std::optional<std::size_t> count = element_count(header.shape);
  std::size_t expected = 0;
  if (!count || __builtin_mul_overflow(*count, header.type->width, &expected))
    damaged(where, begin, fmt::format("shape ({}) is too large", fmt::join(header.shape, ", ")));
  if (expected != size - data)
    damaged(where, data,
            fmt::format("shape ({}) of '{}' takes {} bytes, but the file has {} here", fmt::join(header.shape, ", "),
                        header.type->descr, expected, size - data));
  return {std::move(header), data};
}

}  // namespace

Array parse_npy(std::string_view bytes, const std::string& where) {
  Layout layout = read_layout(bytes, bytes.size(), where);
  Array array{std::move(layout.header.shape), layout.header.type->convert(bytes.substr(layout.data))};
  if (layout.header.fortran_order && array.shape.size() > 1) array.values = to_c_order(array.values, array.shape);
  return array;
}

Array read_npy(const std::filesystem::path& path) {
  const FileReader file(path);
  std::string beginning(std::min<std::uint64_t>(file.size(), piece_size), '\0');
  file.read(0, beginning);
  (void)read_layout(beginning, file.size(), display(path));  // a wrong one is refused before the rest is read
  return parse_npy(read_file(path), display(path));
}

std::optional<std::size_t> find_nonfinite(const Array& array) { return first_nonfinite(array.values); }

std::string npy_bytes(std::span<const float> values, std::span<const std::size_t> shape) {
  return encode(values, shape, "<f4");
}

std::string npy_bytes(std::span<const double> values, std::span<const std::size_t> shape) {
  return encode(values, shape, "<f8");
}

std::string npy_header_of_floats(std::span<const std::size_t> shape) { return header_of(shape, "<f4"); }

}  // namespace implicit_diffusion::io
