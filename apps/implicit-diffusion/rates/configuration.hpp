// The keys of a rates experiment.
#pragma once

#include "experiment/document.hpp"

#include <cstdint>
#include <vector>

namespace program {

struct RatesConfiguration : Common {
  std::vector<double> exponents;     // a = b of gamma_k = scale k^-a, eps_k = k^-b
  double scale = 0.25;               // c_1
  std::vector<std::int64_t> steps;   // K
  std::vector<double> targets;       // c
  std::vector<double> times;         // T of the flow
  double largest_target = 400;       // of the flow: c from 1 to this,
  double target_ratio = 1.1;         // each so many times the one before
  std::int64_t steps_per_time = 16;  // of the flow's integration
};
RatesConfiguration read_rates_configuration(const Document& d);

}  // namespace program
