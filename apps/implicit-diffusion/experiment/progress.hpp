// How far a run is, on stderr: one line that is rewritten on a terminal, plain lines now and then otherwise.
#pragma once

#include "experiment/summary.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace program {

class Progress {
 public:
  // `runs` loops, of so many steps in all. A step of a loop counts as much as its weight, for the time that is left.
  Progress(std::string label, std::size_t runs, double work, bool quiet);

  // One loop among those that may run at once.
  class Loop {
   public:
    explicit Loop(Progress* progress, double weight = 1) : progress_(progress), weight_(weight) {
      if (progress && weight != 1) progress->weighted_ = true;
    }
    // After a step. The first call, of a loop that goes on, may be of any step. `words` stand at the end of the line.
    void operator()(std::int64_t step, const Figures& figures = {}, const std::string& words = {});

   private:
    Progress* progress_;  // or null
    double weight_;
    std::int64_t last_ = -1;
  };
  // A loop that has ended counts as one of the runs.
  void finish_run() { ++finished_; }

  // A line of its own.
  void say(const std::string& text);
  // Wipes the line away.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void show(const Figures& figures, const std::string& words);
  Clock::duration interval() const;

  std::string label_;
  std::size_t runs_;
  double work_;
  bool quiet_, terminal_;
  std::atomic<std::int64_t> steps_{0};       // made by now
  std::atomic<double> done_{0}, before_{0};  // work by now, and by the runs that these go on from
  std::atomic<std::size_t> finished_{0};
  std::atomic<bool> weighted_{false};  // steps are not alike: their number tells nothing
  std::atomic<Clock::rep> next_{0};
  std::mutex mutex_;
  bool shown_ = false;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace program
