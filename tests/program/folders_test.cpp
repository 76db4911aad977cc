// The folder of a run: what may be replaced and removed there, who may go on with it, and what becomes of a run whose
// folder or files are gone, moved or changed meanwhile.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "program/same_run.hpp"

namespace program_test {
namespace {

const std::string with_data = changed(small_experiment, "[start]", "[reference]\ndata = \"d.csv\"\n\n[start]");

// ---- --overwrite

TEST(Overwrite, RefusesAFolderThatIsNotARun) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const std::vector<std::map<std::string, std::string>> places{
      {{"settings/mine.txt", "mine"}, {"checkpoints/model.pt", "mine"}, {"seed-3/thesis.tex", "mine"}},
      {{"config.toml", "port = 8080\n"}},
      {{"config.toml", small_experiment}, {"theta.npy", "mine"}},
      {{"config.toml", "# mine\nexperiment = \"a\"\ntitle = \"a\"\nseed = 0\n"}},
      {{"seed-0/config.toml", "experiment = \"a\"\ntitle = \"a\"\nseed = 0\n"}, {"notes.txt", "mine"}}};
  for (const auto& files : places) {
    fs::remove_all(folder / "r");
    for (const auto& [name, bytes] : files) write(folder / "r" / name, bytes);
    const auto before = tree(folder.path());
    const Result result = run(folder, {"run", "x.toml", "--output", "r", "--overwrite"});
    EXPECT_EQ(result.code, 73);
    EXPECT_TRUE(is_error_line(result.err, {"r: ", "no run in it"}));
    EXPECT_TRUE(tree(folder.path()) == before) << files.begin()->first;
  }
}

TEST(Overwrite, RemovesOnlyWhatTheProgramWrote) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const Words words{"run", "x.toml", "--quiet", "--no-report", "--output", "r"};
  ASSERT_EQ(run(folder, words + Words{"--repeats", "2"}).code, 0);
  Words mine{"notes.txt",         "checkpoints/model.pt", "seed-0/thesis.tex",
             "seed-9/thesis.tex", "settings/mine.txt",    "seed-1/checkpoints/step-x.pt"};
  for (const std::string& name : mine) write(folder / "r" / name, "mine");
  for (int i = 0; i < 2; ++i) {
    const Result result = run(folder, words + Words{"--overwrite"});
    ASSERT_EQ(result.code, 0) << result.err;
    ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--no-report", "--output", "fresh", "--overwrite"}).code, 0);
    std::map<std::string, std::string> left = tree(folder / "r");
    for (const std::string& name : mine) {
      EXPECT_EQ(left[name], "mine") << name;
      for (fs::path p = name; !p.empty(); p = p.parent_path()) left.erase(p.string());
    }
    left["checkpoints"] = "folder";
    std::map<std::string, std::string> fresh = tree(folder / "fresh");
    for (auto* files : {&left, &fresh})
      for (auto& [name, bytes] : *files) bytes.clear();  // they tell of times
    EXPECT_TRUE(left == fresh) << "something of the old run is left";
  }
}

// It has a configuration alone, as one that was killed at its beginning.
TEST(Overwrite, DoesNotFollowLinks) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const auto words = [](const std::string& output) {
    return Words{"run", "x.toml", "--quiet", "--no-report", "--output", output};
  };
  for (const char* place : {"r", "theirs", "p/a"}) ASSERT_EQ(run(folder, words(place)).code, 0);
  fs::create_symlink("../theirs", folder / "r/seed-7");
  fs::create_symlink("../p", folder / "r/settings");
  fs::remove_all(folder / "r/checkpoints");
  fs::create_symlink("../theirs/checkpoints", folder / "r/checkpoints");
  const auto theirs = tree(folder / "theirs"), other = tree(folder / "p");
  run(folder, words("r") + Words{"--overwrite", "--steps", "0"});
  EXPECT_TRUE(tree(folder / "p") == other);
  for (const auto& [name, bytes] : theirs) EXPECT_TRUE(tree(folder / "theirs")[name] == bytes) << name;
}

