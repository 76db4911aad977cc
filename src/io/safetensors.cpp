// Longer than most files here: reader and writer share the table of types and the bounds, and a header is taken apart
// event by event, each of which can be out of place.
#include "implicit_diffusion/io/safetensors.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace implicit_diffusion::io {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are in the file");

constexpr std::uint64_t length_size = 8, longest_header = 100'000'000;
constexpr std::uint64_t largest_size = (std::uint64_t{1} << 48) - 1;  // of a dimension or an offset
constexpr std::size_t most_tensors = 1'000'000, most_axes = 32, most_entries = 100'000;
constexpr std::uint64_t longest_word = std::uint64_t{16} << 20;
constexpr std::string_view metadata_name = "__metadata__";

struct DtypeInfo {
  std::string_view name;
  unsigned bits;
};
constexpr std::array<DtypeInfo, 22> dtypes{
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
     {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
     {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};
const DtypeInfo& info_of(Dtype dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }

// Nothing where the number does not fit.
std::optional<std::uint64_t> product_of(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t n : shape)
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(n), &count)) return std::nullopt;
  return count;
}

// The IEEE format of 16 bits.
float from_half(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000U) << 16, exponent = h >> 10 & 0x1FU, fraction = h & 0x3FFU;
  if (exponent == 0)
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24F));
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
// The upper half of a float.
float from_bfloat(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }

template <class T, class Convert>
void convert(std::string_view bytes, float* to, Convert to_float) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    to[i] = to_float(value);
  }
}

// The first value that is not finite. Most often there is none, so blocks of a fixed size are searched as a whole, in a
// form that compilers turn into vector instructions.
std::optional<std::size_t> first_nonfinite_of(std::span<const float> values) {
  constexpr std::uint32_t exponent = 0x7F800000U;
  constexpr std::size_t block = 512;
  std::size_t at = 0;
  for (; at + block <= values.size(); at += block) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < block; ++i)
      found |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(values[at + i]) & exponent) == exponent);
    if (found != 0) break;
  }
  for (; at < values.size(); ++at)
    if ((std::bit_cast<std::uint32_t>(values[at]) & exponent) == exponent) return at;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Dtype dtype) { return info_of(dtype).name; }

std::uint64_t TensorInfo::elements() const { return *product_of(shape); }

// The characters of the header, from the file piece by piece.
class SafetensorsReader::Source {
 public:
  Source(const SafetensorsReader& reader, std::uint64_t end)
      : reader_(reader), end_(end), piece_(std::min<std::uint64_t>(end - length_size, piece_size), '\0') {}

  bool at_end() const { return at_ == end_; }
  char current() {
    if (at_ >= filled_to_) {
      const std::size_t count = std::min<std::uint64_t>(piece_.size(), end_ - at_);
      reader_.input_.read(at_, std::span(piece_).first(count));
      filled_from_ = at_;
      filled_to_ = at_ + count;
    }
    const char c = piece_[at_ - filled_from_];
    if (c == '\0') reader_.refuse(at_, "a zero byte in the header");  // the parser would take it for the end
    return c;
  }
  // The parser keeps the characters of a word until it ends.
  void advance() {
    if (++at_ - word_ > longest_word && bounded_)
      reader_.refuse(word_, fmt::format("a word of more than {} bytes in the header", longest_word));
  }
  void end_word() { word_ = at_; }
  void only_blanks_follow() { bounded_ = false; }
  std::uint64_t at() const { return at_; }

  // An input iterator of the parser's.
  struct Iterator {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;
    Source* source = nullptr;  // null: the end
    char operator*() const { return source->current(); }
    Iterator& operator++() {
      source->advance();
      return *this;
    }
    bool operator==(const Iterator& other) const { return ended() == other.ended(); }
    bool operator!=(const Iterator& other) const { return !(*this == other); }
    bool ended() const { return !source || source->at_end(); }
  };

 private:
  const SafetensorsReader& reader_;
  std::uint64_t end_, at_ = length_size, word_ = length_size;
  std::uint64_t filled_from_ = 0, filled_to_ = 0;  // which bytes of the file the piece holds
  bool bounded_ = true;
  std::string piece_;
};

