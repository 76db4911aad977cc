// The power fails. A kill leaves what was written to the system; a power cut only what was flushed, and of the rest any
// part.
//
// The shim wrote down all that a run did to its folder. Here it is done again up to some call, and then without some of
// what was not flushed by then: bytes of a file belong to the disk when the file was flushed after they were written; a
// name that was made, changed or removed, when its folder was. That is less than file systems keep in practice, and all
// that they promise.
#include "reliability/reliability.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace program_test {
namespace {

using Tree = std::map<std::string, std::string>;  // path: bytes, or "/" for a folder

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

class Replay {
 public:
  explicit Replay(std::vector<Call> calls) : calls_(std::move(calls)), file_(calls_.size()) {
    std::map<std::string, std::size_t> names;  // which creation a name stands for
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const Call& c = calls_[i];
      if (c.what == "create") names[c.path] = i;
      if (const auto found = names.find(c.path); found != names.end()) file_[i] = found->second;
      if (c.what == "rename") names[c.other] = names.at(c.path);
      if (c.what == "rename" || c.what == "unlink") names.erase(c.path);
    }
  }

  std::size_t size() const { return calls_.size(); }
  const Call& operator[](std::size_t i) const { return calls_[i]; }

  // What of the first n calls may be missing.
  std::vector<std::size_t> unflushed(std::size_t n) const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < n; ++i) {
      const Call& c = calls_[i];
      if (c.what == "fsync") continue;
      bool flushed = false;
      for (std::size_t k = i + 1; k < n && !flushed; ++k)
        flushed = calls_[k].what == "fsync" &&
                  (c.what == "write" ? file_[k] && file_[k] == file_[i] : calls_[k].path == folder_of(c.path));
      if (!flushed) all.push_back(i);
    }
    return all;
  }

  // The disk after n calls without those that are lost; of a write that is `torn` the first half is there.
  Tree tree(std::size_t n, const std::set<std::size_t>& lost, std::optional<std::size_t> torn = {}) const {
    std::map<std::string, std::optional<std::size_t>> names;  // the creation that they stand for, or a folder
    std::map<std::size_t, std::string> bytes;
    for (std::size_t i = 0; i < n; ++i) {
      const Call& c = calls_[i];
      if (lost.contains(i)) continue;
      if (c.what == "mkdir") names[c.path] = std::nullopt;
      if (c.what == "create") names[c.path] = i;
      if (c.what == "write") bytes[*file_[i]] += c.bytes.substr(0, torn == i ? c.bytes.size() / 2 : c.bytes.size());
      if (c.what == "rename") names[c.other] = file_[i];
      if (c.what == "rename" || c.what == "unlink") names.erase(c.path);
    }
    Tree all;
    const std::string top = calls_.front().path;
    for (const auto& [path, file] : names) {
      bool reachable = true;
      for (std::string above = path; above != top && reachable;) {
        above = folder_of(above);
        reachable = names.contains(above);
      }
      if (reachable) all[path] = file ? bytes[*file] : "/";
    }
    return all;
  }

 private:
  std::vector<Call> calls_;
  std::vector<std::optional<std::size_t>> file_;  // the creation of the file that a call is on
};

void put(const Tree& tree) {
  for (const auto& [path, bytes] : tree)  // a folder comes before what is in it
    if (bytes == "/")
      fs::create_directory(path);
    else
      std::ofstream(path, std::ios::binary) << bytes;
}

TEST(PowerLoss, LeavesACheckpointThatWasFlushed) {
  const Folder folder;
  write(folder / "tiny.toml", tiny_experiment);
  ASSERT_EQ(run(folder, tiny_words("whole")).code, 0);
  const fs::path place = folder / "cut", trace = folder / "trace";
  ASSERT_EQ(
      run(Launch{.arguments = tiny_words("cut"),
                 .folder = folder.path(),
                 .environment = with_shim({"FAULT_PATH=" + folder.path().string(), "FAULT_TRACE=" + trace.string()})})
          .code,
      0);
  const Replay replay(read_trace(trace));
  ASSERT_GT(replay.size(), 0u);
  ASSERT_EQ(replay[0].what, "mkdir");
  ASSERT_EQ(replay[0].path, place.string());

  int cuts = 0, loaded = 0, identical = 0;
  std::set<Tree> seen;
  // `durable`: the step of the last checkpoint of which the program knew that it is on the disk.
  const auto cut = [&](const Tree& tree, std::int64_t durable, const std::string& how) {
    ++cuts;
    SCOPED_TRACE(how);
    fs::remove_all(place);
    put(tree);
    const Newest newest = newest_in(place);
    EXPECT_TRUE(newest.refused.empty()) << newest.refused.front();
    EXPECT_GE(newest.step(), durable);
    loaded += newest.step() >= 0;
    if (!seen.insert(tree).second) return;
    EXPECT_TRUE(durable < 0 || fs::exists(place / "config.toml"));
    const Result again = run(folder, tiny_words("cut", resume_words(place)));
    EXPECT_EQ(again.code, 0) << again.err;
    const auto same = same_run(folder / "whole", place);
    EXPECT_TRUE(same);
    identical += same ? 1 : 0;
  };

  std::mt19937_64 random(seed_of_moments);
  std::int64_t durable = -1, renamed = -1;
  for (std::size_t n = 1; n <= replay.size() && !testing::Test::HasFailure(); ++n) {
    const Call& last = replay[n - 1];
    if (last.what == "rename" && last.other.ends_with(".checkpoint"))
      renamed = std::stol(last.other.substr(last.other.rfind('-') + 1));
    if (last.what == "fsync" && last.path.ends_with("/checkpoints")) durable = renamed;
    const std::vector<std::size_t> pending = replay.unflushed(n);
    const auto how = [&](const std::string& lost) {
      return fmt::format("after call {} ({} {} {}), {} lost", n, last.what, last.path, last.other, lost);
    };
    cut(replay.tree(n, {}), durable, how("nothing"));
    cut(replay.tree(n, {pending.begin(), pending.end()}), durable, how("all"));
    for (const std::size_t i : pending) {
      cut(replay.tree(n, {i}), durable, how(replay[i].what + " " + replay[i].path));
      if (replay[i].what == "write") cut(replay.tree(n, {}, i), durable, how("half of a write"));
    }
    for (int k = 0; k < (full ? 5 : 1); ++k) {
      std::set<std::size_t> lost;
      for (const std::size_t i : pending)
        if (random() % 2) lost.insert(i);
      cut(replay.tree(n, lost), durable, how("some"));
    }
  }
  count("power loss",
        "{} cuts of a run of {} calls, {} with a checkpoint that loads; {} of {} different ones resumed to identical "
        "runs",
        cuts, replay.size(), loaded, identical, seen.size());
}

}  // namespace
}  // namespace program_test
