// Runs that were stopped, killed or damaged, and go on: they end with the bytes of one that was never stopped.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <string>

#include "implicit_diffusion/io/checkpoint.hpp"
#include "io/sections.hpp"
#include "program/same_run.hpp"

namespace program_test {
namespace {

// A run that takes a few tenths of a second, with checkpoints on the way.
Words run_words(const std::string& output, const Words& more = {}) {
  Words words{"run",     "langevin-reward", "--steps",  "8000", "--set", "checkpoint_every=100",
              "--quiet", "--no-report",     "--output", output};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Until the file is there; a program may be slow to begin.
void wait_for(const fs::path& file) {
  for (int i = 0; i < 20'000 && !fs::exists(file); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Resume, AfterAKillAtAnyMoment) {
  const Folder folder;
  ASSERT_EQ(run(folder, run_words("whole")).code, 0);
  std::mt19937 random(7);
  int killed = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "killed-" + std::to_string(i);
    {
      Process process({.arguments = run_words(name), .folder = folder.path()});
      wait_for(folder / name / "config.toml");
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
      process.send(SIGKILL);
      killed += process.wait().code == 128 + SIGKILL;
    }
    const Result result = run(folder, run_words(name, {"--resume"}));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(same_run(folder / "whole", folder / name));
  }
  EXPECT_GT(killed, 0);
}

TEST(Resume, AfterASignal) {
  const Folder folder;
  ASSERT_EQ(run(folder, run_words("whole")).code, 0);
  int interrupted = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = "stopped-" + std::to_string(signal);
    Process process({.arguments = run_words(name), .folder = folder.path()});
    wait_for(folder / name / "checkpoints");
    process.send(signal);
    const int code = process.wait().code;
    if (code == 0) continue;  // it was faster
    ASSERT_EQ(code, 128 + signal);
    ++interrupted;
    EXPECT_EQ(json(folder / name / "summary.json")["status"], "interrupted");
    EXPECT_EQ(run(folder, run_words(name, {"--resume", "--threads", "2"})).code, 0);
    Json summary = json(folder / name / "summary.json");
    EXPECT_EQ(summary["status"], "completed");
    EXPECT_EQ(io::read_file(folder / "whole/theta.npy"), io::read_file(folder / name / "theta.npy"));
    EXPECT_EQ(io::read_file(folder / "whole/samples.npy"), io::read_file(folder / name / "samples.npy"));
  }
  EXPECT_GT(interrupted, 0);
}

// A run that began again would end with the same bytes too. Here it could not: the samples it began from are gone.
TEST(Resume, DoesNotBeginAgain) {
  const Folder folder;
  const auto samples = [&](const char* coordinate) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += std::string(coordinate) + "," + std::to_string(i % 7) + "\n";
    write(folder / "start.csv", text);
  };
  const auto words = [](const std::string& output, const std::string& steps, const Words& more = {}) {
    Words w{"run",         "langevin-reward", "--set", "start.samples=\"start.csv\"", "--steps", steps,
            "--no-report", "--output",        output};
    w.insert(w.end(), more.begin(), more.end());
    return w;
  };
  samples("1");
  ASSERT_EQ(run(folder, words("whole", "200")).code, 0);
  ASSERT_EQ(run(folder, words("parts", "70")).code, 0);
  samples("-3");
  ASSERT_EQ(run(folder, words("other", "200")).code, 0);
  const Result result = run(folder, words("parts", "200", {"--resume"}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.err.find("continues at step 70"), std::string::npos) << result.err;
  EXPECT_TRUE(same_run(folder / "whole", folder / "parts"));
  EXPECT_NE(io::read_file(folder / "whole/theta.npy"), io::read_file(folder / "other/theta.npy"));
}

// With Adam's memory, a nested loop, references, thresholds: what each of them remembers is in the checkpoint.
TEST(Resume, WithMoreStepsForEveryMethod) {
  const Folder folder;
  const std::vector<Words> problems{{"langevin-reward"},
                                    {"langevin-reward", "--set", "optimizer=adam", "--set", "order=authors"},
                                    {"langevin-reward", "--set", "method=nested", "--set", "inner_steps=3"},
                                    {"langevin-reward", "--set", "method=nested", "--set", "warm_start=false"},
                                    {"langevin-reward", "--set", "method=unrolled"},
                                    {"langevin-reward", "--set", "method=guided"},
                                    {"langevin-reward", "--set", "method=langevin-optimised"},
                                    {"ebm-wells"},
                                    {"ebm-mixture"}};
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto words = [&](const std::string& output, const std::string& steps, const Words& more = {}) {
      Words w{"run"};
      w.insert(w.end(), problems[i].begin(), problems[i].end());
      w.insert(w.end(), {"--steps", steps, "--quiet", "--no-report", "--output", output});
      w.insert(w.end(), more.begin(), more.end());
      return w;
    };
    const std::string whole = "whole-" + std::to_string(i), parts = "parts-" + std::to_string(i);
    ASSERT_EQ(run(folder, words(whole, "240")).code, 0) << i;
    ASSERT_EQ(run(folder, words(parts, "3")).code, 0) << i;
    ASSERT_EQ(run(folder, words(parts, "117", {"--resume"})).code, 0) << i;
    const Result result = run(folder, words(parts, "240", {"--resume"}));
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(same_run(folder / whole, folder / parts));
  }
}

TEST(Resume, OfRepeats) {
  const Folder folder;
  const Words words{"run", "langevin-reward", "--repeats", "3", "--quiet", "--no-report"};
  const auto with = [&](const Words& more) {
    Words w = words;
    w.insert(w.end(), more.begin(), more.end());
    return w;
  };
  ASSERT_EQ(run(folder, with({"--steps", "200", "--output", "whole"})).code, 0);
  ASSERT_EQ(run(folder, with({"--steps", "90", "--output", "parts"})).code, 0);
  fs::remove_all(folder / "parts/seed-2");  // never begun
  ASSERT_EQ(run(folder, with({"--steps", "200", "--output", "parts", "--resume"})).code, 0);
  for (const char* seed : {"seed-0", "seed-1", "seed-2"})
    EXPECT_TRUE(same_run(folder / "whole" / seed, folder / "parts" / seed));
}

TEST(Resume, PassesDamageByAndSaysSo) {
  const Folder folder;
  ASSERT_EQ(run(folder, run_words("whole")).code, 0);
  const fs::path checkpoints = folder / "whole/checkpoints";
  const std::string theta = io::read_file(folder / "whole/theta.npy");
  std::string bytes = io::read_file(checkpoints / "step-8000.checkpoint");
  bytes[bytes.size() / 2] ^= 1;
  io::write_file(checkpoints / "step-8000.checkpoint", bytes);
  const Result result = run(folder, run_words("whole", {"--resume"}));
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.err.find("step-8000.checkpoint"), std::string::npos) << result.err;
  EXPECT_EQ(io::read_file(folder / "whole/theta.npy"), theta);

