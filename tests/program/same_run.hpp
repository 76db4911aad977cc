// Two runs that should be one: the same bytes, but for the time they took and the threads they had.
#pragma once

#include "program/run_program.hpp"

namespace program_test {

// metrics.csv without its column of seconds, the third.
inline std::string metrics(const fs::path& folder) {
  std::istringstream lines(contents(folder / "metrics.csv"));
  std::string text;
  for (std::string line; std::getline(lines, line); text += line + "\n") {
    const std::size_t begin = line.find(',', line.find(',') + 1);
    line.erase(begin, line.find(',', begin + 1) - begin);
  }
  return text;
}

// With --repeats: all the runs of the first are in the second too.
inline testing::AssertionResult same_run(const fs::path& a, const fs::path& b) try {
  bool repeats = false;
  for (const auto& entry : fs::directory_iterator(a))
    if (entry.path().filename().string().starts_with("seed-")) {
      repeats = true;
      if (const auto same = same_run(entry.path(), b / entry.path().filename()); !same) return same;
    }
  if (repeats) return testing::AssertionSuccess();
  if (const auto same = same_bytes(a, b, {"samples.npy", "config.toml"}); !same) return same;
  // theta of a network is in its model.
  std::vector<std::string> parameters{"theta.npy"};
  if (fs::exists(a / "model")) parameters = {"model/config.json", "model/model.safetensors"};
  if (fs::exists(a / "energy.npy")) parameters.emplace_back("energy.npy");
  if (const auto same = same_bytes(a, b, parameters); !same) return same;
  if (metrics(a) != metrics(b)) return testing::AssertionFailure() << "metrics.csv differs in " << a << " and " << b;
  Json x = json(a / "summary.json"), y = json(b / "summary.json");
  for (Json* j : {&x, &y}) {
    for (const char* key : {"seconds", "threads", "peak_memory_bytes"}) j->erase(key);
    if (j->contains("results"))
      for (Json& row : (*j)["results"]) row.erase("seconds");
  }
  if (x != y) return testing::AssertionFailure() << "summary.json differs: " << x << " and " << y;
  return testing::AssertionSuccess();
} catch (const std::exception& e) {
  return testing::AssertionFailure() << e.what();
}

}  // namespace program_test
