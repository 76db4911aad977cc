// implicit-diffusion-lmdb FOLDER: reads an LMDB environment for the library, which is on the other side of its standard
// input and output (lmdb_protocol.hpp).
//
// liblmdb maps its file and believes it: a damaged one can end its reader by SIGSEGV or SIGBUS. So the reader is this
// process, which has nothing to lose. It ends when the library closes the socket, which it does at the latest when it
// dies itself; and by SIGALRM where liblmdb never comes back.
#include "lmdb_protocol.hpp"

#include <lmdb.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

namespace {

using namespace implicit_diffusion::data::lmdb;

// All bytes or the end of this process: nobody is left to tell.
void write_all(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t n = ::write(STDOUT_FILENO, bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);
    bytes += n;
    count -= static_cast<std::size_t>(n);
  }
}
void read_all(char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t n = ::read(STDIN_FILENO, bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(0);
    bytes += n;
    count -= static_cast<std::size_t>(n);
  }
}

void append(std::string& out, Frame kind, const void* bytes, std::size_t count) {
  const char head[frame_head] = {static_cast<char>(kind), static_cast<char>(count), static_cast<char>(count >> 8),
                                 static_cast<char>(count >> 16), static_cast<char>(count >> 24)};
  out.append(head, frame_head);
  out.append(static_cast<const char*>(bytes), count);
}
void send(std::string& out) {
  ::alarm(0);  // it is the reader's time now
  write_all(out.data(), out.size());
  out.clear();
  ::alarm(longest_silence / 2);
}

[[noreturn]] void fail(const std::string& what) {
  std::string out;
  append(out, Frame::error, what.data(), what.size());
  send(out);
  ::_exit(1);
}
void check(int result) {
  if (result != MDB_SUCCESS) fail(mdb_strerror(result));
}

// A file that is shorter than its pages would end in SIGBUS: that can be said better.
void check_length(MDB_env* env, const std::string& folder) {
  MDB_envinfo info;
  MDB_stat pages;
  struct stat file {};
  check(mdb_env_info(env, &info));
  check(mdb_env_stat(env, &pages));
  if (::stat((folder + "/data.mdb").c_str(), &file) != 0) fail(std::strerror(errno));
  const auto size = static_cast<unsigned long long>(file.st_size);
  if (pages.ms_psize == 0 || info.me_last_pgno >= size / pages.ms_psize)
    fail("the file has " + std::to_string(size) + " bytes, but its last page is number " +
         std::to_string(info.me_last_pgno) + " of " + std::to_string(pages.ms_psize) + " bytes each");
}

void send_keys(MDB_txn* transaction, MDB_dbi table) {
  MDB_stat stat;
  MDB_cursor* cursor = nullptr;
  check(mdb_stat(transaction, table, &stat));
  check(mdb_cursor_open(transaction, table, &cursor));
  std::string out;
  std::size_t count = 0;
  MDB_val key{};
  int result = MDB_SUCCESS;
  while ((result = mdb_cursor_get(cursor, &key, nullptr, MDB_NEXT)) == MDB_SUCCESS) {
    if (++count > stat.ms_entries)
      fail("there are more entries than the " + std::to_string(stat.ms_entries) + " it counts");
    if (key.mv_size > longest_key) fail("a key of " + std::to_string(key.mv_size) + " bytes");
    append(out, Frame::key, key.mv_data, key.mv_size);
    if (out.size() > 65536) send(out);
  }
  if (result != MDB_NOTFOUND) check(result);
  if (count < stat.ms_entries)
    fail("there are " + std::to_string(count) + " entries, but it counts " + std::to_string(stat.ms_entries));
  append(out, Frame::end, nullptr, 0);
  send(out);
  mdb_cursor_close(cursor);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    constexpr char usage[] =
        "implicit-diffusion-lmdb: the part of implicit-diffusion that reads LMDB; it is not for you\n";
    return ::write(STDERR_FILENO, usage, sizeof usage - 1) < 0 ? 1 : 2;
  }
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // Ctrl-C is for the program, which may have work to finish.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  ::alarm(longest_silence / 2);

  const std::string folder = argv[1];
  MDB_env* env = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi table = 0;
  check(mdb_env_create(&env));
  check(mdb_env_open(env, folder.c_str(), MDB_RDONLY | MDB_NOLOCK | MDB_NORDAHEAD, 0));
  check_length(env, folder);
  check(mdb_txn_begin(env, nullptr, MDB_RDONLY, &transaction));
  check(mdb_dbi_open(transaction, nullptr, 0, &table));
  send_keys(transaction, table);

  std::string request, out;
  while (true) {
    unsigned char length[4];
    ::alarm(0);
    read_all(reinterpret_cast<char*>(length), sizeof length);
    const std::size_t size = length[0] | length[1] << 8 | std::size_t{length[2]} << 16 | std::size_t{length[3]} << 24;
    if (size > longest_key) return 1;
    request.resize(size);
    read_all(request.data(), size);
    ::alarm(longest_silence / 2);
    MDB_val key{size, request.data()}, value{};
    check(mdb_get(transaction, table, &key, &value));
    if (value.mv_size > longest_value) fail("a value of " + std::to_string(value.mv_size) + " bytes");
    append(out, Frame::value, value.mv_data, value.mv_size);
    send(out);
  }
}
