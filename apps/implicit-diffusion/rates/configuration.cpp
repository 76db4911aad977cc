#include "rates/experiment.hpp"

#include "experiment/table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

RatesConfiguration read_rates_configuration(const Document& d) {
  using Sign = TableReader::Sign;
  RatesConfiguration c;
  TableReader top(d);
  top.text("kind", "rates");
  read_common(top, d, c);
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));  // nothing is random here; it names the folder
  TableReader discrete = top.table("discrete"), flow = top.table("flow");
  const auto ascending = [](const TableReader& s, const char* key, const auto& v) {
    if (v.size() < 2) s.fail(key, "two numbers at least are needed for a slope");
    for (std::size_t i = 0; i < v.size(); ++i)
      if (!(v[i] > (i ? v[i - 1] : 0))) s.fail(key, "the numbers must be positive and ascend");
  };
  c.exponents = discrete.numbers("exponents", {1.0 / 3, 0.5});
  if (c.exponents.empty()) discrete.fail("exponents", "empty: one at least is needed");
  for (const double a : c.exponents) {
    if (a < 0 || a > 1) discrete.fail("exponents", fmt::format("{} must be between 0 and 1", a));
    if (std::count(c.exponents.begin(), c.exponents.end(), a) > 1)
      discrete.fail("exponents", fmt::format("{} is there twice", a));
  }
  c.scale = discrete.number("scale", c.scale, Sign::positive);
  if (c.scale >= 1) discrete.fail("scale", fmt::format("{} must be below 1, or the chain is not stable", c.scale));
  constexpr std::int64_t most_steps = 100'000'000;
  c.steps = discrete.integers("steps", {100, 1000, 10'000, 100'000}, 1, most_steps);
  ascending(discrete, "steps", c.steps);
  c.targets = discrete.numbers("targets", {1, 1.5, 2.2, 3.3, 5, 7, 10, 15, 22, 33, 50});
  if (c.targets.empty()) discrete.fail("targets", "empty: one at least is needed");
  for (const double t : c.targets)
    if (!(t >= 1e-3 && t <= 1e6)) discrete.fail("targets", fmt::format("{} must be between 0.001 and 1000000", t));
  // A run cannot be stopped within a recursion: none is longer than some ten seconds.
  constexpr double most_work = 2e8;
  if (static_cast<double>(c.steps.back()) * static_cast<double>(c.targets.size()) > most_work)
    discrete.fail("steps", fmt::format("{} steps for {} targets take too long", c.steps.back(), c.targets.size()));
  c.times = flow.numbers("times", {10, 30, 100, 300, 1000, 3000, 10'000});
  ascending(flow, "times", c.times);
  constexpr double longest = 1e6;
  if (c.times.back() > longest) flow.fail("times", fmt::format("{} is more than {}", c.times.back(), longest));
  c.largest_target = flow.number("largest_target", c.largest_target, Sign::positive);
  c.target_ratio = flow.number("target_ratio", c.target_ratio, Sign::positive);
  if (c.target_ratio < 1.001) flow.fail("target_ratio", fmt::format("{} must be at least 1.001", c.target_ratio));
  if (c.largest_target < 1) flow.fail("largest_target", fmt::format("{} must be at least 1", c.largest_target));
  c.steps_per_time = flow.integer("steps_per_time", c.steps_per_time, 1, 10'000);
  if (c.times.front() * static_cast<double>(c.steps_per_time) < 1)
    flow.fail("times", fmt::format("{} is shorter than a step of the integration", c.times.front()));
  if (const double work = c.times.back() * static_cast<double>(c.steps_per_time) *
                          (1 + std::log(c.largest_target) / std::log(c.target_ratio));
      work > most_work)
    flow.fail("times", fmt::format("{} with so many targets and steps takes too long", c.times.back()));
  finish(c, d, {&top, &discrete, &flow});
  return c;
}

}  // namespace program
