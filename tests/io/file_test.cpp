#include "implicit_diffusion/io/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"

namespace implicit_diffusion::io {
namespace {

std::string bytes_of_every_value(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  return bytes;
}

TEST(File, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 3'000'000U}) {
    const std::string bytes = bytes_of_every_value(size);
    write_file(folder / "a", bytes);
    EXPECT_TRUE(read_file(folder / "a") == bytes) << size;
  }
  EXPECT_EQ(folder.size(), 1);
}

TEST(File, IsWrittenPieceByPiece) {
  const TemporaryFolder folder;
  const std::string bytes = bytes_of_every_value(3 * piece_size + 1);
  for (const std::size_t size : {std::size_t{100'003}, piece_size - 1, piece_size, piece_size + 1, bytes.size()}) {
    FileWriter file(folder / "a");
    for (std::size_t at = 0; at < bytes.size(); at += size) file.append(std::string_view(bytes).substr(at, size));
    EXPECT_EQ(std::filesystem::exists(folder / "a"), size != 100'003) << "it has its name after commit() only";
    file.commit(crc32(bytes));
    EXPECT_TRUE(read_file(folder / "a") == bytes) << size;
    const FileReader reader(folder / "a");
    EXPECT_EQ(reader.size(), bytes.size());
    std::string part(size, '\0');
    reader.read(bytes.size() - size, part);
    EXPECT_TRUE(part == bytes.substr(bytes.size() - size));
    EXPECT_ERROR(reader.read(bytes.size() - size + 1, part), io, "/a: the file changed while it was read");
  }
  EXPECT_EQ(folder.size(), 1);
}

TEST(File, LeavesNothingThatWasNotCommitted) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, 2 * piece_size}) {
    FileWriter file(folder / "a");
    file.append(std::string(size, 'n'));
    EXPECT_EQ(folder.size(), 2);
  }
  EXPECT_EQ(folder.size(), 1);
  EXPECT_EQ(read_file(folder / "a"), "old");
}

TEST(File, HasToReadBackAsItWasWritten) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  {
    FileWriter file(folder / "a");
    file.append("12345");
    EXPECT_ERROR(file.commit(crc32("12346")), io, "/a: 5 bytes were written, others were read back");
  }
  EXPECT_EQ(folder.size(), 1);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u) << "the check value of CRC-32";
  EXPECT_EQ(crc32("56789", crc32("1234")), 0xcbf43926u);
}

TEST(File, IsWrittenIntoTheWorkingFolderUnderABareName) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file("bare", "x");
  std::filesystem::current_path(before);
  EXPECT_EQ(read_file(folder / "bare"), "x");
}

TEST(File, HasTheModeTheUserAskedFor) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(0027);
  write_file(folder / "a", "x");
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

// A reader sees the old bytes or the new ones, never a part.
TEST(File, IsReplacedInOneStep) {
  const TemporaryFolder folder;
  const std::string a(100'000, 'a');
  const std::string b(200'000, 'b');
  write_file(folder / "f", a);
  std::thread writer([&] {
    for (int k = 0; k < 50; ++k) write_file(folder / "f", k % 2 == 0 ? b : a);
  });
  bool whole = true;
  for (int k = 0; k < 500; ++k) {
    const std::string seen = read_file(folder / "f");
    whole = whole && (seen == a || seen == b);
  }
  writer.join();
  EXPECT_TRUE(whole);
  EXPECT_EQ(folder.size(), 1);
}

TEST(File, WritersInOneFolderDoNotMeet) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = {"0", "1", "2", "3"};
  std::vector<std::thread> writers;
  writers.reserve(names.size());
  for (const std::string& name : names)
    writers.emplace_back([&folder, name] {
      for (int k = 0; k < 20; ++k) write_file(folder / name, name);
    });
  for (std::thread& writer : writers) writer.join();
  for (const std::string& name : names) EXPECT_EQ(read_file(folder / name), name);
  EXPECT_EQ(folder.size(), 4);
}

TEST(File, PassesByATemporaryFileThatIsLeftOver) {
  const TemporaryFolder folder;
  // Whatever the counter stands at, one of the next names is taken.
  for (int k = 0; k < 1000; k += 2)
    std::ofstream(folder / (".implicit-diffusion-" + std::to_string(::getpid()) + "-" + std::to_string(k) + ".tmp"));
  write_file(folder / "a", "x");
  write_file(folder / "b", "y");
  EXPECT_EQ(read_file(folder / "a") + read_file(folder / "b"), "xy");
  EXPECT_EQ(folder.size(), 502);
}

TEST(File, DoesNotLookForANameForEver) {
  const TemporaryFolder folder;
  for (int k = 0; k < 4000; ++k)
    std::ofstream(folder / (".implicit-diffusion-" + std::to_string(::getpid()) + "-" + std::to_string(k) + ".tmp"));
  EXPECT_ERROR(write_file(folder / "a", "x"), output, "cannot be written: File exists");
  EXPECT_EQ(folder.size(), 4000);
}

TEST(Folder, IsListedOrSaidToBeUnreadable) {
  const TemporaryFolder folder;
  EXPECT_TRUE(list_directory(folder.path()).empty());
  EXPECT_TRUE(list_directory(folder / "nothing").empty());
  write_file(folder / "a", "x");
  make_directory(folder / "b/c");
  std::vector<std::filesystem::path> all = list_directory(folder.path());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector{folder / "a", folder / "b"}));
  EXPECT_TRUE(list_directory(folder / "a").empty()) << "a file";
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_ERROR(list_directory(folder / "loop"), io,
               "loop: the folder cannot be read: Too many levels of symbolic links");
}

