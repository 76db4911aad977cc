#include "ebm_network/experiment.hpp"
#include "implicit_diffusion/optimizer/any.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {

using namespace implicit_diffusion;

std::unique_ptr<Experiment> read_ebm_network(const Document& d) {
  using Sign = TableReader::Sign;
  EbmConfiguration c;
  TableReader top(d);
  top.text("kind", "ebm-network");
  read_common(top, d, c);
  constexpr std::int64_t most_particles = 10'000'000;
  c.particles = top.integer("particles", c.particles, 1, most_particles);
  c.steps = top.integer("steps", c.steps, 0);
  c.inner_steps = top.integer("inner_steps", c.inner_steps, 1, 1'000'000);
  if (c.steps > std::numeric_limits<std::int64_t>::max() / c.inner_steps)
    top.fail("steps", fmt::format("{} with {} inner steps each are more than can be counted", c.steps, c.inner_steps));
  c.step_size = top.number("step_size", c.step_size, Sign::positive);
  c.learning_rate = top.number("learning_rate", c.learning_rate, Sign::not_negative);
  const std::vector<std::string> optimizers = AnyOptimizer::names();
  const auto usual = std::ranges::find(optimizers, RmsPropOptions::name) - optimizers.begin();
  c.optimizer = optimizers[top.choice("optimizer", static_cast<std::size_t>(usual), optimizers)];
  c.average = top.number("average", c.average, Sign::not_negative);
  if (c.average >= 1) top.fail("average", fmt::format("{} must be below 1", c.average));
  c.log_every = top.integer("log_every", c.log_every, 1);
  c.checkpoint_every = top.integer("checkpoint_every", 0, 0);
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));

  TableReader network = top.table("network");
  c.widths = network.integers("widths", {64, 64}, 1, 4096);
  if (c.widths.empty() || c.widths.size() > 32)
    network.fail("widths", fmt::format("{} layers, there can be 1 to 32", c.widths.size()));
  c.confinement = network.number("confinement", c.confinement, Sign::positive);
  // The quadrature reaches 64: a wider law would have no divergence.
  if (c.confinement < 0.01 || c.confinement > 100)
    network.fail("confinement", fmt::format("{} must be between 0.01 and 100", c.confinement));
  c.shard = network.integer("shard", c.shard, 1, most_particles);

  TableReader target = top.table("target");
  c.target.read(target, d.folder);

  TableReader start = top.table("start");
  c.spread = start.number("scale", c.spread, Sign::not_negative);

  finish(c, d, {&top, &network, &target, &start});
  return std::make_unique<EbmNetworkExperiment>(std::move(c));
}

}  // namespace program
