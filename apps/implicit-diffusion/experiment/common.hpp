// What every kind of experiment has in common, and words about numbers and names.
#pragma once

#include "implicit_diffusion/simd/isa.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace program {

// The keys of a configuration with their values as TOML has them, table by table, in the order of config.toml. The keys
// outside of all tables, whose table is "", come first.
struct ResolvedConfiguration {
  struct Entry {
    std::string table, key, value;
  };
  std::vector<Entry> entries;

  // Erases a key from every table.
  void erase(std::string_view key);
  // config.toml.
  std::string text() const;
  // Reads what text() made.
  static ResolvedConfiguration from_text(const std::string& text);
};

// In bytes, of a file with an experiment: longer ones are not read, nor written as a resolved configuration.
inline constexpr std::size_t longest_configuration = std::size_t{16} << 20;

struct Common {
  std::string experiment, title;
  std::uint64_t seed = 0;
  bool shortened = false;                     // by --quick: that it ends too early is no news
  ResolvedConfiguration resolved;             // running it again gives the same run
  std::vector<std::filesystem::path> inputs;  // the files of samples that it names

  // The configuration without the number of steps: all that must not differ between a run and its continuation.
  std::string without_steps() const;
  // The same experiment with another seed.
  void set_seed(std::uint64_t another);
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

// What the command line says of the kernels (none: the best of this machine), of an experiment, and of a run of it. The
// names and help of the options are in options.cpp.
using ChosenIsa = std::optional<implicit_diffusion::Isa>;
struct ExperimentOptions {
  std::string experiment;           // a name, or FILE.toml
  std::optional<std::string> seed;  // as typed; none: as the file says
  ChosenIsa isa;
  std::vector<std::string> set;  // key=value
  bool portable_bits = false;    // of networks (networks/environment.hpp)
};
struct RunOptions : ExperimentOptions {
  std::optional<std::string> steps;
  std::uint64_t repeats = 1, threads = 0;  // 0 threads: all cores
  std::string output;                      // empty: runs/NAME-SEED
  bool overwrite = false, print_config = false, quick = false, quiet = false, no_report = false, resume = false;
};

// The pieces between those letters; what ends with one has no empty piece behind it.
std::vector<std::string> split(const std::string& text, char at);

// The first lines in which two texts differ, in quotes and short; "nothing more" of one that has ended.
std::pair<std::string, std::string> first_difference(const std::string& one, const std::string& other);

// The word among these that is closest to what was typed, if one is close.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& words);

// A number as TOML and summary.json's keys have it: with a point or an exponent.
std::string toml_number(double v);
// A string as TOML has it.
std::string toml_string(std::string_view s);
// Any value as TOML has it.
inline std::string to_toml(bool v) { return v ? "true" : "false"; }
inline std::string to_toml(std::int64_t v) { return std::to_string(v); }
inline std::string to_toml(double v) { return toml_number(v); }
inline std::string to_toml(const std::string& v) { return toml_string(v); }
template <class T>
std::string to_toml(const std::vector<T>& values) {
  std::string list;
  for (const T& v : values) list += (list.empty() ? "" : ", ") + to_toml(v);
  return "[" + list + "]";
}

}  // namespace program