TEST(Folder, ThatMayNotBeReadIsNoFolderToWriteIn) {
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::none);
  const uid_t user = ::geteuid();
  if (user == 0) {
    ASSERT_EQ(::seteuid(65534), 0);  // root may read everything
  }
  EXPECT_ERROR(list_directory(folder.path()), output, "the folder cannot be read: Permission denied");
  ASSERT_EQ(::seteuid(user), 0);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

TEST(Folder, IsFreedOfTemporaryFilesAndNothingElse) {
  const TemporaryFolder folder;
  for (const char* name : {".implicit-diffusion-1-0.tmp", ".implicit-diffusion-99999-12.tmp", ".other-1-0.tmp", "a.tmp",
                           ".implicit-diffusion-notes"})
    write_file(folder / name, "x");
  make_directory(folder / "below");
  write_file(folder / "below/.implicit-diffusion-1-0.tmp", "x");
  remove_temporaries(folder.path());
  remove_temporaries(folder / "nothing");
  EXPECT_EQ(folder.size(), 4);
  EXPECT_TRUE(std::filesystem::exists(folder / "below/.implicit-diffusion-1-0.tmp"));
}

TEST(Folder, IsLockedByOneAtATime) {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    EXPECT_ERROR(FolderLock(folder.path()), output, folder.path().native() + ": another run");
    make_directory(folder / "below");
    EXPECT_NO_THROW(FolderLock(folder / "below")) << "a lock is of one folder only";
  }
  const FolderLock again(folder.path());
  EXPECT_EQ(folder.size(), 1) << "no file tells of a lock";
}

// A name that leads elsewhere by now: nothing is made there under a lock of the folder that had it.
TEST(Folder, ThatIsMovedUnderItsLockIsNotWrittenInto) {
  const TemporaryFolder folder;
  for (const std::string name : {"a", "b/"}) {
    const std::filesystem::path place = folder / name, moved = folder / "moved";
    make_directory(place);
    const FolderLock lock(place);
    write_file(place / "x", "x");
    EXPECT_TRUE(lock.is_there());
    std::filesystem::rename(folder / name.substr(0, 1), moved);
    EXPECT_FALSE(lock.is_there());
    EXPECT_ERROR(write_file(place / "x", "y"), output, "was moved or removed");
    EXPECT_ERROR(make_directory(place / "below"), output, "was moved or removed");
    std::filesystem::create_directory(folder / name.substr(0, 1));
    EXPECT_FALSE(lock.is_there()) << "another folder";
    EXPECT_ERROR(write_file(place / "x", "y"), output, "was moved or removed");
    EXPECT_TRUE(std::filesystem::is_empty(place));
    write_file(moved / "x", "z");
    std::filesystem::remove(place);
    std::filesystem::rename(moved, folder / name.substr(0, 1));
    EXPECT_NO_THROW(write_file(place / "x", "y")) << "it is back";
  }
}

TEST(File, WhoseTemporaryIsGoneIsNamedItself) {
  const TemporaryFolder folder;
  FileWriter file(folder / "a");
  file.append("12345");
  remove_temporaries(folder.path());
  EXPECT_ERROR(file.commit(crc32("12345")), io, "/a: no such file while reading 5 bytes back");
}

TEST(File, IsNotPutInThePlaceOfAPipeOrADevice) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder / "null");
  for (const char* name : {"pipe", "null"})
    EXPECT_ERROR(write_file(folder / name, "x"), output, "is a pipe or a device, a file is meant");
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "null"));
  std::filesystem::create_symlink("nothing", folder / "dangling");
  EXPECT_NO_THROW(write_file(folder / "dangling", "x"));
}

// However a process ends, its lock goes with it.
TEST(Folder, IsFreeWhenItsHolderIsKilled) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const FolderLock lock(folder.path());
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_ERROR(FolderLock(folder.path()), output, "another run");
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_NO_THROW(FolderLock(folder.path()));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(File, MissingOrOfTheWrongType) {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_ERROR(read_file(folder / "none"), missing, (folder / "none").native() + ": no such file");
  EXPECT_ERROR(read_file(folder / "file" / "below"), missing, "no such file");
  EXPECT_ERROR(read_file(""), missing, "'': no such file");
  EXPECT_ERROR(read_file(folder.path()), missing, "is a directory, a file is meant");
  EXPECT_ERROR(read_file(folder / "pipe"), missing, "is not a regular file");
  EXPECT_ERROR(read_file("/dev/zero"), missing, "is not a regular file");
  EXPECT_ERROR(read_file(folder / "loop"), missing, "symbolic links");
  EXPECT_ERROR(read_file(folder / std::string(300, 'n')), missing, "name too long");
  EXPECT_ERROR(read_file(folder / "two\nlines"), missing, "two\\x0alines: no such file");
}

