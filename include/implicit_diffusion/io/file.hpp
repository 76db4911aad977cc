// Files, read and written: the one place where the library touches the disk.
//
// A file is written in full or not at all: into a temporary file in the same folder, flushed to the disk, renamed over
// the old one, and the folder flushed too. At every moment, a crash or a power cut included, the name holds the old
// bytes or the new ones. Only plain system calls are used, so that an error can be named and a fault can be injected at
// each of them.
//
// A kill in the middle of writing may leave the temporary file, named `.implicit-diffusion-PID-N.tmp`; every other
// failure removes it, and remove_temporaries those of the killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace implicit_diffusion::io {

// Files that are longer go to and from the disk in pieces of so many bytes.
inline constexpr std::size_t piece_size = std::size_t{1} << 20;

// An open file or folder, closed at the end of its life.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  int get() const { return fd_; }
  // The error number, or 0.
  int close();

 private:
  int fd_;
};

// The bytes of a regular file. Throws Error: missing if there is no such file or it is something else (a folder, a
// pipe, a device); data if it is longer than limit bytes, before any of it is read; io if reading fails or the file
// changes size meanwhile.
std::string read_file(const std::filesystem::path& path, std::size_t limit = std::numeric_limits<std::size_t>::max());

// The same file read piece by piece. It stays open: another one that takes its name is not read.
class FileReader {
 public:
  explicit FileReader(std::filesystem::path path);

  // In bytes, when it was opened. Files that do not know their size (/proc) say 0.
  std::uint64_t size() const { return size_; }
  // Fills `to` with the bytes from `offset` on. Throws an io Error if reading fails or there are not so many.
  void read(std::uint64_t offset, std::span<char> to) const;
  // The same for as many as one call of the system gives; 0 at the end of the file.
  std::size_t read_some(std::uint64_t offset, std::span<char> to) const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

// Puts the bytes under the name, which may exist (a symbolic link is replaced, not followed). Throws Error: output if
// no file can be made there, or the name is that of a folder, a pipe or a device, or of a link to one; io, naming the
// reason and the number of bytes, if one could be made but not filled, flushed or renamed. The old file, if any, is
// untouched then, and no new one is there; the one exception is a failure of the very last step, flushing the folder.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// The same piece by piece: the file has its name when commit() returns. Without commit() nothing is left of it. The
// number of bytes in an error is that of those appended so far.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  void append(std::string_view bytes);
  // With the CRC-32 of all bytes, the new file is read back, and must have it, before it gets its name.
  void commit(std::optional<std::uint32_t> crc = {});

 private:
  void write(std::string_view bytes);
  std::uint32_t read_back() const;  // the CRC-32 of what the disk gives back
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty where there is none
  Descriptor file_;
  std::string waiting_;  // small pieces are gathered, up to piece_size
  std::uint64_t size_ = 0;
};

// The CRC-32 of zlib, of bytes that follow those with the CRC `before`.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

// Makes the folder and those above it, and flushes the folders that they are in; one that exists is fine. Returns those
// that were not there, the innermost first. Throws Error: output if it cannot be made, io if it cannot be flushed.
std::vector<std::filesystem::path> make_directory(const std::filesystem::path& path);

// What is in a folder, in no order; nothing where there is no such folder. Throws Error if it cannot be read: output
// where permission is denied, since it is a folder to write in; io for any other reason.
std::vector<std::filesystem::path> list_directory(const std::filesystem::path& path);

// Removes the temporary files in a folder, not those further down. For one who holds its lock: others may be writing
// theirs.
void remove_temporaries(const std::filesystem::path& folder);

// Keeps a folder to one writer for as long as it lives: a second lock, of this process or another, is refused with an
// output Error. It is the system's lock on the folder itself, so no file shows it, and it goes with the process however
// that ends. Only those who ask for a lock are held off. Where the file system has no locks, nobody is.
//
// If the folder is moved or removed meanwhile, its name may come to be another's. So for as long as a lock lives, this
// process makes no file and no folder below that name unless it still leads to the same folder: an output Error.
class FolderLock {
 public:
  explicit FolderLock(std::filesystem::path folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  const std::filesystem::path& path() const { return path_; }
  // False where the folder was moved or removed.
  bool is_there() const;

 private:
  std::filesystem::path path_;
  Descriptor folder_;
};

}  // namespace implicit_diffusion::io
