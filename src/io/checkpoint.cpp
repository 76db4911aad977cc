#include "implicit_diffusion/io/checkpoint.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>

namespace implicit_diffusion::io {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::string_view magic = "IDCHKPT1";

constexpr std::size_t longest_name = 4096;

template <class T>
std::string_view bytes_of_one(const T& number) {
  return bytes_of(std::span<const T>(&number, 1));
}

// What comes before the content of a section.
std::string header_of(const std::string& name, std::uint64_t size) {
  std::string header;
  header += bytes_of_one(static_cast<std::uint32_t>(name.size()));
  header += name;
  header += bytes_of_one(size);
  return header;
}

// The CRC of the last `length` of some bytes, from that of those before them and that of all: joining CRCs is its own
// inverse.
std::uint32_t crc_of_last(std::uint32_t before, std::uint32_t all, std::uint64_t length) {
  return static_cast<std::uint32_t>(::crc32_combine(before, all, static_cast<z_off_t>(length)));
}

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

// The checkpoints of a folder by their step, newest first.
std::multimap<std::int64_t, std::filesystem::path, std::greater<>> entries_of(const std::filesystem::path& folder) {
  std::multimap<std::int64_t, std::filesystem::path, std::greater<>> entries;
  for (const std::filesystem::path& file : list_directory(folder))
    if (const auto step = step_of(file)) entries.emplace(*step, file);
  return entries;
}

}  // namespace

void CheckpointWriter::put(const std::string& name, std::uint64_t size, std::function<void(const PieceSink&)> produce) {
  if (name.size() > longest_name) throw Error(ErrorKind::usage, "checkpoint", "the name of a section is too long");
  sections_[name] = {size, std::move(produce)};
}

void CheckpointWriter::put(const std::string& name, std::string bytes) {
  const std::uint64_t size = bytes.size();
  put(name, size, [kept = std::move(bytes)](const PieceSink& sink) { sink(kept); });
}

std::uint32_t CheckpointWriter::encode(const PieceSink& sink) const {
  std::uint64_t length = 0;
  std::uint32_t crc = 0;
  const PieceSink append = [&](std::string_view bytes) {
    length += bytes.size();
    while (!bytes.empty()) {  // each piece is still in the cache when it goes on its way
      const std::string_view piece = bytes.substr(0, piece_size);
      crc = crc32(piece, crc);
      sink(piece);
      bytes.remove_prefix(piece.size());
    }
  };
  append(magic);
  append(bytes_of_one(static_cast<std::uint32_t>(sections_.size())));
  for (const auto& [name, section] : sections_) {
    const std::uint64_t begin = length;
    const std::uint32_t before = crc;
    append(header_of(name, section.size));
    const std::uint64_t content = length;
    section.produce(append);
    if (length - content != section.size)
      throw Error(ErrorKind::usage, "checkpoint",
                  fmt::format("section {} was to have {} bytes and has {}", name, section.size, length - content));
    append(bytes_of_one(crc_of_last(before, crc, length - begin)));
  }
  append(bytes_of_one(length + sizeof length + sizeof crc));
  append(bytes_of_one(std::uint32_t{crc}));
  return crc;
}

void CheckpointWriter::write(const std::filesystem::path& file) const {
  FileWriter out(file);
  const std::uint32_t crc = encode([&](std::string_view piece) { out.append(piece); });
  out.commit(crc);
}

void CheckpointWriter::take_part() const {
  for (const auto& [name, section] : sections_) section.produce([](std::string_view) {});
}

std::string CheckpointWriter::to_bytes() const {
  std::string out;
  encode([&](std::string_view piece) { out += piece; });
  return out;
}

// A file from its beginning to its end, which it refuses to go beyond, with the CRC of all so far.
class CheckpointReader::Scan {
 public:
  Scan(const Input& input, const std::string& where)
      : input_(input), where_(where), buffer_(std::min<std::uint64_t>(input.size, piece_size), '\0') {}

  // The next bytes, at most piece_size of them, until the next call.
  std::string_view take(std::size_t count) {
    if (count > left()) refuse("is cut off");
    if (count > filled_ - begin_) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
      filled_ -= begin_;
      begin_ = 0;
      const std::size_t more = std::min<std::uint64_t>(buffer_.size() - filled_, left() - filled_);
      input_.read(at_ + filled_, std::span(buffer_).subspan(filled_, more));
      filled_ += more;
    }
    const std::string_view part(buffer_.data() + begin_, count);
    begin_ += count;
    at_ += count;
    crc_ = crc32(part, crc_);
    return part;
  }
  void skip(std::uint64_t count) {
    if (count > left()) refuse("is cut off");
    while (count > 0) count -= take(std::min<std::uint64_t>(count, buffer_.size())).size();
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return input_.size - at_; }
  std::uint32_t crc() const { return crc_; }
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorKind::data, where_, fmt::format("damaged checkpoint: {} at byte {}", why, at_));
  }

 private:
  const Input& input_;
  const std::string& where_;
  std::uint64_t at_ = 0;
  std::uint32_t crc_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0, filled_ = 0;  // what is in the buffer and not taken yet: the bytes from at_ on
};

