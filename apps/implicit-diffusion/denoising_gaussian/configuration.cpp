#include "denoising_gaussian/experiment.hpp"

#include "experiment/table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

DenoisingGaussianConfiguration read_denoising_gaussian_configuration(const Document& d) {
  using Sign = TableReader::Sign;
  DenoisingGaussianConfiguration c;
  TableReader top(d);
  top.text("kind", "denoising-gaussian");
  read_common(top, d, c);
  if (top.contains("steps"))
    top.fail("steps",
             "each run has as many as its horizon asks for, 2 horizon steps_per_time: change those keys instead");
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));
  const auto ascending = [&](const char* key, const std::vector<double>& v, double largest) {
    if (v.empty()) top.fail(key, "empty: one at least is needed");
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (!(v[i] > (i ? v[i - 1] : 0))) top.fail(key, "the numbers must be positive and ascend");
      if (v[i] > largest) top.fail(key, fmt::format("{} is more than {}", v[i], largest));
    }
  };
  c.horizons = top.numbers("horizons", {1, 2, 3, 4, 5, 6, 7, 8});
  ascending("horizons", c.horizons, 100);
  c.etas = top.numbers("etas", {0.05, 0.1, 0.25, 0.5, 2});
  ascending("etas", c.etas, 1000);
  if (c.etas.front() < 1e-6) top.fail("etas", fmt::format("{} must be at least 1e-6", c.etas.front()));
  c.theta_0 = top.number("theta_0", c.theta_0, Sign::any);
  c.target = top.number("target", c.target, Sign::any);
  for (const auto& [key, value] : {std::pair{"theta_0", c.theta_0}, {"target", c.target}})
    if (std::abs(value) > 1000) top.fail(key, fmt::format("{} must be between -1000 and 1000", value));
  if (c.theta_0 == c.target) top.fail("theta_0", fmt::format("{} is the target: nothing is left to learn", c.theta_0));
  c.steps_per_time = top.integer("steps_per_time", c.steps_per_time, 1, 1000);
  c.batch = top.integer("batch", c.batch, 1, 1'000'000);
  c.repeats = top.integer("repeats", c.repeats, 2, 100'000);

  for (const double horizon : c.horizons)
    if (const double m = horizon * static_cast<double>(c.steps_per_time); m < 0.5 || std::abs(m - std::round(m)) > 1e-6)
      top.fail("horizons", fmt::format("{} is not a whole number of steps, of which {} make a unit of time", horizon,
                                       c.steps_per_time));
  // Slot m of M keeps the m states of its path, all of them together M^2 / 2 batches.
  constexpr double most_numbers = 1 << 28;  // of four bytes, for each thread
  const double m = c.slots(c.horizons.back()), numbers = m * m / 2 * static_cast<double>(c.batch);
  if (numbers > most_numbers)
    top.fail("batch",
             fmt::format("{} samples in each of {} slots keep paths of {:.3g} bytes, more than {:.3g}: a smaller "
                         "batch, horizon or steps_per_time is needed",
                         c.batch, m, 4 * numbers, 4 * most_numbers));
  const auto known = std::find_if(c.horizons.begin(), c.horizons.end(), [](double t) { return t >= 3; });
  c.path_horizon = top.number("path_horizon", known == c.horizons.end() ? c.horizons.back() : *known, Sign::positive);
  if (std::find(c.horizons.begin(), c.horizons.end(), c.path_horizon) == c.horizons.end())
    top.fail("path_horizon", fmt::format("{} is none of the horizons", c.path_horizon));
  finish(c, d, {&top});
  return c;
}

}  // namespace program
