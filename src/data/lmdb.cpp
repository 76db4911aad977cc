#include "implicit_diffusion/data/lmdb.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "damage.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "lmdb_protocol.hpp"

namespace implicit_diffusion::data {
namespace {

using lmdb::Frame;

// The other program, started with one end of a socket for its streams, and the other end of it.
std::pair<pid_t, io::Descriptor> start_helper(const std::filesystem::path& helper,
                                              const std::filesystem::path& folder) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorKind::io, io::display(helper), std::generic_category().message(errno));
  io::Descriptor ours(ends[0]);
  const io::Descriptor theirs(ends[1]);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t no_signals;
  sigemptyset(&no_signals);
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &no_signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string name = helper.native(), argument = folder.native();
  char* const words[] = {name.data(), argument.data(), nullptr};
  // It is no process of an MPI job, whatever this one is.
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!text.starts_with("OMPI_") && !text.starts_with("PMI") && !text.starts_with("SLURM_"))
      environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, name.c_str(), &files, &attributes, words, environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error == ENOENT || error == ENOTDIR)
    throw Error(ErrorKind::missing, io::display(helper),
                "no such file; this program reads LMDB, and is built and installed with implicit-diffusion");
  if (error != 0)
    throw Error(ErrorKind::io, io::display(helper),
                fmt::format("cannot be started: {}", std::generic_category().message(error)));
  return {pid, std::move(ours)};
}

}  // namespace

struct LmdbReader::Child {
  std::string where;
  pid_t pid;
  io::Descriptor socket;
  mutable std::mutex mutex;

  std::string keys;                 // one after the other
  std::vector<std::uint64_t> ends;  // of each
  std::string unread;               // what came and was not yet looked at, from `at` on
  std::size_t at = 0;
  bool is_over = false;

  Child(std::string name, std::pair<pid_t, io::Descriptor> started)
      : where(std::move(name)), pid(started.first), socket(std::move(started.second)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  // How the process ended; it is ended where it has not.
  std::string end() {
    if (pid < 0) return "";
    ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) return ::strsignal(WTERMSIG(status));
    return "";
  }

  [[noreturn]] void fail(const std::string& at_what, const std::string& what) {
    is_over = true;
    const std::string signal = end();
    throw Error(ErrorKind::data, where,
                fmt::format("{}damaged LMDB: {}", at_what, signal.empty() ? what : "its reader died of " + signal));
  }

  // Makes `count` bytes available at unread[at].
  void await(std::size_t count, const std::string& at_what) {
    if (unread.size() - at >= count) return;
    unread.erase(0, std::exchange(at, 0));
    while (unread.size() < count) {
      pollfd poll{socket.get(), POLLIN, 0};
      const int ready = ::poll(&poll, 1, static_cast<int>(1000 * lmdb::longest_silence));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) fail(at_what, fmt::format("its reader is silent for {} s", lmdb::longest_silence));
      const std::size_t before = unread.size();
      unread.resize(std::max(count, before + 65536));
      const ssize_t n = ::recv(socket.get(), unread.data() + before, unread.size() - before, 0);
      unread.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail_at_end(at_what);
    }
  }
  // The process has closed its end: it is dead, or about to be.
  [[noreturn]] void fail_at_end(const std::string& at_what) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
    fail(at_what, WIFSIGNALED(status) ? fmt::format("its reader died of {}", ::strsignal(WTERMSIG(status)))
                                      : "its reader ended without an answer");
  }

  // The next frame, which stays at unread[at - size] until the next call.
  std::pair<Frame, std::string_view> next_frame(const std::string& at_what) {
    await(lmdb::frame_head, at_what);
    const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(unread[at + i])}; };
    const auto kind = static_cast<Frame>(unread[at]);
    const std::size_t size = byte(1) | byte(2) << 8 | byte(3) << 16 | byte(4) << 24;
    const std::size_t most = kind == Frame::key     ? lmdb::longest_key
                             : kind == Frame::value ? lmdb::longest_value
                             : kind == Frame::error ? lmdb::longest_error
                                                    : 0;
    if ((most == 0 && kind != Frame::end) || size > most) fail(at_what, "its reader talks nonsense");
    await(lmdb::frame_head + size, at_what);
    const std::string_view content = std::string_view(unread).substr(at + lmdb::frame_head, size);
    at += lmdb::frame_head + size;
    if (kind == Frame::error) fail(at_what, io::printable(content));
    return {kind, content};
  }

  void read_keys() {
    while (true) {
      const std::string at_what = fmt::format("entry {}: ", ends.size());
      const auto [kind, key] = next_frame(at_what);
      if (kind == Frame::end) return;
      if (kind != Frame::key) fail(at_what, "its reader talks nonsense");
      if (!ends.empty() && key <= this->key(ends.size() - 1)) fail(at_what, "keys are not in ascending order");
      keys += key;
      ends.push_back(keys.size());
    }
  }

  std::string_view key(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(keys).substr(begin, ends[i] - begin);
  }

  std::string value(std::size_t i) {
    const std::lock_guard lock(mutex);
    const std::string at_what = fmt::format("entry {} (key {}): ", i, io::excerpt(key(i), 64));
    if (is_over) throw Error(ErrorKind::data, where, at_what + "damaged LMDB: its reader has ended");
    const std::string_view k = key(i);
    std::string request{static_cast<char>(k.size()), static_cast<char>(k.size() >> 8), 0, 0};
    request += k;
    for (std::string_view rest = request; !rest.empty();) {
      const ssize_t n = ::send(socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail_at_end(at_what);
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
    const auto [kind, content] = next_frame(at_what);
    if (kind != Frame::value) fail(at_what, "its reader talks nonsense");
    return std::string(content);
  }
};

std::filesystem::path default_lmdb_helper() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "implicit-diffusion-lmdb";
}

LmdbReader::LmdbReader(const std::filesystem::path& folder, const std::filesystem::path& helper) {
  const std::filesystem::path file = folder / "data.mdb";
  const io::FileReader beginning(file);
  std::string first(std::min<std::uint64_t>(beginning.size(), 64), '\0');
  beginning.read(0, first);
  if (const std::string other = io::mistaken_content(first); !other.empty())
    damaged(io::display(file), 0, other + "; an LMDB file is meant");
  child_ = std::make_unique<Child>(io::display(folder), start_helper(helper, folder));
  child_->read_keys();
  if (child_->ends.empty()) throw Error(ErrorKind::data, child_->where, "an LMDB environment without entries");
}

LmdbReader::~LmdbReader() = default;
std::size_t LmdbReader::size() const { return child_->ends.size(); }
std::string_view LmdbReader::key(std::size_t i) const { return child_->key(i); }
std::string LmdbReader::value(std::size_t i) const { return child_->value(i); }

}  // namespace implicit_diffusion::data
