// How far a run is, on stderr: one line that is rewritten on a terminal, plain lines now and then otherwise.
#pragma once

#include "langevin/recorder.hpp"

#include <chrono>
#include <string>

namespace program {

class Progress {
 public:
  Progress(std::string label, std::int64_t steps, bool quiet);

  void operator()(std::int64_t step, const Figures& figures);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  std::int64_t steps_, first_ = -1;
  bool quiet_, terminal_;
  bool shown_ = false;
  Clock::time_point begin_, next_;
};

}  // namespace program
