#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/checkpoint.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;
using implicit_diffusion::io::CheckpointReader;
using implicit_diffusion::io::CheckpointWriter;

template <class T>
void append(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint32_t crc(std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

// The same sections with their checksums and the length set right, which no mutation would hit: what is behind them is
// to be reached too. The sizes stay as they are; where one goes beyond the end, so does the last section.
std::string with_checksums(std::string_view bytes) {
  constexpr std::size_t beginning = 12;  // the magic bytes and the count
  if (bytes.size() < beginning) return std::string(bytes);
  std::uint32_t sections = 0;
  std::memcpy(&sections, bytes.data() + 8, sizeof sections);
  std::string out(bytes.substr(0, beginning));
  std::size_t at = beginning;
  const auto copy = [&](std::uint64_t count) {
    const std::string_view part = bytes.substr(at, std::min<std::uint64_t>(count, bytes.size() - at));
    out += part;
    at += part.size();
    return part;
  };
  for (std::uint32_t i = 0; i < sections && at < bytes.size(); ++i) {
    const std::size_t begin = out.size();
    std::uint32_t name = 0;
    std::uint64_t content = 0;
    if (const auto part = copy(sizeof name); part.size() == sizeof name) std::memcpy(&name, part.data(), sizeof name);
    copy(name);
    if (const auto part = copy(sizeof content); part.size() == sizeof content)
      std::memcpy(&content, part.data(), sizeof content);
    copy(content);
    append(out, crc(std::string_view(out).substr(begin)));
    at = std::min(at + sizeof(std::uint32_t), bytes.size());
  }
  append(out, static_cast<std::uint64_t>(out.size() + 12));
  append(out, crc(out));
  return out;
}

std::optional<CheckpointReader> read(std::string_view bytes) {
  try {
    return CheckpointReader(std::string(bytes), "input");
  } catch (const Error& e) {
    fuzz::require(e.kind() == ErrorKind::data && std::string_view(e.what()).starts_with("input: "),
                  "a refusal is a data Error that names the file");
    return std::nullopt;
  }
}

std::string written_again(const CheckpointReader& c) {
  CheckpointWriter writer;
  for (const std::string& name : c.names()) writer.put(name, c.text(name));
  return writer.to_bytes();
}

// Accepted or refused, without a crash; and what was accepted, written again, reads back the same.
void check(std::string_view bytes) {
  const std::optional<CheckpointReader> c = read(bytes);
  if (!c) return;
  const std::string written = written_again(*c);
  fuzz::require(written.size() == bytes.size(), "nothing but sections is in a checkpoint");
  const std::optional<CheckpointReader> again = read(written);
  fuzz::require(again && written_again(*again) == written, "what was written reads back the same");
  try {
    (void)c->numbers<double>("theta");
    (void)c->numbers<float>("samples");
    (void)c->number<std::int64_t>("step");
  } catch (const Error&) {
    // a section is missing or has another size
  }
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  CheckpointWriter small, more;
  save(small, "step", std::int64_t{3});
  more.put("configuration", "particles = 2\n");
  more.put("empty", "");
  save(more, "step", std::int64_t{1'000'000});
  save(more, "theta", std::vector<double>{1, -0.5});
  save(more, "samples", std::vector<float>{1, 2, 3, 4});
  return {CheckpointWriter().to_bytes(), small.to_bytes(), more.to_bytes()};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text(data, size);
  check(bytes);
  check(with_checksums(bytes));
  return 0;
}
