// Langevin runs side by side on one page.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace program {

// The runs in these folders, or the repeats in them. Those with the same configuration but for the seed are one curve
// with a band.
std::string side_by_side_report(const std::vector<std::filesystem::path>& folders);

}  // namespace program
