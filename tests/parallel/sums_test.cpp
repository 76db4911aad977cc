// Sums over tiles: the order of their additions, whatever the threads.
#include "implicit_diffusion/parallel/sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace implicit_diffusion {
namespace {

// Numbers of many sizes: another order gives other bits.
double part(std::size_t tile, std::size_t j) {
  return std::sin(static_cast<double>(7 * tile + j)) * std::pow(2.0, static_cast<double>(tile % 37));
}

std::vector<double> by_definition(std::size_t tiles, std::size_t width) {
  std::vector<double> total(width);
  for (std::size_t j = 0; j < width; ++j)
    for (std::size_t first = 0; first < tiles; first += 4096) {
      double chunk = part(first, j);
      for (std::size_t k = first + 1; k < std::min(tiles, first + 4096); ++k) chunk += part(k, j);
      total[j] = first == 0 ? chunk : total[j] + chunk;
    }
  return total;
}

TEST(TileSums, AddTilesInOrderWithinChunksAndThenChunks) {
  Workers three(3);
  for (const std::size_t tiles : {1, 2, 4095, 4096, 4097, 10000})
    for (Workers* workers : {static_cast<Workers*>(nullptr), &three}) {
      TileSums sums;
      const auto total = sums(workers, tiles, 3, 10, [](std::size_t tile, std::span<double> row) {
        for (std::size_t j = 0; j < 3; ++j) row[j] += part(tile, j);
      });
      EXPECT_EQ(std::vector(total.begin(), total.end()), by_definition(tiles, 3)) << tiles;
    }
  // In one run through all tiles the bits are others beyond one chunk, and the same up to there.
  double straight = 0;
  for (std::size_t k = 0; k < 10000; ++k) straight += part(k, 0);
  EXPECT_NE(straight, by_definition(10000, 1)[0]);
  straight = 0;
  for (std::size_t k = 0; k < 4096; ++k) straight += part(k, 0);
  EXPECT_EQ(straight, by_definition(4096, 1)[0]);
}

TEST(TileSums, OfRowsThatAreThereAreTheSame) {
  for (const std::size_t tiles : {1, 5000}) {
    std::vector<double> rows, total(2);
    for (std::size_t k = 0; k < tiles; ++k)
      for (std::size_t j = 0; j < 2; ++j) rows.push_back(part(k, j));
    TileSums().add_up(tiles, rows, total);
    EXPECT_EQ(total, by_definition(tiles, 2));
  }
}

TEST(TileSums, HoldTheRowsOfOneChunk) {
  TileSums sums;
  std::set<const double*> rows;
  const auto total = sums(nullptr, 3 * 4096, 1, 1, [&](std::size_t, std::span<double> row) {
    EXPECT_EQ(row[0], 0);
    rows.insert(row.data());
    row[0] = 1;
  });
  EXPECT_EQ(rows.size(), 4096U);
  EXPECT_EQ(total[0], 3 * 4096);
}

TEST(TileSums, OfNoTilesAreZero) {
  TileSums sums;
  const auto total = sums(nullptr, 0, 2, 1, [](std::size_t, std::span<double>) {});
  EXPECT_EQ(std::vector(total.begin(), total.end()), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace implicit_diffusion
