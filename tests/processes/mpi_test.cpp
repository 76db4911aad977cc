// The program on several processes, started by mpirun: the files of one process, byte for byte; errors, signals and
// killed processes.
#include "program/run_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>

namespace program_test {
namespace {

struct Job {
  std::size_t ranks = 2, threads = 1;
};

// More ranks than there are processors, as root: what mpirun must be told on a machine for tests.
Launch launch_of(const Job& job, const fs::path& folder, const Words& words,
                 const std::vector<std::string>& environment = {}) {
  const Words run = words + Words{"--threads", std::to_string(job.threads)};
  if (job.ranks == 1) return {.arguments = run, .folder = folder, .environment = environment};
  const Words mpirun{"-n",   std::to_string(job.ranks), "--oversubscribe", "--bind-to",
                     "none", IMPLICIT_DIFFUSION_PROGRAM};
  std::vector<std::string> variables = environment;
  // A child of a test that was itself started by a launcher would be taken for one of its processes.
  variables.insert(variables.end(), {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
  return {.arguments = mpirun + run, .folder = folder, .environment = variables, .program = IMPLICIT_DIFFUSION_MPIRUN};
}

Result run_job(const Job& job, const fs::path& folder, const Words& words,
               const std::vector<std::string>& environment = {}) {
  return Process(launch_of(job, folder, words, environment)).wait();
}

// Processes that are each given words of their own.
Launch apart(const fs::path& folder, const std::vector<Words>& each) {
  Launch job = launch_of({2, 1}, folder, {});
  job.arguments = {"--oversubscribe", "--bind-to", "none"};
  for (const Words& words : each)
    job.arguments = job.arguments + Words{"-n", "1", IMPLICIT_DIFFUSION_PROGRAM} + words + Words{":"};
  job.arguments.pop_back();
  return job;
}

// metrics.csv without the seconds, and what is measured by them.
std::string without_seconds(const fs::path& file) {
  std::string kept;
  std::istringstream text(io::read_file(file));
  std::vector<bool> timed;
  for (std::string line; std::getline(text, line);) {
    const bool header = timed.empty();
    std::size_t column = 0;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) {
      if (header) timed.push_back(cell == "seconds" || cell.ends_with("_per_second"));
      if (!timed[column++]) kept += cell + ",";
    }
    kept += "\n";
  }
  return kept;
}

// summary.json without what differs between runs of the same bits.
Json summary_of(const fs::path& folder) {
  Json s = Json::parse(io::read_file(folder / "summary.json"));
  const auto strip = [](auto& self, Json& j) -> void {
    for (const char* key : {"seconds", "threads", "processes", "peak_memory_bytes", "images_per_second"})
      if (j.is_object()) j.erase(key);
    for (Json& inner : j)
      if (inner.is_structured()) self(self, inner);
  };
  strip(strip, s);
  return s;
}

// What must be the same in the folders of two runs; what is in neither is.
void expect_same_files(const fs::path& one, const fs::path& other, const std::string& what) {
  for (const char* name :
       {"theta.npy", "samples.npy", "snapshots.npy", "config.toml", "energy.npy", "model/model.safetensors",
        "model/unet/diffusion_pytorch_model.safetensors", "model-best/unet/diffusion_pytorch_model.safetensors",
        "classifier/classifier.safetensors", "pictures/after.png"}) {
    ASSERT_EQ(fs::exists(one / name), fs::exists(other / name)) << what << ": " << name;
    if (!fs::exists(one / name)) continue;
    EXPECT_EQ(io::read_file(one / name), io::read_file(other / name)) << what << ": " << name;
  }
  EXPECT_EQ(summary_of(one), summary_of(other)) << what;
  ASSERT_EQ(fs::exists(one / "metrics.csv"), fs::exists(other / "metrics.csv")) << what;
  if (!fs::exists(one / "metrics.csv")) return;
  EXPECT_EQ(without_seconds(one / "metrics.csv"), without_seconds(other / "metrics.csv")) << what;
}

std::string name_of(const Job& job) { return std::to_string(job.ranks) + "x" + std::to_string(job.threads); }

const std::vector<Job> all_jobs{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 1}, {4, 1}};
const std::vector<Job> some_jobs{{1, 2}, {2, 1}, {3, 1}};

// Runs an experiment on each, and half of it on one and the rest on the next.
void expect_the_same(const Words& words, std::int64_t steps, const std::vector<Job>& jobs, bool from_each) {
  const Folder folder;
  const auto run = [&](const Job& job, const std::string& output, std::int64_t until, bool resume) {
    const Result r = run_job(job, folder.path(),
                             Words{"run"} + words +
                                 Words{"--steps", std::to_string(until), "--output", output, "--quiet", "--no-report"} +
                                 (resume ? Words{"--resume"} : Words{}));
    ASSERT_EQ(r.code, 0) << name_of(job) << ": " << r.err;
  };
  run({1, 1}, "one", steps, false);
  for (const Job& job : jobs) {
    run(job, name_of(job), steps, false);
    expect_same_files(folder.path() / "one", folder.path() / name_of(job), words[0] + " on " + name_of(job));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string half = "half-" + name_of(jobs[i]);
    run(jobs[i], half, steps / 2, false);
    for (std::size_t k = from_each ? 0 : (i + 1) % jobs.size(); k < jobs.size(); ++k) {
      if (from_each ? k == i : k != (i + 1) % jobs.size()) continue;
      const std::string output = half + "-then-" + name_of(jobs[k]);
      fs::copy(folder.path() / half, folder.path() / output, fs::copy_options::recursive);
      run(jobs[k], output, steps, true);
      expect_same_files(folder.path() / "one", folder.path() / output, words[0] + " " + output);
    }
    if (!from_each) break;
  }
}

// 1,500 particles are six blocks, the last one not full.
const Words reward{"langevin-reward", "--set", "particles=1500", "--set", "snapshots=[0,7]"};

TEST(Mpi, TheRewardExperimentHasTheSameBytesFromAnyJob) { expect_the_same(reward, 60, all_jobs, true); }

TEST(Mpi, EveryMethodHasTheSameBytes) {
  for (const char* method : {"langevin-initial", "guided", "langevin-optimised", "nested", "unrolled"})
    expect_the_same(reward + Words{"--set", std::string("method=") + method}, 40, some_jobs, false);
  expect_the_same(reward + Words{"--set", "order=authors"}, 40, {{3, 1}}, false);
}

TEST(Mpi, EnergyBasedModelsHaveTheSameBytes) {
  for (const char* name : {"ebm-wells", "ebm-mixture"})
    expect_the_same({name, "--set", "particles=1500"}, 40, some_jobs, false);
}

const Words mixture{"denoising-mixture",
                    "--set",
                    "comparison.settings=[]",
                    "--set",
                    "batch=1100",
                    "--set",
                    "steps_per_sample=16",
                    "--set",
                    "slots=4"};

TEST(Mpi, TheDenoisingMixtureHasTheSameBytesFromAnyJob) { expect_the_same(mixture, 16, all_jobs, true); }

TEST(Mpi, EveryLoopOfDenoisingHasTheSameBytes) {
  expect_the_same(mixture + Words{"--set", "loop=nested", "--set", "slots=1"}, 16, some_jobs, false);
  expect_the_same(mixture + Words{"--set", "loop=queue-cold"}, 16, some_jobs, false);
  expect_the_same(mixture + Words{"--set", "keep_every=3"}, 16, some_jobs, false);
  expect_the_same(mixture + Words{"--set", "loop=double-queue", "--set", "dynamics=ode", "--set", "slots=16"}, 40,
                  some_jobs, false);
}

TEST(Mpi, StatesOfAChainHaveTheSameBytes) {
  expect_the_same({"finite-state", "--set", "states=60", "--set", "width=6", "--set", "particles=1500", "--set",
                   "timing.dense=[10]", "--set", "timing.banded=[100]"},
                  40, some_jobs, false);
}

#ifdef IMPLICIT_DIFFUSION_NETWORKS

// Seven shards, the last one not full; references in five. A narrow law, which is quick to integrate.
const Words energy{"ebm-network",       "--set", "network.widths=[8,8]", "--set", "network.confinement=1", "--set",
                   "particles=1540",    "--set", "target.batch=1030",    "--set", "log_every=20",          "--set",
                   "checkpoint_every=5"};

TEST(Mpi, ANeuralEnergyHasTheSameBytesFromAnyJob) { expect_the_same(energy, 20, all_jobs, true); }

// A model of images of 8 x 8, trained on forty of them and finetuned; then what is made of it.
class MpiImages : public testing::Test {
 protected:
  void SetUp() override {
    std::string images("\0\0\x08\x03\0\0\0\x28\0\0\0\x08\0\0\0\x08", 16), labels("\0\0\x08\x01\0\0\0\x28", 8);
    for (int i = 0; i < 40; ++i) {
      labels += static_cast<char>(i % 2);
      for (int k = 0; k < 64; ++k) images += static_cast<char>((i % 2 ? k / 8 : k % 8) % 4 < 2 ? 200 + i : 10);
    }
    write(folder.path() / "data" / "train-images-idx3-ubyte", images);
    write(folder.path() / "data" / "train-labels-idx1-ubyte", labels);
    write(folder.path() / "tiny.toml", R"(kind = "images"
checkpoint_every = 2
[data]
folder = "data"
shape = [1, 8, 8]
classes = 2
conditional = true
[network]
channels = [8, 8]
attention = [4]
groups = 4
head_width = 4
[classifier]
steps = 4
batch = 9
shard = 4
features = 8
[pretrain]
steps = 6
batch = 5
shard = 2
warm_up = 2
log_every = 2
sample_every = 4
[finetune]
lambda = 5.0
steps_per_sample = 4
slots = 2
batch = 5
shard = 2
steps = 4
warm_up = 1
learning_rate = 0.001
evaluate_every = 2
strip = 4
samples = 9
[sweep]
lambda = [5.0]
)");
  }
  void good(const Job& job, const Words& words) {
    const Result r = run_job(job, folder.path(), words);
    ASSERT_EQ(r.code, 0) << name_of(job) << " " << words[0] << ": " << r.err;
  }
  fs::path at(const std::string& name) const { return folder.path() / name; }
  Folder folder;
};

TEST_F(MpiImages, StagesHaveTheSameBytes) {
  const Words quiet{"--quiet", "--no-report"};
  for (const Job& job : std::vector<Job>{{1, 1}, {1, 2}, {2, 1}, {3, 1}}) {
    const std::string name = name_of(job);
    good(job, Words{"pretrain", "tiny.toml", "--classifier", "--output", "c-" + name} + quiet);
    good(job, Words{"pretrain", "tiny.toml", "--output", "p-" + name} + quiet);
    const Words finetune{"finetune", "tiny.toml", "--model", "p-1x1/model", "--classifier", "c-1x1/classifier"};
    good(job, finetune + Words{"--output", "f-" + name} + quiet);
    for (const char* stage : {"c-", "p-", "f-"})
      expect_same_files(at(stage + std::string("1x1")), at(stage + name), stage + name);
    good(job, {"sample", "p-1x1/model", "--count", "21", "--steps", "4", "--output", "s-" + name});
    EXPECT_EQ(io::read_file(at("s-1x1/samples.npy")), io::read_file(at("s-" + name + "/samples.npy"))) << name;
    good(job, {"evaluate", "f-1x1/model", "--base", "p-1x1/model", "--data", "data", "--classifier", "c-1x1/classifier",
               "--count", "21", "--steps", "4", "--output", "e-" + name + ".json"});
    EXPECT_EQ(io::read_file(at("e-1x1.json")), io::read_file(at("e-" + name + ".json"))) << name;
  }
}

// Stopped on some, continued on others; and all stages in one.
TEST_F(MpiImages, RunsGoOnWithAnotherNumber) {
  const Words all{"run", "tiny.toml", "--quiet", "--no-report", "--output"};
  good({1, 1}, all + Words{"one"});
  good({2, 1}, all + Words{"two"});
  const auto expect_same_stages = [&](const std::string& what) {
    for (const char* stage : {"settings/classifier", "settings/pretrain", "settings/finetune-5"})
      expect_same_files(at("one") / stage, at("two") / stage, what + stage);
  };
  expect_same_stages("");
  // The last checkpoints of two stages go: they are resumed from the ones before.
  for (const auto& [stage, last] : {std::pair{"settings/pretrain", 6}, {"settings/finetune-5", 4}}) {
    fs::remove(at("two") / stage / "summary.json");
    const fs::path checkpoints = at("two") / stage / "checkpoints";
    ASSERT_TRUE(fs::remove(checkpoints / ("step-" + std::to_string(last) + ".checkpoint")));
    ASSERT_TRUE(fs::exists(checkpoints / ("step-" + std::to_string(last - 2) + ".checkpoint")));
  }
  good({3, 1}, all + Words{"two", "--resume"});
  expect_same_stages("resumed ");
}

#endif

// Every run of a folder with many: itself, and those in it.
void expect_same_trees(const fs::path& one, const fs::path& other, const std::string& what) {
  std::size_t runs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(one)) {
    if (entry.path().filename() != "summary.json") continue;
    const fs::path run = entry.path().parent_path();
    ++runs;
    ASSERT_TRUE(fs::exists(other / fs::relative(run, one) / "summary.json")) << what << ": " << run;
    expect_same_files(run, other / fs::relative(run, one), what + ": " + run.string());
  }
  EXPECT_GT(runs, 0U);
}

// Whole runs are handed to processes: repeats, settings, and queues of a solvable diffusion. What one job has made,
// another one goes on with.
TEST(Mpi, ManyRunsHaveTheSameBytes) {
  for (const Words& words :
       {reward + Words{"--steps", "30", "--repeats", "5"},
        Words{"langevin-comparison", "--quick", "--steps", "20", "--set", "particles=300", "--repeats", "2"},
        Words{"denoising-mixture", "--steps", "12", "--set", "batch=300", "--set", "steps_per_sample=64", "--set",
              "comparison.settings=[\"slots=4\", \"slots=1\", \"loop=queue-cold slots=4\"]"},
        Words{"denoising-gaussian", "--set", "horizons=[1.0, 2.0]", "--set", "etas=[0.1]", "--set", "path_horizon=1.0",
              "--set", "repeats=5"},
        Words{"rates", "--set", "discrete.steps=[100, 200]", "--set", "flow.times=[10.0, 20.0]"}}) {
    const Folder folder;
    const auto run = [&](const Job& job, const std::string& output, const Words& more = {}) {
      const Result r = run_job(job, folder.path(),
                               Words{"run"} + words + Words{"--output", output, "--quiet", "--no-report"} + more);
      ASSERT_EQ(r.code, 0) << name_of(job) << ": " << r.err;
    };
    run({1, 1}, "one");
    for (const Job& job : some_jobs) {
      run(job, name_of(job));
      expect_same_trees(folder.path() / "one", folder.path() / name_of(job), words[0] + " on " + name_of(job));
    }
    run({2, 1}, "3x1", {"--resume"});
    expect_same_trees(folder.path() / "one", folder.path() / "3x1", words[0] + " resumed");
  }
}

// Our lines on stderr; launchers add their own.
std::vector<std::string> our_lines(const std::string& err) {
  std::vector<std::string> found;
  std::istringstream text(err);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("implicit-diffusion: ")) found.push_back(line);
  return found;
}

