// Checkpoints that are damaged, and states that should not become any.
#include "io/sections.hpp"
#include "reliability/reliability.hpp"

#include <cmath>
#include <map>
#include <numeric>

namespace program_test {
namespace {

// Without the care of io::write_file, which flushes: this is done thousands of times.
void put(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

class Damage : public testing::Test {
 protected:
  Damage() {
    write(folder_ / "tiny.toml", tiny_experiment);
    EXPECT_EQ(run(folder_, tiny_words("whole")).code, 0);
    fs::copy(folder_ / "whole", folder_ / "damaged", fs::copy_options::recursive);
    bytes_ = contents(newest_);
  }

  // The n-th way to damage the file; as many as there are.
  std::size_t ways() const { return 2 * bytes_.size(); }
  std::string damaged(std::size_t n) const {
    if (n >= bytes_.size()) return bytes_.substr(0, n - bytes_.size());
    std::string bytes = bytes_;
    bytes[n] = static_cast<char>(~bytes[n]);
    return bytes;
  }

  Folder folder_;
  fs::path newest_ = folder_ / "damaged/checkpoints/step-30.checkpoint";
  fs::path older_ = folder_ / "damaged/checkpoints/step-20.checkpoint";
  std::string bytes_;
};

TEST_F(Damage, OfEveryByteAndAtEveryLengthIsSeen) {
  int refused = 0, fell_back = 0;
  for (std::size_t n = 0; n < ways(); ++n) {
    put(newest_, damaged(n));
    const Newest newest = newest_in(folder_ / "damaged");
    ASSERT_EQ(newest.refused.size(), 1u) << n;
    EXPECT_NE(newest.refused.front().find("step-30.checkpoint: damaged"), std::string::npos) << newest.refused.front();
    EXPECT_EQ(newest.step(), 20);
    ++refused;
    fell_back += newest.step() == 20;
  }
  count("damage",
        "of a checkpoint of {} bytes, each byte turned over and each length cut: {} tried, {} refused, {} fell back",
        bytes_.size(), ways(), refused, fell_back);
}

TEST_F(Damage, IsNamedByTheProgramWhichGoesOn) {
  const std::size_t stride = full ? 5 : 101;
  int tried = 0, identical = 0, none_left = 0;
  for (std::size_t n = 0; n < ways(); n += stride) {
    put(newest_, damaged(n));
    const Result result = run(folder_, tiny_words("damaged", {"--resume"}));
    EXPECT_EQ(result.code, 0);
    EXPECT_TRUE(is_error_line(result.err, {"step-30.checkpoint: damaged", "an older one is tried"}));
    const auto same = same_run(folder_ / "whole", folder_ / "damaged");
    EXPECT_TRUE(same);
    identical += same ? 1 : 0;

    const std::string older = contents(older_);
    put(newest_, damaged(n));
    put(older_, "");
    const Result none = run(folder_, tiny_words("damaged", {"--resume"}));
    EXPECT_EQ(none.code, 65) << none.err;
    EXPECT_EQ(lines(none.err).size(), 3u) << none.err;
    EXPECT_NE(none.err.find("none of its 2 checkpoints is whole"), std::string::npos) << none.err;
    EXPECT_TRUE(same_run(folder_ / "whole", folder_ / "damaged")) << "what was there is left alone";
    none_left += none.code == 65;
    put(older_, older);
    put(newest_, bytes_);
    ++tried;
  }
  count("damage",
        "the program, with every {}th of these: {} tried, {} resumed to identical runs; with no other left {} ended "
        "with 65",
        stride, tried, identical, none_left);
}

// A checkpoint with all its checksums right and a section that is not: no accident, but nothing that should crash
// either.
TEST_F(Damage, BehindTheChecksumsDoesNotCrashTheProgram) {
  const std::map<std::string, std::string> whole = io::sections_of(io::CheckpointReader(bytes_, "whole"));
  const Words names{"configuration", "step",   "theta",     "optimizer", "samples",   "rows", "row_theta",
                    "crossings",     "recent", "snapshots", "last",      "last_step", "seen", "seconds"};
  ASSERT_EQ(std::accumulate(
                names.begin(), names.end(), std::size_t{24},
                [&](std::size_t sum, const auto& name) { return sum + 16 + name.size() + whole.at(name).size(); }),
            bytes_.size())
      << "these are not all sections";
  fs::remove(older_);
  int tried = 0, refused = 0;
  for (const std::string& name : names)
    for (int way = 0; way < 6; ++way) {
      std::map<std::string, std::string> sections = whole;
      const std::string& bytes = whole.at(name);
      if (way == 0) sections.erase(name);
      if (way == 1) sections[name] = "";
      if (way == 2) sections[name] = bytes.substr(0, bytes.size() / 2);
      if (way == 3) sections[name] = bytes + bytes;
      if (way == 4) sections[name] = std::string(bytes.size(), '\xff');
      if (way == 5) sections[name] = std::string(bytes.size(), '\x7f');
      put(newest_, io::writer_of(sections).to_bytes());
      const Result result = run(folder_, tiny_words("damaged", {"--resume"}));
      SCOPED_TRACE(fmt::format("{}, {}: code {}, {}", name, way, result.code, result.err));
      EXPECT_TRUE(result.code == 0 || result.code == 2 || result.code == 65 || result.code == 70);
      EXPECT_EQ(lines(result.err).size(), result.code == 0 ? 0u : 1u);
      const bool is_state = name == "theta" || name == "samples" || name == "optimizer";
      EXPECT_TRUE(!is_state || way != 4 || result.code == 65) << "these are no numbers";
      ++tried;
      refused += result.code != 0;
    }
  count("damage",
        "behind right checksums, each section missing, empty, cut, doubled or filled: {} tried, {} refused, no crash",
        tried, refused);
}

bool all_finite(const auto& numbers) {
  for (const auto v : numbers)
    if (!std::isfinite(v)) return false;
  return true;
}

// Runs that diverge, with a checkpoint at every step: all that were ever written are finite.
TEST(Divergence, LeavesOnlyFiniteCheckpoints) {
  const Folder folder;
  write(folder / "tiny.toml", tiny_experiment);
  const Words every{"--quiet", "--no-report", "--set", "checkpoint_every=1"};
  const std::vector<Words> runs{
      {"tiny.toml", "--steps", "5000", "--set", "step_size=3.0"},
      {"tiny.toml", "--steps", "5000", "--set", "step_size=3.0", "--set", "optimizer=gradient-descent"},
      {"tiny.toml", "--steps", "5000", "--set", "step_size=3.0", "--set", "method=nested", "--set", "inner_steps=3"},
      {"tiny.toml", "--steps", "5000", "--set", "optimizer=gradient-descent", "--set", "learning_rate=1e20"},
      {"ebm-mixture", "--steps", "200", "--set", "learning_rate=50"},
      {"ebm-mixture", "--steps", "200", "--set", "learning_rate=50", "--set", "optimizer=adam"},
      {"langevin-reward", "--steps", "300", "--set", "reward.lambda=1e20", "--set", "reward.denominator=1e-20"}};
  int diverged = 0, checkpoints = 0, finite = 0, again = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string name = fmt::format("run-{}", i);
    const fs::path trace = folder / (name + ".trace");
    const Words words = Words{"run"} + runs[i] + every + Words{"--output", name};
    const Result result =
        run(Launch{.arguments = words,
                   .folder = folder.path(),
                   .environment = with_shim({"FAULT_PATH=checkpoints", "FAULT_TRACE=" + trace.string()})});
    EXPECT_EQ(result.code, 70) << i << ": " << result.err;
    diverged += result.code == 70;
    if (fs::exists(trace)) {
      std::map<std::string, std::string> files;  // what was written so far to those that have no name yet
      for (const Call& call : read_trace(trace)) {
        if (call.what == "write") files[call.path] += call.bytes;
        if (call.what == "rename") {
          const io::CheckpointReader c(files.at(call.path), name);
          ++checkpoints;
          const bool is_finite = all_finite(c.numbers<double>("theta")) && all_finite(c.numbers<float>("samples")) &&
                                 all_finite(c.numbers<double>("optimizer"));
          EXPECT_TRUE(is_finite) << i << ", step " << c.number<std::int64_t>("step");
          finite += is_finite;
        }
      }
    }
    const std::string theta = contents(folder / name / "theta.npy");
    EXPECT_EQ(run(folder, words + Words{"--resume"}).code, 70) << i;
    again += theta == contents(folder / name / "theta.npy");
    EXPECT_EQ(theta, contents(folder / name / "theta.npy")) << i;
  }
  count("divergence",
        "{} of {} runs diverged; {} of their {} checkpoints are finite; {} diverged again in the same way", diverged,
        runs.size(), finite, checkpoints, again);
}

}  // namespace
}  // namespace program_test