  for (const auto& e : fs::directory_iterator(checkpoints)) io::write_file(e.path(), "damaged");
  const Result none = run(folder, run_words("whole", {"--resume"}));
  EXPECT_EQ(none.code, 65);
  EXPECT_NE(none.err.find("none of its 2 checkpoints is whole"), std::string::npos) << none.err;
  EXPECT_EQ(io::read_file(folder / "whole/theta.npy"), theta) << "what was there is left alone";
}

TEST(Resume, OfWhatCannotGoOn) {
  const Folder folder;
  EXPECT_EQ(run(folder, run_words("nowhere", {"--resume"})).code, 66);
  fs::create_directory(folder / "empty");
  EXPECT_EQ(run(folder, run_words("empty", {"--resume"})).code, 66);

  ASSERT_EQ(run(folder, run_words("r")).code, 0);
  const Result other = run(folder, run_words("r", {"--resume", "--set", "learning_rate=0.2"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(is_error_line(other.err, {"--resume", "config.toml", "another configuration"}));
  const Result fewer = run(folder, {"run", "langevin-reward", "--steps", "10", "--set", "checkpoint_every=100",
                                    "--quiet", "--output", "r", "--resume"});
  EXPECT_EQ(fewer.code, 2);
  EXPECT_TRUE(is_error_line(fewer.err, {"steps", "8000"}));

  fs::remove_all(folder / "r/checkpoints");
  const Result none = run(folder, {"run", "langevin-reward", "--steps", "8000", "--set", "checkpoint_every=100",
                                   "--no-report", "--output", "r", "--resume"});
  EXPECT_EQ(none.code, 0);
  EXPECT_NE(none.err.find("the run starts at step 0"), std::string::npos) << none.err;
}

// ---- experiments that are made of parts, and keep those that are finished

struct Parts {
  const char* name;
  Words words;
  std::size_t parts;
  const char* tampered;  // one of them, and a number of it that is in the summary
  std::size_t number;
};
void PrintTo(const Parts& p, std::ostream* out) { *out << p.name; }
class PartsOf : public testing::TestWithParam<Parts> {
 protected:
  Result go(const std::string& output, const Words& more = {}) const {
    return run(folder, Words{"run"} + GetParam().words + Words{"--no-report", "--output", output} + more);
  }
  std::map<std::string, std::string> newest(const std::string& output) const {
    return io::sections_of(
        io::newest_checkpoint(folder / output / "checkpoints", [](const std::string& why) { FAIL() << why; }).value());
  }
  // All that is not a time.
  static Json figures(const fs::path& run) {
    Json s = json(run / "summary.json");
    for (const char* key : {"seconds", "threads"}) s.erase(key);
    for (Json& row : s["results"]) row.erase("seconds");
    return s;
  }
  testing::AssertionResult same(const std::string& a, const std::string& b) const {
    if (figures(folder / a) != figures(folder / b))
      return testing::AssertionFailure() << figures(folder / a) << " and " << figures(folder / b);
    Words files{"config.toml"};
    for (const char* name : {"theta.npy", "samples.npy"})
      if (fs::exists(folder / a / name)) files.push_back(name);
    return same_bytes(folder / a, folder / b, files);
  }
  const Folder folder;
};

// A run that began anew would come to the same figures. So one that is kept is changed, and must be the only one that
// is.
TEST_P(PartsOf, AreKeptWhereTheyAreFinished) {
  ASSERT_EQ(go("whole").code, 0);
  ASSERT_EQ(go("parts").code, 0);
  const auto count = static_cast<std::int64_t>(GetParam().parts);
  std::map<std::string, std::string> sections = newest("parts");
  EXPECT_EQ(std::ranges::count(sections.at("parts"), '\n'), count);
  const double other_number = 12345.5;
  const std::size_t place = GetParam().number * sizeof other_number;
  sections.at(GetParam().tampered).replace(place, sizeof other_number, io::bytes_of(std::span(&other_number, 1)));
  io::save_checkpoint(folder / "parts/checkpoints", count, io::writer_of(sections));
  const Result kept = go("parts", {"--resume"});
  ASSERT_EQ(kept.code, 0) << kept.err;
  EXPECT_NE(kept.err.find(fmt::format("continues with {} parts done", count)), std::string::npos) << kept.err;
  const std::string changed = contents(folder / "parts/summary.json");
  EXPECT_NE(changed.find("12345.5"), std::string::npos) << changed;
  EXPECT_FALSE(same("whole", "parts"));

  // One that is not there is done, and only that.
  std::string& names = sections.at("parts");
  const std::string line = std::string(GetParam().tampered) + "\n";
  names.erase(names.find(line), line.size());
  io::save_checkpoint(folder / "parts/checkpoints", count, io::writer_of(sections));
  const Result missing = go("parts", {"--resume"});
  ASSERT_EQ(missing.code, 0) << missing.err;
  EXPECT_NE(missing.err.find(fmt::format("continues with {} parts done", count - 1)), std::string::npos) << missing.err;
  EXPECT_TRUE(same("whole", "parts"));

  // Nothing that does not belong here is taken.
  sections.at("configuration") = "another";
  io::save_checkpoint(folder / "parts/checkpoints", count, io::writer_of(sections));
  const Result other = go("parts", {"--resume", "--quiet"});
  EXPECT_EQ(other.code, 65);
  EXPECT_TRUE(is_error_line(other.err, {"configuration", "not that of this run"}));
}

TEST_P(PartsOf, SurviveAKillAtAnyMoment) {
  const Result whole = go("whole", {"--threads", "1"});
  ASSERT_EQ(whole.code, 0);
  std::mt19937 random(11);
  int killed = 0, kept = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "killed-" + std::to_string(i);
    {
      Process process({.arguments = Words{"run"} + GetParam().words + Words{"--no-report", "--output", name},
                       .folder = folder.path()});
      wait_for(folder / name / "config.toml");
      // At any moment, or at one when there is something to keep.
      // Names alone are asked for: a file of a running program may be gone when it is looked at.
      const auto nothing_kept = [&] {
        std::error_code none;
        for (const auto& entry : fs::directory_iterator(folder / name / "checkpoints", none))
          if (entry.path().extension() == ".checkpoint") return false;
        return true;
      };
      for (int k = 0; i % 2 && k < 20'000 && nothing_kept(); ++k)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(
          std::chrono::duration<double>(whole.seconds * static_cast<double>(random() % 5) / 10));
      process.send(SIGKILL);
      killed += process.wait().code == 128 + SIGKILL;
    }
    const Result result = go(name, {"--resume", "--threads", i % 2 ? "1" : "2"});
    ASSERT_EQ(result.code, 0) << result.err;
    kept += result.err.find(" parts done") != std::string::npos;
    EXPECT_TRUE(same("whole", name));
  }
  EXPECT_GT(killed, 0);
  EXPECT_GT(kept, 0);
}

// Horizons may be others: curves are then made for these.
TEST(Resume, OfRatesWithOtherSteps) {
  const Folder folder;
  const auto go = [&](const std::string& output, const char* steps, const Words& more = {}) {
    return run(folder, Words{"run", "rates", "--set", "flow.times=[10, 100]", "--set", steps, "--quiet", "--no-report",
                             "--output", output} +
                           more)
        .code;
  };
  ASSERT_EQ(go("whole", "discrete.steps=[100, 3000]"), 0);
  ASSERT_EQ(go("parts", "discrete.steps=[100, 1000]"), 0);
  ASSERT_EQ(go("parts", "discrete.steps=[100, 3000]", {"--resume"}), 0);
  EXPECT_EQ(json(folder / "parts/summary.json")["results"], json(folder / "whole/summary.json")["results"]);
}

INSTANTIATE_TEST_SUITE_P(
    Resume, PartsOf,
    testing::Values(Parts{"DenoisingGaussian",
                          {"denoising-gaussian", "--set", "horizons=[0.5, 1, 1.5]", "--set", "repeats=16"},
                          15,
                          "eta-2.horizon-1",
                          1},
                    Parts{"Rates",
                          {"rates", "--set", "flow.times=[10, 100]", "--set", "discrete.steps=[100, 30000]"},
                          3,
                          "discrete-0.5",
                          1},
                    // 11 rows of steps, of seconds and of rewards: the last of these is in the summary.
                    Parts{"FiniteState",
                          {"finite-state", "--quick", "--set", "log_every=20", "--set", "steps=200", "--set",
                           "timing.dense=[10]", "--set", "timing.banded=[100]"},
                          3,
                          "gibbs",
                          32}),
    [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace program_test
