// The front door: optimise(problem, theta, optimizer, options) runs the loop that fits the problem and returns a result
// that you can print.
//
//     const auto result = optimise(LangevinProblem(Shifted{}, reward), {0.0}, Adam(0.01),
//                                  {.particles = 1000, .step_size = 0.1, .steps = 2000, .seed = 1});
//     std::puts(describe(result).c_str());
//
// langevin/optimise.hpp and denoising/optimise.hpp have the two kinds of problems and their options; this header has
// what they share. The parts below it (samplers, estimators, loops) are yours to combine where a problem needs more:
// see examples/parts.cpp.
//
// An observer, the last argument of optimise(), is any callable on a Glimpse. It is called before the first step and
// after every step. If it returns a bool, false ends the run.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/loop/state.hpp"
#include "implicit_diffusion/tiles.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace implicit_diffusion {

// What an observer sees of a run, while it is called.
template <class Samples, class Theta = std::vector<double>>
struct Glimpse {
  std::int64_t step;   // outer steps done
  const Theta& theta;  // the parameters after them
  const Samples&
      samples;  // the population, or the newest batch that is finished; blank before a nested loop has made one
};

// How a run went.
struct [[nodiscard]] RunReport {
  Outcome outcome;
  std::int64_t steps = 0;                 // outer steps done
  std::optional<double> reward, path_kl;  // means over the last samples, where there is one reward, a frozen model
  std::optional<double> objective;        // what was minimised, where it is a mean over samples
  std::vector<double> first_parameters;   // the beginning of theta, for describe()
  std::size_t parameters = 0;
  std::vector<std::string> notes;  // what may help a run that diverged; what would make it faster

  bool completed() const { return outcome.status == Status::completed; }
};

// A few lines: how the run ended, after how many steps, theta, the objective, the notes.
std::string describe(const RunReport& report);
// Notes that `what` is slow for a reason, or nothing where that is null.
void add_speed_note(const char* what, const char* reason, RunReport& report);
// What may help a chain that diverged: a step below the limit of its stability, where that is known and exceeded, or
// smaller steps in general.
std::string divergence_note(double step_size, std::optional<double> largest_stable);
// What was no longer finite: "coordinate 2 of the gradient is not finite".
std::string describe(const Divergence& divergence);

template <class Theta, class Samples, class Optimizer>
struct [[nodiscard]] Result : RunReport {
  Theta theta;          // the last one that was finite
  Samples samples;      // the population, or the newest batch that is finished
  Optimizer optimizer;  // with what it remembers

  Result(RunReport report, Theta t, Samples x, Optimizer o)
      : RunReport(std::move(report)), theta(std::move(t)), samples(std::move(x)), optimizer(std::move(o)) {
    for_each_element(
        [this](const auto& v) {
          if (parameters++ < most_shown) first_parameters.push_back(static_cast<double>(v));
        },
        theta);
  }

 private:
  static constexpr std::size_t most_shown = 8;
};

// n samples at the origin, of an engine. Throws a usage Error where processes are to share them and it cannot do that.
template <class E>
auto samples_of(const E& engine, std::size_t n, Processes* processes) {
  if constexpr (requires { engine.samples(n, processes); }) return engine.samples(n, processes);
  if (processes) throw Error(ErrorKind::usage, "processes", "these samples cannot be spread over several");
  return engine.samples(n);
}

// Throws a usage Error unless so many samples have noise of their own (random/noise.hpp).
void require_noise_for(const std::string& name, std::size_t samples, std::size_t dimension);

// The sum of a reward over samples, tile by tile, and its mean. E: an engine.
template <class E>
double sum_of_rewards(const typename E::Samples& x, const typename E::Reward& reward) {
  double sum = 0;
  typename E::Numbers r = E::numbers(x);
  for (std::size_t k = 0; k < E::tiles(x); ++k) reward.add(E::tile(x, k), 1, E::numbers_of(r, k));
  in_turn(spread_of(x), {&sum, 1}, [&] {
    for (std::size_t k = 0; k < E::tiles(x); ++k) E::add_to(sum, E::numbers_of(r, k), E::tile(x, k));
  });
  return sum;
}
template <class E>
double mean_reward(const typename E::Samples& x, const typename E::Reward& reward) {
  return sum_of_rewards<E>(x, reward) / static_cast<double>(total_of(x));
}

}  // namespace implicit_diffusion
