#include "implicit_diffusion/io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

namespace implicit_diffusion::io {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

// Repeats a system call for as long as a signal interrupts it.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

// An open file, closed at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }

  // The error number, or 0. After EINTR the descriptor is gone on Linux, so it counts as closed.
  int close() {
    const int failed = ::close(std::exchange(fd_, -1));
    return failed == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int fd_;
};

// Removes the file at the end of the scope, unless it was kept.
class Removal {
 public:
  explicit Removal(const std::filesystem::path& path) : path_(path) {}
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;
  ~Removal() {
    if (!kept_) ::unlink(path_.c_str());
  }

  void keep() { kept_ = true; }

 private:
  const std::filesystem::path& path_;
  bool kept_ = false;
};

// Trouble of the machine or the medium, as opposed to a name that can never work.
bool is_exhaustion(int error) {
  return error == ENOSPC || error == EDQUOT || error == EIO || error == EMFILE || error == ENFILE || error == ENOMEM;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

constexpr std::string_view temporary_prefix = ".implicit-diffusion-", temporary_suffix = ".tmp";

// The error number, or 0.
int flush_directory(const std::filesystem::path& folder) {
  const Descriptor directory(uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  // EACCES: a folder that may be written but not read cannot be flushed.
  if (directory.get() < 0) return errno == EACCES ? 0 : errno;
  // EINVAL: this file system does not flush folders.
  return uninterrupted([&] { return ::fsync(directory.get()); }) == 0 || errno == EINVAL ? 0 : errno;
}

// The system sees a name up to its first zero byte only: another file than the one that was meant.
bool cuts_off(const std::filesystem::path& path) { return path.native().find('\0') != std::string::npos; }

}  // namespace

std::string read_file(const std::filesystem::path& path, std::size_t limit) {
  if (cuts_off(path)) throw Error(ErrorKind::missing, display(path), "a name with a zero byte is no file");
  // O_NONBLOCK: a named pipe without a writer would block here for ever. It has no effect on regular files.
  const Descriptor file(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); }));
  if (file.get() < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) throw Error(ErrorKind::missing, display(path), "no such file");
    const bool no_file = error == ELOOP || error == ENAMETOOLONG || error == ENXIO || error == ENODEV;
    throw Error(no_file ? ErrorKind::missing : ErrorKind::io, display(path), reason(error));
  }

  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw Error(ErrorKind::io, display(path), reason(errno));
  if (S_ISDIR(info.st_mode)) throw Error(ErrorKind::missing, display(path), "is a directory, a file is meant");
  if (!S_ISREG(info.st_mode)) throw Error(ErrorKind::missing, display(path), "is not a regular file");

  const auto size = static_cast<std::size_t>(info.st_size);
  const auto too_long = [&](std::size_t n) {
    return Error(ErrorKind::data, display(path),
                 fmt::format("{} bytes, more than the {} a file of this kind may have", n, limit));
  };
  if (size > limit) throw too_long(size);

  try {
    // One byte more than the file has, so that its end is seen in one call. Files that do not know their size (/proc)
    // say 0.
    std::string bytes(size + 1, '\0');
    std::size_t filled = 0;
    while (true) {
      if (filled == bytes.size()) bytes.resize(std::max<std::size_t>(2 * bytes.size(), 4096));
      const ssize_t n = uninterrupted([&] { return ::read(file.get(), bytes.data() + filled, bytes.size() - filled); });
      if (n < 0)
        throw Error(ErrorKind::io, display(path), fmt::format("{} while reading at byte {}", reason(errno), filled));
      if (n == 0) break;
      filled += static_cast<std::size_t>(n);
      if (size > 0 && filled > size) break;
      if (filled > limit) throw too_long(filled);
    }
    if (size > 0 && filled != size) throw Error(ErrorKind::io, display(path), "the file changed while it was read");
    bytes.resize(filled);
    return bytes;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::io, display(path), fmt::format("{} bytes do not fit into memory", size));
  } catch (const std::length_error&) {
    throw Error(ErrorKind::io, display(path), fmt::format("{} bytes do not fit into memory", size));
  }
}

