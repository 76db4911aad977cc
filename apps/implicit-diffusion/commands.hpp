// One function a subcommand. Each sets up its options on the program and says what to call when it is chosen.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace program {

// The exit code of the chosen command.
using Action = std::function<int()>;

void add_list(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);

// Exit codes that are not errors in the sense of Error.
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
