// LMDB, whole and damaged, through the process that reads it.
#include "implicit_diffusion/data/lmdb.hpp"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "data/lmdb_environment.hpp"
#include "data/support.hpp"
#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/data/data_set.hpp"
#include "implicit_diffusion/io/file.hpp"

namespace implicit_diffusion::data {
namespace {

namespace fs = std::filesystem;
using io::TemporaryFolder;

const fs::path helper = IMPLICIT_DIFFUSION_LMDB_HELPER;

std::string key_of(std::size_t i) {
  std::string key;
  Mixer mixer(i);
  while (key.size() < 40) key += "0123456789abcdef"[mixer.below(16)];
  return key;
}

struct Entry {
  std::string key, bytes;
  Image image;
};

// An environment as LSUN's: keys of 40 hexadecimal digits, values of encoded images. These are PNG, whose check sums
// find every damage, and some with pages of their own. Seven leaves below one branch.
struct Environment {
  std::vector<Entry> entries;
  std::string bytes;  // of data.mdb
};

std::string write_environment(const fs::path& folder, const std::vector<Entry>& entries) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Entry& e : entries) pairs.emplace_back(e.key, e.bytes);
  write_lmdb(folder, pairs);
  return io::read_file(folder / "data.mdb");
}

const Environment& environment() {
  static const Environment made = [] {
    Environment e;
    for (std::size_t i = 0; i < 26; ++i) {
      const std::size_t side = i % 13 == 5 ? 48 : 16;
      Image image = random_image({3, side, side}, i);
      e.entries.push_back({key_of(i), png_bytes(image), std::move(image)});
    }
    std::ranges::sort(e.entries, {}, &Entry::key);
    const TemporaryFolder folder;
    e.bytes = write_environment(folder.path(), e.entries);
    return e;
  }();
  return made;
}

void put(const fs::path& folder, const std::string& bytes) {
  fs::create_directories(folder);
  std::ofstream(folder / "data.mdb", std::ios::binary) << bytes;
}

// What came of reading all of it.
struct Outcome {
  std::string error;     // empty where all was read
  bool is_right = true;  // the images that were read are those that were written, in their places
};
Outcome read_all(const fs::path& folder) {
  Outcome outcome;
  try {
    const auto set = open_data_set(folder, {.lmdb_helper = helper});
    const std::vector<Entry>& entries = environment().entries;
    outcome.is_right = set->size() == entries.size();
    for (std::size_t i = 0; i < set->size(); ++i)
      outcome.is_right = set->image(i) == entries.at(std::min(i, entries.size() - 1)).image && outcome.is_right;
  } catch (const Error& e) {
    outcome.error = e.what();
    EXPECT_EQ(e.kind(), ErrorKind::data) << e.what();
    EXPECT_EQ(outcome.error.find('\n'), std::string::npos);
    EXPECT_TRUE(outcome.error.starts_with(folder.string())) << e.what();
  }
  return outcome;
}

// ------------------------------------------------------------------ whole

TEST(Lmdb, ReadsKeysInOrderAndImages) {
  const TemporaryFolder folder;
  put(folder.path(), environment().bytes);
  const LmdbReader reader(folder.path(), helper);
  ASSERT_EQ(reader.size(), 26U);
  for (const std::size_t i : {25U, 0U, 7U, 7U}) {
    EXPECT_EQ(reader.key(i), environment().entries[i].key);
    EXPECT_EQ(reader.value(i), environment().entries[i].bytes);
  }
  const auto set = open_data_set(folder.path(), {.lmdb_helper = helper});
  EXPECT_EQ(set->kind(), Kind::lmdb);
  EXPECT_EQ(set->label(0), std::nullopt);
  const Outcome outcome = read_all(folder.path());
  EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(outcome.is_right);
  EXPECT_EQ(folder.size(), 1) << "no lock file is made";
}

TEST(Lmdb, ReadsJpegAndWebpValues) {
  const TemporaryFolder folder;
  std::vector<Entry> entries;
  for (const Encoded& one : encoded) entries.push_back({key_of(entries.size()), from_hex(one.file), {}});
  (void)write_environment(folder.path(), entries);
  const auto set = open_data_set(folder.path(), {.lmdb_helper = helper});
  ASSERT_EQ(set->size(), entries.size());
  for (std::size_t i = 0; i < set->size(); ++i) EXPECT_GT(set->image(i).values.size(), 0U);
}

TEST(Lmdb, ThreadsMayReadAtOnce) {
  const TemporaryFolder folder;
  put(folder.path(), environment().bytes);
  const auto set = open_data_set(folder.path(), {.lmdb_helper = helper});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t k = 0; k < 100; ++k) {
        const std::size_t i = (7 * k + t) % 26;
        wrong += set->image(i) != environment().entries[i].image;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Lmdb, DamagedImagesAreNamedByTheirKey) {
  const TemporaryFolder folder;
  (void)write_environment(folder.path(), {{"key-a", "no image at all", {}}});
  EXPECT_ERROR(open_data_set(folder.path(), {.lmdb_helper = helper})->image(0), data,
               folder.path().string() + ": entry 0 (key 'key-a'): byte 0: not a PNG, JPEG or WebP image");
}

