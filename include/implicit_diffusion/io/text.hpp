// Text from outside, made fit for a message of one line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace implicit_diffusion::io {

// The text with control characters, and bytes that are not UTF-8, as \xNN, cut to about `longest` bytes (never inside a
// UTF-8 sequence) with "..." behind the cut.
std::string printable(std::string_view text, std::size_t longest = 4096);

// The same in single quotes, short: what was found in a file.
std::string excerpt(std::string_view text, std::size_t longest = 40);

// What a file is that should be another, where its beginning tells: "the file is empty", "a Git LFS pointer; ...", an
// HTML page, a zip archive. Nothing where it does not.
std::string mistaken_content(std::string_view beginning);

// A word as a shell takes it: in quotes where it has to be.
std::string shell_word(const std::string& text);

// How a message names a file.
std::string display(const std::filesystem::path& path);

}  // namespace implicit_diffusion::io
