#include "implicit_diffusion/io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>

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

// The locks of this process.
struct Locks {
  std::mutex mutex;
  std::vector<const FolderLock*> all;
};
Locks& locks() {
  static Locks held;
  return held;
}

// Throws an output Error where the path is in a locked folder that was moved or removed.
void require_folder_of_lock(const std::filesystem::path& path) {
  Locks& held = locks();
  const std::lock_guard guard(held.mutex);
  for (const FolderLock* lock : held.all) {
    const std::filesystem::path& folder = lock->path();
    const bool inside = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
    if (inside && !lock->is_there())
      throw Error(ErrorKind::output, display(folder), "was moved or removed while a run was writing into it");
  }
}

Descriptor open_for_reading(const std::filesystem::path& path) {
  if (cuts_off(path)) throw Error(ErrorKind::missing, display(path), "a name with a zero byte is no file");
  // O_NONBLOCK: a named pipe without a writer would block here for ever. It has no effect on regular files.
  Descriptor file(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); }));
  if (file.get() >= 0) return file;
  const int error = errno;
  if (error == ENOENT || error == ENOTDIR) throw Error(ErrorKind::missing, display(path), "no such file");
  const bool no_file = error == ELOOP || error == ENAMETOOLONG || error == ENXIO || error == ENODEV;
  throw Error(no_file ? ErrorKind::missing : ErrorKind::io, display(path), reason(error));
}

// Makes a file that was not there in the folder of `path`, and says how it is called.
Descriptor make_temporary(const std::filesystem::path& path, std::filesystem::path& temporary) {
  static std::atomic<unsigned> counter = 0;
  if (!path.has_filename() || cuts_off(path))
    throw Error(ErrorKind::output, display(path), "is not the name of a file");
  require_folder_of_lock(path);
  // What is renamed over a pipe or a device takes its place.
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    throw Error(ErrorKind::output, display(path),
                fmt::format("is {}, a file is meant", S_ISDIR(info.st_mode) ? "a directory" : "a pipe or a device"));
  // A temporary file of an earlier process with our number may be left over: its name is passed by. A file system that
  // says EEXIST to every name is not asked for ever.
  constexpr int most_names = 1000;
  for (int tried = 0; tried < most_names; ++tried) {
    temporary = folder_of(path) / fmt::format("{}{}-{}{}", temporary_prefix, ::getpid(), counter++, temporary_suffix);
    Descriptor file(
        uninterrupted([&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
    if (file.get() >= 0) return file;
    if (errno != EEXIST) break;
  }
  const int error = errno;
  throw Error(is_exhaustion(error) ? ErrorKind::io : ErrorKind::output, display(path),
              fmt::format("cannot be written: {}", reason(error)));
}

// The CRC-32 of what the disk gives back.
std::uint32_t crc_of_file(const std::filesystem::path& path) {
  const FileReader file(path);
  std::string piece(std::min<std::uint64_t>(file.size(), piece_size), '\0');
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(file.size() - at, piece.size()));
    file.read(at, piece);
    crc = crc32(piece, crc);
  }
  return crc;
}

}  // namespace

// After EINTR the descriptor is gone on Linux, so it counts as closed.
int Descriptor::close() {
  if (fd_ < 0) return 0;
  const int failed = ::close(std::exchange(fd_, -1));
  return failed == 0 || errno == EINTR ? 0 : errno;
}

FileReader::FileReader(std::filesystem::path path) : path_(std::move(path)), file_(open_for_reading(path_)) {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) throw Error(ErrorKind::io, display(path_), reason(errno));
  if (S_ISDIR(info.st_mode)) throw Error(ErrorKind::missing, display(path_), "is a directory, a file is meant");
  if (!S_ISREG(info.st_mode)) throw Error(ErrorKind::missing, display(path_), "is not a regular file");
  size_ = static_cast<std::uint64_t>(info.st_size);
}

std::size_t FileReader::read_some(std::uint64_t offset, std::span<char> to) const {
  const ssize_t n =
      uninterrupted([&] { return ::pread(file_.get(), to.data(), to.size(), static_cast<off_t>(offset)); });
  if (n < 0)
    throw Error(ErrorKind::io, display(path_), fmt::format("{} while reading at byte {}", reason(errno), offset));
  return static_cast<std::size_t>(n);
}

void FileReader::read(std::uint64_t offset, std::span<char> to) const {
  while (!to.empty()) {
    const std::size_t n = read_some(offset, to);
    if (n == 0) throw Error(ErrorKind::io, display(path_), "the file changed while it was read");
    offset += n;
    to = to.subspan(n);
  }
}

