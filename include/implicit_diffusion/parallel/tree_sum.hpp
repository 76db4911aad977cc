// A sum of large values over tasks, in one order and with few of them in memory.
//
// The order is that of a binary tree over the tasks' indices, which depends on their number alone:
//
//     sum of [a, b)  =  sum of [a, a + p)  +  sum of [a + p, b),     p the largest power of two below b - a
//
// Tasks begin in the order of their indices; two finished halves are added at once. So at most
//
//     threads + ceil(log2(tasks))
//
// values are alive: a thread for which there is no room waits. parallel/sums.hpp is for small ones, which are kept.
#pragma once

#include "implicit_diffusion/parallel/sums.hpp"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace implicit_diffusion {

namespace detail {

// The parts of the tree that are finished and wait for their other half. Node i of a level is the sum of the tasks
// [i 2^level, (i + 1) 2^level).
template <class Value>
class Tree {
 public:
  Tree(std::size_t tasks, std::size_t most_alive) : tasks_(tasks), most_alive_(most_alive) {}

  // The next task, as soon as there is room for its value; none where all have begun or one has failed.
  std::optional<std::size_t> next() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return begun_ == tasks_ || failure_ || alive_ < most_alive_; });
    if (begun_ == tasks_ || failure_) return std::nullopt;
    ++alive_;
    return begun_++;
  }

  template <class Add>
  void finish(std::size_t i, Value value, Add& add) {
    for (std::size_t level = 0; (tasks_ - 1) >> level != 0; i /= 2, ++level) {
      const bool left = i % 2 == 0;
      if (left && (i + 1) << level >= tasks_) continue;  // there is nothing on the right
      std::optional<Value> other;
      {
        const std::lock_guard lock(mutex_);
        const auto found = waiting_.find({level, i ^ 1});
        if (found == waiting_.end()) {
          waiting_.emplace(std::pair{level, i}, std::move(value));
          return;
        }
        other = std::move(found->second);
        waiting_.erase(found);
      }
      if (!left) std::swap(value, *other);
      add(value, *other);
      other.reset();
      {
        const std::lock_guard lock(mutex_);
        --alive_;
      }
      room_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    total_ = std::move(value);
  }

  // Tasks begin in order, so all below the first that fails run too: which one it is does not depend on threads.
  void fail(std::size_t i, std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    if (!failure_ || i < failed_) {
      failed_ = i;
      failure_ = std::move(why);
    }
    room_.notify_all();
  }

  Value total() {
    if (failure_) std::rethrow_exception(failure_);
    return std::move(*total_);
  }

 private:
  std::size_t tasks_, most_alive_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::size_t begun_ = 0, alive_ = 0, failed_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, Value> waiting_;  // by level and index
  std::optional<Value> total_;
  std::exception_ptr failure_;
};

}  // namespace detail

// The sum of what task(i, value), i < tasks, adds to a value of make() each; add(a, b) makes a the sum of both. Throws
// what the first task that fails throws.
template <class Make, class Task, class Add>
auto tree_sum(Workers* workers, std::size_t tasks, Make&& make, Task&& task, Add&& add) {
  if (tasks == 0) return make();
  const std::size_t threads = workers ? std::min(workers->threads(), tasks) : 1;
  detail::Tree<decltype(make())> tree(tasks, threads + static_cast<std::size_t>(std::bit_width(tasks - 1)));
  for_each_task(workers, threads, 1, [&](std::size_t) {
    while (const auto i = tree.next()) {
      try {
        auto value = make();
        task(*i, value);
        tree.finish(*i, std::move(value), add);
      } catch (...) {
        tree.fail(*i, std::current_exception());
      }
    }
  });
  return tree.total();
}

}  // namespace implicit_diffusion
