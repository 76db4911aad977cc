#include "implicit_diffusion/io/checkpoint.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <charconv>

namespace implicit_diffusion::io {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::string_view magic = "IDCHKPT1";

std::uint32_t crc(std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

template <class T>
void append(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Reads from the front of bytes, and refuses to read beyond their end.
class Reader {
 public:
  Reader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) refuse("is cut off");
    const std::string_view part = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += part.size();
    return part;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  std::string_view since(std::size_t begin) const { return bytes_.substr(begin, at_ - begin); }
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorKind::data, where_, fmt::format("damaged checkpoint: {} at byte {}", why, at_));
  }

 private:
  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
};

constexpr std::string_view prefix = "step-", suffix = ".checkpoint";

std::optional<std::int64_t> step_of(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  const char* begin = name.data() + prefix.size();
  const char* end = name.data() + name.size() - suffix.size();
  std::int64_t step = 0;
  const auto [stop, error] = std::from_chars(begin, end, step);
  return error == std::errc() && stop == end && step >= 0 ? std::optional(step) : std::nullopt;
}

struct Entry {
  std::int64_t step;
  std::filesystem::path file;
};

// Newest first.
std::vector<Entry> entries_of(const std::filesystem::path& folder) {
  std::vector<Entry> entries;
  for (const std::filesystem::path& file : list_directory(folder))
    if (const auto step = step_of(file)) entries.push_back({*step, file});
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.step > b.step; });
  return entries;
}

}  // namespace

const std::string& Checkpoint::get(const std::string& name) const {
  const auto found = sections_.find(name);
  if (found == sections_.end()) refuse(name, "is missing");
  return found->second;
}

void Checkpoint::refuse(const std::string& name, const std::string& why) const {
  throw Error(ErrorKind::data, where_, fmt::format("section {} {}", name, why));
}

std::string Checkpoint::to_bytes() const {
  std::string out(magic);
  append(out, static_cast<std::uint32_t>(sections_.size()));
  for (const auto& [name, content] : sections_) {
    const std::size_t begin = out.size();
    append(out, static_cast<std::uint32_t>(name.size()));
    out += name;
    append(out, static_cast<std::uint64_t>(content.size()));
    out += content;
    append(out, crc(std::string_view(out).substr(begin)));
  }
  append(out, static_cast<std::uint64_t>(out.size() + sizeof(std::uint64_t) + sizeof(std::uint32_t)));
  append(out, crc(out));
  return out;
}

Checkpoint Checkpoint::from_bytes(std::string_view bytes, const std::string& where) {
  Reader in(bytes, where);
  if (bytes.substr(0, magic.size()) != magic) in.refuse("it does not begin like one");
  in.take(magic.size());
  Checkpoint c;
  c.where_ = where;
  const auto sections = in.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < sections; ++i) {
    const std::size_t begin = in.at();
    const std::string name(in.take(in.number<std::uint32_t>()));
    std::string content(in.take(in.number<std::uint64_t>()));
    const std::uint32_t expected = crc(in.since(begin));
    if (in.number<std::uint32_t>() != expected) in.refuse("a section does not have its checksum");
    if (!c.sections_.emplace(name, std::move(content)).second) in.refuse("a section is there twice");
  }
  if (in.number<std::uint64_t>() != bytes.size()) in.refuse("it does not have its length");
  const std::uint32_t expected = crc(in.since(0));
  if (in.number<std::uint32_t>() != expected) in.refuse("it does not have its checksum");
  if (in.left() != 0) in.refuse("there is more than belongs to it");
  return c;
}

void save_checkpoint(const std::filesystem::path& folder, std::int64_t step, const Checkpoint& checkpoint) {
  make_directory(folder);
  write_file(folder / fmt::format("{}{}{}", prefix, step, suffix), checkpoint.to_bytes(), Verify::yes);
  try {
    const std::vector<Entry> entries = entries_of(folder);
    std::error_code error;
    for (std::size_t i = 2; i < entries.size(); ++i) std::filesystem::remove(entries[i].file, error);
  } catch (const Error&) {
    // an old file that cannot be found or removed does no harm
  }
}

std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder,
                                            const std::function<void(const std::string& why)>& refused) {
  const std::vector<Entry> entries = entries_of(folder);
  if (entries.empty()) return std::nullopt;
  for (const Entry& entry : entries) try {
      return Checkpoint::from_bytes(read_file(entry.file), display(entry.file));
    } catch (const Error& error) {
      refused(error.what());
    }
  throw Error(ErrorKind::data, display(folder), fmt::format("none of its {} checkpoints is whole", entries.size()));
}

}  // namespace implicit_diffusion::io
