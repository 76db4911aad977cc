// How `bench` takes times and memory: a time is the median of an odd number of repetitions, a ratio is of two times of
// the same run.
#pragma once

#include "implicit_diffusion/error.hpp"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace program {

// A result that is not right is not timed.
inline void require_right(bool right, const std::string& otherwise) {
  if (!right) throw implicit_diffusion::Error(implicit_diffusion::ErrorKind::data, "bench", otherwise);
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Seconds of one call.
template <class Work>
double seconds_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Seconds of processor time that this process, with all its threads, takes for one call: what else the machine does
// changes it little.
template <class Work>
double processor_seconds_of(Work&& work) {
  const auto now = [] {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

// Seconds of one call: the median of `repetitions`, each of so many calls.
template <class Work>
double median_seconds(Work&& work, std::size_t calls = 1, std::size_t repetitions = 9) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < repetitions; ++i)
    seconds.push_back(seconds_of([&] {
      for (std::size_t k = 0; k < calls; ++k) work();
    }));
  return median(std::move(seconds)) / static_cast<double>(calls);
}

// What a list of the kernel's says under a name; empty where it says nothing.
inline std::string kernel_says(const char* file, std::string_view name) {
  std::ifstream list(file);
  for (std::string line; std::getline(list, line);)
    if (line.starts_with(name)) return line.substr(line.find(':') + 2);
  return "";
}
inline std::string processor_name() {
  const std::string name = kernel_says("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

// The resident memory of the process, in megabytes: before a call, and at most during it. From the counter that the
// kernel sets back on request (proc(5), clear_refs). None where it does not let us.
struct Megabytes {
  double before, most;
  double extra() const { return most - before; }
};
template <class Work>
std::optional<Megabytes> megabytes_of(Work&& work) {
  const auto megabytes = [](const char* name) { return std::stod(kernel_says("/proc/self/status", name)) / 1024; };
  ::malloc_trim(0);  // what was freed before must not serve unseen
  if (std::ofstream file("/proc/self/clear_refs"); !(file << "5" << std::flush)) return std::nullopt;
  const double before = megabytes("VmRSS:");
  work();
  return Megabytes{before, megabytes("VmHWM:")};
}

}  // namespace program
