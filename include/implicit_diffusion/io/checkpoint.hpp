// Checkpoints: the state of a run as a file that is whole or refused.
//
// A checkpoint is a list of named sections of bytes. On disk, all numbers little-endian:
//
//     "IDCHKPT1"   u32 sections
//     each:        u32 bytes of the name, the name, u64 bytes of the content, the content, u32 CRC of these four
//     at the end:  u64 bytes of the whole file, u32 CRC of all before it
//
// CRC is the CRC-32 of zlib. Whatever byte is changed, wherever the file is cut, reading it is refused.
//
// In a folder checkpoints are called step-N.checkpoint. Each is put together in memory, written beside, flushed, read back and compared, and
// only then given its name (io/file.hpp); older ones go when two newer are there. There is no pointer to the latest: it is the newest that
// proves whole.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace implicit_diffusion::io {

class Checkpoint {
 public:
  // A section of that name is replaced.
  void put(const std::string& name, std::string bytes) { sections_[name] = std::move(bytes); }
  template <class T>
  void put_numbers(const std::string& name, std::span<const T> numbers) {
    static_assert(std::is_arithmetic_v<T>);
    put(name, std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()));
  }
  template <class T>
  void put_numbers(const std::string& name, const std::vector<T>& numbers) {
    put_numbers(name, std::span<const T>(numbers));
  }
  template <class T>
  void put_number(const std::string& name, T number) {
    put_numbers(name, std::span<const T>(&number, 1));
  }

  // Each throws a data Error where there is no such section, or where it is not a whole count of numbers.
  const std::string& get(const std::string& name) const;
  template <class T>
  std::vector<T> numbers(const std::string& name) const {
    const std::string& bytes = get(name);
    if (bytes.size() % sizeof(T) != 0) refuse(name, "is not a whole count of numbers");
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  template <class T>
  T number(const std::string& name) const {
    const std::vector<T> values = numbers<T>(name);
    if (values.size() != 1) refuse(name, "is not one number");
    return values.front();
  }
  // Throws a data Error that names the section and, where it is known, the file.
  [[noreturn]] void refuse(const std::string& name, const std::string& why) const;

  std::string to_bytes() const;
  // Throws a data Error that begins with `where` unless the bytes are a whole checkpoint.
  static Checkpoint from_bytes(std::string_view bytes, const std::string& where);

 private:
  std::map<std::string, std::string> sections_;
  std::string where_ = "checkpoint";
};

// Writes step-N.checkpoint, then removes those that are older than the newest two.
void save_checkpoint(const std::filesystem::path& folder, std::int64_t step, const Checkpoint& checkpoint);

// The newest checkpoint in a folder that is whole, or nothing where there is none at all (or no folder). Those that are not are passed over,
// newest first, each with a call of `refused`; where none is left a data Error says so. Throws an io Error if the folder cannot be read.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder,
                                            const std::function<void(const std::string& why)>& refused);

}  // namespace implicit_diffusion::io