TEST(Overwrite, RefusesAFolderWithARunInProgressInIt) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const Words words{"run", "x.toml", "--quiet", "--no-report", "--output", "r"};
  ASSERT_EQ(run(folder, words).code, 0);
  fs::create_directory(folder / "r/seed-9");
  const auto before = tree(folder / "r");
  const implicit_diffusion::io::FolderLock another(folder / "r/seed-9");
  const Result result = run(folder, words + Words{"--overwrite"});
  EXPECT_EQ(result.code, 73);
  EXPECT_TRUE(is_error_line(result.err, {"seed-9"}));
  EXPECT_TRUE(tree(folder / "r") == before);
}

TEST(Overwrite, IsNeededForARunWithoutResults) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  write(folder / "r/config.toml", run(folder, {"run", "x.toml", "--print-config"}).out);
  const auto before = tree(folder.path());
  EXPECT_EQ(run(folder, {"run", "x.toml", "--output", "r"}).code, 73);
  EXPECT_TRUE(tree(folder.path()) == before);
  EXPECT_EQ(run(folder, {"run", "x.toml", "--output", "r", "--overwrite"}).code, 0);
}

// ---- report --output

TEST(ReportOutput, IsNotAFileThatItIsMadeOf) {
  const Folder folder;
  write(folder / "x.toml", with_data);
  write(folder / "d.csv", "1\n2\n");
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "r"}).code, 0);
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "s", "--repeats", "2"}).code, 0);
  fs::create_symlink("r", folder / "link");
  const auto before = tree(folder.path());
  for (const char* name : {"r/theta.npy", "r/config.toml", "r/metrics.csv", "link/samples.npy", "d.csv", "r/../d.csv",
                           "r/checkpoints/step-5.checkpoint", "s/seed-1/summary.json"})
    for (const Words& runs : {Words{"r"}, Words{"r", "s"}}) {
      const Result result = run(folder, Words{"report"} + runs + Words{"--output", name});
      EXPECT_EQ(result.code, 73) << name;
      EXPECT_TRUE(is_error_line(result.err, {name, "--output"}));
      EXPECT_TRUE(tree(folder.path()) == before) << name;
    }
  EXPECT_EQ(run(folder, {"report", "r", "--output", "r/report.html"}).code, 0);
}

TEST(ReportOutput, IsNotAPipeOrADevice) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "r"}).code, 0);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/null", folder / "null");
  for (const char* name : {"pipe", "null"}) {
    const Result result = run(folder, {"report", "r", "--output", name});
    EXPECT_EQ(result.code, 73);
    EXPECT_TRUE(is_error_line(result.err, {name, "a pipe or a device"}));
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_TRUE(fs::is_symlink(folder / "null"));
}

// ---- --resume of something else

TEST(Resume, OfOtherRepeatsIsRefused) {
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  const auto words = [](const std::string& output, const Words& more) {
    return Words{"run", "x.toml", "--quiet", "--no-report", "--output", output} + more;
  };
  ASSERT_EQ(run(folder, words("one", {})).code, 0);
  ASSERT_EQ(run(folder, words("three", {"--repeats", "3"})).code, 0);
  const auto before = tree(folder.path());
  for (const auto& [place, more, reason] :
       std::vector<std::tuple<std::string, Words, std::string>>{{"one", {"--repeats", "3"}, "single run"},
                                                                {"three", {}, "3 seeds"},
                                                                {"three", {"--repeats", "2"}, "seed 2"}}) {
    const Result result = run(folder, words(place, Words{"--resume"} + more));
    EXPECT_EQ(result.code, 2) << reason;
    EXPECT_TRUE(is_error_line(result.err, {"--resume: ", place, reason}));
    EXPECT_TRUE(tree(folder.path()) == before) << reason;
  }
  ASSERT_EQ(run(folder, words("three", {"--resume", "--repeats", "5"})).code, 0);
  ASSERT_EQ(run(folder, words("five", {"--repeats", "5"})).code, 0);
  EXPECT_TRUE(same_run(folder / "five", folder / "three"));
}

