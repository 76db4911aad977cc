// What survives what: the program is killed, signalled, and given a disk that fails; then it goes on, and ends with the
// bytes of a run that nothing happened to. Every test prints what it counted.
//
// The short form is a part of all tests. `reliability_test --full`, which is `make reliability`, has the numbers of
// docs/reliability.md.
#pragma once

#include "implicit_diffusion/io/checkpoint.hpp"
#include "program/same_run.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace program_test {

inline bool full = false;  // --full

// Of all moments; those of a clock are as random as the machine is busy.
inline constexpr std::uint64_t seed_of_moments = 20240208;

template <class... Values>
void count(const char* what, fmt::format_string<Values...> text, Values&&... values) {
  std::printf("%-12s %s\n", what, fmt::format(text, std::forward<Values>(values)...).c_str());
  std::fflush(stdout);
}

// A kind of run, of some tenths of a second with checkpoints all along. The repeats are whole runs: shorter ones end
// with a warning, which those that had ended before a signal would print.
struct Kind {
  std::string name;
  Words experiment;
  int kills = 20;  // in the full form

  Words words(const std::string& output, const Words& more = {}) const {
    return Words{"run"} + experiment + Words{"--quiet", "--no-report", "--output", output} + more;
  }
};

inline const std::vector<Kind> kinds{
    {"implicit", {"langevin-reward", "--steps", "8000", "--set", "checkpoint_every=100"}},
    {"nested",
     {"langevin-reward", "--steps", "1500", "--set", "method=nested", "--set", "inner_steps=5", "--set",
      "checkpoint_every=20"}},
    {"adam",
     {"langevin-reward", "--steps", "8000", "--set", "optimizer=adam", "--set", "learning_rate=0.01", "--set",
      "checkpoint_every=100"}},
    {"ebm-wells", {"ebm-wells", "--steps", "3000", "--set", "checkpoint_every=50"}},
#ifdef IMPLICIT_DIFFUSION_NETWORKS
    {"ebm-network",
     {"ebm-network", "--steps", "200", "--set", "checkpoint_every=10", "--set", "particles=100", "--set",
      "target.batch=100", "--set", "network.shard=16", "--set", "network.widths=[16,16]", "--set",
      "network.confinement=2"},
     30},
#endif
    {"repeats", {"langevin-reward", "--repeats", "3", "--set", "checkpoint_every=100"}}};

// A run of a few milliseconds: three checkpoints, each of a kilobyte or two.
inline constexpr const char* tiny_experiment = R"(particles = 20
steps = 30
step_size = 0.1
log_every = 10
checkpoint_every = 10
optimizer = "adam"

[potential]
kind = "quadratic"
precision = [[1.0]]

[reward]
kind = "quadratic"
centre = [1.0]

[start]
theta = [0.0]
)";

inline Words tiny_words(const std::string& output, const Words& more = {}) {
  return Words{"run", "tiny.toml", "--quiet", "--no-report", "--threads", "1", "--output", output} + more;
}

// Goes on with what is there: a run that has not come to its first file is begun.
inline Words resume_words(const fs::path& folder) {
  return fs::exists(folder / "config.toml") ? Words{"--resume"} : Words{};
}

struct Newest {
  std::optional<io::CheckpointReader> checkpoint;
  std::vector<std::string> refused;
  std::int64_t step() const { return checkpoint ? checkpoint->number<std::int64_t>("step") : -1; }
};
inline Newest newest_in(const fs::path& run) {
  Newest newest;
  newest.checkpoint =
      io::newest_checkpoint(run / "checkpoints", [&](const auto& why) { newest.refused.push_back(why); });
  return newest;
}

inline int temporaries_in(const fs::path& folder) {
  int found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) found += entry.path().extension() == ".tmp";
  return found;
}

// What the shim wrote down.
struct Call {
  std::string what, path, other, bytes;
};
inline std::vector<Call> read_trace(const fs::path& file) {
  const std::string text = contents(file);
  std::vector<Call> calls;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::istringstream line(text.substr(at, end - at));
    Call call;
    std::string bytes;
    std::getline(line, call.what, '\t');
    std::getline(line, call.path, '\t');
    std::getline(line, call.other, '\t');
    std::getline(line, bytes);
    call.bytes = text.substr(end + 1, std::stoul(bytes));
    at = end + 1 + call.bytes.size();
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace program_test
