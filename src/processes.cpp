#include "implicit_diffusion/processes.hpp"

#include "implicit_diffusion/error.hpp"

#include <algorithm>
#include <vector>

namespace implicit_diffusion {
namespace {

// One value of each.
template <class T>
std::vector<T> values_of_all(Processes& processes, const T& here) {
  std::vector<T> all(processes.ranks());
  all[processes.rank()] = here;
  const std::vector<std::size_t> sizes(all.size(), sizeof(T));
  processes.gather(sizes, as_message(std::span(all)));
  return all;
}

}  // namespace

Range::Range(Processes* among, std::size_t all)
    : processes(among && among->ranks() > 1 ? among : nullptr), count(all), total(all) {
  if (!processes) return;
  first = first_of(processes->rank());
  count = first_of(processes->rank() + 1) - first;
}

// Rounded up, so that the first rank has the first of them.
std::size_t Range::first_of(std::size_t rank) const {
  const std::size_t ranks = processes ? processes->ranks() : 1;
  return total / ranks * rank + (total % ranks * rank + ranks - 1) / ranks;
}

std::size_t Range::owner(std::size_t which) const {
  std::size_t low = 0, high = processes ? processes->ranks() : 1;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (first_of(middle) <= which ? low : high) = middle;
  }
  return low;
}

bool any(Processes* processes, bool here) {
  if (!processes) return here;
  const auto all = values_of_all(*processes, static_cast<char>(here));
  return std::ranges::find(all, 1) != all.end();
}

Triple least(Processes* processes, const Triple& here) {
  return processes ? std::ranges::min(values_of_all(*processes, here)) : here;
}

std::uint64_t sum_over(Processes* processes, std::uint64_t here) {
  if (!processes) return here;
  std::uint64_t sum = 0;
  for (const std::uint64_t one : values_of_all(*processes, here)) sum += one;
  return sum;
}

std::uint64_t largest_over(Processes* processes, std::uint64_t here) {
  return processes ? std::ranges::max(values_of_all(*processes, here)) : here;
}

std::string from_first(Processes* processes, const std::function<std::string()>& make) {
  if (!processes) return make();
  std::string bytes, where;
  // Its size, or that of the parts of an error; which kind of error, if any.
  std::array<std::uint64_t, 3> head{};
  if (processes->rank() == 0) try {
      bytes = make();
      head = {bytes.size(), 0, 0};
    } catch (const Error& e) {
      where = e.where();
      bytes = where + e.reason();
      head = {bytes.size(), where.size(), 1 + static_cast<std::uint64_t>(e.kind())};
    }
  processes->broadcast(0, as_message(std::span(head)));
  bytes.resize(head[0]);
  if (!bytes.empty()) processes->broadcast(0, as_message(std::span(bytes)));
  if (head[2] != 0) throw Error(static_cast<ErrorKind>(head[2] - 1), bytes.substr(0, head[1]), bytes.substr(head[1]));
  return bytes;
}

}  // namespace implicit_diffusion
