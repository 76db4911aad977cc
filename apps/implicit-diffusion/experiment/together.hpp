// What the processes of one run decide together: to stop after the same step, though signals reach them at different
// moments, and when it is time for a checkpoint, though their clocks differ.
#pragma once

#include "implicit_diffusion/processes.hpp"

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace program {

// The texts of all of them, rank by rank.
std::vector<std::string> from_all(implicit_diffusion::Processes* processes, const std::string& own);

class Together {
 public:
  // `signal` is of this process alone.
  Together(implicit_diffusion::Processes* processes, std::stop_token signal)
      : processes_(processes), signal_(std::move(signal)) {}

  // After every step, on all of them: whether the first one wants something, which it may also say one of the next
  // times. They exchange a message some fifty times a second.
  bool operator()(bool wanted);
  // A request to any of them is one to all, after the same step.
  std::stop_token stop() const { return processes_ ? source_.get_token() : signal_; }

 private:
  implicit_diffusion::Processes* processes_;
  std::stop_token signal_;
  std::stop_source source_;
  std::uint64_t every_ = 1, left_ = 1;  // steps from one message to the next, and to the next one
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace program
