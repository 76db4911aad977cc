#include "implicit_diffusion/finite/population.hpp"

namespace implicit_diffusion {

StatePopulation whole(const StatePopulation& x) {
  if (!x.blocks.processes) return {x.states};
  StatePopulation all{std::vector<std::uint32_t>(x.all)};
  std::copy(x.states.begin(), x.states.end(), all.states.begin() + static_cast<std::ptrdiff_t>(x.first()));
  const auto first_of = [&](std::size_t rank) { return std::min(x.all, x.blocks.first_of(rank) * block_size); };
  std::vector<std::size_t> sizes;
  for (std::size_t r = 0; r < x.blocks.processes->ranks(); ++r)
    sizes.push_back((first_of(r + 1) - first_of(r)) * sizeof(std::uint32_t));
  x.blocks.processes->gather(sizes, as_message(std::span(all.states)));
  return all;
}

void add_counts(Processes* processes, std::span<double> counts) {
  const std::size_t ranks = processes->ranks();
  std::vector<double> all(ranks * counts.size());
  std::copy(counts.begin(), counts.end(), all.begin() + static_cast<std::ptrdiff_t>(processes->rank() * counts.size()));
  processes->gather(std::vector<std::size_t>(ranks, counts.size_bytes()), as_message(std::span(all)));
  for (std::size_t j = 0; j < counts.size(); ++j) {
    counts[j] = 0;
    for (std::size_t r = 0; r < ranks; ++r) counts[j] += all[r * counts.size() + j];
  }
}

}  // namespace implicit_diffusion
