// What an optimizer remembers from step to step: part of the state of a run, and of its checkpoint.
//
// An optimizer that remembers something offers it as memory(), const and not; one without has no such member.
#pragma once

#include "implicit_diffusion/parameters.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace implicit_diffusion {

template <class Theta = std::vector<double>>
struct OptimizerMemory {
  std::vector<double> numbers;      // always as many
  std::size_t kinds;                // how many moments there are once there was a step
  std::vector<Theta> moments = {};  // of the shape of theta; none before the first step

  // Moments, zero before the first step.
  void begin(const Theta& theta) {
    if (moments.empty()) moments.assign(kinds, zeros_like(theta));
  }

  // As one list, for theta in host memory: the numbers, then the moments.
  std::vector<double> list() const requires HostNumbers<Theta> {
    std::vector<double> all = numbers;
    for (const Theta& m : moments) all.insert(all.end(), m.begin(), m.end());
    return all;
  }
};

// What optimizers with options and a memory have in common.
template <class Options, class Theta>
class RememberingOptimizer {
 public:
  const OptimizerMemory<Theta>& memory() const { return memory_; }
  OptimizerMemory<Theta>& memory() { return memory_; }

 protected:
  RememberingOptimizer(const Options& options, OptimizerMemory<Theta> memory)
      : options_(options), memory_(std::move(memory)) {}

  Options options_;
  OptimizerMemory<Theta> memory_;
};

}  // namespace implicit_diffusion