// ------------------------------------------------------------------ processes

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}
bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0; }

TEST(Lmdb, LeavesNeitherProcessesNorDescriptors) {
  const TemporaryFolder good, bad;
  put(good.path(), environment().bytes);
  put(bad.path(), std::string(100'000, 'x'));
  const std::size_t before = open_descriptors();
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(read_all(good.path()).error, "");
    EXPECT_NE(read_all(bad.path()).error, "");
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_FALSE(has_children());
}

// The process that reads has its two streams and nothing else of ours.
TEST(Lmdb, ReaderInheritsNoDescriptors) {
  const TemporaryFolder folder;
  put(folder.path(), environment().bytes);
  const int kept = ::dup(STDERR_FILENO);  // one that any program would inherit
  const LmdbReader reader(folder.path(), helper);
  std::string children;
  std::ifstream("/proc/self/task/" + std::to_string(::getpid()) + "/children") >> children;
  ASSERT_NE(children, "");
  std::size_t ours = 0;
  for (const auto& entry : fs::directory_iterator("/proc/" + children + "/fd")) {
    const std::string target = fs::read_symlink(entry.path()).string();
    ours += !target.starts_with("socket:") && target != "/dev/null" && !target.ends_with("data.mdb");
  }
  EXPECT_EQ(ours, 0U);
  ::close(kept);
}

// Killed without a chance to tidy up, the library leaves no reader behind.
TEST(Lmdb, ReaderEndsWithItsParent) {
  const TemporaryFolder folder;
  put(folder.path(), environment().bytes);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const LmdbReader reader(folder.path(), helper);
    std::string child;
    std::ifstream("/proc/self/task/" + std::to_string(::getpid()) + "/children") >> child;
    if (::write(ends[1], child.c_str(), child.size() + 1) < 0) ::_exit(1);
    while (true) ::pause();
  }
  char text[32] = {};
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  const fs::path child = std::string("/proc/") + text;
  EXPECT_TRUE(fs::exists(child));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  const auto is_gone = [&] {  // or a zombie that nobody has collected in this container
    std::string state, word;
    std::ifstream status(child / "status");
    while (status >> word)
      if (word == "State:") status >> state;
    return state.empty() || state == "Z";
  };
  for (int k = 0; k < 500 && !is_gone(); ++k) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_gone());
}

TEST(Lmdb, TheHelperMustBeThere) {
  const TemporaryFolder folder;
  put(folder.path(), environment().bytes);
  EXPECT_ERROR(LmdbReader(folder.path(), folder / "none"), missing, "none: no such file; this program reads LMDB");
  EXPECT_ERROR(LmdbReader(folder.path(), folder / "data.mdb"), io, "data.mdb: cannot be started: Permission denied");
  EXPECT_EQ(default_lmdb_helper(), fs::read_symlink("/proc/self/exe").parent_path() / "implicit-diffusion-lmdb");
  // Programs that are something else.
  EXPECT_ERROR(LmdbReader(folder.path(), "/bin/false"), data, "damaged LMDB: its reader ended without an answer");
  EXPECT_ERROR(LmdbReader(folder.path(), "/bin/echo"), data, "damaged LMDB: its reader talks nonsense");
  EXPECT_ERROR(LmdbReader(folder / "none", helper), missing, "none/data.mdb: no such file");
}

// ------------------------------------------------------------------ damage

// Places in data.mdb: pages of 4096 bytes, with a head of 16.
constexpr std::size_t page = 4096, head = 16;
constexpr std::size_t meta_magic = head, meta_page_size = head + 24, meta_entries = head + 72 + 32,
                      meta_root = head + 72 + 40, meta_transaction = head + 128;
