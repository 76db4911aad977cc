// What a comparison of Langevin methods is: the same problem with several methods, and several seeds each.
#pragma once

#include "langevin/configuration.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace program {

// One of the settings that a comparison runs.
struct Setting {
  LangevinConfiguration configuration;
  std::string variant;  // the changes that make it, KEY=VALUE ...; empty: a method of the comparison itself
  std::string folder;
};

struct LangevinComparison : Common {
  std::int64_t seeds = 10;
  std::vector<Setting> settings;
  std::size_t variants = 0;  // the last so many settings
};
// Where a comparison keeps the run of a setting.
std::filesystem::path folder_of(const std::filesystem::path& folder, const Setting& setting, std::uint64_t seed);

LangevinComparison read_langevin_comparison_configuration(const Document& d);

}  // namespace program
