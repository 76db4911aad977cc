// Running Langevin experiments: one, the same with several seeds, or a whole comparison.
#pragma once

#include "commands/commands.hpp"
#include "experiment/summary.hpp"
#include "langevin/problem.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace program {

// One finished run.
struct Done {
  Summary summary;
  Outcome outcome;
  std::string divergence;  // in words
};

// Runs that are independent of each other, each in a folder of its own: they are spread over the threads first, in the
// given order, and what is left over goes into each. Calls `said` after each, with the number of those that have ended.
// None where it was stopped before.
struct Task {
  Configuration configuration;
  std::filesystem::path folder;
};
std::vector<std::optional<Done>> run_tasks(
    const std::vector<Task>& tasks, std::size_t threads, bool resume, std::stop_token stop,
    const std::function<void(const Task& task, const Done& done, std::size_t finished)>& said);

// Throws an Error where a file that the run reads is bad, or is one that the run would remove.
void check_inputs(const Configuration& c, const RunOptions& o);

int run_langevin(const Configuration& c, const RunOptions& o);

}  // namespace program
