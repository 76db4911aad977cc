// Whole files, read and written: the one place where the library touches the disk.
//
// A file is written in full or not at all: into a temporary file in the same folder, flushed to the disk, renamed over
// the old one, and the folder flushed too. At every moment, a crash or a power cut included, the name holds the old
// bytes or the new ones. Only plain system calls are used, so that an error can be named and a fault can be injected at
// each of them.
//
// A kill in the middle of write_file may leave the temporary file, named `.implicit-diffusion-PID-N.tmp`; every other
// failure removes it, and remove_temporaries those of the killed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace implicit_diffusion::io {

// The bytes of a regular file. Throws Error: missing if there is no such file or it is something else (a folder, a
// pipe, a device); data if it is longer than limit bytes, before any of it is read; io if reading fails or the file
// changes size meanwhile.
std::string read_file(const std::filesystem::path& path, std::size_t limit = std::numeric_limits<std::size_t>::max());

// Puts the bytes under the name, which may exist (a symbolic link is replaced, not followed). Throws Error: output if
// no file can be made there; io, naming the reason and the number of bytes, if one could be made but not filled,
// flushed or renamed. The old file, if any, is untouched then, and no new one is there; the one exception is a failure
// of the very last step, flushing the folder. With Verify::yes the new file is read back and compared before it gets its name.
enum class Verify { no, yes };
void write_file(const std::filesystem::path& path, std::string_view bytes, Verify verify = Verify::no);

// Makes the folder and those above it, and flushes the folders that they are in; one that exists is fine. Throws Error:
// output if it cannot be made, io if it cannot be flushed.
void make_directory(const std::filesystem::path& path);

// What is in a folder, in no order; nothing where there is no such folder. Throws an io Error if it cannot be read.
std::vector<std::filesystem::path> list_directory(const std::filesystem::path& path);

// Removes the temporary files in a folder, not those further down. For one who holds its lock: others may be writing
// theirs.
void remove_temporaries(const std::filesystem::path& folder);

// Keeps a folder to one writer for as long as it lives: a second lock, of this process or another, is refused with an
// output Error. It is the system's lock on the folder itself, so no file shows it, and it goes with the process however
// that ends. Only those who ask for a lock are held off. Where the file system has no locks, nobody is.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  int fd_;
};

}  // namespace implicit_diffusion::io
