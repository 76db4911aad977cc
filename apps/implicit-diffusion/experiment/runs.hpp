// Running experiments: one in its folder, the same with several seeds, or many that are independent of each other.
#pragma once

#include "experiment/experiment.hpp"
#include "experiment/progress.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/io/pieces.hpp"
#include "implicit_diffusion/population.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace program {

// What one run is given.
struct RunContext {
  std::filesystem::path folder;  // exists, with config.toml
  std::size_t threads = 1;
  bool resume = false;
  bool quiet = true;  // it says nothing of its own
  std::stop_token stop;
  Progress* progress = nullptr;
  double weight = 1;  // of a step, in it
  // Those that share its samples; the first one writes its files. Null: this one alone makes it.
  implicit_diffusion::Processes* processes = nullptr;

  bool writes() const { return !processes || processes->rank() == 0; }
  // One of its files, where this process writes.
  void write(const std::filesystem::path& name, std::string_view bytes) const;
  // The same of samples, of which each process gives its part: what `give` gives all of them together, after a header.
  void write_samples(const char* name, const implicit_diffusion::Population<float>& x) const;
  void write_pieces(const char* name, const std::string& header,
                    const std::function<void(const implicit_diffusion::PieceSink&)>& give) const;
  // Says so where samples are so few that processes spend more time on their exchange than one would need for all.
  void say_if_too_few(std::size_t samples) const;
  // Says so where a batch of a network has fewer shards than there are processes: some of them have nothing to do.
  void say_if_too_few_shards(std::size_t shards) const;

  // Says so where fewer threads could be started than it was given.
  void say_if_fewer(std::size_t started) const;
};

// What it gives back. Its files are written, but for the report.
struct FinishedRun {
  Summary summary;
  std::string table;                    // the closing table
  std::vector<std::string> complaints;  // of a run that diverged, each a line
};

// One run in a folder of its own among several.
struct FolderRun {
  const Common* configuration;
  std::filesystem::path folder;
  double weight = 1;  // of its steps, for the time that is left
};
// What came of a run on another process than the first: a message that it sends, and what that one makes of it.
struct RunResults {
  std::function<std::string(std::size_t i)> pack;
  std::function<void(std::size_t i, const std::string& message)> unpack;
};
// They are spread over the threads first, in the given order, and what is left over goes into each. The processes of a
// job take them in this order, each the next when it has a thread free. There, a run that fails is named and the others
// go on; when all have ended, the Error of the first is thrown.
void run_in_folders(std::span<const FolderRun> runs, std::size_t threads, bool resume, const std::stop_token& stop,
                    Progress* progress, const std::function<void(std::size_t i, const RunContext& context)>& run,
                    const RunResults& results);
// Of those that have a summary, a table and complaints.
RunResults finished_runs(std::vector<std::optional<FinishedRun>>& results);
// The places of `count` runs, those with the most work first, so that no thread is left with a long one at the end.
std::vector<std::size_t> longest_first(std::size_t count, const std::function<double(std::size_t)>& work);

// 0, or the exit code of a run with that status that the signal has interrupted.
int exit_code(const std::string& status, int signal);

// A run, or with --repeats several with the seeds after the first, in folders of their own with a summary and a report
// over all of them. `seeds` are their configurations, of `steps` steps each.
int run_or_repeat(std::span<const Common* const> seeds, std::int64_t steps, const RunOptions& o,
                  const std::function<FinishedRun(std::size_t i, const RunContext& context)>& run,
                  const Experiment& experiment);

// The same, with one function for the configurations of all seeds. `beside`: what each does beside its steps, in steps.
template <class Configuration>
int run_or_repeat(const Configuration& first, const RunOptions& o,
                  FinishedRun (*run)(const Configuration& c, const RunContext& context), const Experiment& experiment,
                  double beside = 0) {
  std::vector<Configuration> all(o.repeats, first);
  std::vector<const Common*> seeds;
  for (Configuration& c : all) {
    c.set_seed(c.seed + seeds.size());
    seeds.push_back(&c);
  }
  return run_or_repeat(
      seeds, first.steps + static_cast<std::int64_t>(std::ceil(beside)), o,
      [&](std::size_t i, const RunContext& context) { return run(all[i], context); }, experiment);
}

}  // namespace program
