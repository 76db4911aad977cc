// The subcommands: what each needs to know, and a function that does it and returns the exit code.
//
// The names and help of all options are in options.cpp, which fills in these structs.
#pragma once

#include "experiment/common.hpp"
#include "implicit_diffusion/simd/level.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace program {

struct RunOptions {
  std::string experiment;                  // a name, or FILE.toml
  std::optional<std::string> seed, steps;  // as typed; none: as the file says
  std::uint64_t repeats = 1;
  std::uint64_t threads = 0;                     // 0: all cores
  std::optional<implicit_diffusion::Level> isa;  // none: the best of this machine
  std::string output;                            // empty: runs/NAME-SEED
  std::vector<std::string> set;                  // key=value
  bool overwrite = false, print_config = false, quick = false, quiet = false, no_report = false, resume = false;
};

struct ReportOptions {
  std::vector<std::string> folders;
  std::string output;  // empty: report.html, of one run in its folder
};

struct CheckOptions {
  std::string experiment;           // a name, or FILE.toml; empty: all problems
  std::optional<std::string> seed;  // as typed; none: as the file says
  std::optional<implicit_diffusion::Level> isa;
  std::vector<std::string> set;  // key=value
};

struct BenchOptions {
  std::optional<implicit_diffusion::Level> isa;
};

int list();
int run(const RunOptions& o);
int report(const ReportOptions& o);
int bench(const BenchOptions& o);
int check(const CheckOptions& o);

// The changes that --set and --seed make.
Overrides overrides_of(const std::vector<std::string>& set, const std::optional<std::string>& seed);

// Reads the command line and calls the command it names.
int dispatch(int argc, char** argv);

// Exit codes that are not errors in the sense of Error.
inline constexpr int exit_off = 1;  // a check found a value that is off
inline constexpr int exit_usage = 2;
inline constexpr int exit_diverged = 70;
inline constexpr int exit_io = 74;

// Writes text to stdout, all of it. Throws an io Error where that fails.
void print(const std::string& text);
// Writes text to stderr. Where that fails there is nobody left to tell.
void print_error(const std::string& text);
// One line on stderr: `implicit-diffusion: ` and the message.
void complain(const std::string& message);

}  // namespace program