// Takes the header apart as the parser goes through it; what does not belong there ends it at once.
class SafetensorsReader::Handler final : public nlohmann::json_sax<Json> {
 public:
  Handler(SafetensorsReader& reader, Source& source) : reader_(reader), source_(source) {}

  bool start_object(std::size_t) override {
    source_.end_word();
    if (place_ == Place::outside)
      place_ = Place::names;
    else if (place_ == Place::tensor_begin)
      place_ = Place::fields;
    else if (place_ == Place::metadata_begin)
      place_ = Place::metadata;
    else
      unexpected("an object");
    return true;
  }
  bool key(std::string& key) override {
    source_.end_word();
    if (place_ == Place::names)
      begin_entry(key);
    else if (place_ == Place::fields)
      begin_field(key);
    else
      word_ = key;
    return true;
  }
  bool end_object() override {
    source_.end_word();
    if (place_ == Place::fields) {
      if (seen_ != 7) refuse("lacks dtype, shape or data_offsets");
      place_ = Place::names;
    } else if (place_ == Place::metadata) {
      place_ = Place::names;
    } else {
      place_ = Place::outside;
      source_.only_blanks_follow();
    }
    return true;
  }
  bool start_array(std::size_t) override {
    source_.end_word();
    if (place_ == Place::shape_begin)
      place_ = Place::shape;
    else if (place_ == Place::offsets_begin)
      place_ = Place::offsets;
    else
      unexpected("an array");
    return true;
  }
  bool end_array() override {
    source_.end_word();
    if (place_ == Place::offsets) {
      if (offsets_ != 2) refuse("data_offsets are not two numbers");
      if (tensor().begin > tensor().end)
        refuse(fmt::format("data_offsets end at {}, before they begin at {}", tensor().end, tensor().begin));
    }
    place_ = Place::fields;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    source_.end_word();
    if (place_ != Place::shape && place_ != Place::offsets) unexpected("a number");
    if (value > largest_size) refuse(fmt::format("{} is more than 2^48 - 1", value));
    if (place_ == Place::shape) {
      if (tensor().shape.size() == most_axes) refuse(fmt::format("more than {} dimensions", most_axes));
      tensor().shape.push_back(static_cast<std::int64_t>(value));
    } else {
      if (offsets_ == 2) refuse("data_offsets are not two numbers");
      (offsets_++ == 0 ? tensor().begin : tensor().end) = value;
    }
    return true;
  }
  bool string(std::string& text) override {
    source_.end_word();
    if (place_ == Place::metadata) {
      if (reader_.metadata_.size() == most_entries)
        refuse(fmt::format("__metadata__ has more than {} entries", most_entries));
      if (!reader_.metadata_.emplace(std::move(word_), std::move(text)).second) refuse("__metadata__ has a key twice");
      word_.clear();
    } else if (place_ == Place::dtype) {
      const auto found = std::ranges::find(dtypes, std::string_view(text), &DtypeInfo::name);
      if (found == dtypes.end()) refuse(fmt::format("{} is not a known dtype", excerpt(text)));
      tensor().dtype = static_cast<Dtype>(found - dtypes.begin());
      place_ = Place::fields;
    } else {
      unexpected("a text");
    }
    return true;
  }
  bool number_integer(std::int64_t value) override { unexpected(fmt::format("the number {}", value)); }
  bool number_float(double, const std::string& text) override {
    unexpected(fmt::format("the number {}", excerpt(text)));
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool binary(Json::binary_t&) override { unexpected("bytes"); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    reader_.refuse(source_.at(), "the header is not valid JSON");
  }

 private:
  enum class Place {
    outside,
    names,
    tensor_begin,
    fields,
    dtype,
    shape_begin,
    shape,
    offsets_begin,
    offsets,
    metadata_begin,
    metadata
  };

  TensorInfo& tensor() { return reader_.tensors_.back(); }

  void begin_entry(std::string& name) {
    if (name == metadata_name) {
      if (std::exchange(has_metadata_, true)) reader_.refuse(source_.at(), "__metadata__ is there twice");
      place_ = Place::metadata_begin;
      return;
    }
    if (reader_.tensors_.size() == most_tensors)
      reader_.refuse(source_.at(), fmt::format("more than {} tensors", most_tensors));
    reader_.tensors_.push_back({std::move(name), Dtype::f32, {}});
    seen_ = 0;
    offsets_ = 0;
    place_ = Place::tensor_begin;
  }
  void begin_field(std::string_view field) {
    const unsigned bit = field == "dtype" ? 1 : field == "shape" ? 2 : field == "data_offsets" ? 4 : 0;
    if (bit == 0) refuse(fmt::format("has the unknown key {}", excerpt(field)));
    if ((seen_ & bit) != 0) refuse(fmt::format("has the key {} twice", field));
    seen_ |= bit;
    place_ = bit == 1 ? Place::dtype : bit == 2 ? Place::shape_begin : Place::offsets_begin;
  }

  [[noreturn]] void refuse(const std::string& what) {
    if (place_ == Place::metadata || place_ == Place::metadata_begin || reader_.tensors_.empty())
      reader_.refuse(source_.at(), what);
    reader_.refuse(source_.at(), fmt::format("tensor {}: {}", excerpt(tensor().name, 200), what));
  }
  [[noreturn]] void unexpected(const std::string& found) {
    const char* meant = place_ == Place::outside                             ? "an object with the tensors"
                        : place_ == Place::dtype                             ? "the name of a dtype"
                        : place_ == Place::metadata                          ? "a text in __metadata__"
                        : place_ == Place::tensor_begin                      ? "dtype, shape and data_offsets"
                        : place_ == Place::metadata_begin                    ? "an object with metadata"
                        : place_ == Place::shape_begin                       ? "a list of sizes"
                        : place_ == Place::shape || place_ == Place::offsets ? "a whole number that is not negative"
                                                                             : "data_offsets";
    refuse(fmt::format("{} in place of {}", found, meant));
  }

  SafetensorsReader& reader_;
  Source& source_;
  Place place_ = Place::outside;
  bool has_metadata_ = false;
  unsigned seen_ = 0;  // the fields of the tensor at hand
  int offsets_ = 0;
  std::string word_;  // the key in __metadata__
};

SafetensorsReader::SafetensorsReader(Input input, std::string where)
    : input_(std::move(input)), where_(std::move(where)) {
  std::array<char, 64> beginning{};
  const std::span<char> there(beginning.data(), std::min<std::uint64_t>(input_.size, beginning.size()));
  input_.read(0, there);
  const auto bad_length = [&](const std::string& what) {
    const std::string found = mistaken_content({there.data(), there.size()});
    refuse(0, found.empty() ? what : found + "; a safetensors file is meant");
  };
  if (input_.size < length_size) bad_length(fmt::format("a file of {} bytes is no safetensors file", input_.size));
  std::uint64_t length = 0;
  std::memcpy(&length, beginning.data(), length_size);
  if (length > input_.size - length_size)
    bad_length(fmt::format("a header of {} bytes, but the file has {} more", length, input_.size - length_size));
  if (length > longest_header) bad_length(fmt::format("a header of {} bytes, more than {}", length, longest_header));
  if (length == 0 || beginning[length_size] != '{') bad_length("the header does not begin with '{'");
  data_ = length_size + length;

  Source source(*this, data_);
  Handler handler(*this, source);
  Json::sax_parse(Source::Iterator{&source}, Source::Iterator{},
                  &handler);  // the handler throws where it does not go on
  std::ranges::sort(tensors_, {}, &TensorInfo::name);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, &TensorInfo::name);
  if (twice != tensors_.end()) refuse(*twice, "is there twice");
  check_offsets();
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : SafetensorsReader(
          [&] {
            const auto file = std::make_shared<const FileReader>(path);
            return Input{file->size(), [file](std::uint64_t at, std::span<char> to) { file->read(at, to); }};
          }(),
          display(path)) {}

SafetensorsReader::SafetensorsReader(std::string bytes, const std::string& where)
    : SafetensorsReader(
          [&] {
            const auto all = std::make_shared<const std::string>(std::move(bytes));
            return Input{all->size(), [all](std::uint64_t at, std::span<char> to) {
                           if (!to.empty()) std::memcpy(to.data(), all->data() + at, to.size());
                         }};
          }(),
          where) {}

void SafetensorsReader::check_offsets() const {
  std::vector<std::uint32_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(tensors_[i].begin, tensors_[i].end); });
  std::uint64_t end = 0;
  for (const std::uint32_t i : order) {
    const TensorInfo& t = tensors_[i];
    if (t.begin != end)
      refuse(t, fmt::format("begins at byte {} of the data, {} the one before it ends at {}", t.begin,
                            t.begin > end ? "and" : "but", end));
    const std::optional<std::uint64_t> count = product_of(t.shape);
    std::uint64_t bits = 0;
    if (!count || __builtin_mul_overflow(*count, std::uint64_t{info_of(t.dtype).bits}, &bits))
      refuse(t, fmt::format("shape [{}] is too large", fmt::join(t.shape, ", ")));
    if (bits % 8 != 0)
      refuse(t,
             fmt::format("shape [{}] of {} is no whole number of bytes", fmt::join(t.shape, ", "), to_string(t.dtype)));
    if (bits / 8 != t.bytes())
      refuse(t, fmt::format("shape [{}] of {} takes {} bytes, but data_offsets have {}", fmt::join(t.shape, ", "),
                            to_string(t.dtype), bits / 8, t.bytes()));
    end = t.end;
  }
  const std::uint64_t there = input_.size - data_;
  if (end > there)
    refuse(data_, fmt::format("the tensors take {} bytes, but the file has {} here: it is cut off", end, there));
  if (end < there) refuse(data_ + end, fmt::format("{} bytes follow the last tensor", there - end));
}

