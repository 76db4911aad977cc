// The processes of a job, beside as many threads of the first one: started by a launcher, `bench` measures these.
//
// Turns alternate, and both must end with the same theta. The time of a step is
//
//     work / processes + latency + bytes / bandwidth
//
// whose constants are measured too: the work is that of one process for a million particles; the latency is what a step
// of a thousand takes beyond its share of one process's time, and grows with the logarithm of the number of processes;
// the bandwidth is that of a gather of a megabyte from each. The formula then predicts what is too large for here.
#include "commands/commands.hpp"
#include "commands/timing.hpp"
#include "experiment/console.hpp"
#include "experiment/launch.hpp"
#include "experiment/registry.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/parallel/sums.hpp"
#include "langevin/experiment.hpp"
#include "langevin/method.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace program {
namespace {

using namespace implicit_diffusion;

// Seconds of a gather of so many bytes from each.
double gather_seconds(Processes& all, std::size_t bytes, int repetitions) {
  std::vector<std::byte> message(bytes * all.ranks());
  const std::vector<std::size_t> sizes(all.ranks(), bytes);
  std::vector<double> seconds;
  for (int turn = 0; turn < 9; ++turn)
    seconds.push_back(seconds_of([&] {
                        for (int i = 0; i < repetitions; ++i) all.gather(sizes, message);
                      }) /
                      repetitions);
  return median(seconds);
}

// Seconds of a broadcast of 4 bytes, as of the mean of the pilot samples: from one and back from another, so that each
// waits for the one before.
double broadcast_seconds(Processes& all, int repetitions) {
  std::vector<std::byte> message(4);
  std::vector<double> seconds;
  for (int turn = 0; turn < 9; ++turn)
    seconds.push_back(seconds_of([&] {
                        for (int i = 0; i < repetitions; ++i) all.broadcast(i % 2 == 0 ? 0 : all.ranks() - 1, message);
                      }) /
                      repetitions);
  return median(seconds);
}

}  // namespace

int bench_processes() {
  MpiJob& all = *processes();
  const std::size_t ranks = all.ranks();
  const double latency = gather_seconds(all, 8, 2000), large = gather_seconds(all, std::size_t{1} << 20, 20),
               broadcast = broadcast_seconds(all, 2000);
  std::string text = fmt::format("{} processes, {}; medians of 9 turns\n", ranks, describe_plugin());
  text += fmt::format(
      "  a broadcast of 4 bytes: {:.2f} us; a gather of 8 bytes from each: {:.2f} us; of a megabyte: {:.0f} us, "
      "{:.1f} GB/s\n",
      broadcast * 1e6, latency * 1e6, large * 1e6, static_cast<double>((ranks - 1) << 20) / large / 1e9);
  text += "the joint step of the paper's experiment (6 wells, 2 dimensions), us a step\n";
  text += fmt::format("  {:>12}{:>12}{:>14}{:>26}{:>30}\n", "particles", "processes", "one process",
                      "as many threads of one", "processes' speed, of theirs");
  struct Row {
    std::size_t particles;
    double together, one;
  };
  std::vector<Row> rows;
  std::size_t parameters = 0;
  for (const std::size_t n : {1'000, 10'000, 100'000, 1'000'000}) {
    Overrides overrides;
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"particles", fmt::format("{}", n)},
                                     {"steps", fmt::format("{}", std::max<std::size_t>(20'000'000 / n, 25))},
                                     {"thresholds", "[]"}})
      overrides.set.push_back({key, value, "bench"});
    const auto experiment = load_experiment("langevin-reward", overrides);
    const LangevinConfiguration& c = dynamic_cast<const LangevinExperiment&>(*experiment).configuration();
    const auto run = [&](Processes* among, std::size_t threads) {
      Workers workers(threads);
      return run_method(
                 c, &workers, [](const RunState&) {}, {}, {}, among)
          .state.theta;
    };
    std::vector<double> together, one, threads;
    for (int turn = 0; turn <= 9; ++turn) {  // the first is for warming up
      std::vector<double> theta, alone;
      // All begin at once.
      (void)any(&all, false);
      const double shared = seconds_of([&] { theta = run(&all, 1); });
      double single = 0, teams = 0;
      if (all.rank() == 0) {
        teams = seconds_of([&] { alone = run(nullptr, ranks); });
        if (alone != theta) throw Error(ErrorKind::data, "bench", "processes and threads end with different thetas");
        single = seconds_of([&] { (void)run(nullptr, 1); });
      } else {
        // Out of the way: those who wait for a message look for it often at first.
        std::this_thread::sleep_for(std::chrono::duration<double>(shared));
      }
      parameters = theta.size();
      if (turn == 0) continue;
      together.push_back(shared / static_cast<double>(c.steps));
      one.push_back(single / static_cast<double>(c.steps));
      threads.push_back(teams / static_cast<double>(c.steps));
    }
    text += fmt::format("  {:>12}{:>12.2f}{:>14.2f}{:>26.2f}{:>29.2f}x\n", n, median(together) * 1e6, median(one) * 1e6,
                        median(threads) * 1e6, median(threads) / median(together));
    rows.push_back({n, median(together), median(one)});
  }

  const auto number = [](std::size_t n) { return static_cast<double>(n); };
  const double work = rows.back().one / number(rows.back().particles),
               step_latency = std::max(0.0, rows.front().together - rows.front().one / number(ranks)),
               bandwidth = number((ranks - 1) << 20) / large;
  // A row of sums for each chunk of blocks.
  const auto bytes = [&](std::size_t n) {
    const std::size_t chunk = tiles_per_chunk * block_size;
    return number((n + chunk - 1) / chunk) * number(1 + 2 * parameters) * sizeof(double);
  };
  text += fmt::format(
      "a step takes work / processes + latency + bytes / bandwidth: work {:.2f} ns a particle, latency {:.1f} us times "
      "log2(processes), bandwidth {:.1f} GB/s\n",
      work * 1e9, step_latency * 1e6 / std::log2(number(ranks)), bandwidth / 1e9);
  text += fmt::format("  {:>12}{:>12}{:>16}{:>14}{:>12}{:>12}{:>12}\n", "particles", "processes", "work / proc.",
                      "latency", "bytes", "us a step", "measured");
  const auto predict = [&](std::size_t n, std::size_t among, double measured) {
    const double share = work * number(n) / number(among),
                 wait = step_latency * std::log2(number(among)) / std::log2(number(ranks)), sent = bytes(n) / bandwidth;
    text += fmt::format("  {:>12}{:>12}{:>16.1f}{:>14.1f}{:>12.1f}{:>12.1f}{:>12}\n", n, among, share * 1e6, wait * 1e6,
                        sent * 1e6, (share + wait + sent) * 1e6,
                        measured > 0 ? fmt::format("{:.1f}", measured * 1e6) : "-");
  };
  for (const Row& row : rows) predict(row.particles, ranks, row.together);
  for (const std::size_t among : {64, 1'024}) predict(1'000'000'000, among, 0);
  print(text);
  return 0;
}

}  // namespace program
