// What the program says, and its exit codes.
#pragma once

#include <string>

namespace program {

// Exit codes.
inline constexpr int exit_off = 1;    // a check found a value that is off
inline constexpr int exit_usage = 2;  // the kinds of Error, but for the next
inline constexpr int exit_data = 65, exit_missing = 66, exit_output = 73, exit_io = 74;
inline constexpr int exit_diverged = 70;

// After this, nothing is written any more, or it is again: of several processes one speaks.
void mute(bool silent);

// Writes text to stdout, all of it. Throws an io Error where that fails.
void print(const std::string& text);
// Writes text to stderr. Where that fails there is nobody left to tell.
void print_error(const std::string& text);
// One line on stderr: `implicit-diffusion: ` and the message.
void complain(const std::string& message, bool even_if_muted = false);
// The message as it is there: printable, and not too long.
std::string to_line(const std::string& message);

}  // namespace program
