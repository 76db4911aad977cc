// Running a rates experiment: one curve after the other.
#pragma once

#include "experiment/run_options.hpp"
#include "rates/configuration.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace program {

int run_rates(const RatesConfiguration& c, const RunOptions& o,
              const std::function<std::string(const std::filesystem::path& folder)>& report);

}  // namespace program