TEST(Resume, OfPartsWithFewerStepsIsRefused) {
  const Folder folder;
  const std::vector<std::tuple<Words, Words, Words>> cases{
      {{"run", "finite-state", "--quick", "--set", "timing.dense=[10]", "--set", "timing.banded=[100]"},
       {"--steps", "30"},
       {"--steps", "20"}},
      {{"run", "rates", "--set", "flow.times=[10, 100]"},
       {"--set", "discrete.steps=[100, 1000]"},
       {"--set", "discrete.steps=[100, 200]"}}};
  for (const auto& [words, more, fewer] : cases) {
    fs::remove_all(folder / "r");
    const Words options{"--quiet", "--no-report", "--output", "r"};
    ASSERT_EQ(run(folder, words + options + more).code, 0);
    const auto before = tree(folder.path());
    const Result result = run(folder, words + options + fewer + Words{"--resume"});
    EXPECT_EQ(result.code, 2);
    EXPECT_TRUE(is_error_line(result.err, {"steps: ", "r has done"}));
    EXPECT_TRUE(tree(folder.path()) == before);
  }
}

// The steps of the checkpoints in a folder, and of the last of them.
std::int64_t newest_step(const fs::path& run) {
  std::int64_t newest = -1;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", none))
    if (entry.path().extension() == ".checkpoint")
      newest = std::max<std::int64_t>(newest, std::atoll(entry.path().filename().c_str() + 5));
  return newest;
}

// A run that goes on must leave a folder from which it can go on again.
TEST(Resume, AfterTwoKillsOfASingleRunOfAComparison) {
  const Folder folder;
  const auto words = [](const std::string& output) {
    return Words{"run",
                 "denoising-mixture",
                 "--quick",
                 "--quiet",
                 "--no-report",
                 "--set",
                 "comparison.settings=[]",
                 "--set",
                 "batch=50",
                 "--set",
                 "checkpoint_every=1",
                 "--steps",
                 "60",
                 "--output",
                 output};
  };
  ASSERT_EQ(run(folder, words("whole")).code, 0);
  Words more;
  for (int kill = 0; kill < 2; ++kill) {
    Process process(Launch{.arguments = words("r") + more, .folder = folder.path()});
    const std::int64_t before = newest_step(folder / "r");
    for (int i = 0; i < 20'000 && newest_step(folder / "r") <= before; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().code, 128 + SIGKILL) << "it was faster than the kill";
    more = {"--resume"};
  }
  const Result result = run(folder, words("r") + more);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(same_bytes(folder / "whole", folder / "r", {"theta.npy", "samples.npy", "config.toml"}));
}

TEST(Resume, CountsTheMemoryOfARunThatWasNeverStopped) {
  const Folder folder;
  const std::vector<Words> loops{{"loop=double-queue", "dynamics=ode", "steps_per_sample=32", "slots=32"},
                                 {"loop=queue", "steps_per_sample=32", "slots=8"},
                                 {"loop=queue-cold", "steps_per_sample=32", "slots=8", "keep_every=4"},
                                 {"loop=nested", "steps_per_sample=32", "slots=1"}};
  for (const Words& loop : loops) {
    Words words{
        "run",   "denoising-mixture", "--quick", "--quiet",     "--no-report", "--set", "comparison.settings=[]",
        "--set", "batch=50",          "--set",   "log_every=5", "--output"};
    for (const std::string& key : loop) words.insert(words.begin() + 2, {"--set", key});
    for (const char* name : {"whole", "parts"}) fs::remove_all(folder / name);
    ASSERT_EQ(run(folder, words + Words{"whole", "--steps", "47"}).code, 0);
    ASSERT_EQ(run(folder, words + Words{"parts", "--steps", "38"}).code, 0);
    ASSERT_EQ(run(folder, words + Words{"parts", "--steps", "47", "--resume"}).code, 0);
    EXPECT_EQ(json(folder / "parts/summary.json")["results"][0]["memory_bytes"],
              json(folder / "whole/summary.json")["results"][0]["memory_bytes"])
        << loop.front();
    EXPECT_TRUE(same_bytes(folder / "whole", folder / "parts"));
  }
}

// ---- data

// What is behind link/.. is the system's to say: here real/d.csv, not d.csv.
TEST(Data, IsTheFileThatTheSystemFinds) {
  const Folder folder;
  write(folder / "x.toml", changed(with_data, "d.csv", "link/../d.csv"));
  write(folder / "real/d.csv", "1\n2\n");
  write(folder / "d.csv", "text\n100\n200\n300\n");
  fs::create_directories(folder / "real/below");
  fs::create_directory_symlink("real/below", folder / "link");
  write(folder / "y.toml", changed(with_data, "d.csv", "real/d.csv"));
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "x"}).code, 0);
  ASSERT_EQ(run(folder, {"run", "y.toml", "--quiet", "--output", "y"}).code, 0);
  EXPECT_TRUE(same_bytes(folder / "x", folder / "y"));
  ASSERT_EQ(run(folder, {"run", "x/config.toml", "--quiet", "--output", "again"}).code, 0);
  EXPECT_TRUE(same_bytes(folder / "x", folder / "again"));
}