TEST(Mpi, AnErrorIsOneLineAndItsExitCode) {
  const Folder folder;
  fs::create_directory(folder.path() / "full");
  std::ofstream(folder.path() / "full" / "mine.txt") << "mine";
  std::ofstream(folder.path() / "bad.npy") << "no array";
  struct Row {
    Words words;
    int code;
    const char* says;
  };
  for (const Row& row :
       {Row{{"run", "nothing"}, 2, "no experiment is called"}, Row{{"run", "missing.toml"}, 66, "missing.toml"},
        Row{{"run", "langevin-reward", "--set", "start.samples=bad.npy"}, 65, "bad.npy"},
        Row{{"run", "langevin-reward", "--output", "full"}, 73, "full"},
        Row{{"run", "langevin-reward", "--resume", "--output", "none"}, 66, "none"},
        Row{{"run", "langevin-reward", "--set", "step_size=100", "--output", "diverged"}, 70, "diverged at step"}}) {
    const Result r = run_job({3, 1}, folder.path(), row.words + Words{"--quiet", "--no-report"});
    EXPECT_EQ(r.code, row.code) << r.err;
    const auto lines = our_lines(r.err);
    ASSERT_EQ(lines.size(), 1U) << r.err;
    EXPECT_NE(lines[0].find(row.says), std::string::npos) << lines[0];
  }
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
}

