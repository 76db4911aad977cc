// The report of a denoising-mixture run, from its folder.
#pragma once

#include "denoising_mixture/configuration.hpp"

#include <filesystem>
#include <string>

namespace program {

std::string denoising_report(const DenoisingComparison& e, const std::filesystem::path& folder);

}  // namespace program
