// A disk that fails: every call that touches the run's folder fails once, in every way that it can, and the program is
// killed before every one of them. There is always a checkpoint that loads, the one before or the one after; the
// program goes on or says what failed; and what goes on from there ends with the same bytes.
#include "reliability/reliability.hpp"

#include <cstring>
#include <map>

namespace program_test {
namespace {

struct Fault {
  const char* call;
  const char* what;
  const char* reason;     // in the message; null: the program is to go on, or is killed
  bool in_short = false;  // a part of the short form
};

const std::vector<Fault> faults{
    {"write", "ENOSPC", "No space left on device", true},
    {"write", "EIO", "Input/output error"},
    {"write", "EDQUOT", "Disk quota exceeded"},
    {"write", "EINTR", nullptr},
    {"write", "short", nullptr, true},
    {"fsync", "EIO", "Input/output error", true},
    {"fsync", "ENOSPC", "No space left on device"},
    {"fsync", "EDQUOT", "Disk quota exceeded"},
    {"fsync", "EINTR", nullptr},
    {"rename", "EIO", "Input/output error", true},
    {"rename", "ENOSPC", "No space left on device"},
    {"rename", "EDQUOT", "Disk quota exceeded"},
    {"open", "EMFILE", "Too many open files", true},
    {"open", "EIO", "Input/output error"},
    {"open", "ENOSPC", "No space left on device"},
    {"open", "EACCES", "Permission denied"},
    {"open", "EINTR", nullptr},
    {"close", "EIO", "Input/output error", true},
    {"close", "ENOSPC", "No space left on device"},
    {"close", "EDQUOT", "Disk quota exceeded"},
    {"close", "EINTR", nullptr},
    {"read", "EIO", "Input/output error"},
    {"read", "EINTR", nullptr},
    {"readdir", "EIO", "Input/output error"},
    {"mkdir", "ENOSPC", "No space left on device"},
    {"mkdir", "EDQUOT", "Disk quota exceeded"},
    {"unlink", "EIO", "Input/output error"},
    {"any", "kill", nullptr, true},
};

// The state in a checkpoint; what it says of times is not compared.
std::map<std::string, std::string> state_of(const io::CheckpointReader& c) {
  std::map<std::string, std::string> state;
  for (const char* name : {"step", "theta", "optimizer", "samples", "row_theta", "crossings"})
    state[name] = c.text(name);
  return state;
}

class Disk : public testing::Test {
 protected:
  explicit Disk(const std::string& particles = "20") : particles_{"--set", "particles=" + particles} {
    write(folder_ / "tiny.toml", tiny_experiment);
    for (const int steps : {10, 20, 30}) {
      const std::string name = fmt::format("whole-{}", steps);
      EXPECT_EQ(run(folder_, words(name, {"--steps", std::to_string(steps)})).code, 0);
      states_[steps] = state_of(*newest_in(folder_ / name).checkpoint);
    }
  }

  Words words(const std::string& output, const Words& more) const { return tiny_words(output, particles_ + more); }

  // The fault at the n-th call of a run, or of one that goes on; false where there is none.
  bool meets(const Fault& fault, int n, const char* from_there_on, const Words& more) {
    const fs::path place = folder_ / "faulty", hit = folder_ / "hit";
    fs::remove(hit);
    const std::string plan = fmt::format("{}:{}@{}{}", fault.call, fault.what, n, from_there_on);
    const Result result =
        run(Launch{.arguments = words("faulty", more),
                   .folder = folder_.path(),
                   .environment = with_shim({"FAULT=" + plan, "FAULT_PATH=faulty", "FAULT_HIT=" + hit.string()})});
    const bool is_hit = fs::exists(hit);
    SCOPED_TRACE(fmt::format("{} {}: code {}, {}", plan, fmt::join(more, " "), result.code, result.err));
    const bool killed = std::strcmp(fault.what, "kill") == 0;
    if (!is_hit) {
      EXPECT_EQ(result.code, 0);
      EXPECT_TRUE(same_run(folder_ / "whole-30", place));
      return false;
    }
    ++tried_;
    if (killed) {
      EXPECT_EQ(result.code, 128 + SIGKILL);
      ++killed_;
    } else if (result.code == 0) {
      EXPECT_TRUE(same_run(folder_ / "whole-30", place));
      ++went_on_;
    } else {
      EXPECT_TRUE(fault.reason) << "this is not to be noticed";
      EXPECT_TRUE(result.code == 73 || result.code == 74);
      EXPECT_TRUE(is_error_line(result.err, {"faulty", fault.reason ? fault.reason : ""}));
      ++ended_;
    }
    if (fs::exists(place)) {
      check_checkpoint(place, killed && more.empty());
      EXPECT_TRUE(killed || std::strcmp(fault.call, "unlink") == 0 || temporaries_in(place) == 0);
    }
    const Result again = run(folder_, words("faulty", resume_words(place)));
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.err, "");
    const auto same = same_run(folder_ / "whole-30", place);
    EXPECT_TRUE(same);
    EXPECT_EQ(temporaries_in(place), 0);
    identical_ += same ? 1 : 0;
    return true;
  }