// The processes of ours that work in a folder.
std::vector<pid_t> ranks_in(const fs::path& folder) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code gone;
    if (fs::read_symlink(entry.path() / "cwd", gone) != fs::canonical(folder) || gone) continue;
    const fs::path program = fs::canonical(IMPLICIT_DIFFUSION_PROGRAM),
                   exe = fs::read_symlink(entry.path() / "exe", gone);
    if (exe == program || exe == program.string() + "-networks") found.push_back(std::stoi(name));
  }
  std::ranges::sort(found);
  return found;
}

// A disk that is full, for the one process that writes: all end.
TEST(Mpi, AFullDiskIsOneLineAndItsExitCode) {
  const Folder folder;
  std::vector<Words> runs{reward + Words{"--set", "checkpoint_every=10"}};
#ifdef IMPLICIT_DIFFUSION_NETWORKS
  runs.push_back(energy);
#endif
  for (const Words& words : runs) {
    const Result r = run_job(
        {3, 1}, folder.path(),
        Words{"run"} + words + Words{"--steps", "40", "--quiet", "--no-report", "--output", "full-disk-" + words[0]},
        {"LD_PRELOAD=" IMPLICIT_DIFFUSION_FAULT, "FAULT=write:ENOSPC@3+", "FAULT_PATH=full-disk"});
    EXPECT_EQ(r.code, 74) << r.err;
    const auto lines = our_lines(r.err);
    ASSERT_EQ(lines.size(), 1U) << r.err;
    EXPECT_NE(lines[0].find("No space left on device"), std::string::npos) << lines[0];
    EXPECT_TRUE(ranks_in(folder.path()).empty());
  }
}

