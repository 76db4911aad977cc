// The report of a denoising-gaussian run, from its folder.
#pragma once

#include "denoising_gaussian/configuration.hpp"

#include <filesystem>
#include <string>

namespace program {

std::string denoising_gaussian_report(const DenoisingGaussianConfiguration& c, const std::filesystem::path& folder);

}  // namespace program
