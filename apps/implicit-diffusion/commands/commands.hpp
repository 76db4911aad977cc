// The subcommands: each is a function of its options that returns the exit code.
//
// The names and help of all options are in options.cpp, which fills in these structs.
#pragma once

#include "experiment/common.hpp"

#include <optional>
#include <string>
#include <vector>

namespace program {

struct ListOptions {};

struct ReportOptions {
  std::vector<std::string> folders;
  std::string output;  // empty: report.html, of one run in its folder
};

struct ShowModelOptions {
  std::string folder;
};

struct ShowDataOptions {
  std::string path;
  bool test = false;
  std::size_t count = 64;  // images on the sheet
  std::string output;      // empty: contact-sheet.png, unless there is one
};

struct BenchOptions {
  ChosenIsa isa;
  std::string only;  // "particles", "networks", "paper"; empty: the first two
};

int list(const ListOptions& o);
int run(const RunOptions& o);
// The same with changes to the experiment. `prefix`, "pretrain.", is that of the stage whose steps --steps are and
// which the folder is named after; empty: the whole.
int run_changed(const RunOptions& o, const std::vector<Override>& changes, const std::string& prefix = {});
int report(const ReportOptions& o);
int show_data(const ShowDataOptions& o);
int bench(const BenchOptions& o);
int bench_processes();  // of a job with several
int show_model(const ShowModelOptions& o);
int check(const ExperimentOptions& o);  // all problems where no experiment is named

// Uses the kernels that --isa names. Throws a usage Error where this machine lacks them.
void choose_isa(const ChosenIsa& isa);

// The changes that --set and --seed make.
Overrides overrides_of(const ExperimentOptions& o);

// Reads the command line and calls the command it names (options.cpp).
int dispatch(int argc, char** argv);

}  // namespace program