void write_file(const std::filesystem::path& path, std::string_view bytes, Verify verify) {
  static std::atomic<unsigned> counter = 0;

  if (!path.has_filename() || cuts_off(path))
    throw Error(ErrorKind::output, display(path), "is not the name of a file");

  // A temporary file of an earlier process with our number may be left over: its name is passed by. A file system that
  // says EEXIST to every name is not asked for ever.
  constexpr int most_names = 1000;
  const std::filesystem::path folder = folder_of(path);
  std::filesystem::path temporary;
  int fd = -1;
  for (int tried = 0; fd < 0 && tried < most_names; ++tried) {
    temporary = folder / fmt::format("{}{}-{}{}", temporary_prefix, ::getpid(), counter++, temporary_suffix);
    fd = uninterrupted([&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) {
    const int error = errno;
    throw Error(is_exhaustion(error) ? ErrorKind::io : ErrorKind::output, display(path),
                fmt::format("cannot be written: {}", reason(error)));
  }
  Descriptor file(fd);
  Removal removal(temporary);
  const auto failed = [&](int error) {
    return Error(ErrorKind::io, display(path), fmt::format("{} while writing {} bytes", reason(error), bytes.size()));
  };

  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t n = uninterrupted([&] { return ::write(file.get(), rest.data(), rest.size()); });
    if (n < 0) throw failed(errno);
    if (n == 0) throw failed(EIO);  // no progress and no reason given: not to be tried for ever
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  // A failed fsync is final: the kernel may have dropped the pages, and a second call would report success.
  if (uninterrupted([&] { return ::fsync(file.get()); }) != 0) throw failed(errno);
  if (const int error = file.close(); error != 0) throw failed(error);
  if (verify == Verify::yes && read_file(temporary) != bytes)
    throw Error(ErrorKind::io, display(path),
                fmt::format("{} bytes were written, others were read back", bytes.size()));

  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    if (error == EISDIR) throw Error(ErrorKind::output, display(path), "is a directory, a file is meant");
    throw failed(error);
  }
  removal.keep();

  if (const int error = flush_directory(folder); error != 0) throw failed(error);
}

void make_directory(const std::filesystem::path& path) {
  if (cuts_off(path)) throw Error(ErrorKind::output, display(path), "is not the name of a folder");
  std::error_code error;
  std::vector<std::filesystem::path> made;
  for (auto p = path; !std::filesystem::exists(p, error) && !error; p = folder_of(p)) made.push_back(p);
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path, error))
    throw Error(ErrorKind::output, display(path),
                fmt::format("the folder cannot be made: {}", reason(error ? error.value() : ENOTDIR)));
  for (const std::filesystem::path& p : made)
    if (const int failed = flush_directory(folder_of(p)); failed != 0)
      throw Error(ErrorKind::io, display(path), fmt::format("{} while making the folder", reason(failed)));
}

std::vector<std::filesystem::path> list_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  while (error == std::errc::interrupted) entry = std::filesystem::directory_iterator(path, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) return {};
  std::vector<std::filesystem::path> all;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) all.push_back(entry->path());
  if (error)
    throw Error(ErrorKind::io, display(path), fmt::format("the folder cannot be read: {}", reason(error.value())));
  return all;
}

void remove_temporaries(const std::filesystem::path& folder) {
  for (const std::filesystem::path& p : list_directory(folder)) {
    const std::string name = p.filename().string();
    if (name.starts_with(temporary_prefix) && name.ends_with(temporary_suffix)) ::unlink(p.c_str());
  }
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : fd_(uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })) {
  // A folder that cannot be read, or a file system without locks, is no reason not to work.
  if (fd_ < 0 || uninterrupted([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) == 0 || errno != EWOULDBLOCK) return;
  ::close(fd_);
  throw Error(ErrorKind::output, display(folder), "another run is writing into this folder");
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace implicit_diffusion::io
