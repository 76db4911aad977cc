#include "implicit_diffusion/parallel.hpp"

#include "require.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace implicit_diffusion {

namespace {

// Steps follow one another within microseconds, and waking a thread takes tens of them: a thread that waits spins for
// that long before it sleeps.
template <class Ready>
void spin_until(Ready&& ready) {
  for (int i = 0; i < 1000 && !ready(); ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();  // 40 to 140 cycles
#else
    std::this_thread::yield();
#endif
  }
}

}  // namespace

struct Workers::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  std::vector<std::thread> threads;

  // The current job. A thread joins it while holding the mutex, so that none can still be inside when the next one
  // begins.
  Call call = nullptr;
  void* task = nullptr;
  // Changed with the mutex held, looked at without.
  std::atomic<std::size_t> seats{0};    // threads that may still join
  std::atomic<std::size_t> working{0};  // threads that have joined and not finished
  std::atomic<bool> stop{false};

  // Each thread has a share of its own, the same in every job of the same size: what it wrote is still in its cache. A
  // thread that is done with its own takes from the others'.
  struct alignas(64) Share {
    std::atomic<std::size_t> next{0};
    std::size_t end = 0;
  };
  std::vector<Share> shares;
  std::size_t sharers = 0;

  // What the task of the lowest index threw, with the mutex held.
  std::exception_ptr error;
  std::size_t failed = 0;

  void deal(std::size_t count, std::size_t among) {
    sharers = among;
    for (std::size_t t = 0; t < among; ++t) {
      shares[t].next = count * t / among;
      shares[t].end = count * (t + 1) / among;
    }
  }

  void work(std::size_t thread) {
    for (std::size_t k = 0; k < sharers; ++k) {
      const std::size_t s = (thread + k) % sharers;
      Share& share = shares[s];
      std::size_t i = 0;
      try {
        while ((i = share.next.fetch_add(1)) < share.end) call(task, i);
      } catch (...) {
        fail(s, i);
      }
    }
  }

  // Task i of a share threw. Tasks of higher indices need not run any more: they are the rest of this share and the
  // shares behind it.
  void fail(std::size_t share, std::size_t i) {
    for (; share < sharers; ++share) shares[share].next = shares[share].end;
    const std::lock_guard lock(mutex);
    if (error && failed < i) return;
    error = std::current_exception();
    failed = i;
  }

  void wait_and_work(std::size_t thread) {
    const auto called = [this] { return stop || seats > 0; };
    std::unique_lock lock(mutex, std::defer_lock);
    for (;;) {
      spin_until(called);
      lock.lock();
      wake.wait(lock, called);
      if (stop) return;
      --seats;
      ++working;
      lock.unlock();
      work(thread);
      lock.lock();
      if (--working == 0) done.notify_one();
      lock.unlock();
    }
  }
};

Workers::Workers(std::size_t threads) : shared_(std::make_unique<Shared>()) {
  require(threads <= most_threads, "threads", "{} are more than {}", threads, most_threads);
  shared_->shares = std::vector<Shared::Share>(std::max<std::size_t>(1, threads));
  shared_->threads.reserve(shared_->shares.size() - 1);
  try {
    for (std::size_t i = 1; i < threads; ++i)
      shared_->threads.emplace_back([s = shared_.get(), i] { s->wait_and_work(i); });
  } catch (const std::exception&) {
    // A limit on threads or memory was met (std::system_error, std::bad_alloc): those that were started do all the
    // work.
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->wake.notify_all();
  for (std::thread& t : shared_->threads) t.join();
}

std::size_t Workers::threads() const { return shared_->threads.size() + 1; }

void Workers::run(std::size_t count, std::size_t grain, Call call, void* task) {
  Shared& s = *shared_;
  const std::size_t useful = std::min(threads(), std::max<std::size_t>(1, count / std::max<std::size_t>(1, grain)));
  if (useful == 1) {
    for (std::size_t i = 0; i < count; ++i) call(task, i);
    return;
  }
  {
    const std::lock_guard lock(s.mutex);
    s.call = call;
    s.task = task;
    s.deal(count, useful);
    s.seats = useful - 1;
  }
  s.wake.notify_all();
  s.work(0);
  std::unique_lock lock(s.mutex);
  s.seats = 0;  // whoever has not come yet finds nothing left
  const auto finished = [&s] { return s.working == 0; };
  if (!finished()) {
    lock.unlock();
    spin_until(finished);
    lock.lock();
  }
  s.done.wait(lock, finished);
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

}  // namespace implicit_diffusion
