// Tensors by name in Hugging Face's safetensors format.
//
//     u64 N (little endian)   N bytes of JSON   the data
//
//     {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"format": "pt"}}
//
// Offsets count from the beginning of the data; values are little-endian, in C order. A file is refused, with a data
// Error that names it, the tensor and the byte, unless all of this holds:
//
//   - N is at most 100,000,000 and the file has that many bytes; the header begins with '{', is UTF-8 and JSON, has no
//     key twice, and nothing but blanks after it;
//   - a tensor has dtype, shape and data_offsets, and nothing else; dtype is one of those below; sizes and offsets are
//     whole numbers without sign, point or exponent, at most 2^48 - 1; __metadata__ maps texts to texts;
//   - the bytes of a tensor are those of its shape and dtype, a whole number of them;
//   - in the order of their offsets the tensors fill the data: no hole, no overlap, no byte after the last.
//
// And so that no small file asks for much memory: at most 1,000,000 tensors of at most 32 dimensions, 100,000 entries
// of __metadata__, and no word of more than 16 MiB. No size is believed before it is checked against the file. Values
// may be NaN or infinite: see read_finite.
//
// Nothing is mapped into memory: a file that shrinks while it is read is an io Error, not a dead process. And nothing
// is held twice: a reader keeps the list of tensors and reads each one to where it belongs; a writer takes each from
// where it is, piece by piece, when the file is written.
//
//     SafetensorsReader reader(file);                          SafetensorsWriter writer;
//     for (const TensorInfo& t : reader.tensors()) ...         writer.put("conv_in.weight", {8, 3, 3, 3}, weights);
//     reader.read("conv_in.weight", weights);                  writer.write(file);
#pragma once

#include "implicit_diffusion/io/pieces.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace implicit_diffusion::io {

// In the order of the reference implementation, which puts larger ones first in a file. Values of types without a
// counterpart in C++ can be read as bytes.
enum class Dtype {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64
};
std::string_view to_string(Dtype dtype);  // as in a file: "F32"

template <class T>
constexpr Dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return Dtype::f32;
  if constexpr (std::is_same_v<T, double>) return Dtype::f64;
  if constexpr (std::is_same_v<T, std::int64_t>) return Dtype::i64;
  if constexpr (std::is_same_v<T, std::int32_t>) return Dtype::i32;
  if constexpr (std::is_same_v<T, std::uint8_t>) return Dtype::u8;
}

struct TensorInfo {
  std::string name;
  Dtype dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // its bytes in the data

  std::uint64_t bytes() const { return end - begin; }
  std::uint64_t elements() const;
};

class SafetensorsReader {
 public:
  // Checks the header and keeps the file open. Throws what FileReader throws too.
  explicit SafetensorsReader(const std::filesystem::path& file);
  // The same for bytes; `where` stands for the name of the file.
  SafetensorsReader(std::string bytes, const std::string& where);

  const std::string& where() const { return where_; }
  const std::deque<TensorInfo>& tensors() const { return tensors_; }  // by name
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const TensorInfo* find(std::string_view name) const;  // null where there is none

  // All that follow throw a data Error where there is no such tensor or its type is another, a usage Error where `to`
  // has not its size, and an io Error where the file has become shorter.
  void read(std::string_view name, std::span<char> to) const;   // its bytes, of any type
  void read(std::string_view name, std::span<float> to) const;  // F16, BF16, F32, F64, rounded to single precision
  // The same, and a data Error that names tensor and index where a value is not finite.
  void read_finite(std::string_view name, std::span<float> to) const;
  // All values of a tensor that has this type.
  template <Arithmetic T>
  std::vector<T> numbers(std::string_view name) const {
    const TensorInfo& tensor = at(name);
    if (tensor.dtype != dtype_of<T>()) refuse_type(tensor, to_string(dtype_of<T>()));
    std::vector<T> values(tensor.elements());
    read(name, std::span<char>(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T)));
    return values;
  }

 private:
  struct Input {
    std::uint64_t size;
    std::function<void(std::uint64_t offset, std::span<char> to)> read;
  };
  class Source;
  class Handler;
  SafetensorsReader(Input input, std::string where);
  void check_offsets() const;
  const TensorInfo& at(std::string_view name) const;
  void read(const TensorInfo& tensor, std::span<float> to, bool finite) const;
  [[noreturn]] void refuse(std::uint64_t byte, const std::string& what) const;
  [[noreturn]] void refuse(const TensorInfo& tensor, const std::string& what) const;
  [[noreturn]] void refuse_type(const TensorInfo& tensor, std::string_view meant) const;

  Input input_;
  std::string where_;
  std::uint64_t data_ = 0;  // where it begins
  std::deque<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

class SafetensorsWriter {
 public:
  std::map<std::string, std::string> metadata{{"format", "pt"}};  // which other programs look for

  // A tensor whose bytes `produce` gives to the sink, in pieces of any size, each time the file is written. Throws a
  // usage Error for a name that is taken, reserved (__metadata__) or not UTF-8, and for a shape with a negative size.
  void put(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape,
           std::function<void(const PieceSink&)> produce);
  // A tensor of these values, which must still be there when the file is written.
  template <Arithmetic T>
  void put(const std::string& name, std::vector<std::int64_t> shape, std::span<const T> values) {
    put(name, dtype_of<T>(), std::move(shape), [values](const PieceSink& sink) {
      sink({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    });
  }

  // Throws what FileWriter throws, and a usage Error where a tensor's pieces are not the bytes of its shape.
  void write(const std::filesystem::path& file) const;
  std::string to_bytes() const;

 private:
  struct Tensor {
    Dtype dtype;
    std::vector<std::int64_t> shape;
    std::function<void(const PieceSink&)> produce;
  };
  void encode(const PieceSink& sink) const;

  std::map<std::string, Tensor> tensors_;
};

}  // namespace implicit_diffusion::io
