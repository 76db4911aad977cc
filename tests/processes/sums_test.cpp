// Ranges of tiles, and sums over them, on several processes: the bits of one.
#include "implicit_diffusion/parallel/sums.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/population_arrays.hpp"
#include "processes/threads_as_processes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace implicit_diffusion {
namespace {

using test::as_processes;

TEST(Range, GivesEachRankItsShareInOrder) {
  for (const std::size_t ranks : {2, 3, 4, 7})
    for (const std::size_t total : {0, 1, 2, 3, 10, 4096, 10001}) {
      const auto ranges = as_processes(ranks, [&](Processes* p) { return Range(p, total); });
      std::size_t at = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        EXPECT_EQ(ranges[r].first, at);
        EXPECT_LE(ranges[r].count, total / ranks + 1);
        EXPECT_GE(ranges[r].count + 1, total / ranks + (total % ranks != 0));
        at += ranges[r].count;
      }
      EXPECT_EQ(at, total);
      if (total > 0) {
        EXPECT_GT(ranges[0].count, 0U);  // whoever is first has the first of them
      }
    }
  // The owner of each; asked of every rank, since it is the same function.
  (void)as_processes(3, [](Processes* p) {
    const Range range(p, 100);
    for (std::size_t k = 0; k < 100; ++k) {
      const std::size_t r = range.owner(k);
      EXPECT_LE(range.first_of(r), k);
      EXPECT_LT(k, range.first_of(r + 1));
    }
    return 0;
  });
}

// Numbers of many sizes: another order gives other bits.
double part(std::size_t tile, std::size_t j) {
  return std::sin(static_cast<double>(7 * tile + j)) * std::pow(2.0, static_cast<double>(tile % 37));
}

std::vector<double> sums_of(Processes* processes, Workers* workers, std::size_t tiles) {
  TileSums sums;
  const Range range(processes, tiles);
  std::vector<double> total;
  for (int again = 0; again < 2; ++again) {
    const auto found = sums(workers, range, 3, 10, [&](std::size_t i, std::span<double> row) {
      for (std::size_t j = 0; j < 3; ++j) row[j] += part(range.first + i, j);
    });
    total.assign(found.begin(), found.end());
  }
  return total;
}

TEST(TileSums, OfSeveralProcessesAreThoseOfOne) {
  for (const std::size_t tiles : {1, 2, 3, 4, 5, 100, 4095, 4096, 4097, 8192, 10000, 20481}) {
    const std::vector<double> one = sums_of(nullptr, nullptr, tiles);
    for (const std::size_t ranks : {2, 3, 4, 5, 8})
      for (const auto& found : as_processes(ranks, [&](Processes* p) { return sums_of(p, nullptr, tiles); }))
        EXPECT_EQ(found, one) << tiles << " tiles on " << ranks;
  }
  // Each its own sum, added up afterwards, would be another number: the test can fail.
  const auto parts = as_processes(3, [](Processes* p) {
    const Range range(p, 4096);
    double sum = 0;
    for (std::size_t i = 0; i < range.count; ++i) sum += part(range.first + i, 0);
    return sum;
  });
  EXPECT_NE(std::accumulate(parts.begin(), parts.end(), 0.0), sums_of(nullptr, nullptr, 4096)[0]);
}

TEST(Processes, AgreeOnWhatOneKnows) {
  for (const bool somewhere : {false, true})
    for (const int found : as_processes(3, [&](Processes* p) { return int{any(p, somewhere && p->rank() == 2)}; }))
      EXPECT_EQ(found, int{somewhere});
  for (const auto& found : as_processes(4, [](Processes* p) { return least(p, {1, 7 - p->rank(), p->rank()}); }))
    EXPECT_EQ(found, (Triple{1, 4, 3}));
  for (const std::uint64_t sum : as_processes(4, [](Processes* p) { return sum_over(p, p->rank() + 1); }))
    EXPECT_EQ(sum, 10U);
  for (const std::string& text : as_processes(3, [](Processes* p) {
         return from_first(p, [&] { return std::string(p->rank() == 0 ? "the first" : "another"); });
       }))
    EXPECT_EQ(text, "the first");
}