TEST(Data, ThatCanBeMeantAsNumbersIsNoLineOfNames) {
  const Folder folder;
  write(folder / "x.toml", with_data);
  for (const char* first : {"\u22125", "O.5", "NA"}) {
    write(folder / "d.csv", std::string(first) + "\n2\n");
    const Result result = run(folder, {"run", "x.toml", "--output", "r"});
    EXPECT_EQ(result.code, 65);
    EXPECT_TRUE(is_error_line(result.err, {"d.csv: line 1, column 1: '" + std::string(first) + "' is not a number"}));
  }
  write(folder / "d.csv", "\"1\"\n\"2\"\n");
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "quoted"}).code, 0);
  write(folder / "d.csv", "1\n2\n");
  ASSERT_EQ(run(folder, {"run", "x.toml", "--quiet", "--output", "plain"}).code, 0);
  EXPECT_TRUE(same_bytes(folder / "quoted", folder / "plain"));
}

TEST(Data, ThatHasChangedIsNotResumed) {
  const Folder folder;
  write(folder / "x.toml", with_data);
  write(folder / "d.csv", "1\n2\n");
  const std::string start = changed(changed(small_experiment, "particles = 100", "particles = 2"), "steps = 5",
                                    "steps = 5\nmethod = \"nested\"\nwarm_start = false");
  write(folder / "cold.toml", start + "samples = \"d.csv\"\n");
  for (const auto& [file, key] : {std::pair{"x.toml", "reference.data: "}, {"cold.toml", "start.samples: "}}) {
    write(folder / "d.csv", "1\n2\n");
    const Words words{"run", file, "--quiet", "--no-report", "--output", std::string(file) + ".run"};
    ASSERT_EQ(run(folder, words).code, 0);
    write(folder / "d.csv", "1\n3\n");
    const auto before = tree(folder.path());
    const Result result = run(folder, words + Words{"--steps", "9", "--resume"});
    EXPECT_EQ(result.code, 2);
    EXPECT_TRUE(is_error_line(result.err, {key, "d.csv", "has changed"}));
    EXPECT_TRUE(tree(folder.path()) == before);
    write(folder / "d.csv", "# the same numbers\n1.0\n2.0\n");
    EXPECT_EQ(run(folder, words + Words{"--steps", "9", "--resume"}).code, 0);
  }
}

