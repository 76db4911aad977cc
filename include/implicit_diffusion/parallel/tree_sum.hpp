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
//
// Processes may have a range of the tasks each (processes.hpp). Each adds up the whole subtrees that it has, and hands
// their sums on to the one that has the beginning of the next larger subtree; all have the total in the end:
//
//     rank 0: tasks 0 1 2     rank 1: tasks 3 4 5          ((0 + 1) + (2 + 3)) + (4 + 5)
//
// where rank 1 sends two values, 3 and 4 + 5. So the order does not depend on the number of processes either. A process
// whose range begins or ends inside of a subtree keeps up to log2(tasks) values more.
#pragma once

#include "implicit_diffusion/parallel/sums.hpp"

#include <algorithm>
#include <bit>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace implicit_diffusion {

namespace detail {

// Node i of a level is the sum of the tasks [i 2^level, (i + 1) 2^level), as many of them as there are.
struct TreeNode {
  std::size_t level, i;

  std::size_t first() const { return i << level; }
  TreeNode left() const { return {level - 1, 2 * i}; }
  TreeNode right() const { return {level - 1, 2 * i + 1}; }
  TreeNode parent() const { return {level + 1, i / 2}; }
  TreeNode sibling() const { return {level, i ^ 1}; }
  // Whether all its tasks are in a range.
  bool is_in(const Range& range) const {
    const std::size_t end = std::min((i + 1) << level, range.total);
    return range.first <= first() && end <= range.first + range.count;
  }
  friend auto operator<=>(const TreeNode&, const TreeNode&) = default;  // NOLINT(modernize-use-nullptr): there is none

  static TreeNode root(std::size_t tasks) { return {static_cast<std::size_t>(std::bit_width(tasks - 1)), 0}; }
};

// The parts of the tree that are finished here and wait for their other half, which may be on another process.
template <class Value>
class Tree {
 public:
  Tree(const Range& tasks, std::size_t threads)
      : tasks_(tasks), most_alive_(threads + (tasks.processes ? 2 : 1) * TreeNode::root(tasks.total).level) {}

  // The next task, as soon as there is room for its value; none where all have begun or one has failed.
  std::optional<std::size_t> next() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return begun_ == tasks_.count || failure_ || alive_ < most_alive_; });
    if (begun_ == tasks_.count || failure_) return std::nullopt;
    ++alive_;
    return begun_++;
  }

  // The value of a task, the i-th of those here.
  template <class Add>
  void finish(std::size_t i, Value value, Add& add) {
    TreeNode at{0, tasks_.first + i};
    for (const TreeNode root = TreeNode::root(tasks_.total); at != root && at.parent().is_in(tasks_);
         at = at.parent()) {
      const bool left = at.i % 2 == 0;
      if (left && at.sibling().first() >= tasks_.total) continue;  // there is nothing on the right
      std::optional<Value> other;
      {
        const std::lock_guard lock(mutex_);
        const auto found = waiting_.find(at.sibling());
        if (found == waiting_.end()) {
          waiting_.emplace(at, std::move(value));
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
    waiting_.emplace(at, std::move(value));
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

  // When all tasks are finished, on all processes.
  template <class Make, class Add, class Message>
  Value total(Make& make, Add& add, Message& message) {
    if (failure_) std::rethrow_exception(failure_);
    std::optional<Value> sum = join(TreeNode::root(tasks_.total), make, add, message);
    if (tasks_.processes) {
      if (!sum) sum = make();
      tasks_.processes->broadcast(0, message(*sum));
    }
    return std::move(*sum);
  }

 private:
  // The sum of a node, on the process that has its first task. All make their part of it, in the same order of nodes:
  // so whoever waits for another waits for one that is further down in that order, and nobody waits for ever.
  template <class Make, class Add, class Message>
  std::optional<Value> join(const TreeNode& node, Make& make, Add& add, Message& message) {
    if (node.is_in(tasks_)) return std::move(waiting_.extract(node).mapped());
    const std::size_t end = std::min((node.i + 1) << node.level, tasks_.total);
    if (end <= tasks_.first || tasks_.first + tasks_.count <= node.first()) return std::nullopt;  // others have it all
    if (node.right().first() >= tasks_.total) return join(node.left(), make, add, message);
    std::optional<Value> sum = join(node.left(), make, add, message);
    std::optional<Value> other = join(node.right(), make, add, message);
    const std::size_t to = tasks_.owner(node.first()), from = tasks_.owner(node.right().first());
    if (to != from && from == tasks_.processes->rank()) tasks_.processes->send(to, message(*other));
    if (to != tasks_.processes->rank()) return std::nullopt;
    if (to != from) {
      other = make();
      tasks_.processes->receive(from, message(*other));
    }
    add(*sum, *other);
    return sum;
  }

  const Range tasks_;
  std::size_t most_alive_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::size_t begun_ = 0, alive_ = 0, failed_ = 0;
  std::map<TreeNode, Value> waiting_;
  std::exception_ptr failure_;
};

// What one process needs of a message.
inline constexpr auto no_message = [](const auto&) { return std::span<std::byte>(); };

}  // namespace detail

// The sum of what task(i, value), i < tasks.count, adds to a value of make() each; add(a, b) makes a the sum of both,
// message(value) is its bytes in place. Throws what the first task that fails throws.
template <class Make, class Task, class Add, class Message = decltype(detail::no_message)>
auto tree_sum(Workers* workers, const Range& tasks, Make&& make, Task&& task, Add&& add,
              const Message& message = detail::no_message) {
  if (tasks.total == 0) return make();
  const std::size_t threads = workers ? std::max<std::size_t>(std::min(workers->threads(), tasks.count), 1) : 1;
  detail::Tree<decltype(make())> tree(tasks, threads);
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
  return tree.total(make, add, message);
}

}  // namespace implicit_diffusion
