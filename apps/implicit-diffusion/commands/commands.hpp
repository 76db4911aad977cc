// The subcommands: what each needs to know, and a function that does it and returns the exit code.
//
// The names and help of all options are in options.cpp, which fills in these structs.
#pragma once

#include "experiment/common.hpp"
#include "experiment/run_options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace program {

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

// Uses the kernels that --isa names. Throws a usage Error where this machine lacks them.
void use_isa(const std::optional<implicit_diffusion::Level>& isa);

// The changes that --set and --seed make.
Overrides overrides_of(const std::vector<std::string>& set, const std::optional<std::string>& seed);

// Reads the command line and calls the command it names.
int dispatch(int argc, char** argv);

}  // namespace program