// A list, a check, a report are made once.
TEST(Mpi, OtherCommandsSpeakOnce) {
  const Folder folder;
  const Launch job = launch_of({3, 1}, folder.path(), {});
  Words words = job.arguments;
  words.resize(words.size() - 2);
  Launch list = job;
  list.arguments = words + Words{"list"};
  const Result several = Process(list).wait(), one = Process({.arguments = {"list"}, .folder = folder.path()}).wait();
  EXPECT_EQ(several.code, 0);
  EXPECT_EQ(several.out, one.out);
}

// The other processes of a command that the first makes alone have ended: nothing waits for them.
TEST(Mpi, AnErrorOfAnyCommandIsOneLine) {
  const Folder folder;
  struct Row {
    Words words;
    int code;
  };
  for (const Row& row :
       {Row{{"check", "nothing"}, 2}, Row{{"report", "nothing"}, 66}, Row{{"show-model", "nothing"}, 66},
        Row{{"show-data", "nothing"}, 66}, Row{{"verify-model", "nothing", "nothing"}, 66},
        Row{{"list", "--nothing"}, 2}, Row{{"nothing"}, 2}, Row{{"run", "--nothing"}, 2},
        Row{{"bench", "--only", "nothing"}, 2}, Row{{"sample", "nothing"}, 66}, Row{{"evaluate", "nothing"}, 66},
        Row{{"pretrain", "nothing"}, 2}, Row{{"finetune", "nothing"}, 2}}) {
#ifndef IMPLICIT_DIFFUSION_NETWORKS
    if (row.words[0] != "check" && row.code == 66 && !row.words[0].starts_with("show") && row.words[0] != "report")
      continue;
#endif
    const Result r = Process(apart(folder.path(), {row.words, row.words})).wait(30);
    EXPECT_EQ(r.code, row.code) << row.words[0] << ": " << r.err;
    EXPECT_EQ(our_lines(r.err).size(), 1U) << row.words[0] << ": " << r.err;
  }
}

