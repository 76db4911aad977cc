// The kind `ebm-network`: an energy V(x, theta), a network confined by a parabola, learns a law in the plane from
// samples of it, by minimising KL(target || pi*(theta)). Its own samples are those of the single loop, or of the nested
// loop with a warm start where inner_steps is above 1.
//
// run() and checks() need LibTorch, and are defined by the executable with networks.
#pragma once

#include "ebm_network/target.hpp"
#include "experiment/experiment.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace program {

struct EbmConfiguration : Common {
  std::int64_t particles = 1000, steps = 10'000, inner_steps = 1, log_every = 100, checkpoint_every = 0, shard = 250;
  double step_size = 0.01, learning_rate = 1e-3, average = 0.999, spread = 2;
  std::string optimizer;  // its name
  std::vector<std::int64_t> widths;
  double confinement = 0.1;
  EbmTarget target;
};

class EbmNetworkExperiment final : public ExperimentOf<EbmConfiguration> {
 public:
  using ExperimentOf::ExperimentOf;
  bool needs_networks() const override { return true; }
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  Repeats repeats() const override { return {}; }
  bool is_shared() const override { return true; }
};

// energy.npy: log pi*(theta) at the beginning and at the end, at the nodes of a grid over target.window(), rows going
// up.
inline constexpr std::size_t ebm_nodes = 128;

}  // namespace program
