// Checkpoints of a run's loop: its state and all it has measured, in the folder `checkpoints`. A run that goes on from
// one ends with the same bytes as one that was never stopped.
#pragma once

#include "experiment/runs.hpp"
#include "experiment/together.hpp"
#include "implicit_diffusion/io/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace program {

class Checkpoints {
 public:
  using Writer = implicit_diffusion::io::CheckpointWriter;
  using Reader = implicit_diffusion::io::CheckpointReader;
  // Saves a state and what was measured; false where the state is not finite, of which no checkpoint is made.
  using Save = std::function<bool(Writer&)>;

  // One is due every so many steps or, where that is 0, every `interval`. Of the processes that share a run, each
  // gives its part and the first one writes.
  Checkpoints(const Common& c, const RunContext& context, std::int64_t every,
              std::chrono::seconds interval = std::chrono::seconds(10))
      : configuration_(c),
        run_(context.folder),
        every_(every),
        interval_(interval),
        processes_(context.processes),
        together_(context.processes, context.stop) {}

  // After every step, the first one included.
  void write_if_due(std::int64_t step, const Save& save);
  // A request to stop, on all processes after the same step.
  std::stop_token stop() const { return together_.stop(); }
  // Unless there is one of that step already.
  void write(std::int64_t step, const Save& save);

  // Calls `restore` with the newest whole checkpoint, if there is one; it returns the step that it has come to. Says
  // where the run goes on, unless `quiet`, and writes its configuration. Throws a data Error where there are
  // checkpoints and none is whole, or where it is one of another configuration; a usage Error where it has done more
  // than `steps`.
  bool resume(std::int64_t steps, bool quiet, const std::function<std::int64_t(const Reader&)>& restore);

 private:
  const Common& configuration_;
  std::filesystem::path run_;
  std::int64_t every_, last_ = -1;
  std::chrono::seconds interval_;
  implicit_diffusion::Processes* processes_;
  Together together_;
  std::chrono::steady_clock::time_point when_ = std::chrono::steady_clock::now();
};

inline bool all_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); });
}

// An experiment that is made of parts, each of them short: those that are finished are kept in the folder
// `checkpoints`, and a run that goes on does the others. What a part is kept as is a list of numbers; a part that was
// not finished is done again from its beginning, with the same noise.
class FinishedParts {
 public:
  // To resume is to begin with what the newest whole checkpoint has, to say how much that is, and to write the
  // configuration. Throws a data Error where there are checkpoints and none is whole, or where it is one of another
  // configuration; a usage Error where its parts are of more than `steps` steps.
  // The processes that share a run keep the same parts, and the first one writes them.
  FinishedParts(const Common& c, const RunContext& context, std::int64_t steps);

  // The numbers of a part that is finished. May be called from several threads, as keep may.
  std::optional<std::vector<double>> find(const std::string& name) const;
  // Records a part as finished: it is on the disk when this returns.
  void keep(const std::string& name, const std::vector<double>& numbers);
  // For numbers that were found and are no such part. Throws a data Error.
  [[noreturn]] void refuse(const std::string& name, const std::string& why) const { found_.value().refuse(name, why); }

  // Since the beginning, with those of the runs before this one.
  double seconds() const;

 private:
  std::filesystem::path folder_;
  bool writes_;
  mutable std::mutex mutex_;
  std::string configuration_;
  std::int64_t steps_;
  std::optional<implicit_diffusion::io::CheckpointReader> found_;
  std::map<std::string, std::vector<double>> parts_;
  double before_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace program