// An Error of the first is one of all, of the same kind.
TEST(Processes, AllFailWithTheFirst) {
  for (const std::string& what : as_processes(3, [](Processes* p) -> std::string {
         try {
           return from_first(p, []() -> std::string { throw Error(ErrorKind::data, "a.npy", "is damaged"); });
         } catch (const Error& e) {
           return e.kind() == ErrorKind::data ? e.where() + "|" + e.reason() : "";
         }
       }))
    EXPECT_EQ(what, "a.npy|is damaged");
}

Population<float> numbered(std::size_t n, std::size_t d, Processes* p) {
  Population<float> x(n, d, p);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < d; ++j) x(i, j) = static_cast<float>(100 * (x.first() + i) + j);
  return x;
}

TEST(SpreadPopulation, IsGivenRowByRowAndCoordinateByCoordinate) {
  for (const std::size_t n : {1, 255, 256, 257, 1000, 5000}) {
    const Population<float> whole = numbered(n, 3, nullptr);
    std::string columns;
    give_pieces(whole, [&](std::string_view piece) { columns += piece; });
    const std::vector<float> rows = to_rows(whole);
    for (const std::size_t ranks : {2, 3, 5}) {
      const auto given = as_processes(ranks, [&](Processes* p) {
        const Population<float> x = numbered(n, 3, p);
        EXPECT_EQ(x.total(), n);
        EXPECT_EQ(size_in_bytes(x), columns.size());
        std::pair<std::string, std::string> bytes;
        give_pieces(x, [&](std::string_view piece) { bytes.first += piece; });
        give_rows(x, [&](std::string_view piece) { bytes.second += piece; });
        // Back again, from all bytes.
        Population<float> y(n, 3, p);
        std::size_t at = 0;
        take_pieces(y, [&](std::span<char> to) {
          std::copy_n(columns.data() + at, to.size(), to.data());
          at += to.size();
        });
        EXPECT_EQ(y, x);
        Population<float> z(n, 3, p);
        z.take_from(whole);
        EXPECT_EQ(z, x);
        return bytes;
      });
      EXPECT_EQ(given[0].first, columns);
      EXPECT_EQ(given[0].second, std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(float)));
      for (std::size_t r = 1; r < ranks; ++r) EXPECT_TRUE(given[r].first.empty());
    }
  }
}

TEST(SpreadPopulation, SomeOfItAreTheSameOnAll) {
  for (const std::size_t n : {10, 600, 5000})
    for (const std::size_t most : {1, 7, 300, 100000}) {
      const Population<float> one = some_of(numbered(n, 2, nullptr), most);
      EXPECT_EQ(one.size(), std::min(n, most));
      for (const auto& found : as_processes(4, [&](Processes* p) { return some_of(numbered(n, 2, p), most); }))
        EXPECT_EQ(found, one) << n << " " << most;
    }
}

TEST(SpreadPopulation, NamesTheFirstNumberThatIsNotFinite) {
  const auto spoilt = [](Processes* p) {
    Population<float> x(2000, 2, p);
    for (const auto& [sample, coordinate] : {std::pair<std::size_t, std::size_t>{300, 1}, {1900, 0}, {1950, 0}})
      if (sample >= x.first() && sample < x.first() + x.size())
        x(sample - x.first(), coordinate) = std::numeric_limits<float>::infinity();
    const auto found = find_nonfinite(x);
    return found ? std::pair(found->sample, found->coordinate) : std::pair<std::size_t, std::size_t>();
  };
  for (const std::size_t ranks : {1, 2, 3, 4})
    for (const auto& found : as_processes(ranks, spoilt))
      EXPECT_EQ(found, (std::pair<std::size_t, std::size_t>{1900, 0}));
}

}  // namespace
}  // namespace implicit_diffusion
