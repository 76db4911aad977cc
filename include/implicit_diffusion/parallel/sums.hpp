// Sums over the tiles of a population, in one place and in one order.
//
// A tile adds to a row of its own, whichever thread works on it; rows are added up afterwards, at two levels:
//
//     chunk c = row of tile 4096 c + row of tile 4096 c + 1 + ...       tiles in order
//     total   = chunk 0 + chunk 1 + ...                                  chunks in order
//
// So the bits of a sum depend neither on threads nor on how tiles are spread over processes. A chunk whose tiles are on
// several of them is added up by each in turn: the first hands the sum of its rows on to the next, which goes on adding
// where that has stopped, and the last one has the chunk. Then all exchange one row for each chunk:
//
//     rank 0:  r0 + r1 -->      rank 1:  ... + r2 + r3 -->      rank 2:  ... + r4 = chunk 0, to all
//
// There are never more than 4,096 rows in memory, and as many of a chunk that another process has begun.
#pragma once

#include "implicit_diffusion/parallel.hpp"
#include "implicit_diffusion/processes.hpp"

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
  // Calls task(i, row) for every tile that is here, the i-th of them, with a row of `width` zeros to add to. The result
  // is valid until the next call.
  template <class Task>
  std::span<const double> operator()(Workers* workers, const Range& tiles, std::size_t width, std::size_t grain,
                                     Task&& task) {
    total_.assign(width, 0.0);
    if (tiles.processes) chunks_.assign((tiles.total + tiles_per_chunk - 1) / tiles_per_chunk * width, 0.0);
    const std::size_t end = tiles.first + tiles.count;
    for (std::size_t at = tiles.first, stop = at; at < end; at = stop) {
      const std::size_t chunk = at / tiles_per_chunk * tiles_per_chunk;
      stop = std::min(end, chunk + tiles_per_chunk);
      std::vector<double>& rows = at == chunk ? rows_ : late_;
      rows.assign((stop - at) * width, 0.0);
      for_each_task(workers, stop - at, grain,
                    [&](std::size_t i) { task(at - tiles.first + i, std::span(rows).subspan(i * width, width)); });
      if (at != chunk) continue;
      add_rows(std::span(rows).subspan(width), std::span(rows).first(width));
      hand_on(tiles, stop, std::span(rows).first(width));
    }
    if (tiles.processes) finish(tiles, width);
    return total_;
  }

  // The total of rows that are there already, one for each tile; it has the size of a row.
  void add_up(const Range& tiles, std::span<const double> rows, std::span<double> total) {
    const std::size_t width = total.size();
    const auto sums = (*this)(nullptr, tiles, width, 1, [&](std::size_t i, std::span<double> row) {
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * width), width, row.begin());
    });
    std::copy(sums.begin(), sums.end(), total.begin());
  }

 private:
  // Adds rows, one after the other, to a sum: four at a time, so that it is read and written less often.
  static void add_rows(std::span<const double> rows, std::span<double> sum) {
    const std::size_t width = sum.size();
    const double* row = rows.data();
    std::size_t left = width ? rows.size() / width : 0;
    for (; left >= 4; left -= 4, row += 4 * width)
      for (std::size_t j = 0; j < width; ++j)
        sum[j] = sum[j] + row[j] + row[width + j] + row[2 * width + j] + row[3 * width + j];
    for (; left > 0; --left, row += width)
      for (std::size_t j = 0; j < width; ++j) sum[j] += row[j];
  }
  // The next chunk of the total.
  void add_chunk(std::span<const double> chunk, bool first) {
    for (std::size_t j = 0; j < total_.size(); ++j) total_[j] = first ? chunk[j] : total_[j] + chunk[j];
  }

  // The sum of a chunk up to tile `stop`: it is finished, or goes on on another process.
  void hand_on(const Range& tiles, std::size_t stop, std::span<double> sum) {
    const std::size_t chunk = (stop - 1) / tiles_per_chunk;
    if (!tiles.processes)
      add_chunk(sum, chunk == 0);
    else if (stop < tiles.total && stop % tiles_per_chunk != 0)
      tiles.processes->send(tiles.owner(stop), as_message(sum));
    else
      std::copy(sum.begin(), sum.end(), chunks_.begin() + static_cast<std::ptrdiff_t>(chunk * sum.size()));
  }

  // The chunk that others have begun, then the exchange of all.
  void finish(const Range& tiles, std::size_t width) {
    Processes& processes = *tiles.processes;
    if (tiles.count > 0 && tiles.first % tiles_per_chunk != 0) {
      so_far_.resize(width);
      processes.receive(tiles.owner(tiles.first - 1), as_message(std::span(so_far_)));
      add_rows(late_, so_far_);
      hand_on(tiles, tiles.first + late_.size() / width, so_far_);
    }
    const std::size_t chunks = chunks_.size() / width;
    const auto finished_before = [&](std::size_t tile) { return tile < tiles.total ? tile / tiles_per_chunk : chunks; };
    sizes_.resize(processes.ranks());
    for (std::size_t r = 0; r < sizes_.size(); ++r)
      sizes_[r] =
          (finished_before(tiles.first_of(r + 1)) - finished_before(tiles.first_of(r))) * width * sizeof(double);
    processes.gather(sizes_, as_message(std::span(chunks_)));
    for (std::size_t c = 0; c < chunks; ++c) add_chunk(std::span(chunks_).subspan(c * width, width), c == 0);
  }

  std::vector<double> rows_, total_;
  // With several processes: the rows of a chunk that others have begun, their sum with what came before, the chunks.
  std::vector<double> late_, so_far_, chunks_;
  std::vector<std::size_t> sizes_;
};

}  // namespace implicit_diffusion
