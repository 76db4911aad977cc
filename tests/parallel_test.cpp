// Workers: every task once, whatever the numbers of threads and tasks, job after job.
#include "implicit_diffusion/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace implicit_diffusion {
namespace {

TEST(Workers, RunEachTaskExactlyOnce) {
  for (const std::size_t threads : {1, 2, 3, 8}) {
    Workers workers(threads);
    EXPECT_EQ(workers.threads(), threads);
    for (const std::size_t count : {0, 1, 2, 3, 7, 16, 100, 1000})
      for (const std::size_t grain : {1, 4, 16, 5000}) {
        std::vector<std::atomic<int>> calls(count);
        workers.for_each(count, grain, [&](std::size_t i) { ++calls[i]; });
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(calls[i], 1) << threads << " threads, " << count << " tasks, grain " << grain << ", task " << i;
      }
  }
}

// for_each returns only when all is done, and a thread that comes late to one job must not run the tasks of the next
// twice or miss them.
TEST(Workers, AreReusedForManyJobs) {
  Workers workers(3);
  std::vector<int> plain(64);  // not atomic: a task writes to its own place only
  for (int job = 1; job <= 10'000; ++job) {
    workers.for_each(plain.size(), 1, [&](std::size_t i) { ++plain[i]; });
    ASSERT_EQ(plain[static_cast<std::size_t>(job) % plain.size()], job);
  }
  for (const int calls : plain) EXPECT_EQ(calls, 10'000);
}

TEST(Workers, MayBeMoreThanTheTasks) {
  Workers workers(16);
  for (int job = 0; job < 200; ++job) {
    std::vector<std::atomic<int>> calls(2);
    workers.for_each(2, 1, [&](std::size_t i) { ++calls[i]; });
    EXPECT_EQ(calls[0], 1);
    EXPECT_EQ(calls[1], 1);
  }
}

TEST(Workers, KeepFewTasksOnTheCallingThread) {
  Workers workers(4);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  workers.for_each(31, 16, [&](std::size_t) {  // 31 tasks do not make two shares of 16
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen, std::set{std::this_thread::get_id()});
}

// Two tasks that wait for each other end only on two threads.
TEST(Workers, RunTasksAtTheSameTime) {
  Workers workers(2);
  std::atomic<int> arrived = 0;
  workers.for_each(2, 1, [&](std::size_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(Workers, NeedNoJob) {
  for (int i = 0; i < 50; ++i) Workers(4);
}

TEST(Workers, TakeAConstantTask) {
  Workers workers(2);
  std::vector<std::atomic<int>> calls(10);
  const auto task = [&](std::size_t i) { ++calls[i]; };
  workers.for_each(calls.size(), 1, task);
  for (const auto& c : calls) EXPECT_EQ(c, 1);
}

}  // namespace
}  // namespace implicit_diffusion
