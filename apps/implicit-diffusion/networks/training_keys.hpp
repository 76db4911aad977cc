// The keys of a training of a network: Adam with a rate that rises and falls (torch/training.hpp). Needs no LibTorch.
#pragma once

#include "experiment/table_reader.hpp"

#include <cstdint>

namespace program {

struct TrainingKeys {
  std::int64_t steps, batch, warm_up, shard;
  double learning_rate;
  bool decay = true;
  double first_decay = 0.9, second_decay = 0.99, epsilon = 1e-8, clip = 1, average = 0.998;
};

// Those that a table has, over those that are there. `averages`: a moving average of the weights is kept.
void read_training(TableReader& t, TrainingKeys& k, bool averages);

// Over how many steps the rate falls; 0: it stays. One that falls cannot be made longer when it is continued: its rates
// would have been others.
inline std::int64_t decay_of(const TrainingKeys& k) { return k.decay ? k.steps : 0; }

}  // namespace program
