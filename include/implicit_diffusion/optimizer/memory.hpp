// What an optimizer remembers from step to step: part of the state of a run, and of its checkpoint.
//
// An optimizer that remembers something offers it as memory(), const and not; one without has no such member.
#pragma once

#include "implicit_diffusion/parameters.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace implicit_diffusion {

template <class Theta = std::vector<double>>
struct OptimizerMemory {
  std::vector<double> numbers;      // fixed in number
  std::size_t kinds;                // how many moments there are after the first step
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

// Whether all that it remembers is finite. A gradient that is finite may be too large for its square.
template <class Theta>
bool all_finite(const OptimizerMemory<Theta>& memory) {
  for (const Theta& m : memory.moments)
    if (first_nonfinite(m)) return false;
  return true;
}

// An optimizer that remembers something. Its rule is a struct of options, with a name, with begin<Theta>(), what is
// remembered before the first step, and with update(theta, gradient, step, memory).
template <class Rule, class Theta>
class RememberingOptimizer {
 public:
  static constexpr const char* name = Rule::name;

  explicit RememberingOptimizer(const Rule& rule = {}) : rule_(rule) {}
  explicit RememberingOptimizer(double rate) : rule_{.rate = rate} {}

  void update(Theta& theta, const Theta& gradient, std::int64_t step) {
    memory_.begin(theta);  // allocates on the first call only
    rule_.update(theta, gradient, step, memory_);
  }

  const OptimizerMemory<Theta>& memory() const { return memory_; }
  OptimizerMemory<Theta>& memory() { return memory_; }

 private:
  Rule rule_;
  OptimizerMemory<Theta> memory_ = Rule::template begin<Theta>();
};

}  // namespace implicit_diffusion
