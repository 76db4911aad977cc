// What the command line says of a run. The names and help of the options are in options.cpp.
#pragma once

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

}  // namespace program
