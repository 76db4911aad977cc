// What every kind of experiment has in common, and words about numbers and names.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace program {

struct Common {
  std::string experiment, title;
  std::uint64_t seed = 0;
  std::string resolved;  // the configuration as a TOML file: running it again gives the same run
};
inline constexpr std::uint64_t largest_seed = std::numeric_limits<std::int64_t>::max();  // of a TOML integer

// Changes to an experiment from the command line.
struct Override {
  std::string key;  // with dots for tables
  std::string value;
  std::string option;  // how messages call it: "--set steps", "--seed"
};
struct Overrides {
  std::vector<Override> set;
  bool quick = false;  // the keys of the table `quick` take the place of the others
};

// A file of keys, parsed and changed (section.hpp).
struct Document;

// The word among these that is closest to what was typed, if one is close.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& words);

// A number as TOML and summary.json's keys have it: with a point or an exponent.
std::string written(double v);
std::string written(const std::vector<double>& v);
// A string as TOML has it.
std::string toml_string(std::string_view s);

}  // namespace program