template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <class T>
std::string with(std::string bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

// One row of the table of bad input each.
TEST(Lmdb, BadInput) {
  const std::string& good = environment().bytes;
  // The newer of the two first pages counts, and the tree's root is a branch.
  const std::size_t newer =
      number_at<std::uint64_t>(good, meta_transaction) > number_at<std::uint64_t>(good, page + meta_transaction) ? 0
                                                                                                                 : page;
  const std::size_t root = page * number_at<std::uint64_t>(good, newer + meta_root);
  ASSERT_EQ(number_at<std::uint16_t>(good, root + 10) & 1, 1) << "not a branch";
  const std::size_t node = root + number_at<std::uint16_t>(good, root + head);
  const std::size_t leaf = page * (number_at<std::uint32_t>(good, node));
  ASSERT_EQ(number_at<std::uint16_t>(good, leaf + 10) & 2, 2) << "not a leaf";
  std::size_t overflow = 0;
  for (std::size_t p = 2 * page; p < good.size(); p += page)
    if ((number_at<std::uint16_t>(good, p + 10) & 4) != 0 && overflow == 0) overflow = p;
  ASSERT_GT(overflow, 0U);
  struct Row {
    const char* name;
    std::string bytes;
  };
  const std::vector<Row> rows{
      {"bad magic", with(with(good, meta_magic, 0), page + meta_magic, 0)},
      {"wrong page size", with(with(good, meta_page_size, 512), page + meta_page_size, 512)},
      {"page size 0", with(with(good, meta_page_size, 0), page + meta_page_size, 0)},
      {"root out of range", with(good, newer + meta_root, std::uint64_t{1} << 40)},
      {"page number out of range", with(good, node, std::uint32_t{0x00ffffff})},
      {"cycle", with(good, node, static_cast<std::uint32_t>(root / page))},
      {"the same leaf twice",
       with(good, root + number_at<std::uint16_t>(good, root + head + 2), static_cast<std::uint32_t>(leaf / page))},
      {"node pointer out of page", with(good, leaf + head, std::uint16_t{0xfff0})},
      {"transaction number", with(good, newer + meta_transaction, std::uint64_t{0})},
      {"number of entries", with(good, newer + meta_entries, std::uint64_t{27})},
      {"truncated in a page", good.substr(0, good.size() - page - 100)},
      {"truncated in the first page", good.substr(0, 100)},
      {"empty", ""},
      {"LFS pointer", "version https://git-lfs.github.com/spec/v1\n"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const TemporaryFolder folder;
    put(folder.path(), row.bytes);
    EXPECT_NE(read_all(folder.path()).error, "");
    EXPECT_EQ(folder.size(), 1);
  }
  // A count of overflow pages is not read by liblmdb when it reads; the length of the value is, from the node.
  const TemporaryFolder folder;
  put(folder.path(), with(good, overflow + 12, std::uint32_t{0xffffffff}));
  const Outcome outcome = read_all(folder.path());
  EXPECT_TRUE(outcome.is_right || !outcome.error.empty());
}

// Mutants: a few bytes changed, runs of bytes copied, the end cut off. Whatever the reader does, this process lives,
// and every set is read as it was written or refused in one line. Set IMPLICIT_DIFFUSION_LMDB_MUTANTS for more of them.
TEST(Lmdb, Mutants) {
  const char* wanted = std::getenv("IMPLICIT_DIFFUSION_LMDB_MUTANTS");
  const int count = wanted != nullptr ? std::atoi(wanted) : 1500;
  if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 0);
  const TemporaryFolder folder;
  const std::string& good = environment().bytes;
  const std::size_t before = open_descriptors();
  Mixer mixer(1);
  int whole = 0, refused = 0, died = 0, other = 0;
  for (int k = 0; k < count; ++k) {
    std::string bytes = good;
    // Half of the changes are in the heads of pages and the first bytes behind them, where the structure is.
    const auto place = [&] {
      const std::size_t p = page * mixer.below(good.size() / page);
      return p + mixer.below(mixer.below(2) == 0 ? 256 : page);
    };
    for (std::size_t changes = 1 + mixer.below(4); changes > 0; --changes) {
      const std::size_t at = place();
      switch (mixer.below(8)) {
        case 0:
          bytes.resize(std::max<std::size_t>(at, 1));
          bytes.resize(good.size(), '\0');
          break;
        case 1:
          for (std::size_t n = mixer.below(64), from = place(); n > 0 && from + n < good.size() && at + n < good.size();
               --n)
            bytes[at + n] = good[from + n];
          break;
        case 2:
          bytes[at] = static_cast<char>(bytes[at] + (mixer.below(2) == 0 ? 1 : -1));
          break;
        default:
          bytes[at] = static_cast<char>(mixer.next());
      }
    }
    if (mixer.below(10) == 0) bytes.resize(mixer.below(bytes.size()) + 1);
    put(folder.path(), bytes);
    const Outcome outcome = read_all(folder.path());
    if (!outcome.error.empty()) {
      ++refused;
      died += outcome.error.find("died of") != std::string::npos;
    } else {
      whole += outcome.is_right;
      other += !outcome.is_right;
    }
    EXPECT_EQ(outcome.error.find("unexpected"), std::string::npos);
  }
  std::printf("%d mutants: %d read as written, %d refused (of them %d by the death of the reader), %d read otherwise\n",
              count, whole, refused, died, other);
  EXPECT_EQ(whole + refused + other, count);
  EXPECT_EQ(other, 0);
  EXPECT_GT(died, 0) << "mutants too tame to tell";
  EXPECT_GT(whole, 0);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_FALSE(has_children());
}

}  // namespace
}  // namespace implicit_diffusion::data
