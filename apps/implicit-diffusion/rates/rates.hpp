// The experiment `rates`: how fast the single loop converges in the worst case, against the exponents of the theorems
// (langevin/rates.hpp), for steps k^-a of both schedules and for the flow in continuous time.
#pragma once

#include "commands/commands.hpp"
#include "experiment/common.hpp"

#include <filesystem>

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
RatesConfiguration read_rates(const Document& d);

int run_rates(const RatesConfiguration& c, const RunOptions& o);
// The report of a run, from its folder.
std::string rates_report(const RatesConfiguration& c, const std::filesystem::path& folder);

}  // namespace program
