#include "experiment/task_pool.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace program {

void run_tasks(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& task,
               const std::stop_token& stop) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !stop.stop_requested(); i = next++) try {
        task(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
  };
  {
    std::vector<std::jthread> pool;
    try {
      for (std::size_t i = 1; i < std::min(threads, count); ++i) pool.emplace_back(work);
    } catch (const std::exception&) {
      // A limit on threads or memory was met (std::system_error, std::bad_alloc): those that were started do all the
      // work.
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace program
