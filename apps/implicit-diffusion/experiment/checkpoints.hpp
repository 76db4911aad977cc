// Checkpoints of a run's loop: its state and all it has measured, in the folder `checkpoints`. A run that goes on from
// one ends with the same bytes as one that was never stopped.
#pragma once

#include "experiment/common.hpp"
#include "implicit_diffusion/io/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace program {

class Checkpoints {
 public:
  using Writer = implicit_diffusion::io::CheckpointWriter;
  using Reader = implicit_diffusion::io::CheckpointReader;
  // Saves a state and what was measured; false where the state is not finite, of which no checkpoint is made.
  using Save = std::function<bool(Writer&)>;

  // One is due every so many steps or, where that is 0, every ten seconds.
  Checkpoints(const Common& c, const std::filesystem::path& folder, std::int64_t every);

  void write_if_due(std::int64_t step, const Save& save);
  // Unless there is one of that step already.
  void write(std::int64_t step, const Save& save);

  // Calls `restore` with the newest whole checkpoint, if there is one; it returns the step that it has come to. Says
  // where the run goes on, unless `quiet`, and writes its configuration. Throws a data Error where there are
  // checkpoints and none is whole, or where it is one of another configuration; a usage Error where it has done more
  // than `steps`.
  bool resume(std::int64_t steps, bool quiet, const std::function<std::int64_t(const Reader&)>& restore);

 private:
  const Common& configuration_;
  std::filesystem::path run_, folder_;
  std::int64_t every_, last_ = -1;
  std::chrono::steady_clock::time_point when_;
};

// The newest whole checkpoint of this configuration in a run's folder; damaged ones are named on stderr and passed
// over.
std::optional<implicit_diffusion::io::CheckpointReader> newest_checkpoint(const Common& c,
                                                                          const std::filesystem::path& run_folder);

inline bool all_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace program
