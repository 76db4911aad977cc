// The sum as a tree: its order, how many values are alive, and which failure is reported. Values are texts, which show
// the order in which they were added.
#include "implicit_diffusion/parallel/tree_sum.hpp"
#include "processes/threads_as_processes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace implicit_diffusion {
namespace {

// The definition.
std::string tree_of(std::size_t a, std::size_t b) {
  if (b - a == 1) return std::to_string(a);
  const std::size_t p = std::bit_floor(b - a - 1);
  return "(" + tree_of(a, a + p) + "+" + tree_of(a + p, b) + ")";
}

// A text that knows how many of its kind there are.
struct Counted {
  struct Counts {
    std::atomic<int> alive{0}, most{0};
  };
  Counts* counts = nullptr;
  std::string text;

  explicit Counted(Counts& c) : counts(&c) {
    int seen = ++c.alive, most = c.most;
    while (seen > most && !c.most.compare_exchange_weak(most, seen)) {
    }
  }
  Counted(Counted&& other) noexcept : counts(std::exchange(other.counts, nullptr)), text(std::move(other.text)) {}
  Counted& operator=(Counted&& other) noexcept {
    std::swap(counts, other.counts);
    std::swap(text, other.text);
    return *this;
  }
  ~Counted() {
    if (counts) --counts->alive;
  }
};
const auto add = [](Counted& a, const Counted& b) { a.text = "(" + a.text + "+" + b.text + ")"; };

// `slow` of a task tells how long it takes, in units of 20 microseconds.
template <class Slow>
std::pair<std::string, int> run(Workers* workers, std::size_t tasks, Slow&& slow) {
  Counted::Counts counts;
  std::string text = tree_sum(
                         workers, tasks, [&] { return Counted(counts); },
                         [&](std::size_t i, Counted& value) {
                           std::this_thread::sleep_for(std::chrono::microseconds(20 * slow(i)));
                           value.text += std::to_string(i);
                         },
                         add)
                         .text;
  EXPECT_EQ(counts.alive, 0);
  return {text, counts.most};
}

TEST(TreeSum, AddsInTheOrderOfTheTree) {
  EXPECT_EQ(tree_of(0, 5), "(((0+1)+(2+3))+4)");
  EXPECT_EQ(tree_of(0, 7), "(((0+1)+(2+3))+((4+5)+6))");
  for (const std::size_t threads : {0, 1, 2, 3, 5}) {
    std::unique_ptr<Workers> workers;
    if (threads > 0) workers = std::make_unique<Workers>(threads);
    for (std::size_t tasks = 1; tasks <= 40; ++tasks) {
      const std::string expected = tree_of(0, tasks);
      EXPECT_EQ(run(workers.get(), tasks, [](std::size_t) { return 0; }).first, expected) << threads;
      EXPECT_EQ(run(workers.get(), tasks, [](std::size_t i) { return (i * 7) % 5; }).first, expected) << threads;
    }
  }
}

// Tasks that take as long as a hundred others leave holes in the tree, whose neighbours would pile up if nobody waited.
TEST(TreeSum, KeepsFewValues) {
  constexpr std::size_t tasks = 300;  // log2 is 9, rounded up
  for (const std::size_t threads : {1, 2, 4}) {
    Workers workers(threads);
    const auto [text, most] = run(&workers, tasks, [](std::size_t i) { return i % 64 == 1 ? 100 : 1; });
    EXPECT_EQ(text, tree_of(0, tasks));
    EXPECT_LE(most, static_cast<int>(threads) + 9);
  }
}

// Processes that have a range of the tasks each add up in the same order, and all have the sum. Texts are padded, as
// messages have one size. Some have no task at all.
TEST(TreeSum, OfSeveralProcessesIsThatOfOne) {
  const std::size_t longest = tree_of(0, 40).size();
  const auto padded = [&](Counted value) {
    value.text.resize(longest, ' ');
    return value;
  };
  const auto stripped = [](const std::string& text) { return text.substr(0, text.find(' ')); };
  for (const std::size_t ranks : {2, 3, 4, 7})
    for (std::size_t tasks = 0; tasks <= 40; ++tasks) {
      std::atomic<std::size_t> sent = 0;
      const auto sums = test::as_processes(ranks, [&](Processes* processes) {
        const Range range(processes, tasks);
        Counted::Counts counts;
        Workers workers(2);
        const std::string text = tree_sum(
                                     &workers, range, [&] { return padded(Counted(counts)); },
                                     [&](std::size_t i, Counted& value) {
                                       value.text = std::to_string(range.first + i);
                                       value.text.resize(longest, ' ');
                                     },
                                     [&](Counted& a, const Counted& b) {
                                       a.text = "(" + stripped(a.text) + "+" + stripped(b.text) + ")";
                                       a.text.resize(longest, ' ');
                                     },
                                     [&](Counted& value) {
                                       ++sent;
                                       return as_message(std::span(value.text));
                                     })
                                     .text;
        EXPECT_EQ(counts.alive, 0);
        return stripped(text);
      });
      for (const std::string& sum : sums)
        EXPECT_EQ(sum, tasks == 0 ? "" : tree_of(0, tasks)) << tasks << " on " << ranks;
      // Whole subtrees are one message each: with as many tasks as ranks, each rank but the first sends one.
      if (tasks == 4 && ranks == 4) {
        EXPECT_EQ(sent, 2 * 3 + 4U);
      }
    }
}

// A process whose range begins inside of a subtree keeps a few values more.
TEST(TreeSum, KeepsFewValuesOnEachProcess) {
  (void)test::as_processes(3, [](Processes* processes) {
    const Range range(processes, 300);
    Counted::Counts counts;
    Workers workers(2);
    const auto number = tree_sum(
        &workers, range, [&] { return Counted(counts); },
        [](std::size_t i, Counted& value) {
          std::this_thread::sleep_for(std::chrono::microseconds(i % 64 == 1 ? 2000 : 20));
          value.text = "12345678";
        },
        [](Counted& a, const Counted&) { a.text.resize(8); },
        [](Counted& value) {
          value.text.resize(8);
          return as_message(std::span(value.text));
        });
    EXPECT_LE(counts.most, 2 + 2 * 9 + 1);
    return number.text;
  });
}

TEST(TreeSum, OfNothingIsZero) {
  Counted::Counts counts;
  EXPECT_EQ(tree_sum(
                nullptr, 0, [&] { return Counted(counts); }, [](std::size_t, Counted&) {}, add)
                .text,
            "");
}

TEST(TreeSum, ThrowsWhatTheFirstFailureThrows) {
  for (const std::size_t threads : {1, 3}) {
    Workers workers(threads);
    for (int repeat = 0; repeat < 20; ++repeat) {
      Counted::Counts counts;
      try {
        tree_sum(
            &workers, 50, [&] { return Counted(counts); },
            [](std::size_t i, Counted&) {
              if (i == 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              if (i >= 20 && i % 2 == 0) throw std::runtime_error(std::to_string(i));
            },
            add);
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "20");
      }
      EXPECT_EQ(counts.alive, 0);
    }
    // The workers can be used again.
    EXPECT_EQ(run(&workers, 9, [](std::size_t) { return 0; }).first, tree_of(0, 9));
  }
}

}  // namespace
}  // namespace implicit_diffusion
