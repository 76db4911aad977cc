// Words and sections that the reports of all kinds of experiments share.
#pragma once

#include "implicit_diffusion/report/page.hpp"

#include <filesystem>

namespace program {

// With the true minus, as the axes have it.
std::string minus(const std::string& number);
// A number with so many decimals, and the true minus.
std::string fixed(double v, int decimals);
// A number to four significant digits or so, for running text.
std::string four_digits(double v);
// Numbers of one column of a table, with the same decimals: four significant digits for the largest. Empty where one is
// not finite.
std::vector<std::string> column_text(const std::vector<double>& values);

// The command that repeats the run in the folder, and its configuration.
implicit_diffusion::report::Section repeat_section(const std::string& resolved, const std::filesystem::path& folder,
                                                   const std::string& options);

extern const std::string footer;

}  // namespace program
