// Threads that wait for work: for_each(count, task) calls task(0), ..., task(count - 1) on them and returns when all are done.
//
// A thread begins with its own share of the tasks, the same each time, and then helps with the others': which thread runs which task is left to
// chance, so a task writes only to its own place; sums over tasks are taken afterwards, in order.
// Idle threads look about for some 30 microseconds, then block. The calling thread works too: Workers(1) starts no thread at all.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace implicit_diffusion {

class Workers {
 public:
  explicit Workers(std::size_t threads = 1);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  std::size_t threads() const;

  // Tasks must not throw. At least `grain` tasks are given to each thread that is woken: few tasks run on the calling thread alone.
  template <class Task>
  void for_each(std::size_t count, std::size_t grain, Task&& task) {
    run(
        count, grain, [](void* t, std::size_t i) { (*static_cast<std::remove_reference_t<Task>*>(t))(i); },
        const_cast<void*>(static_cast<const void*>(&task)));
  }

 private:
  using Call = void (*)(void*, std::size_t);
  void run(std::size_t count, std::size_t grain, Call call, void* task);

  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// Blocks of a population that make it worth calling another thread: 24 blocks of 256 samples are some 25 microseconds of work.
inline constexpr std::size_t blocks_per_thread = 24;

}  // namespace implicit_diffusion