std::string read_file(const std::filesystem::path& path, std::size_t limit) {
  const FileReader file(path);
  const std::size_t size = file.size();
  const auto too_long = [&](std::size_t n) {
    return Error(ErrorKind::data, display(path),
                 fmt::format("{} bytes, more than the {} a file of this kind may have", n, limit));
  };
  if (size > limit) throw too_long(size);

  try {
    // One byte more than the file has, so that its end is seen in one call.
    std::string bytes(size + 1, '\0');
    std::size_t filled = 0;
    while (true) {
      if (filled == bytes.size()) bytes.resize(std::max<std::size_t>(2 * bytes.size(), 4096));
      const std::size_t n = file.read_some(filled, std::span(bytes).subspan(filled));
      if (n == 0) break;
      filled += n;
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

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  FileWriter file(path);
  file.append(bytes);
  file.commit();
}

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)), file_(make_temporary(path_, temporary_)) {}

FileWriter::~FileWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void FileWriter::append(std::string_view bytes) {
  size_ += bytes.size();
  if (waiting_.size() + bytes.size() > piece_size) {
    write(waiting_);
    waiting_.clear();
  }
  if (bytes.size() < piece_size)
    waiting_ += bytes;
  else
    write(bytes);
}

void FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = uninterrupted([&] { return ::write(file_.get(), bytes.data(), bytes.size()); });
    if (n < 0) fail(errno);
    if (n == 0) fail(EIO);  // no progress and no reason given: not to be tried for ever
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void FileWriter::fail(int error) const {
  throw Error(ErrorKind::io, display(path_), fmt::format("{} while writing {} bytes", reason(error), size_));
}

void FileWriter::commit(std::optional<std::uint32_t> crc) {
  write(waiting_);
  // A failed fsync is final: the kernel may have dropped the pages, and a second call would report success.
  if (uninterrupted([&] { return ::fsync(file_.get()); }) != 0) fail(errno);
  if (const int error = file_.close(); error != 0) fail(error);
  if (crc && read_back() != *crc)
    throw Error(ErrorKind::io, display(path_), fmt::format("{} bytes were written, others were read back", size_));

  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    if (error == EISDIR) throw Error(ErrorKind::output, display(path_), "is a directory, a file is meant");
    fail(error);
  }
  temporary_.clear();

  if (const int error = flush_directory(folder_of(path_)); error != 0) fail(error);
}

std::uint32_t FileWriter::read_back() const try {
  return crc_of_file(temporary_);
} catch (const Error& e) {  // the name of a temporary file would tell nobody anything
  throw Error(ErrorKind::io, display(path_), fmt::format("{} while reading {} bytes back", e.reason(), size_));
}

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::vector<std::filesystem::path> make_directory(const std::filesystem::path& path) {
  if (cuts_off(path)) throw Error(ErrorKind::output, display(path), "is not the name of a folder");
  require_folder_of_lock(path);
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
  return made;
}

std::vector<std::filesystem::path> list_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  while (error == std::errc::interrupted) entry = std::filesystem::directory_iterator(path, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) return {};
  std::vector<std::filesystem::path> all;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) all.push_back(entry->path());
  if (error)
    throw Error(error == std::errc::permission_denied ? ErrorKind::output : ErrorKind::io, display(path),
                fmt::format("the folder cannot be read: {}", reason(error.value())));
  return all;
}

void remove_temporaries(const std::filesystem::path& folder) {
  for (const std::filesystem::path& p : list_directory(folder)) {
    const std::string name = p.filename().string();
    if (name.starts_with(temporary_prefix) && name.ends_with(temporary_suffix)) ::unlink(p.c_str());
  }
}

FolderLock::FolderLock(std::filesystem::path folder)
    : path_(folder.has_filename() ? std::move(folder) : folder.parent_path()),  // "r/" is r
      folder_(uninterrupted([&] { return ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })) {
  const int fd = folder_.get();
  // A folder that cannot be read, or a file system without locks, is no reason not to work.
  if (fd >= 0 && uninterrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK)
    throw Error(ErrorKind::output, display(path_), "another run is writing into this folder");
  Locks& held = locks();
  const std::lock_guard guard(held.mutex);
  held.all.push_back(this);
}

FolderLock::~FolderLock() {
  Locks& held = locks();
  const std::lock_guard guard(held.mutex);
  std::erase(held.all, this);
}

// The open descriptor keeps the folder's number from being given to another one.
bool FolderLock::is_there() const {
  struct stat locked {
  }, named{};
  if (folder_.get() < 0 || ::fstat(folder_.get(), &locked) != 0) return true;
  return ::stat(path_.c_str(), &named) == 0 && named.st_dev == locked.st_dev && named.st_ino == locked.st_ino;
}

}  // namespace implicit_diffusion::io
