#include "networks/training_keys.hpp"

#include <fmt/format.h>

#include <utility>

namespace program {

void read_training(TableReader& t, TrainingKeys& k, bool averages) {
  using Sign = TableReader::Sign;
  constexpr std::int64_t most = 100'000'000;
  k.steps = t.integer("steps", k.steps, 0, most);
  k.batch = t.integer("batch", k.batch, 1, 1'000'000);
  k.shard = t.integer("shard", k.shard, 1, 4096);
  k.learning_rate = t.number("learning_rate", k.learning_rate, Sign::not_negative);
  k.warm_up = t.integer("warm_up", k.warm_up, 0, most);
  k.decay = t.flag("decay", k.decay);
  k.first_decay = t.number("first_decay", k.first_decay, Sign::not_negative);
  k.second_decay = t.number("second_decay", k.second_decay, Sign::not_negative);
  for (const auto& [key, value] : {std::pair{"first_decay", k.first_decay}, {"second_decay", k.second_decay}})
    if (value >= 1) t.fail(key, fmt::format("{} must be below 1", value));
  k.epsilon = t.number("epsilon", k.epsilon, Sign::positive);
  k.clip = t.number("clip", k.clip, Sign::not_negative);
  if (!averages) return;
  k.average = t.number("average", k.average, Sign::not_negative);
  if (k.average >= 1) t.fail("average", fmt::format("{} must be below 1", k.average));
}

}  // namespace program
