// Where an axis is labelled, and how.
//
// Ticks stand at 1, 2 or 5 times a power of ten, the spacing being the smallest of these that needs no more than `most`
// ticks. Labels of one axis agree in form and are as short as they can be without ambiguity: 0.25, 400, 12k, 3×10⁻⁵.
// The minus is the true one (U+2212).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace implicit_diffusion::report {

struct Tick {
  double value;
  std::string label;
};

// Ticks in [low, high], ascending. Empty unless low < high, both finite, and most > 0.
std::vector<Tick> linear_ticks(double low, double high, std::size_t most);

// The same for a logarithmic axis: powers of ten, or every second, third, fifth, ... of them where there are many; 1,
// 2, 5 times powers of ten where there are few; linear ticks where not even these give two. Empty unless 0 < low <
// high, both finite, and most > 0.
std::vector<Tick> log_ticks(double low, double high, std::size_t most);

}  // namespace implicit_diffusion::report
