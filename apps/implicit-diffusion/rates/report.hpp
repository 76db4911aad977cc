// The report of a rates run, from its folder.
#pragma once

#include "rates/configuration.hpp"

#include <filesystem>
#include <string>

namespace program {

std::string rates_report(const RatesConfiguration& c, const std::filesystem::path& folder);

}  // namespace program
