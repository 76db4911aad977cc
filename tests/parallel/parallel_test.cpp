// Workers: every task once, whatever the numbers of threads and tasks, job after job; what a task throws comes to the
// caller.
#include "implicit_diffusion/parallel.hpp"

#include "few_threads.hpp"
#include "implicit_diffusion/denoising/sampler.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
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

// What for_each throws, as text; nothing where it returns.
template <class Task>
std::string thrown_by(Workers& workers, std::size_t count, Task&& task) {
  try {
    workers.for_each(count, 1, task);
    return "nothing";
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

// The job is repeated, for threads to meet in other orders.
TEST(Workers, ThrowWhatTheLowestTaskThrew) {
  constexpr std::size_t count = 60;
  const std::vector<std::set<std::size_t>> throwers{{0}, {59}, {7, 8, 9}, {29, 31, 50}, {12, 59}};
  for (const std::size_t threads : {1, 2, 5}) {
    Workers workers(threads);
    for (int job = 0; job < 200; ++job)
      for (const auto& bad : throwers) {
        std::vector<std::atomic<int>> calls(count);
        const auto task = [&](std::size_t i) {
          ++calls[i];
          if (bad.contains(i)) throw std::runtime_error(std::to_string(i));
        };
        ASSERT_EQ(thrown_by(workers, count, task), std::to_string(*bad.begin())) << threads << " threads, job " << job;
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_TRUE(calls[i] == 1 || (calls[i] == 0 && i > *bad.begin())) << "task " << i << ", " << threads;

        std::vector<std::atomic<int>> after(count);
        ASSERT_EQ(thrown_by(workers, count, [&](std::size_t i) { ++after[i]; }), "nothing");
        for (const auto& c : after) ASSERT_EQ(c, 1);
      }
  }
}

TEST(Workers, ThrowTheLowestWhereAllTasksThrow) {
  for (const std::size_t threads : {1, 2, 5}) {
    Workers workers(threads);
    for (int job = 0; job < 200; ++job)
      ASSERT_EQ(thrown_by(workers, 60, [](std::size_t i) { throw std::runtime_error(std::to_string(i)); }), "0");
  }
}

// A task that is far behind is waited for where its index is below the one that threw.
TEST(Workers, WaitForLowerTasksAfterAFailure) {
  Workers workers(2);
  std::atomic<bool> thrown = false;
  const auto task = [&](std::size_t i) {
    if (i == 0)
      while (!thrown) std::this_thread::yield();
    if (i == 0) throw std::runtime_error("the first");
    thrown = true;
    throw std::runtime_error("the second");
  };
  EXPECT_EQ(thrown_by(workers, 2, task), "the first");
}

TEST(Workers, AreFewerWhereThreadsCannotBeStarted) {
  for (const int possible : {0, 1, 3}) {
    threads_left = possible;
    Workers workers(6);
    threads_left = std::numeric_limits<int>::max();
    EXPECT_EQ(workers.threads(), static_cast<std::size_t>(possible) + 1);
    std::vector<std::atomic<int>> calls(100);
    workers.for_each(calls.size(), 1, [&](std::size_t i) { ++calls[i]; });
    for (const auto& c : calls) EXPECT_EQ(c, 1);
  }
}

TEST(Workers, AreRefusedWhereTheyAreFarTooMany) {
  for (const std::size_t threads : {Workers::most_threads + 1, std::numeric_limits<std::size_t>::max()}) try {
      Workers workers(threads);
      ADD_FAILURE() << "accepted: " << threads;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      EXPECT_EQ(e.where(), "threads");
    }
}

// Code of users that throws for two samples of a population, one in the second block and one in the last but one; on
// five threads they are in different shares.
constexpr std::size_t population_size = 5 * blocks_per_thread * block_size;
constexpr float first_bad = block_size + 3, second_bad = population_size - block_size - 1;

Population<float> numbered(std::size_t d) {
  Population<float> x(population_size, d);
  for (std::size_t i = 0; i < x.size(); ++i) x(i, 0) = static_cast<float>(i);
  return x;
}

void refuse(float x) {
  if (x == first_bad || x == second_bad) throw std::runtime_error("sample " + std::to_string(static_cast<int>(x)));
}
const std::string first_refusal = "sample " + std::to_string(static_cast<int>(first_bad));

template <class Call>
std::string thrown_by(Call&& call) {
  try {
    call();
    return "nothing";
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

// N(theta, 1).
struct Shifted {
  bool throws = false;
  double centre = 0;

  std::size_t dimension() const { return 1; }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> theta) { centre = theta[0]; }
  float evaluate(const float* x, float* grad_x, float* grad_theta) const {
    if (throws) refuse(x[0]);
    const float u = x[0] - static_cast<float>(centre);
    if (grad_x) grad_x[0] = u;
    if (grad_theta) grad_theta[0] = -u;
    return u * u / 2;
  }
};

struct Near {
  bool throws = false;
  float operator()(const float* x) const {
    if (throws) refuse(x[0]);
    return -(x[0] - 3) * (x[0] - 3);
  }
};

TEST(UsersCode, ThrowsThroughTheSingleLoop) {
  for (const bool in_reward : {false, true})
    for (const std::size_t threads : {1, 2, 5}) {
      Workers workers(threads);
      const auto run = [&](const Shifted& v, const Near& r, Workers* on) {
        std::vector<std::unique_ptr<Term<float>>> terms;
        terms.push_back(std::make_unique<RewardTerm<float>>(Reward<float>(r)));
        LangevinEngine<float> engine(v, std::move(terms), {.step_size = {0.1}, .workers = on});
        State<Population<float>, GradientDescent> state{
            .theta = {0.0}, .population = numbered(1), .optimizer = {{1e-12}}};
        (void)single_loop(engine, engine, state, {.steps = 3});
        return std::pair{state.theta, state.population};
      };
      EXPECT_EQ(thrown_by([&] { run({!in_reward}, {in_reward}, &workers); }), first_refusal) << threads << " threads";
      EXPECT_EQ(run(Shifted{}, Near{}, &workers), run(Shifted{}, Near{}, nullptr)) << "after a failure";
    }
}

// The score of N(theta, I) in the plane.
struct ShiftedScore {
  bool throws = false;
  std::vector<double> theta{0, 0};

  std::size_t dimension() const { return 2; }
  std::size_t parameters() const { return 2; }
  void prepare(std::span<const double> t) { theta.assign(t.begin(), t.end()); }

  struct NoiseLevel {
    bool throws;
    double mean[2];

    template <class N>
    void score(const N* y, N* s) const {
      float samples[sizeof(N) / sizeof(float)];  // one, or those of all lanes
      std::memcpy(samples, y, sizeof samples);
      if (throws) std::for_each(std::begin(samples), std::end(samples), refuse);
      for (int j = 0; j < 2; ++j) s[j] = N(Scalar<N>(mean[j])) - y[j];
    }
    template <class N>
    void pull_back(const N*, const N*, const N* c, N* back, N* sums) const {
      for (int j = 0; j < 2; ++j) {
        back[j] = -c[j];
        if (sums) sums[j] = sums[j] + c[j];
      }
    }
    std::size_t sums() const { return 2; }
    void add_gradient(const double* sums, double* gradient) const {
      for (int j = 0; j < 2; ++j) gradient[j] += sums[j];
    }
  };
  NoiseLevel level(double tau) const { return {throws, {std::exp(-tau) * theta[0], std::exp(-tau) * theta[1]}}; }
};

TEST(UsersCode, ThrowsThroughTheDenoisingSampler) {
  const std::vector<double> theta{1, 2};
  for (const std::size_t threads : {1, 2, 5}) {
    Workers workers(threads);
    const auto advance = [&](ShiftedScore score, Workers* on) {
      ReverseChain<float> chain(std::move(score), uniform_grid(3, 4), {.slots = 2, .workers = on});
      DenoisingSampler<float> sampler(chain);
      PathBatch<float> batch;
      batch.points = numbered(2);
      sampler.advance(batch, theta, {});
      return batch;
    };
    EXPECT_EQ(thrown_by([&] { advance({.throws = true}, &workers); }), first_refusal) << threads << " threads";
    EXPECT_EQ(advance({}, &workers), advance({}, nullptr)) << "after a failure";
  }
}

}  // namespace
}  // namespace implicit_diffusion
