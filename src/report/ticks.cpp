#include "implicit_diffusion/report/ticks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace implicit_diffusion::report {
namespace {

constexpr std::array<int, 3> nice_mantissas{1, 2, 5};

// mantissa * 10^exponent, rounded once: 3e-1 is the double nearest to 0.3, which 3 * 0.1 is not.
double scaled(double mantissa, int exponent) {
  return exponent < 0 && exponent > -300 ? mantissa / std::pow(10.0, -exponent) : mantissa * std::pow(10.0, exponent);
}

std::string with_true_minus(std::string text) {
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

std::string power_of_ten(int exponent) {
  static constexpr std::array<std::string_view, 10> digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) out += digits[static_cast<std::size_t>(digit - '0')];
  return out;
}

// Labels for multiples of the spacing mantissa * 10^exponent, the greatest of which has the given magnitude.
std::string linear_label(double value, double magnitude, int exponent) {
  if (value == 0) return "0";
  int shift = 0;
  std::string unit;
  if (magnitude >= 1e15 || magnitude < 1e-3) {
    shift = static_cast<int>(std::floor(std::log10(magnitude) + 1e-9));
    unit = "×" + power_of_ten(shift);
  } else if (magnitude >= 1e4) {
    const int group = std::min(4, static_cast<int>(std::floor(std::log10(magnitude) / 3 + 1e-9)));
    shift = 3 * group;
    unit = std::string("kMGT").substr(static_cast<std::size_t>(group - 1), 1);
  }
  const int decimals = std::clamp(shift - exponent, 0, 17);
  return with_true_minus(fmt::format("{:.{}f}{}", scaled(value, -shift), decimals, unit));
}

std::string log_label(int mantissa, int exponent, bool plain) {
  if (!plain) return mantissa == 1 ? power_of_ten(exponent) : fmt::format("{}×{}", mantissa, power_of_ten(exponent));
  if (exponent < 0) return fmt::format("{:.{}f}", scaled(mantissa, exponent), -exponent);
  if (exponent >= 4) return fmt::format("{:.0f}k", scaled(mantissa, exponent - 3));
  return fmt::format("{:.0f}", scaled(mantissa, exponent));
}

}  // namespace

std::vector<Tick> linear_ticks(double low, double high, std::size_t most) {
  if (!(low < high) || !std::isfinite(high - low) || most == 0) return {};
  // A spacing below this gives too many ticks, so that the search goes up from it and ends within a decade or two.
  const double start = std::floor(std::log10(high - low) - std::log10(static_cast<double>(most + 1))) - 1;
  for (int exponent = static_cast<int>(start);; ++exponent) {
    for (const int mantissa : nice_mantissas) {
      const double spacing = scaled(mantissa, exponent);
      if (spacing == 0) continue;
      // A tick that is on the border but for rounding counts.
      const double first = std::ceil(low / spacing - 1e-9);
      const double last = std::floor(high / spacing + 1e-9);
      if (!(last - first + 1 <= static_cast<double>(most)) || std::abs(first) > 1e15 || std::abs(last) > 1e15) continue;
      const double magnitude = std::max(std::abs(first), std::abs(last)) * spacing;
      std::vector<Tick> ticks;
      for (double k = first; k <= last; ++k) {
        const double value = k == 0 ? 0 : std::clamp(scaled(k * mantissa, exponent), low, high);
        ticks.push_back({value, linear_label(scaled(k * mantissa, exponent), magnitude, exponent)});
      }
      return ticks;
    }
  }
}

std::vector<Tick> log_ticks(double low, double high, std::size_t most) {
  if (!(low > 0) || !(low < high) || !std::isfinite(high) || most == 0) return {};
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const bool plain = first >= -3 && last <= 6;
  const auto add = [&](std::vector<Tick>& ticks, int mantissa, int exponent) {
    const double value = scaled(mantissa, exponent);
    if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9))
      ticks.push_back({std::clamp(value, low, high), log_label(mantissa, exponent, plain)});
  };

  std::vector<Tick> fine;
  if (last - first <= 4)
    for (int exponent = first; exponent <= last; ++exponent)
      for (const int mantissa : nice_mantissas) add(fine, mantissa, exponent);
  const bool few_decades = std::log10(high / low) < 2.5;
  if (few_decades && fine.size() >= 3 && fine.size() <= most) return fine;

  for (const int stride : {1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300}) {
    std::vector<Tick> ticks;
    for (int exponent = first; exponent <= last; ++exponent)
      if (exponent % stride == 0) add(ticks, 1, exponent);
    if (ticks.size() > most) continue;
    if (ticks.size() >= 2) return ticks;
    break;
  }
  if (fine.size() >= 2 && fine.size() <= most) return fine;
  return linear_ticks(low, high, most);
}

}  // namespace implicit_diffusion::report
