// What an optimizer remembers from step to step: part of the state of a run, and of its checkpoint.
//
// An optimizer that remembers something offers it as memory(), const and not; one without has no such member.
#pragma once

#include "implicit_diffusion/parameters.hpp"

#include <cstddef>
#include <span>
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
  // False where the list is not of this kind, for a theta of p numbers.
  bool restore(std::span<const double> all, std::size_t p) requires HostNumbers<Theta> {
    const std::size_t more = all.size() - numbers.size();
    if (all.size() < numbers.size() || (more != 0 && more != kinds * p)) return false;
    numbers.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(numbers.size()));
    moments.clear();
    for (std::size_t at = numbers.size(); at < all.size(); at += p) {
      const auto part = all.subspan(at, p);
      moments.emplace_back(part.begin(), part.end());
    }
    return true;
  }
};

}  // namespace implicit_diffusion