  // The newest is that of a step of ours, whole and as it should be, and of kill to later kill it does not become
  // older.
  void check_checkpoint(const fs::path& place, bool later_than_before) {
    const Newest newest = newest_in(place);
    EXPECT_TRUE(newest.refused.empty()) << newest.refused.front();
    if (later_than_before) {
      EXPECT_GE(newest.step(), last_step_);
      last_step_ = newest.step();
    }
    if (!newest.checkpoint) return;
    ++loaded_;
    const auto expected = states_.find(newest.step());
    ASSERT_NE(expected, states_.end()) << newest.step();
    EXPECT_EQ(state_of(*newest.checkpoint), expected->second);
  }

  void print(const char* what) const {
    count(what,
          "{} tried: {} went on, {} ended with one line, {} killed; {} checkpoints loaded; {} of {} resumed to "
          "identical runs",
          tried_, went_on_, ended_, killed_, loaded_, identical_, tried_);
  }

  Words particles_;
  Folder folder_;
  std::map<std::int64_t, std::map<std::string, std::string>> states_;
  std::int64_t last_step_ = -1;
  int tried_ = 0, went_on_ = 0, ended_ = 0, killed_ = 0, loaded_ = 0, identical_ = 0;
};

constexpr int most_calls = 2000;

TEST_F(Disk, FailsAtEveryCall) {
  for (const Fault& fault : faults) {
    if (!full && !fault.in_short) continue;
    last_step_ = -1;
    int n = 1;
    for (; n < most_calls; ++n) {
      fs::remove_all(folder_ / "faulty");
      if (!meets(fault, n, "", {})) break;
      if (HasFailure()) return;
    }
    EXPECT_GT(n, 1) << fault.call << " is never called: does the library go past the shim?";
    EXPECT_LT(n, most_calls);
    if (full) count("disk", "{:<8}{:<7} at each of {} calls", fault.call, fault.what, n - 1);
  }
  print("disk");
}

// From there on every call of the kind fails: the disk is full and stays so.
TEST_F(Disk, StaysBroken) {
  for (const Fault& fault : faults) {
    const bool lasts = fault.reason && (std::strcmp(fault.call, "write") == 0 ||
                                        std::strcmp(fault.call, "fsync") == 0 || std::strcmp(fault.call, "open") == 0);
    if (!lasts || (!full && std::strcmp(fault.what, "ENOSPC") != 0)) continue;
    for (int n = 1; n < most_calls; n += full ? 1 : 5) {
      fs::remove_all(folder_ / "faulty");
      if (!meets(fault, n, "+", {})) break;
      if (HasFailure()) return;
    }
  }
  print("full disk");
}

TEST_F(Disk, FailsWhileARunGoesOn) {
  for (const Fault& fault : faults) {
    if (!full && !(std::strcmp(fault.call, "any") == 0 || std::strcmp(fault.call, "read") == 0)) continue;
    for (int n = 1; n < most_calls; n += full ? 1 : 3) {
      fs::remove_all(folder_ / "faulty");
      fs::copy(folder_ / "whole-20", folder_ / "faulty", fs::copy_options::recursive);
      if (!meets(fault, n, "", {"--resume"})) break;
      if (HasFailure()) return;
    }
  }
  print("resuming");
}

// Samples that go to the disk in several pieces: calls fail and the program is killed between them.
class LargeDisk : public Disk {
 protected:
  LargeDisk() : Disk("600000") {}
};

TEST_F(LargeDisk, FailsBetweenPieces) {
  for (const Fault& fault : {Fault{"write", "ENOSPC", "No space left on device"}, Fault{"write", "short", nullptr},
                             Fault{"write", "kill", nullptr}, Fault{"read", "EIO", "Input/output error"}}) {
    last_step_ = -1;
    int n = 1;
    for (; n < most_calls; n += full ? 1 : 3) {
      fs::remove_all(folder_ / "faulty");
      if (!meets(fault, n, "", {})) break;
      if (HasFailure()) return;
    }
    EXPECT_GT(n, 3 * 3) << "each of three checkpoints has more than two pieces";
  }
  print("large files");
}

}  // namespace
}  // namespace program_test
