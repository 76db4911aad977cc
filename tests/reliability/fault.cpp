// Faults on purpose: a library that a test preloads (LD_PRELOAD) into the program, between it and the system calls that
// touch files.
//
//     FAULT=CALL:WHAT@N     at the N-th call WHAT happens; with N+ at every one from there on
//     FAULT_PATH=TEXT       only calls count that are on a path with this text in it
//     FAULT_HIT=FILE        is made when the fault comes; where it is missing at the end, there were fewer than N calls
//     FAULT_TRACE=FILE      what was done to such paths, for a replay: lines `CALL <tab> PATH <tab> OTHER <tab> BYTES`,
//                           each followed by so many bytes
//
// CALL is open, read (pread too), write, fsync, close, rename, unlink, mkdir, readdir, or any. WHAT is the name of an
// error, `short` (a write of half the bytes), `kill` (the process is gone before the call) or `hang` (the call does not
// return).
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int error_of(std::string_view name) {
  for (const auto& [word, number] : {std::pair{"ENOSPC", ENOSPC},
                                     {"EIO", EIO},
                                     {"EDQUOT", EDQUOT},
                                     {"EINTR", EINTR},
                                     {"EACCES", EACCES},
                                     {"EMFILE", EMFILE},
                                     {"EROFS", EROFS},
                                     {"EINVAL", EINVAL}})
    if (name == word) return number;
  return 0;
}

struct Plan {
  std::string call, what, path, hit, trace;
  long at = 0;
  bool from_there_on = false;
  std::atomic<long> calls{0};

  Plan() : path(variable("FAULT_PATH")), hit(variable("FAULT_HIT")), trace(variable("FAULT_TRACE")) {
    const std::string fault = variable("FAULT");
    const std::size_t colon = fault.find(':'), sign = fault.find('@');
    if (colon == std::string::npos || sign == std::string::npos) return;
    call = fault.substr(0, colon);
    what = fault.substr(colon + 1, sign - colon - 1);
    at = std::strtol(fault.c_str() + sign + 1, nullptr, 10);
    from_there_on = fault.ends_with('+');
  }
};

Plan& plan() {
  static Plan p;
  return p;
}

bool is_watched(const std::string& path) { return path.find(plan().path) != std::string::npos; }

std::string path_of(int fd) {
  char target[4096];
  const auto n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
  return n < 0 ? std::string() : std::string(target, static_cast<std::size_t>(n));
}

// As /proc names it.
std::string path_of(int folder, const char* name) {
  if (name[0] == '/') return name;
  if (folder != AT_FDCWD) return path_of(folder) + "/" + name;
  char here[4096];
  return (::getcwd(here, sizeof here) ? std::string(here) : std::string()) + "/" + name;
}

enum class Fault { none, error, part };

// Counts the call, and does to it what is planned. The error is in errno.
Fault meet(std::string_view call, const std::string& path) {
  Plan& p = plan();
  if (p.at == 0 || (p.call != "any" && p.call != call) || !is_watched(path)) return Fault::none;
  const long n = ++p.calls;
  if (n != p.at && !(p.from_there_on && n > p.at)) return Fault::none;
  const long made = ::syscall(SYS_openat, AT_FDCWD, p.hit.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (made >= 0) ::syscall(SYS_close, made);
  if (p.what == "kill") ::syscall(SYS_kill, ::getpid(), SIGKILL);
  while (p.what == "kill" || p.what == "hang") ::pause();
  if (p.what == "short") return Fault::part;
  errno = error_of(p.what);
  return Fault::error;
}

void record(std::string_view call, const std::string& path, const std::string& other = {},
            std::string_view bytes = {}) {
  if (plan().trace.empty() || !is_watched(path)) return;
  const int before = errno;
  std::string text = std::string(call) + "\t" + path + "\t" + other + "\t" + std::to_string(bytes.size()) + "\n";
  text += bytes;
  const long fd =
      ::syscall(SYS_openat, AT_FDCWD, plan().trace.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd >= 0) {
    ::syscall(SYS_write, fd, text.data(), text.size());
    ::syscall(SYS_close, fd);
  }
  errno = before;
}

int open_at(int folder, const char* name, int flags, mode_t mode) {
  const std::string path = path_of(folder, name);
  if (meet("open", path) == Fault::error) return -1;
  const auto fd = static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode));
  if (fd >= 0 && (flags & O_CREAT) != 0) record("create", path);
  return fd;
}

int unlink_at(int folder, const char* name, int flags) {
  const std::string path = path_of(folder, name);
  if (meet("unlink", path) == Fault::error) return -1;
  const auto result = static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
  if (result == 0) record("unlink", path);
  return result;
}

// The mode is there only where a file may be made.
mode_t mode_in(int flags, std::va_list rest) { return (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0; }

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

int open(const char* name, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_at(AT_FDCWD, name, flags, mode);
}

int openat(int folder, const char* name, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_at(folder, name, flags, mode);
}

ssize_t read(int fd, void* to, size_t count) {
  if (meet("read", path_of(fd)) == Fault::error) return -1;
  return ::syscall(SYS_read, fd, to, count);
}

ssize_t pread(int fd, void* to, size_t count, off_t offset) {
  if (meet("read", path_of(fd)) == Fault::error) return -1;
  return ::syscall(SYS_pread64, fd, to, count, offset);
}

ssize_t write(int fd, const void* from, size_t count) {
  const std::string path = path_of(fd);
  const Fault fault = meet("write", path);
  if (fault == Fault::error) return -1;
  if (fault == Fault::part) count = std::max<size_t>(count / 2, std::min<size_t>(count, 1));
  const ssize_t n = ::syscall(SYS_write, fd, from, count);
  if (n > 0) record("write", path, {}, {static_cast<const char*>(from), static_cast<size_t>(n)});
  return n;
}

int fsync(int fd) {
  const std::string path = path_of(fd);
  if (meet("fsync", path) == Fault::error) return -1;
  const auto result = static_cast<int>(::syscall(SYS_fsync, fd));
  if (result == 0) record("fsync", path);
  return result;
}

// However it fails, the descriptor is gone.
int close(int fd) {
  const Fault fault = meet("close", path_of(fd));
  const int error = errno;
  const auto result = static_cast<int>(::syscall(SYS_close, fd));
  if (fault != Fault::error) return result;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  const std::string path = path_of(AT_FDCWD, from);
  if (meet("rename", path) == Fault::error) return -1;
  const auto result = static_cast<int>(::syscall(SYS_rename, from, to));
  if (result == 0) record("rename", path, path_of(AT_FDCWD, to));
  return result;
}

int unlink(const char* name) noexcept { return unlink_at(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char* name, int flags) noexcept { return unlink_at(folder, name, flags); }
int remove(const char* name) noexcept {
  const int result = unlink_at(AT_FDCWD, name, 0);
  return result != 0 && errno == EISDIR ? unlink_at(AT_FDCWD, name, AT_REMOVEDIR) : result;
}

int mkdir(const char* name, mode_t mode) noexcept {
  const std::string path = path_of(AT_FDCWD, name);
  if (meet("mkdir", path) == Fault::error) return -1;
  const auto result = static_cast<int>(::syscall(SYS_mkdir, name, mode));
  if (result == 0) record("mkdir", path);
  return result;
}

dirent* readdir(DIR* folder) {
  static const auto next = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  if (meet("readdir", path_of(::dirfd(folder))) == Fault::error) return nullptr;
  return next(folder);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
