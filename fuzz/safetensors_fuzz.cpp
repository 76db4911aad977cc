#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/safetensors.hpp"

#include <cstring>
#include <optional>

namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;
using implicit_diffusion::PieceSink;
using namespace implicit_diffusion::io;

std::optional<SafetensorsReader> read(std::string bytes) {
  try {
    return SafetensorsReader(std::move(bytes), "input");
  } catch (const Error& e) {
    fuzz::require(e.kind() == ErrorKind::data && std::string_view(e.what()).starts_with("input: "),
                  "a refusal is a data Error that names the file");
    return std::nullopt;
  }
}

std::string bytes_of(const SafetensorsReader& reader, const TensorInfo& tensor) {
  std::string bytes(tensor.bytes(), '\0');
  reader.read(tensor.name, std::span(bytes));
  return bytes;
}

std::string written_again(const SafetensorsReader& reader) {
  SafetensorsWriter writer;
  writer.metadata = reader.metadata();
  for (const TensorInfo& t : reader.tensors())
    writer.put(t.name, t.dtype, t.shape, [&](const PieceSink& sink) { sink(bytes_of(reader, t)); });
  return writer.to_bytes();
}

// The length of the header set to where its JSON ends, which no mutation would hit.
std::string with_length(std::string_view bytes) {
  std::string out(bytes);
  const std::size_t end = out.rfind('}');
  if (out.size() < 8 || end == std::string::npos || end < 8) return out;
  const std::uint64_t length = end + 1 - 8;
  std::memcpy(out.data(), &length, sizeof length);
  return out;
}

// Accepted or refused, without a crash. What was accepted fills the file, and written again reads back the same.
void check(std::string bytes) {
  const std::size_t size = bytes.size();
  const std::optional<SafetensorsReader> reader = read(std::move(bytes));
  if (!reader) return;
  std::uint64_t data = 0;
  for (const TensorInfo& t : reader->tensors()) {
    data += t.bytes();
    fuzz::require(reader->find(t.name) == &t, "a tensor is found by its name");
    std::vector<float> floats;
    try {
      if (t.elements() <= size) floats.resize(t.elements());
      reader->read_finite(t.name, floats);
    } catch (const Error&) {
      // of another type, empty and of a huge shape, or not finite
    }
  }
  fuzz::require(data <= size, "tensors do not overlap");
  const std::string written = written_again(*reader);
  const std::optional<SafetensorsReader> again = read(written);
  fuzz::require(again && written_again(*again) == written, "what was written reads back the same");
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const std::vector<float> floats{1, -2, 3};
  const std::vector<double> doubles{0.5};
  const std::vector<std::int64_t> whole{7, 8};
  SafetensorsWriter small, more;
  small.put("w", {3}, std::span<const float>(floats));
  more.put("conv_in.weight", {1, 3}, std::span<const float>(floats));
  more.put("a \"name\"", {}, std::span<const double>(doubles));
  more.put("t", {2}, std::span<const std::int64_t>(whole));
  more.put("h", Dtype::f16, {2}, [](const PieceSink& sink) { sink("abcd"); });
  more.put("b", Dtype::bf16, {1}, [](const PieceSink& sink) { sink("ab"); });
  more.put("f4", Dtype::f4, {2}, [](const PieceSink& sink) { sink("a"); });
  more.put("empty", Dtype::boolean, {2, 0}, [](const PieceSink&) {});
  return {SafetensorsWriter().to_bytes(), small.to_bytes(), more.to_bytes()};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text(data, size);
  check(std::string(bytes));
  check(with_length(bytes));
  return 0;
}