// 10000 components with means and factors in 12 dimensions: 910,000 numbers of up to 22 letters.
TEST(Data, ThatMakesTheConfigurationTooLongIsRefusedAtOnce) {
  const Folder folder;
  constexpr std::size_t components = 10'000, dimension = 12, parameters = components * (1 + 12 + 78);
  std::vector<double> theta(parameters);
  for (std::size_t j = 0; j < parameters; ++j) theta[j] = 1e-3 / (3.0 + static_cast<double>(j));
  io::write_file(folder / "t.npy", io::npy_bytes(theta, std::array{std::size_t{1}, parameters}));
  std::string centre;
  for (std::size_t j = 0; j < dimension; ++j) centre += j == 0 ? "1.0" : ", 0.0";
  write(folder / "x.toml",
        "particles = 2\nsteps = 0\n[potential]\nkind = \"mixture\"\ncomponents = 10000\ndimension = 12\n"
        "covariance = \"cholesky\"\n[reward]\nkind = \"quadratic\"\ncentre = [" +
            centre + "]\n[start]\ntheta_file = \"t.npy\"\n");
  const Result result = run(folder, {"run", "x.toml", "--output", "r"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(is_error_line(result.err, {"x.toml: config.toml", "bytes", "16777216"}));
  EXPECT_FALSE(fs::exists(folder / "r"));
}

// ---- a folder that goes away

class FolderThatGoesAway : public testing::Test {
 protected:
  // A run that has written a checkpoint, and would take days.
  FolderThatGoesAway() {
    write(folder_ / "x.toml", small_experiment);
    process_.emplace(Launch{.arguments = {"run", "x.toml", "--quiet", "--output", "r", "--steps", "1000000000", "--set",
                                          "checkpoint_every=100", "--set", "log_every=1000000"},
                            .folder = folder_.path()});
    for (int i = 0; i < 20'000 && newest_step(folder_ / "r") < 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void expect_refusal() {
    const Result result = process_->wait(30);
    EXPECT_TRUE(result.code == 73 || result.code == 74) << result.code;
    EXPECT_TRUE(is_error_line(result.err, {": r"}));
    EXPECT_EQ(result.err.find(".tmp"), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }

  Folder folder_;
  std::optional<Process> process_;
};

TEST_F(FolderThatGoesAway, IsNotMadeAnew) {
  fs::rename(folder_ / "r", folder_ / "moved");
  expect_refusal();
  EXPECT_FALSE(fs::exists(folder_ / "r"));
  EXPECT_TRUE(fs::exists(folder_ / "moved/config.toml"));
}

TEST_F(FolderThatGoesAway, LeavesAnotherOfItsNameAlone) {
  write(folder_ / "other/config.toml", run(folder_, {"run", "x.toml", "--print-config"}).out);
  fs::rename(folder_ / "r", folder_ / "moved");
  fs::rename(folder_ / "other", folder_ / "r");
  const auto before = tree(folder_ / "r");
  expect_refusal();
  EXPECT_TRUE(tree(folder_ / "r") == before);
}

// ---- names that the system does not like

TEST(OddNames, AreRefusedWithTheirCode) {
  const Folder folder;
  const std::string name(300, 'a');
  write(folder / "x.toml", small_experiment);
  fs::create_symlink("loop", folder / "loop");
  for (const auto& [words, code] :
       std::vector<std::pair<Words, int>>{{{"run", name}, 2},
                                          {{"run", name + ".toml"}, 66},
                                          {{"run", "loop"}, 66},
                                          {{"run", "loop/x.toml"}, 66},
                                          {{"check", name}, 2},
                                          {{"check", "loop"}, 66},
                                          {{"report", name}, 66},
                                          {{"report", "loop"}, 66},
                                          {{"run", "x.toml", "--output", name}, 73},
                                          {{"run", "x.toml", "--output", "loop"}, 73},
                                          {{"run", "x.toml", "--output", "loop/r", "--overwrite"}, 73},
                                          {{"run", "x.toml", "--output", name, "--resume"}, 66},
                                          {{"run", "x.toml", "--output", "loop", "--resume"}, 66},
                                          {{"run", "x.toml", "--set", "start.theta_file=" + name}, 66},
                                          {{"run", "x.toml", "--set", "start.samples=loop"}, 66}}) {
    const Result result = run(folder, words);
    EXPECT_EQ(result.code, code) << words[0] << " " << words[1];
    EXPECT_TRUE(is_error_line(result.err, {}));
    EXPECT_EQ(result.err.find("unexpected"), std::string::npos) << result.err;
  }
  fs::remove(folder / "loop");
  EXPECT_EQ(names(folder.path()), Words{"x.toml"});
}

TEST(OddNames, AWorkingFolderThatIsGone) {
  const Folder folder;
  const auto go = [&](const std::string& words) {
    const std::string place = folder.path().string();
    const std::string command = "cd " + place + " && mkdir gone && cd gone && rmdir ../gone && " +
                                IMPLICIT_DIFFUSION_PROGRAM + " " + words + " > ../out 2> ../err";
    return WEXITSTATUS(std::system(command.c_str()));
  };
  EXPECT_EQ(go("run ebm-wells --set reference.data=d.csv"), 66);
  EXPECT_TRUE(is_error_line(contents(folder / "err"), {"d.csv: the working folder is gone"}));
  EXPECT_EQ(go("run langevin-reward --set start.theta_file=t.npy"), 66);
  EXPECT_EQ(go("run x.toml"), 66);
  EXPECT_EQ(go("run langevin-reward --steps 2"), 73);
}

// ---- a run that fails before it has a result

TEST(FailedRun, LeavesNoFolderBehind) {
  const Folder folder;
  write(folder / "x.toml",
        changed(changed(small_experiment, "steps = 5", "steps = 2000"), "log_every = 2", "log_every = 1"));
  fs::create_directory(folder / "mine");
  const auto before = tree(folder.path());
  // Neither the configuration nor, with more, the metrics of so many rows can be written.
  for (const rlim_t largest : {rlim_t{100}, rlim_t{5000}})
    for (const Words& more : {Words{}, Words{"--output", "a/b"}, Words{"--output", "mine"}, Words{"--repeats", "2"}}) {
      const Result result = run(Launch{
          .arguments = Words{"run", "x.toml", "--quiet"} + more, .folder = folder.path(), .largest_file = largest});
      EXPECT_EQ(result.code, 74);
      EXPECT_TRUE(is_error_line(result.err, {largest == 100 ? "config.toml: " : "metrics.csv: ", "File too large"}));
      EXPECT_TRUE(tree(folder.path()) == before) << fmt::format("{} {}", largest, fmt::join(more, " "));
    }
}

// A link that leads to a file of the run is no way round the guard, nor is a name through a linked folder.
TEST(Folders, OverwriteDoesNotRemoveWhatALinkLeadsTo) {
  const Folder folder;
  const Words one{"run", "langevin-reward", "--steps", "5", "--quiet", "--no-report", "--output", "r"};
  ASSERT_EQ(run(folder, one).code, 0);
  fs::create_symlink(folder / "r/samples.npy", folder / "mine.npy");
  fs::create_directory_symlink(folder / "r", folder / "other");
  const std::string before = contents(folder / "r/samples.npy");
  for (const char* name : {"mine.npy", "other/samples.npy", "r/samples.npy"}) {
    const Result result = run(folder, one + Words{"--overwrite", "--set", std::string("start.samples=") + name});
    EXPECT_EQ(result.code, 2) << name;
    EXPECT_TRUE(is_error_line(result.err, {"start.samples: ", "would be removed by --overwrite"})) << result.err;
    EXPECT_EQ(contents(folder / "r/samples.npy"), before);
  }
}

// A file of points has a log-likelihood and none of the other figures.
TEST(Folders, RepeatsOnDataHaveATableWithTheirFigure) {
  const Folder folder;
  std::string points;
  for (int i = 0; i < 50; ++i) points += std::to_string(i % 7) + "\n";
  write(folder / "points.csv", points);
  write(folder / "x.toml",
        "steps = 20\nstep_size = 0.1\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0]]\n[reference]\ndata = "
        "\"points.csv\"\n[start]\ntheta = [0.0]\n");
  const Result result = run(folder, {"run", "x.toml", "--repeats", "2", "--quiet", "--output", "r"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("data log-likelihood"), std::string::npos) << result.out;
  const double figure = json(folder / "r/seed-0/summary.json")["data_log_likelihood"].get<double>();
  EXPECT_NE(result.out.find(fmt::format("{:.4f}", figure)), std::string::npos) << result.out;
}

}  // namespace
}  // namespace program_test
