#include "figures/tables.hpp"

#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
using namespace implicit_diffusion;

const std::string footer = "Made by implicit-diffusion " IMPLICIT_DIFFUSION_VERSION ".";

std::string minus(const std::string& number) { return number.starts_with('-') ? "−" + number.substr(1) : number; }

std::string fixed(double v, int decimals) { return minus(fmt::format("{:.{}f}", v, decimals)); }

std::string four_digits(double v) { return minus(fmt::format("{:.4g}", v)); }

std::vector<std::string> column_text(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  const int decimals = largest > 0 ? std::clamp(3 - static_cast<int>(std::floor(std::log10(largest))), 0, 12) : 0;
  std::vector<std::string> text;
  for (const double v : values) {
    std::string number = std::isfinite(v) ? fmt::format("{:.{}f}", v, decimals) : "";
    if (number.find_first_not_of("-0.") == std::string::npos && number.starts_with('-')) number.erase(0, 1);
    text.push_back(minus(number));
  }
  return text;
}

report::Section repeat_section(const std::string& resolved, const std::filesystem::path& folder,
                               const std::string& options) {
  std::filesystem::path file = folder / "config.toml";
  if (file.native().starts_with('-')) file = "." / file;  // a word that begins with - is an option
  std::string text = "The same configuration and seed give the same bits for any number of threads.\n\n";
  if (file.is_relative()) text += "Run the command in the folder in which this report was made. ";
  text +=
      "If your shell does not find implicit-diffusion, give its path; the build puts it at "
      "build/release/implicit-diffusion.";
  return {.heading = "How to repeat this run",
          .text = text,
          .code = {{"Command",
                    fmt::format("implicit-diffusion run {}{} --output again", io::shell_word(file.string()), options)},
                   {"config.toml", resolved}}};
}

}  // namespace program