// Processes that were asked for different things would mix them, or wait for what the others do not send.
TEST(Mpi, AllMustBeAskedForTheSame) {
  const Folder folder;
  const Words run{"run", "langevin-reward", "--steps", "20", "--quiet"};
  struct Row {
    Words words;
    const char* says;
  };
  for (const Row& row : {Row{run + Words{"--seed", "1"},
                             "process 1 was given another command or configuration: 'seed = 1' there, 'seed = "
                             "0' on the first; all need the same, and --repeats makes independent runs"},
                         Row{{"run", "langevin-reward", "--steps", "30"}, "'steps = 30' there"},
                         Row{run + Words{"--set", "particles=77"}, "'particles = 77' there"},
                         Row{run + Words{"--repeats", "2"}, "'--repeats = 2' there, '--repeats = 1' on the first"},
                         Row{run + Words{"--output", "elsewhere"}, "'--output = elsewhere' there"},
                         Row{run + Words{"--overwrite"}, "'--overwrite = true' there"},
                         Row{run + Words{"--resume"}, "'--resume = true' there"},
                         Row{{"bench"}, "'command = bench' there, 'command = run' on the first"},
                         Row{run + Words{"--nothing"}, "--nothing: unknown option"}}) {
    const Result r = Process(apart(folder.path(), {run, row.words})).wait(30);
    EXPECT_EQ(r.code, 2) << r.err;
    const auto lines = our_lines(r.err);
    ASSERT_EQ(lines.size(), 1U) << r.err;
    EXPECT_NE(lines[0].find(row.says), std::string::npos) << lines[0];
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// Waits until a run has a checkpoint; its ranks then.
std::vector<pid_t> wait_for_checkpoint(const fs::path& run, std::size_t ranks) {
  for (int i = 0; i < 3000; ++i) {
    const auto found = ranks_in(run.parent_path());
    if (found.size() == ranks && !io::list_directory(run / "checkpoints").empty()) return found;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "the run did not get going";
  return {};
}

// The same of several runs, each in a folder of its own: until so many have a checkpoint.
std::vector<pid_t> wait_for_runs(const fs::path& folder, std::size_t ranks) {
  for (int i = 0; i < 3000; ++i) {
    std::size_t begun = 0;
    for (const fs::path& run : io::list_directory(folder)) begun += !io::list_directory(run / "checkpoints").empty();
    const auto found = ranks_in(folder.parent_path());
    if (found.size() == ranks && begun >= ranks) return found;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "the runs did not get going";
  return {};
}

const Words long_run{"run",   "langevin-reward",     "--set",   "particles=1500",
                     "--set", "checkpoint_every=50", "--quiet", "--no-report"};

// A process that is killed ends the job, which goes on from its last checkpoint to the same bytes.
void expect_to_survive_kills(const Words& run, std::int64_t steps, int kills) {
  const Folder folder;
  if (std::getenv("IMPLICIT_DIFFUSION_KILLS")) kills = std::atoi(std::getenv("IMPLICIT_DIFFUSION_KILLS"));
  std::mt19937 random(1);
  for (int k = 0; k < kills; ++k) {
    const Job job{2 + random() % 3, 1};
    const std::string killed = "killed-" + std::to_string(k);
    const Words words = run + Words{"--output", killed};
    {
      Process p(launch_of(job, folder.path(), words + Words{"--steps", "100000000"}));
      const auto ranks = wait_for_checkpoint(folder.path() / killed, job.ranks);
      ASSERT_EQ(ranks.size(), job.ranks);
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
      ::kill(ranks[random() % ranks.size()], SIGKILL);
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_NE(p.wait().code, 0);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    }
    // It may have gone beyond `steps`: then both go on to one that neither has reached.
    const Words more = io::list_directory(folder.path() / killed / "checkpoints").empty() ? Words{} : Words{"--resume"};
    std::int64_t reached = 0;
    for (const fs::path& c : io::list_directory(folder.path() / killed / "checkpoints"))
      reached = std::max(reached, static_cast<std::int64_t>(std::atoll(c.filename().string().c_str() + 5)));
    const std::int64_t whole = steps / 3;
    const std::string last = std::to_string((std::max(reached, steps) + whole - 1) / whole * whole);
    ASSERT_EQ(run_job({1, 1}, folder.path(), run + Words{"--steps", last, "--output", "one", "--overwrite"}).code, 0);
    const Result r = run_job({2 + random() % 3, 1}, folder.path(), words + Words{"--steps", last} + more);
    ASSERT_EQ(r.code, 0) << r.err;
    expect_same_files(folder.path() / "one", folder.path() / killed, "after kill " + std::to_string(k));
  }
}

TEST(Mpi, AKilledProcessEndsTheJobAndTheRunResumes) { expect_to_survive_kills(long_run, 3000, 4); }

#ifdef IMPLICIT_DIFFUSION_NETWORKS
TEST(Mpi, ANeuralEnergySurvivesKills) {
  expect_to_survive_kills(Words{"run"} + energy + Words{"--quiet", "--no-report"}, 60, 2);
}
#endif

// SIGUSR1, which mpirun passes on: the state is written, and the exit code is that of SIGTERM.
TEST(Mpi, SigusrWritesTheStateAndEnds) {
  const Folder folder;
  Process p(launch_of({3, 1}, folder.path(), long_run + Words{"--steps", "100000000", "--output", "stopped"}));
  (void)wait_for_checkpoint(folder.path() / "stopped", 3);
  p.send(SIGUSR1);
  const Result r = p.wait(30);
  EXPECT_EQ(r.code, 143) << r.err;
  const Json s = Json::parse(io::read_file(folder.path() / "stopped" / "summary.json"));
  EXPECT_EQ(s["status"], "interrupted");
  EXPECT_EQ(s["processes"], 3);
  EXPECT_TRUE(fs::exists(folder.path() / "stopped" / "checkpoints" /
                         ("step-" + std::to_string(s["steps"].get<std::int64_t>()) + ".checkpoint")));
}

// SIGUSR1 to one of them, which works on a run of its own: no more runs are begun, and the exit code is the same.
TEST(Mpi, ASignalToOneProcessStopsTheRepeats) {
  const Folder folder;
  Process p(
      launch_of({2, 1}, folder.path(), long_run + Words{"--steps", "20000", "--output", "several", "--repeats", "8"}));
  const auto ranks = wait_for_runs(folder.path() / "several", 2);
  ASSERT_EQ(ranks.size(), 2U);
  ::kill(ranks[1], SIGUSR1);
  const Result r = p.wait(60);
  EXPECT_EQ(r.code, 143) << r.err;
  EXPECT_EQ(Json::parse(io::read_file(folder.path() / "several" / "summary.json"))["status"], "interrupted");
  EXPECT_FALSE(fs::exists(folder.path() / "several" / "seed-7"));
}

// Stops one of the processes of a run; the line that names it ends the job.
void expect_to_name_the_silent(std::size_t ranks, std::size_t silent, const Words& more) {
  const Folder folder;
  const std::string what = std::to_string(silent) + " of " + std::to_string(ranks);
  Process p(launch_of({ranks, 1}, folder.path(), long_run + Words{"--steps", "100000000", "--output", "hung"} + more,
                      {"IMPLICIT_DIFFUSION_MPI_TIMEOUT=3"}));
  const auto found =
      more.empty() ? wait_for_checkpoint(folder.path() / "hung", ranks) : wait_for_runs(folder.path() / "hung", ranks);
  ASSERT_EQ(found.size(), ranks) << what;
  ::kill(found[silent], SIGSTOP);
  const Result r = p.wait(40);
  ::kill(found[silent], SIGKILL);
  EXPECT_EQ(r.code, 74) << what << ": " << r.err;
  const auto lines = our_lines(r.err);
  ASSERT_EQ(lines.size(), 1U) << what << ": " << r.err;
  EXPECT_NE(lines[0].find("for rank " + std::to_string(silent) + ", which does not answer"), std::string::npos)
      << what << ": " << lines[0];
}

// One that is stopped is not waited for forever: the others say for whom they waited, and not for each other.
TEST(Mpi, AProcessThatDoesNotAnswerEndsTheJob) {
  for (const auto& [ranks, silent] : {std::pair<std::size_t, std::size_t>{3, 0}, {3, 1}, {3, 2}, {4, 1}, {4, 2}})
    expect_to_name_the_silent(ranks, silent, {});
}

// Nor while each makes a run of its own, which may take longer than the others wait for an answer.
TEST(Mpi, AProcessWithARunOfItsOwnMustAnswerToo) { expect_to_name_the_silent(3, 1, {"--repeats", "3"}); }

TEST(Mpi, LongRunsOfOthersAreWaitedFor) {
  const Folder folder;
  const Result r =
      run_job({2, 1}, folder.path(),
              Words{"run"} + reward + Words{"--steps", "30000", "--repeats", "2", "--quiet", "--no-report"},
              {"IMPLICIT_DIFFUSION_MPI_TIMEOUT=0"});
  EXPECT_EQ(r.code, 0) << r.err;
}

// An error on another process than the one that has made the folder: it goes, as with one process.
TEST(Mpi, AnErrorBeforeTheFirstResultLeavesNoFolder) {
  const Folder folder;
  const Words words{"run",     "langevin-reward", "--set",   "particles=30000000",
                    "--set",   "thresholds=[]",   "--steps", "2",
                    "--quiet", "--threads",       "1"};
  Launch job = apart(folder.path(), {words, words});
  // The second has too little memory for its part.
  const auto second = std::ranges::find(job.arguments, ":") + 3;
  *second = "/bin/sh";
  job.arguments.insert(second + 1, {"-c", "ulimit -v 300000; exec \"$0\" \"$@\"", IMPLICIT_DIFFUSION_PROGRAM});
  const Result r = Process(job).wait();
  EXPECT_EQ(r.code, 74) << r.err;
  const auto lines = our_lines(r.err);
  ASSERT_EQ(lines.size(), 1U) << r.err;
  EXPECT_NE(lines[0].find("memory"), std::string::npos) << lines[0];
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
}

// Without its plug-in, or where MPI does not connect what a launcher has started, no copies of a run are made.
TEST(Mpi, CopiesOfARunAreRefused) {
  const Folder folder;
  const fs::path copy = folder.path() / "implicit-diffusion";
  fs::copy_file(IMPLICIT_DIFFUSION_PROGRAM, copy);
  Launch alone{.arguments = {"run", "langevin-reward"},
               .folder = folder.path(),
               .environment = {"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=0"},
               .program = copy};
  Result r = Process(alone).wait();
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("built without MPI"), std::string::npos) << r.err;
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
  Launch unconnected{.arguments = {"run", "langevin-reward"},
                     .folder = folder.path(),
                     .environment = {"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=0"}};
  r = Process(unconnected).wait();
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("--mpi=pmix"), std::string::npos) << r.err;
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
  for (const auto& [variable, says] :
       {std::pair{"PMIX_RANK=1", "this is process 1 of several"},
        std::pair{"OMPI_COMM_WORLD_SIZE=abc", "OMPI_COMM_WORLD_SIZE: 'abc' in the environment is not a number"},
        std::pair{"OMPI_COMM_WORLD_SIZE=-2", "OMPI_COMM_WORLD_SIZE: '-2' in the environment is not a number"}}) {
    r = Process({.arguments = {"run", "langevin-reward"}, .folder = folder.path(), .environment = {variable}}).wait();
    EXPECT_EQ(r.code, 2) << variable;
    EXPECT_TRUE(is_error_line(r.err, {says})) << r.err;
    EXPECT_FALSE(fs::exists(folder.path() / "runs"));
  }
}

}  // namespace
}  // namespace program_test
