// Threads that act as the processes of a job: what is spread over several can be tested in one.
#pragma once

#include "implicit_diffusion/processes.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace implicit_diffusion::test {

class Board {
 public:
  using Bytes = std::vector<std::byte>;
  void put(std::size_t from, std::size_t to, Bytes bytes) {
    {
      const std::lock_guard lock(mutex_);
      waiting_[{from, to}].push_back(std::move(bytes));
    }
    more_.notify_all();
  }
  Bytes take(std::size_t from, std::size_t to) {
    std::unique_lock lock(mutex_);
    auto& queue = waiting_[{from, to}];
    more_.wait(lock, [&] { return !queue.empty(); });
    Bytes bytes = std::move(queue.front());
    queue.pop_front();
    return bytes;
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(waiting_, [](const auto& q) { return q.second.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Bytes>> waiting_;
};

class ThreadAsProcess final : public Processes {
 public:
  ThreadAsProcess(Board& board, std::size_t rank, std::size_t ranks) : board_(board), rank_(rank), ranks_(ranks) {}
  std::size_t rank() const override { return rank_; }
  std::size_t ranks() const override { return ranks_; }
  void send(std::size_t to, std::span<const std::byte> bytes) override {
    board_.put(rank_, to, {bytes.begin(), bytes.end()});
  }
  void receive(std::size_t from, std::span<std::byte> bytes) override {
    const Board::Bytes message = board_.take(from, rank_);
    if (message.size() != bytes.size()) throw std::logic_error("a message of another size");
    std::ranges::copy(message, bytes.begin());
  }
  void broadcast(std::size_t from, std::span<std::byte> bytes) override {
    if (rank_ != from) return receive(from, bytes);
    for (std::size_t r = 0; r < ranks_; ++r)
      if (r != rank_) send(r, bytes);
  }
  void gather(std::span<const std::size_t> sizes, std::span<std::byte> all) override {
    std::size_t at = 0;
    for (std::size_t r = 0; r < rank_; ++r) at += sizes[r];
    const auto own = all.subspan(at, sizes[rank_]);
    for (std::size_t r = 0; r < ranks_; ++r)
      if (r != rank_) send(r, own);
    at = 0;
    for (std::size_t r = 0; r < ranks_; at += sizes[r++])
      if (r != rank_) receive(r, all.subspan(at, sizes[r]));
  }

 private:
  Board& board_;
  std::size_t rank_, ranks_;
};

// Calls work(processes) on each of so many, at the same time, and returns what each has made, rank by rank. With one,
// it is given a null pointer. Throws what the first of them throws; all must throw, or none.
template <class Work>
auto as_processes(std::size_t ranks, Work&& work) {
  using Made = decltype(work(static_cast<Processes*>(nullptr)));
  static_assert(!std::is_same_v<Made, bool>, "a vector of them has no places of their own");
  std::vector<Made> made(ranks);
  if (ranks == 1) {
    made[0] = std::function<Made(Processes*)>(work)(nullptr);  // GCC need not see that it is null
    return made;
  }
  Board board;
  std::vector<std::exception_ptr> failures(ranks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        try {
          ThreadAsProcess self(board, r, ranks);
          made[r] = work(&self);
        } catch (...) {
          failures[r] = std::current_exception();
        }
      });
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  if (!board.empty()) throw std::logic_error("a message that nobody took");
  return made;
}

}  // namespace implicit_diffusion::test
