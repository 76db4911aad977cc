// SIGKILL at random moments, of runs and of those that go on with them; SIGTERM and SIGINT, once and twice.
#include "reliability/reliability.hpp"

#include <algorithm>

namespace program_test {
namespace {

using Clock = std::chrono::steady_clock;

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Until the file is there; a program may be slow to begin.
void wait_for(const fs::path& file) {
  for (int i = 0; i < 200'000 && !fs::exists(file); ++i) sleep(1e-4);
}

class Moments {
 public:
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  double below(double seconds) { return std::uniform_real_distribution<double>(0, seconds)(random_); }
  Words threads() { return {"--threads", one_in(2) ? "1" : "2"}; }

 private:
  std::mt19937_64 random_{seed_of_moments};
};

// Of the run, or of one of its repeats.
bool has_checkpoint(const fs::path& run) {
  for (const auto& entry : fs::recursive_directory_iterator(run))
    if (entry.path().extension() == ".checkpoint") return true;
  return false;
}

// What a run that was stopped says of itself is in its newest checkpoint.
void expect_state_written(const fs::path& run) {
  const Json summary = json(run / "summary.json");
  EXPECT_TRUE(summary["status"] == "interrupted" || summary["status"] == "completed") << summary["status"];
  EXPECT_EQ(newest_in(run).step(), summary["steps"].get<std::int64_t>());
}

TEST(Survival, OfKillsAtRandomMoments) {
  Moments moments;
  int all_killed = 0, all_resumed = 0, all_from_checkpoint = 0, all_begun = 0, all_runs = 0, all_same = 0;
  for (const Kind& kind : kinds) {
    const Folder folder;
    const Result whole = run(folder, kind.words("whole"));
    ASSERT_EQ(whole.code, 0) << whole.err;
    const int wanted = full ? kind.kills : 1;
    int killed = 0, resumed = 0, from_checkpoint = 0, begun = 0, runs = 0, same = 0;
    while (killed < wanted && runs < 20 * wanted) {
      const std::string name = fmt::format("run-{}", runs++);
      Result result;
      bool first = true;
      do {
        const Words resume = resume_words(folder / name);
        resumed += !resume.empty();
        from_checkpoint += !resume.empty() && has_checkpoint(folder / name);
        begun += resume.empty() && !first;
        Process process({.arguments = kind.words(name, resume + moments.threads()), .folder = folder.path()});
        if (first || moments.one_in(2)) {
          sleep(moments.below(whole.seconds));
          process.send(SIGKILL);
        }
        first = false;
        result = process.wait();
        killed += result.code == 128 + SIGKILL;
      } while (result.code == 128 + SIGKILL);
      EXPECT_EQ(result.code, 0) << kind.name << ": " << result.err;
      const auto is_same = same_run(folder / "whole", folder / name);
      EXPECT_TRUE(is_same) << kind.name;
      EXPECT_EQ(temporaries_in(folder / name), 0) << kind.name;
      same += is_same ? 1 : 0;
      fs::remove_all(folder / name);
    }
    EXPECT_GE(from_checkpoint, wanted / 2) << kind.name << ": it is killed before there is anything to go on from";
    EXPECT_GE(killed, wanted) << kind.name << ": it is too fast to be killed";
    if (full)
      count("kill -9",
            "{:<10} {:>3} killed, {:>3} resumed, {:>3} of them from a checkpoint, {} begun again, {} of {} runs "
            "identical",
            kind.name, killed, resumed, from_checkpoint, begun, same, runs);
    all_killed += killed, all_resumed += resumed, all_from_checkpoint += from_checkpoint, all_begun += begun,
        all_runs += runs, all_same += same;
  }
  count("kill -9",
        "{:<10} {:>3} killed, {:>3} resumed, {:>3} of them from a checkpoint, {} begun again, {} of {} runs identical "
        "(moments: seed {})",
        "all", all_killed, all_resumed, all_from_checkpoint, all_begun, all_same, all_runs, seed_of_moments);
}

class Signal : public testing::TestWithParam<int> {};

TEST_P(Signal, AtRandomMoments) {
  const int signal = GetParam(), wanted = full ? 4 : 1;
  Moments moments;
  int stopped = 0, identical = 0;
  double slowest = 0;
  for (const Kind& kind : kinds) {
    if (!full && kind.name != "implicit" && kind.name != "repeats") continue;
    const Folder folder;
    const Result whole = run(folder, kind.words("whole"));
    ASSERT_EQ(whole.code, 0) << whole.err;
    int landed = 0;
    for (int i = 0; landed < wanted && i < 20 * wanted; ++i) {
      const std::string name = fmt::format("run-{}", i);
      const fs::path place = folder / name;
      Process process({.arguments = kind.words(name), .folder = folder.path()});
      wait_for(place / "config.toml");
      sleep(moments.below(whole.seconds));
      const auto sent = Clock::now();
      process.send(signal);
      const Result result = process.wait();
      if (result.code == 0) continue;  // it had ended
      slowest = std::max(slowest, std::chrono::duration<double>(Clock::now() - sent).count());
      ++landed;
      EXPECT_EQ(result.code, 128 + signal) << kind.name << ": " << result.err;
      EXPECT_EQ(result.err, "") << kind.name;
      if (kind.name != "repeats") expect_state_written(place);
      for (const auto& entry : fs::directory_iterator(place))  // the repeats that were begun
        if (entry.path().filename().string().starts_with("seed-")) expect_state_written(entry.path());
      const Result again = run(folder, kind.words(name, Words{"--resume"} + moments.threads()));
      EXPECT_EQ(again.code, 0) << again.err;
      const auto same = same_run(folder / "whole", place);
      EXPECT_TRUE(same) << kind.name;
      identical += same ? 1 : 0;
      fs::remove_all(place);
    }
    EXPECT_EQ(landed, wanted) << kind.name << ": it is too fast to be stopped";
    stopped += landed;
  }
  EXPECT_LT(slowest, 2.0);
  count(signal == SIGINT ? "SIGINT" : "SIGTERM",
        "{} stopped with code {} and their state written, the slowest after {:.0f} ms; {} of {} resumed to identical "
        "runs",
        stopped, 128 + signal, 1e3 * slowest, identical, stopped);
}

// The disk does not answer, so the first signal cannot be obeyed; the second, more than two seconds later, needs
// nothing of it.
TEST_P(Signal, ASecondOneEndsAtOnce) {
  const int signal = GetParam();
  if (!full && signal != SIGTERM) GTEST_SKIP() << "in the full form only";
  const Folder folder;
  write(folder / "tiny.toml", tiny_experiment);
  ASSERT_EQ(run(folder, tiny_words("whole")).code, 0);
  Process process(
      {.arguments = tiny_words("hung"),
       .folder = folder.path(),
       .environment = with_shim({"FAULT=fsync:hang@5", "FAULT_PATH=hung", "FAULT_HIT=" + (folder / "hit").string()})});
  wait_for(folder / "hit");
  process.send(signal);
  sleep(2.1);
  const auto sent = Clock::now();
  process.send(signal);
  const Result result = process.wait();
  const double seconds = std::chrono::duration<double>(Clock::now() - sent).count();
  EXPECT_EQ(result.code, 128 + signal);
  EXPECT_LT(seconds, 0.5);
  EXPECT_EQ(run(folder, tiny_words("hung", {"--resume"})).code, 0);
  const auto same = same_run(folder / "whole", folder / "hung");
  EXPECT_TRUE(same);
  count(signal == SIGINT ? "SIGINT" : "SIGTERM",
        "twice, while the disk hangs: code {} after {:.0f} ms, {} resumed to an identical run", result.code,
        1e3 * seconds, same ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(Survival, Signal, testing::Values(SIGTERM, SIGINT),
                         [](const auto& signal) { return signal.param == SIGINT ? "SigInt" : "SigTerm"; });

}  // namespace
}  // namespace program_test
