#include "finite_state/experiment.hpp"

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/finite/stationary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {
namespace {

using namespace implicit_diffusion;

const EnumNames<Rule> rules{{"heat-bath", Rule::heat_bath}, {"metropolis", Rule::metropolis}};

}  // namespace

FiniteStateConfiguration read_finite_state_configuration(const Document& d) {
  using Sign = TableReader::Sign;
  FiniteStateConfiguration c;
  TableReader top(d);
  top.text("kind", "finite-state");
  read_common(top, d, c);
  constexpr std::int64_t most = 1'000'000;
  c.ring.states = static_cast<std::size_t>(top.integer("states", 1000, 3, most));
  c.ring.harmonics = static_cast<std::size_t>(top.integer("harmonics", 2, 1, 100));
  c.ring.width = static_cast<std::size_t>(top.integer("width", 20, 1, most));
  if (c.ring.states <= 2 * c.ring.harmonics)
    top.fail("harmonics", fmt::format("{} need more than {} states", c.ring.harmonics, 2 * c.ring.harmonics));
  if (c.ring.states <= 2 * c.ring.width)
    top.fail("width", fmt::format("{} needs more than {} states", c.ring.width, 2 * c.ring.width));
  constexpr double most_work = 2e9;  // some seconds for each step, in which a run cannot be stopped
  if (const double entries = 2 * static_cast<double>(c.ring.width);
      static_cast<double>(c.ring.states) * entries * entries > most_work)
    top.fail("width", fmt::format("{} on {} states take too long: states (2 width)^2 must be at most {}", c.ring.width,
                                  c.ring.states, most_work));
  c.reward = top.numbers("reward", {0.5, 0.2, -0.3, 0.1});
  if (c.reward.empty() || c.reward.size() > 2 * c.ring.harmonics)
    top.fail("reward", fmt::format("{} coefficients, {} harmonics have 1 to {}", c.reward.size(), c.ring.harmonics,
                                   2 * c.ring.harmonics));
  c.beta = top.number("beta", c.beta, Sign::positive);
  c.rule = top.choice("rule", c.rule, rules);
  c.particles = top.integer("particles", c.particles, 2, 100'000'000);
  c.steps = top.integer("steps", c.steps, 0);
  c.learning_rate = top.number("learning_rate", c.learning_rate, Sign::not_negative);
  c.log_every = top.integer("log_every", c.log_every, 1);
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));
  TableReader start = top.table("start");
  const std::size_t parameters = 1 + 2 * c.ring.harmonics;
  c.start = start.numbers("theta", std::vector<double>(parameters, 0.0));
  if (c.start.size() != parameters)
    start.fail("theta", fmt::format("{} numbers, the chain has {} parameters", c.start.size(), parameters));
  if (std::ranges::any_of(c.start, [](double t) { return t != 0; })) try {
      RingChain chain(c.ring);
      chain.prepare(c.start);
      require_reachable(chain.matrix());
    } catch (const Error& e) {
      start.fail("theta", fmt::format("too large: probabilities of the chain are 0, {}", e.reason()));
    }
  TableReader timing = top.table("timing");
  constexpr std::int64_t smallest = 5, most_dense = 4000;
  c.dense_sizes = timing.integers("dense", {}, smallest, most_dense);
  c.band_sizes = timing.integers("banded", {}, smallest, most);
  finish(c, d, {&top, &start, &timing});
  return c;
}

}  // namespace program