const TensorInfo* SafetensorsReader::find(std::string_view name) const {
  const auto found =
      std::ranges::lower_bound(tensors_, name, {}, [](const TensorInfo& t) { return std::string_view(t.name); });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

const TensorInfo& SafetensorsReader::at(std::string_view name) const {
  const TensorInfo* tensor = find(name);
  if (!tensor) throw Error(ErrorKind::data, where_, fmt::format("tensor {} is missing", excerpt(name, 200)));
  return *tensor;
}

void SafetensorsReader::read(std::string_view name, std::span<char> to) const {
  const TensorInfo& tensor = at(name);
  if (to.size() != tensor.bytes())
    throw Error(ErrorKind::usage, where_,
                fmt::format("tensor {} has {} bytes, {} are asked for", excerpt(name, 200), tensor.bytes(), to.size()));
  input_.read(data_ + tensor.begin, to);
}

void SafetensorsReader::read(std::string_view name, std::span<float> to) const { read(at(name), to, false); }
void SafetensorsReader::read_finite(std::string_view name, std::span<float> to) const { read(at(name), to, true); }

// Piece by piece, so that values are looked at while they are in the cache.
void SafetensorsReader::read(const TensorInfo& tensor, std::span<float> to, bool finite) const {
  if (tensor.dtype != Dtype::f16 && tensor.dtype != Dtype::bf16 && tensor.dtype != Dtype::f32 &&
      tensor.dtype != Dtype::f64)
    refuse_type(tensor, "F16, BF16, F32 or F64");
  if (to.size() != tensor.elements())
    throw Error(ErrorKind::usage, where_,
                fmt::format("tensor {} has {} values, {} are asked for", excerpt(tensor.name, 200), tensor.elements(),
                            to.size()));
  const std::size_t width = info_of(tensor.dtype).bits / 8;
  constexpr std::size_t most = piece_size / sizeof(double);
  std::string buffer(tensor.dtype == Dtype::f32 ? 0 : std::min(most, to.size()) * width, '\0');
  for (std::size_t done = 0; done < to.size(); done += most) {
    const std::span<float> piece = to.subspan(done, std::min(most, to.size() - done));
    const std::uint64_t from = data_ + tensor.begin + done * width;
    if (tensor.dtype == Dtype::f32) {
      input_.read(from, {reinterpret_cast<char*>(piece.data()), piece.size_bytes()});
    } else {
      const std::span<char> bytes = std::span(buffer).first(piece.size() * width);
      input_.read(from, bytes);
      const std::string_view values(bytes.data(), bytes.size());
      if (tensor.dtype == Dtype::f16) convert<std::uint16_t>(values, piece.data(), from_half);
      if (tensor.dtype == Dtype::bf16) convert<std::uint16_t>(values, piece.data(), from_bfloat);
      if (tensor.dtype == Dtype::f64)
        convert<double>(values, piece.data(), [](double value) { return static_cast<float>(value); });
    }
    if (!finite) continue;
    if (const auto bad = first_nonfinite_of(piece))
      refuse(tensor, fmt::format("value {} is {}, at byte {}", done + *bad, piece[*bad], from + *bad * width));
  }
}

void SafetensorsReader::refuse(std::uint64_t byte, const std::string& what) const {
  throw Error(ErrorKind::data, where_, fmt::format("byte {}: {}", byte, what));
}
void SafetensorsReader::refuse(const TensorInfo& tensor, const std::string& what) const {
  throw Error(ErrorKind::data, where_, fmt::format("tensor {}: {}", excerpt(tensor.name, 200), what));
}
void SafetensorsReader::refuse_type(const TensorInfo& tensor, std::string_view meant) const {
  refuse(tensor, fmt::format("its values are {}, {} is meant", to_string(tensor.dtype), meant));
}

void SafetensorsWriter::put(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape,
                            std::function<void(const PieceSink&)> produce) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorKind::usage, "safetensors", fmt::format("tensor {} {}", excerpt(name, 200), why));
  };
  if (name == metadata_name) refuse("has a reserved name");
  for (const std::int64_t n : shape)
    if (n < 0 || static_cast<std::uint64_t>(n) > largest_size) refuse("has a shape that no file can hold");
  const std::optional<std::uint64_t> count = product_of(shape);
  if (!count || *count > largest_size / 8 || shape.size() > most_axes || *count * info_of(dtype).bits % 8 != 0)
    refuse("has a shape that no file can hold");
  try {
    (void)Json(name).dump();
  } catch (const Json::exception&) {
    refuse("has a name that is not UTF-8");
  }
  if (!tensors_.try_emplace(name, Tensor{dtype, std::move(shape), std::move(produce)}).second) refuse("is there twice");
}

