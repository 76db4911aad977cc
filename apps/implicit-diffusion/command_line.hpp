// What the command lines of both executables are made of. CLI11 is slow to compile: only files with options include
// this.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace program {

// The program's commands are added one by one; parsing calls the one that was named, and keeps its exit code.
struct CommandLine {
  CLI::App app{
      "Optimization through sampling: tune the parameters of a sampling process until the distribution of its samples "
      "is a good one.",
      "implicit-diffusion"};
  std::optional<int> exit_code;

  // A command, with an example of its use, and its options, which live as long.
  template <class Options>
  std::pair<CLI::App*, Options*> add(const char* name, const char* help, const std::string& example,
                                     int (*call)(const Options&)) {
    CLI::App* command = app.add_subcommand(name, help);
    command->footer("Example: implicit-diffusion " + example);
    const auto options = std::make_shared<Options>();
    command->callback([this, call, options] { exit_code = call(*options); });
    return {command, options.get()};
  }

  // Parses the words, calls the command, and returns its exit code. Help and complaints go where they belong.
  int parse(int argc, char** argv);
};

// A text that is taken as it is typed, an empty one too.
void add_text(CLI::App* command, const char* name, std::optional<std::string>& text, const char* help,
              const char* type);

// A name. An empty one would mean the default, which nobody asks for in this way.
// The option, for more to be asked of it.
CLI::Option* add_name(CLI::App* command, const char* option, std::string& name, const char* help, const char* type);

struct RunOptions;
// The options of `run`, which the stages of an experiment with images take too (options.cpp). `output` is the default,
// in words.
void add_run_options(CLI::App* command, RunOptions& o, const char* output);

// The flag --portable-bits, which set_network_environment() finds among the words (options.cpp).
void add_portable_bits(CLI::App* command, bool& portable);

}  // namespace program
