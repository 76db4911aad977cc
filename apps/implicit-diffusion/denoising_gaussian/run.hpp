// Running a denoising-gaussian experiment: for each eta and horizon, independent queues of samples beside the theory.
#pragma once

#include "denoising_gaussian/configuration.hpp"
#include "experiment/run_options.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace program {

int run_denoising_gaussian(const DenoisingGaussianConfiguration& c, const RunOptions& o,
                           const std::function<std::string(const std::filesystem::path& folder)>& report);

}  // namespace program