// Larger dtypes first, then by name: every tensor begins at a multiple of its width.
void SafetensorsWriter::encode(const PieceSink& sink) const {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& entry : tensors_) order.push_back(&entry);
  std::ranges::stable_sort(order, std::greater{}, [](const auto* entry) { return entry->second.dtype; });

  const auto size_of = [](const Tensor& t) { return *product_of(t.shape) * info_of(t.dtype).bits / 8; };
  std::string header = "{";
  if (!metadata.empty()) header += fmt::format("\"{}\":{},", metadata_name, Json(metadata).dump());
  std::uint64_t end = 0;
  for (const auto* entry : order) {
    const Tensor& t = entry->second;
    const std::uint64_t begin = std::exchange(end, end + size_of(t));
    header += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)", Json(entry->first).dump(),
                          to_string(t.dtype), fmt::join(t.shape, ","), begin, end);
  }
  if (header.back() == ',') header.pop_back();
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  sink({reinterpret_cast<const char*>(&length), sizeof length});
  sink(header);
  for (const auto* entry : order) {
    std::uint64_t size = 0;
    entry->second.produce([&](std::string_view piece) {
      size += piece.size();
      sink(piece);
    });
    if (size != size_of(entry->second))
      throw Error(ErrorKind::usage, "safetensors",
                  fmt::format("tensor {} was to have {} bytes and has {}", excerpt(entry->first, 200),
                              size_of(entry->second), size));
  }
}

void SafetensorsWriter::write(const std::filesystem::path& path) const {
  FileWriter file(path);
  encode([&](std::string_view piece) { file.append(piece); });
  file.commit();
}

std::string SafetensorsWriter::to_bytes() const {
  std::string bytes;
  encode([&](std::string_view piece) { bytes += piece; });
  return bytes;
}

}  // namespace implicit_diffusion::io
