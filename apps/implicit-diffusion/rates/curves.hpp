// The curves of a rates experiment, and how people call them.
#pragma once

#include "experiment/json.hpp"
#include "implicit_diffusion/langevin/rates.hpp"

#include <filesystem>
#include <vector>

namespace program {

inline constexpr double flow_exponent = 0.5;  // eps_t = min(1, t^-1/2)

struct RateCurve {
  std::string kind;  // discrete, flow
  double exponent;   // of the schedule
  std::vector<implicit_diffusion::RateRow> rows;
};

// What the theorem promises: the exponent of K, or of T.
double promised_exponent(const RateCurve& c);
// A number as a fraction where it is one that people know.
std::string as_fraction(double v);
std::string label_of(const RateCurve& c);

// The rows' numbers, row by row.
std::vector<double> numbers_of(const std::vector<implicit_diffusion::RateRow>& rows);

// The keys of summary.json, and back from there.
Json json_of(const std::vector<RateCurve>& curves);
std::vector<RateCurve> read_curves(const std::filesystem::path& summary);

}  // namespace program