TEST(File, LongerThanTheLimit) {
  const TemporaryFolder folder;
  write_file(folder / "a", "12345");
  EXPECT_EQ(read_file(folder / "a", 5), "12345");
  EXPECT_ERROR(read_file(folder / "a", 4), data, "5 bytes, more than the 4");
  // These do not know their size, so it is counted while reading.
  EXPECT_FALSE(read_file("/proc/self/status").empty());
  EXPECT_ERROR(read_file("/proc/self/status", 10), data, "more than the 10");
}

TEST(File, TooLargeForTheMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more memory than the limit";
#endif
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "sparse";
  write_file(path, "x");
  if (::truncate(path.c_str(), off_t{1} << 42) != 0) GTEST_SKIP() << "no file of 4 TB can be made here";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small{rlim_t{1} << 34, before.rlim_max};
  if (::setrlimit(RLIMIT_AS, &small) != 0) GTEST_SKIP() << "the memory cannot be limited here";
  EXPECT_ERROR(read_file(path), io, "do not fit into memory");
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
}

TEST(File, CannotBeMade) {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  std::filesystem::create_directory(folder / "folder");
  EXPECT_ERROR(write_file(folder / "none" / "a", "x"), output, "cannot be written: No such file or directory");
  EXPECT_ERROR(write_file(folder / "file" / "a", "x"), output, "cannot be written: Not a directory");
  EXPECT_ERROR(write_file(folder / "folder", "x"), output, "is a directory, a file is meant");
  EXPECT_ERROR(write_file("", "x"), output, "is not the name of a file");
  EXPECT_ERROR(write_file("/proc/none", "x"), output, "/proc/none: cannot be written");
  EXPECT_EQ(folder.size(), 2);
}

// A write that stops half-way: the limit lets 1000 bytes through, then fails.
TEST(File, StaysAsItWasWhenWritingFails) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string bytes(5000, 'n');
  EXPECT_ERROR(write_file(folder / "a", bytes), io, "/a: File too large while writing 5000 bytes");
  EXPECT_ERROR(write_file(folder / "b", bytes), io, "/b: File too large while writing 5000 bytes");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.size(), 1);
}

// Runs in a child with a mount namespace of its own, which vanishes with it. What it prints comes back; nothing if
// mounting is not allowed.
std::string on_a_full_disk(const std::filesystem::path& disk) {
  int ends[2];
  if (::pipe(ends) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    const auto say = [&](const std::string& text) { (void)!::write(ends[1], text.data(), text.size()); };
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(0);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(0);
    if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) ::_exit(0);
    try {
      write_file(disk / "a", "old");
      write_file(disk / "a", std::string(100'000, 'n'));
      say("it was written");
    } catch (const Error& error) {
      say(error.kind() == ErrorKind::io ? error.what() : "another kind of error");
    }
    try {
      const auto entries =
          std::distance(std::filesystem::directory_iterator(disk), std::filesystem::directory_iterator());
      say("; " + read_file(disk / "a") + ", " + std::to_string(entries));
    } catch (const std::exception& error) {
      say(error.what());
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[1024];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

TEST(File, StaysAsItWasOnAFullDisk) {
  const TemporaryFolder folder;
  const std::string said = on_a_full_disk(folder.path());
  if (said.empty()) GTEST_SKIP() << "a small disk cannot be mounted here";
  EXPECT_EQ(said, (folder / "a").native() + ": No space left on device while writing 100000 bytes; old, 1");
}

TEST(Directory, IsMadeWithThoseAboveIt) {
  const TemporaryFolder folder;
  make_directory(folder / "a" / "b" / "c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a" / "b" / "c"));
  make_directory(folder / "a" / "b" / "c");
  make_directory((folder / "d").native() + "/");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "d"));
}

TEST(Directory, CannotBeMade) {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  EXPECT_ERROR(make_directory(folder / "file"), output, "/file: the folder cannot be made: ");
  EXPECT_ERROR(make_directory(folder / "file" / "below"), output, "the folder cannot be made: Not a directory");
  EXPECT_ERROR(make_directory(""), output, "'': the folder cannot be made");
}

TEST(Text, IsMadeFitForOneLine) {
  EXPECT_EQ(printable("a\tb\n\x7f"), "a\\x09b\\x0a\\x7f");
  EXPECT_EQ(printable("λ"), "λ");
  EXPECT_EQ(printable("\u0080\u009b\u009f\u00a0"), "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f\u00a0");
  EXPECT_EQ(printable("\x9b"
                      "1\xc3\xff\xe2\x82"
                      "a"),
            "\\x9b1\\xc3\\xff\\xe2\\x82"
            "a");
  EXPECT_EQ(printable("€𝜃"), "€𝜃");
  EXPECT_EQ(printable("λλ", 3), "λ...");
  EXPECT_EQ(printable("λλ", 1), "...");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(excerpt("abc", 2), "'ab...'");
}

}  // namespace
}  // namespace implicit_diffusion::io