CheckpointReader::CheckpointReader(Input input, std::string where)
    : input_(std::move(input)), where_(std::move(where)) {
  Scan scan(input_, where_);
  if (scan.left() < magic.size() || scan.take(magic.size()) != magic) scan.refuse("it does not begin like one");
  const auto sections = scan.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < sections; ++i) {
    const std::uint64_t begin = scan.at();
    const std::uint32_t before = scan.crc();
    const auto length = scan.number<std::uint32_t>();
    if (length > scan.left()) scan.refuse("is cut off");
    if (length > longest_name) scan.refuse("a section has too long a name");
    const std::string name(scan.take(length));
    Section section{};
    section.size = scan.number<std::uint64_t>();
    section.offset = scan.at();
    scan.skip(section.size);
    section.crc = crc_of_last(before, scan.crc(), scan.at() - begin);
    if (scan.number<std::uint32_t>() != section.crc) scan.refuse("a section does not have its checksum");
    if (!sections_.emplace(name, section).second) scan.refuse("a section is there twice");
  }
  if (scan.number<std::uint64_t>() != input_.size) scan.refuse("it does not have its length");
  const std::uint32_t crc = scan.crc();
  if (scan.number<std::uint32_t>() != crc) scan.refuse("it does not have its checksum");
  if (scan.left() != 0) scan.refuse("there is more than belongs to it");
}

CheckpointReader::CheckpointReader(const std::filesystem::path& path) : CheckpointReader(path, nullptr) {}

CheckpointReader::CheckpointReader(const std::filesystem::path& path, Processes* processes)
    : CheckpointReader(
          [&] {
            const auto file = std::make_shared<std::optional<FileReader>>();
            const std::string size = from_first(processes, [&] { return std::to_string(file->emplace(path).size()); });
            return Input{std::stoull(size), [file, processes](std::uint64_t at, std::span<char> to) {
                           if (!processes) return (*file)->read(at, to);
                           const std::string bytes = from_first(processes, [&] {
                             std::string piece(to.size(), '\0');
                             (*file)->read(at, piece);
                             return piece;
                           });
                           std::copy(bytes.begin(), bytes.end(), to.begin());
                         }};
          }(),
          display(path)) {}

CheckpointReader::CheckpointReader(std::string bytes, const std::string& where)
    : CheckpointReader(
          [&] {
            const auto all = std::make_shared<const std::string>(std::move(bytes));
            return Input{all->size(), [all](std::uint64_t at, std::span<char> to) {
                           std::memcpy(to.data(), all->data() + at, to.size());
                         }};
          }(),
          where) {}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, section] : sections_) names.push_back(name);
  return names;
}

const CheckpointReader::Section& CheckpointReader::find(const std::string& name) const {
  const auto found = sections_.find(name);
  if (found == sections_.end()) refuse(name, "is missing");
  return found->second;
}

void CheckpointReader::read(const std::string& name, std::uint64_t size,
                            const std::function<void(const PieceSource&)>& consume) const {
  const Section& section = find(name);
  if (section.size != size) refuse(name, "has another size");
  std::uint64_t done = 0;
  std::uint32_t crc = crc32(header_of(name, size));
  consume([&](std::span<char> to) {
    if (to.size() > size - done) throw Error(ErrorKind::usage, name, "more is asked for than the section has");
    while (!to.empty()) {
      const std::span<char> piece = to.subspan(0, std::min(to.size(), piece_size));
      input_.read(section.offset + done, piece);
      crc = crc32({piece.data(), piece.size()}, crc);
      done += piece.size();
      to = to.subspan(piece.size());
    }
  });
  if (done != size) throw Error(ErrorKind::usage, name, "less is asked for than the section has");
  if (crc != section.crc) refuse(name, "changed after the file was checked");
}

std::string CheckpointReader::text(const std::string& name) const {
  std::string text(size(name), '\0');
  read_into(name, std::span(text));
  return text;
}

void CheckpointReader::refuse(const std::string& name, const std::string& why) const {
  throw Error(ErrorKind::data, where_, fmt::format("section {} {}", name, why));
}

bool is_checkpoint(const std::filesystem::path& file) { return step_of(file).has_value(); }

void save_checkpoint(const std::filesystem::path& folder, std::int64_t step, const CheckpointWriter& checkpoint) {
  // What it is in was there when the run began: if it was moved or removed, it is not made anew.
  std::error_code none;
  const std::filesystem::path above = folder.has_parent_path() ? folder.parent_path() : ".";
  if (!std::filesystem::is_directory(above, none))
    throw Error(ErrorKind::output, display(above), "was moved or removed while a run was writing into it");
  make_directory(folder);
  checkpoint.write(folder / fmt::format("{}{}{}", prefix, step, suffix));
  try {
    std::error_code error;
    int seen = 0;
    for (const auto& [its_step, file] : entries_of(folder))
      if (++seen > 2) std::filesystem::remove(file, error);
  } catch (const Error&) {
    // an old file that cannot be found or removed does no harm
  }
}

std::optional<CheckpointReader> newest_checkpoint(const std::filesystem::path& folder,
                                                  const std::function<void(const std::string& why)>& refused,
                                                  Processes* processes) {
  const std::string names = from_first(processes, [&] {
    std::string all;
    for (const auto& [step, file] : entries_of(folder)) all += file.filename().string() + "/";
    return all;
  });
  if (names.empty()) return std::nullopt;
  for (std::size_t at = 0, end = 0; at < names.size(); at = end + 1) try {
      end = names.find('/', at);
      return CheckpointReader(folder / names.substr(at, end - at), processes);
    } catch (const Error& error) {
      refused(error.what());
    }
  throw Error(ErrorKind::data, display(folder),
              fmt::format("none of its {} checkpoints is whole", std::ranges::count(names, '/')));
}

}  // namespace implicit_diffusion::io
