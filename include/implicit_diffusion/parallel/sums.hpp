// Sums over the tiles of a population, in one place and in one order.
//
// A tile adds to a row of its own, whichever thread works on it; rows are added up afterwards, at two levels:
//
//     chunk c = row of tile 4096 c + row of tile 4096 c + 1 + ...       tiles in order
//     total   = chunk 0 + chunk 1 + ...                                  chunks in order
//
// So the bits of a sum depend neither on threads nor on how tiles are spread, and processes that own whole chunks need
// to exchange one row a chunk. There are never more than 4,096 rows in memory.
#pragma once

#include "implicit_diffusion/parallel.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace implicit_diffusion {

inline constexpr std::size_t tiles_per_chunk = 4096;

// Calls task(i), i < count, on the workers, or here where there are none.
template <class Task>
void for_each_task(Workers* workers, std::size_t count, std::size_t grain, Task&& task) {
  if (workers) return workers->for_each(count, grain, task);
  for (std::size_t i = 0; i < count; ++i) task(i);
}

class TileSums {
 public:
  // Calls task(tile, row) for every tile, with a row of `width` zeros to add to. The result is valid until the next
  // call.
  template <class Task>
  std::span<const double> operator()(Workers* workers, std::size_t tiles, std::size_t width, std::size_t grain,
                                     Task&& task) {
    total_.assign(width, 0.0);
    for (std::size_t first = 0; first < tiles; first += tiles_per_chunk) {
      const std::size_t count = std::min(tiles - first, tiles_per_chunk);
      rows_.assign(count * width, 0.0);
      for_each_task(workers, count, grain,
                    [&](std::size_t i) { task(first + i, std::span(rows_).subspan(i * width, width)); });
      add_chunk(rows_, first == 0, total_);
    }
    return total_;
  }

  // The total of rows that are there already, one for each tile; it has the size of a row.
  static void add_up(std::span<const double> rows, std::span<double> total) {
    std::fill(total.begin(), total.end(), 0.0);
    const std::size_t size = tiles_per_chunk * total.size();
    for (std::size_t first = 0; first < rows.size(); first += size) {
      const auto part = rows.subspan(first, std::min(rows.size() - first, size));
      std::vector<double> chunk(part.begin(), part.end());
      add_chunk(chunk, first == 0, total);
    }
  }

 private:
  // Adds the rows of a chunk to its first, and that to the total.
  static void add_chunk(std::span<double> rows, bool first, std::span<double> total) {
    const std::size_t width = total.size();
    for (std::size_t at = width; at < rows.size(); at += width)
      for (std::size_t j = 0; j < width; ++j) rows[j] += rows[at + j];
    for (std::size_t j = 0; j < width; ++j) total[j] = first ? rows[j] : total[j] + rows[j];
  }

  std::vector<double> rows_, total_;
};

}  // namespace implicit_diffusion
