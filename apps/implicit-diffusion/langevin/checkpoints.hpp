// Checkpoints of a run: its state and all it has measured, in the folder `checkpoints`. A run that goes on from one ends
// with the same bytes as one that was never stopped.
#pragma once

#include "langevin/recorder.hpp"

#include <chrono>
#include <filesystem>
#include <functional>

namespace program {

class Checkpoints {
 public:
  Checkpoints(const Configuration& c, const std::filesystem::path& folder);

  // After a step: writes one where it is time, every `checkpoint_every` steps or, without that key, ten seconds.
  void operator()(const RunState& state, const Recorder& recorder);
  // One of now, and writing it, unless there is one of that step already. Nothing is made of a state that is not finite.
  std::optional<implicit_diffusion::io::Checkpoint> make(const RunState& state, const Recorder& recorder) const;
  void write(const std::optional<implicit_diffusion::io::Checkpoint>& checkpoint, std::int64_t step);
  // Puts the newest whole checkpoint in the place of the start. False where there is none. Throws a data Error where
  // there are some and none is whole, or where it is one of another configuration.
  bool resume(RunState& state, Recorder& recorder, const std::function<void(const std::string& why)>& refused);

 private:
  const Configuration& configuration_;
  std::filesystem::path folder_;
  std::int64_t last_ = -1;
  std::chrono::steady_clock::time_point when_;
};

// The text of a configuration up to what may differ between a run and its continuation: the number of steps.
std::string without_steps(const std::string& resolved);

}  // namespace program
