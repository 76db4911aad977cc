#include "implicit_diffusion/population.hpp"

#include "require.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

namespace implicit_diffusion {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
struct Piece {
  std::unique_ptr<void, Free> memory;
  std::size_t bytes;
  bool taken;
};
thread_local std::vector<Piece> pieces;

}  // namespace

void require_memory_for(std::size_t n, std::size_t d) {
  constexpr std::size_t most = std::size_t{1} << 48;  // numbers; far below where sizes in bytes overflow
  require(n <= most / std::max<std::size_t>(d, 1), "samples", "{} of dimension {} are more than any memory holds", n,
          d);
}

void* take_memory(std::size_t bytes) {
  for (Piece& p : pieces)
    if (!p.taken && p.bytes >= bytes) {
      p.taken = true;
      return p.memory.get();
    }
  const std::size_t whole = (bytes + 63) / 64 * 64;
  std::unique_ptr<void, Free> memory(std::aligned_alloc(64, whole));
  if (!memory) throw std::bad_alloc();
  pieces.push_back({std::move(memory), whole, true});
  return pieces.back().memory.get();
}

void give_memory(void* memory) {
  std::ranges::find_if(pieces, [&](const Piece& p) { return p.memory.get() == memory; })->taken = false;
}

void clear_memory(void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); }

std::optional<InBatch> first_of_all(Processes* processes, std::optional<InBatch> here) {
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const Triple found =
      least(processes, here ? Triple{here->batch, here->at.coordinate, here->at.sample} : Triple{none, none, none});
  if (found[0] == none) return std::nullopt;
  return InBatch{found[0], {found[2], found[1]}};
}

double sum_of(std::span<const float> numbers) {
  // The lanes as pairs, which stay in registers; converted by four, as GCC converts two one by one.
  using Four [[gnu::vector_size(16)]] = float;
  using FourDoubles [[gnu::vector_size(32)]] = double;
  using Pair [[gnu::vector_size(16)]] = double;
  constexpr std::size_t pairs = lanes_per_group / 2;
  Pair sums[pairs] = {};
  std::size_t i = 0;
  for (; i + lanes_per_group <= numbers.size(); i += lanes_per_group)
#pragma GCC unroll 4
    for (std::size_t k = 0; k < pairs; k += 2) {
      Four four;
      std::memcpy(&four, numbers.data() + i + 2 * k, sizeof four);
      const FourDoubles wide = __builtin_convertvector(four, FourDoubles);
      sums[k] += __builtin_shufflevector(wide, wide, 0, 1);
      sums[k + 1] += __builtin_shufflevector(wide, wide, 2, 3);
    }
  double lane[lanes_per_group];
  std::memcpy(lane, sums, sizeof lane);
  for (; i < numbers.size(); ++i) lane[i % lanes_per_group] += static_cast<double>(numbers[i]);
  double sum = 0;
  for (const double s : lane) sum += s;
  return sum;
}

template <class Real>
std::optional<SampleCoordinate> find_nonfinite_here(const Population<Real>& x) {
  for (std::size_t j = 0; j < x.dimension(); ++j) {
    const std::span<const Real> column = x.coordinate(j);
    // x - x is 0 for finite x, NaN otherwise: sums of some, each in a lane, tell at once whether a search is needed.
    constexpr std::size_t lanes = lanes_per_group;
    std::array<Real, lanes> doubt{};
    std::size_t i = 0;
    for (; i + lanes <= column.size(); i += lanes)
      for (std::size_t l = 0; l < lanes; ++l) doubt[l] += column[i + l] - column[i + l];
    for (; i < column.size(); ++i) doubt[0] += column[i] - column[i];
    if (std::ranges::all_of(doubt, [](Real v) { return v == 0; })) continue;
    const auto at = std::ranges::find_if(column, [](Real v) { return !std::isfinite(v); });
    return SampleCoordinate{x.first() + static_cast<std::size_t>(at - column.begin()), j};
  }
  return std::nullopt;
}
template std::optional<SampleCoordinate> find_nonfinite_here(const Population<float>& x);
template std::optional<SampleCoordinate> find_nonfinite_here(const Population<double>& x);

}  // namespace implicit_diffusion
