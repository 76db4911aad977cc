// Threads that wait for work: for_each(count, grain, task) calls task(0), ..., task(count - 1) on them and returns when
// all are done.
//
// A thread begins with its own share of the tasks, the same each time, and then helps with the others'. Which thread
// runs which task is left to chance, so a task writes only to its own place; sums over tasks are taken afterwards, in
// order. Idle threads spin for some 30 microseconds, then block. The calling thread works too: Workers(1) starts no
// thread at all.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace implicit_diffusion {

class Workers {
 public:
  // Where the system refuses to start so many threads, there are fewer: threads() tells how many. Throws a usage Error
  // for more than most_threads.
  static constexpr std::size_t most_threads = 65'536;
  explicit Workers(std::size_t threads = 1);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  std::size_t threads() const;

  // Each thread that is woken gets at least `grain` tasks: few tasks run on the calling thread alone.
  //
  // Where tasks throw, for_each throws the exception of the one with the lowest index, so the same whatever the number
  // of threads. All tasks below that index have run then; those above it may have run or not. The workers can be used
  // again.
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

// Blocks of a population that make it worth calling another thread: 24 blocks of 256 samples are some 25 microseconds
// of work.
inline constexpr std::size_t blocks_per_thread = 24;

}  // namespace implicit_diffusion
