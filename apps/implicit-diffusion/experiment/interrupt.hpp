// SIGINT and SIGTERM as a request to stop: the run ends after the step it is in, and its files are written. A second
// signal soon after the first is the same request (wrappers pass on what the terminal has sent already); a later one
// ends the program at once. SIGUSR1, which launchers of several processes pass on, counts as SIGTERM there.
#pragma once

#include "implicit_diffusion/processes.hpp"

#include <atomic>
#include <stop_token>
#include <thread>

namespace program {

class Interrupt {
 public:
  // Make it before any other thread: they inherit that the signals are blocked.
  Interrupt();
  ~Interrupt();

  std::stop_token token() const { return source_.get_token(); }
  // 0: none came. Of several processes, which all ask, the largest that came to any.
  int signal(implicit_diffusion::Processes* processes) const;

 private:
  std::stop_source source_;
  std::atomic<int> signal_{0};
  std::atomic<bool> done_{false};
  std::thread waiter_;
};

}  // namespace program
