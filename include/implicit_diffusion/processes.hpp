// Several processes that make one run together, on one machine or on many.
//
// All of them run the same program: each has a part of the samples and all of theta. What they tell each other goes
// through Processes, which is all that the library knows of MPI or of whatever connects them. A part is a range of
// whole tiles, and sums over tiles are taken in the order of the tiles (parallel/sums.hpp): so results do not depend on
// the number of processes.
//
//     rank:    0           1           2               every process makes the same calls, in the same order
//     tiles:   0 1 2 3     4 5 6 7     8 9 10
//
// A null pointer stands for a process that is alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace implicit_diffusion {

class Processes {
 public:
  virtual ~Processes() = default;
  virtual std::size_t rank() const = 0;
  virtual std::size_t ranks() const = 0;

  // From one to one other, which takes messages of the same size in the same order. send() may return before they are
  // taken, and may not.
  virtual void send(std::size_t to, std::span<const std::byte> bytes) = 0;
  virtual void receive(std::size_t from, std::span<std::byte> bytes) = 0;
  // All have the bytes of one.
  virtual void broadcast(std::size_t from, std::span<std::byte> bytes) = 0;
  // All have the bytes of all, rank after rank, `sizes` of each. Each puts its own in their place before.
  virtual void gather(std::span<const std::size_t> sizes, std::span<std::byte> all) = 0;
};

// A range of `total` things in order, of which each process has a share that is as large as any other's, or by one
// smaller. A few are on the first ranks.
struct Range {
  Processes* processes = nullptr;  // null: all of them are here
  std::size_t first = 0, count = 0, total = 0;

  Range() = default;
  Range(std::size_t all) : count(all), total(all) {}  // implicit: a number of things that are all here
  Range(Processes* among, std::size_t all);           // the share of this process

  // The first that a rank has; that of one rank beyond the last is the total.
  std::size_t first_of(std::size_t rank) const;
  // The rank that has one of them.
  std::size_t owner(std::size_t which) const;

  friend bool operator==(const Range&, const Range&) = default;
};

template <class T, std::size_t size>
std::span<std::byte> as_message(std::span<T, size> numbers) {
  return std::as_writable_bytes(numbers);
}

// Whether it is so on any of them.
bool any(Processes* processes, bool here);
// The least of the triples that they have, in the order of dictionaries.
using Triple = std::array<std::uint64_t, 3>;
Triple least(Processes* processes, const Triple& here);
// The sum, and the largest.
std::uint64_t sum_over(Processes* processes, std::uint64_t here);
std::uint64_t largest_over(Processes* processes, std::uint64_t here);
// What the first one makes, on all of them. The Error that it throws is thrown on all.
std::string from_first(Processes* processes, const std::function<std::string()>& make);

// Work in the order of the ranks: add() goes on with the numbers that those before have left, and all have the result.
template <class Add>
void in_turn(const Range& range, std::span<double> numbers, Add&& add) {
  if (!range.processes) return add();
  const std::size_t end = range.first + range.count;
  if (range.count > 0) {
    if (range.first > 0) range.processes->receive(range.owner(range.first - 1), as_message(numbers));
    add();
    if (end < range.total) range.processes->send(range.owner(end), as_message(numbers));
  }
  if (range.total > 0) range.processes->broadcast(range.owner(range.total - 1), as_message(numbers));
}

// The tiles of a batch that are here, and the number of all its samples. Batches that cannot be spread are all here.
template <class Samples>
Range spread_of(const Samples& x) {
  if constexpr (requires { x.tiles(); })
    return x.tiles();
  else
    return {};
}
template <class Samples>
std::size_t total_of(const Samples& x) {
  if constexpr (requires { x.total(); })
    return x.total();
  else
    return x.size();
}

}  // namespace implicit_diffusion
