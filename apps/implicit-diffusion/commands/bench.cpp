// Fixed problems, verified, then timed. One file, though a long one: a table of times is only worth something if all of
// them are taken in the same way (commands/timing.hpp).
//
// A time is in nanoseconds for each particle and step. What the joint step cannot do without are its random bits, their transformation to normals,
// and its exponentials: these are timed alone, in the same amounts, and the step is compared with their sum.
#include "commands/commands.hpp"
#include "commands/timing.hpp"
#include "experiment/console.hpp"
#include "experiment/launch.hpp"
#include "experiment/registry.hpp"
#include "finite_state/timing.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "langevin/experiment.hpp"
#include "langevin/recorder.hpp"
#include "networks/environment.hpp"
#include "src/langevin/kernel_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>

namespace program {
namespace {

using namespace implicit_diffusion;

// A point in the plane of the first two coordinates (on a line in one dimension).
std::vector<double> point(std::size_t dimension, double x, double y) {
  std::vector<double> p(dimension);
  p[0] = x;
  if (dimension > 1) p[1] = y;
  return p;
}

// The single loop on a ring of wells with the paper's reward, ready to go on.
template <class Real>
struct RewardLoop {
  LangevinEngine<Real> engine;
  State<Population<Real>, GradientDescent> state;

  RewardLoop(std::size_t particles, std::size_t wells, std::size_t dimension, Workers* workers)
      : engine(SoftmaxWells(ring(wells, dimension), 2.0), terms(dimension),
               {.step_size = {0.2}, .noise = Noise(1), .workers = workers}),
        state{0, std::vector<double>(wells), Population<Real>(particles, dimension), GradientDescent{{0.1}}} {
    StandardNormalStart<Real>{Noise(1)}.draw(state.population, 0);
    for (std::size_t i = 0; i < wells; i += 2) state.theta[i] = 1.5;
  }
  void run(std::int64_t steps) {
    require_right(single_loop(engine, engine, state, {.steps = state.step + steps}).status == Status::completed,
                  "the single loop diverged");
  }

  static std::vector<std::vector<double>> ring(std::size_t wells, std::size_t dimension) {
    std::vector<std::vector<double>> centres;
    for (std::size_t i = 0; i < wells; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(wells);
      centres.push_back(point(dimension, 4 * std::cos(angle), 4 * std::sin(angle)));
    }
    return centres;
  }
  static typename GradientEstimator<Real>::Terms terms(std::size_t dimension) {
    typename GradientEstimator<Real>::Terms t;
    t.push_back(std::make_unique<RewardTerm<Real>>(HardReward(point(dimension, 4, 3.8), 20, 2.5)));
    return t;
  }
};

// Steps of the single loop that take some ten milliseconds.
std::int64_t steps_to_time(std::size_t particles, std::size_t wells, std::size_t dimension) {
  return static_cast<std::int64_t>(std::max<std::size_t>(1, 4'000'000 / particles / (1 + wells * dimension / 24)));
}

// Nanoseconds for each particle and step of the single loop.
double joint_step(std::size_t particles, std::size_t wells = 6, std::size_t dimension = 2, Workers* workers = nullptr) {
  RewardLoop<float> loop(particles, wells, dimension, workers);
  const std::int64_t steps = steps_to_time(particles, wells, dimension);
  loop.run(steps);
  return median_seconds([&] { loop.run(steps); }) / static_cast<double>(steps) / static_cast<double>(particles) * 1e9;
}

// The joint step in several dimensions, beside that in two. They take turns, so that what slows the machine down for a
// while slows all of them down; a ratio is the median of the ratios of single turns.
std::string joint_steps_by_dimension() {
  constexpr std::size_t dimensions[] = {1, 2, 4, 8, 16, 32}, plane = 1, particles = 10'000, wells = 6, turns = 15;
  std::vector<RewardLoop<float>> loops;
  for (const std::size_t d : dimensions) loops.emplace_back(particles, wells, d, nullptr);
  std::vector<double> times[std::size(dimensions)], ratios[std::size(dimensions)];
  for (std::size_t turn = 0; turn <= turns; ++turn) {  // the first is for warming up
    double now[std::size(dimensions)];
    for (std::size_t k = 0; k < loops.size(); ++k) {
      const std::int64_t steps = steps_to_time(particles, wells, dimensions[k]);
      now[k] = seconds_of([&] { loops[k].run(steps); }) / static_cast<double>(steps * particles) * 1e9;
    }
    for (std::size_t k = 0; turn > 0 && k < loops.size(); ++k) {
      times[k].push_back(now[k]);
      ratios[k].push_back(now[k] / now[plane]);
    }
  }
  std::string text = "\ndimensions (6 wells, 10,000 particles), and the ratio to two; medians of 15 turns\n";
  text += fmt::format("  {:>12}{:>10}{:>10}\n", "dimensions", "step", "ratio");
  for (std::size_t k = 0; k < loops.size(); ++k)
    text += fmt::format("  {:>12}{:>10.2f}{:>10.2f}\n", dimensions[k], median(times[k]), median(ratios[k]));
  return text;
}

// The loop of an experiment with all that is measured along it, beside the joint step alone; they take turns.
std::string loop_with_metrics() {
  const auto experiment = load_experiment("langevin-reward", {});
  const LangevinConfiguration& c = dynamic_cast<const LangevinExperiment&>(*experiment).configuration();
  RewardLoop<float> alone(static_cast<std::size_t>(c.particles), 6, 2, nullptr);
  std::vector<double> seconds, ratios;
  for (int turn = 0; turn <= 9; ++turn) {  // the first is for warming up
    const double whole = seconds_of([&] {
      Recorder recorder(c, nullptr);
      const RunResult r = run_method(c, nullptr, [&](const RunState& s) { recorder(s); }, {});
      recorder.finish(r.state, false);
    });
    const double step = seconds_of([&] { alone.run(c.steps); });
    if (turn == 0) continue;
    seconds.push_back(whole);
    ratios.push_back(whole / step);
  }
  return fmt::format(
      "\nlangevin-reward, its loop with default metrics and thresholds, one thread: {:.1f} ms, {:.2f} times its joint "
      "steps alone\n",
      median(seconds) * 1e3, median(ratios));
}

// What two threads can do here at best: the work of two in the time of one would be 2. Processors that are two halves
// of one core, or that others use meanwhile, give less.
double two_threads_apart(const KernelSet& kernels) {
  struct Own {
    alignas(64) float work[block_size] = {}, result[block_size];
  };
  Own own[2];
  Workers pair(2);
  const auto seconds = [&](std::size_t threads) {
    const auto work = [&](std::size_t t) {
      for (int i = 0; i < 20'000; ++i) kernels.exponentials(own[t].work, groups_per_block, own[t].result);
    };
    return median_seconds([&] { pair.for_each(threads, 1, work); }, 1, 25);
  };
  const double one = seconds(1);
  return 2 * one / seconds(2);
}

// Fast and wrong is worth nothing: 50 steps in single precision on lanes against 50 in double precision, the same
// noise. Rounding makes theta differ by about 1e-6; a wrong term would by 1e-2.
void verify(std::string& text) {
  constexpr std::int64_t steps = 50;
  RewardLoop<float> fast(10'001, 6, 2, nullptr);
  RewardLoop<double> reference(10'001, 6, 2, nullptr);
  fast.run(steps);
  reference.run(steps);
  double worst = 0;
  for (std::size_t j = 0; j < 6; ++j) worst = std::max(worst, std::abs(fast.state.theta[j] - reference.state.theta[j]));
  text += fmt::format(
      "verified: theta after {} steps, lanes against double precision: largest difference {:.1e} (allowed 1e-4)\n\n",
      steps, worst);
  require_right(worst < 1e-4, fmt::format("lanes and double precision differ by {}", worst));
}

// A denoising diffusion of six Gaussians in the plane, 256 steps of the reverse SDE: sampling, and the gradient by 24
// parameters. Verified against double precision first. benchmarks/rivals/diffusion.py has the same in other frameworks.
constexpr std::size_t denoising_steps = 256;
struct FirstCoordinate {
  static constexpr bool any_number = true;
  template <class N>
  N operator()(const N* y) const {
    return y[0];
  }
};
template <class Real>
struct DenoisingBench {
  MixtureScore<Spread::isotropic> model{6, 2};
  std::vector<double> theta = std::vector<double>(24), gradient = theta;
  ReverseChain<Real> chain;
  PathBatch<Real> batch;

  DenoisingBench(std::size_t n, std::size_t keep_every = 1)
      : chain(model, uniform_grid(3, denoising_steps),
              {.keep_every = keep_every, .normals = normals_of<Real>(Noise(1))}) {
    for (std::size_t i = 0; i < 6; ++i) {
      theta[6 + 2 * i] = 4 * std::cos(static_cast<double>(i));
      theta[7 + 2 * i] = 4 * std::sin(static_cast<double>(i));
      theta[18 + i] = -0.3;
    }
    batch.points = Population<Real>(n, 2);
  }
  void sample() {
    DenoisingStart<Real>{Noise(1)}.draw(batch, 0);
    DenoisingSampler<Real>(chain).advance(batch, theta, {});
  }
  // The gradient along the path that was kept, and of a fresh batch in one go.
  void adjoint() { PathGradient<Real>(chain, FirstCoordinate{}).estimate(batch, theta, 0, gradient); }
  void sample_and_adjoint() {
    DenoisingStart<Real>{Noise(1)}.draw(batch, 0);
    PathGradient<Real>(chain, FirstCoordinate{}).sample_and_estimate(batch, theta, {}, gradient);
  }
};
std::string denoising_chains() {
  std::string text =
      "\na denoising diffusion of six Gaussians in the plane, 256 steps, 24 parameters, one thread: ns a sample and "
      "step\n";
  // First: memory that was used before would not be seen.
  const std::optional<Megabytes> memory = megabytes_of([] {
    DenoisingBench<float> bench(10'000);
    bench.sample_and_adjoint();
  });
  const std::optional<Megabytes> kept = megabytes_of([] {
    DenoisingBench<float> bench(10'000);
    bench.sample();
    bench.adjoint();
  });
  {
    DenoisingBench<float> single(1000);
    DenoisingBench<double> twice(1000);
    single.sample_and_adjoint();
    twice.sample();
    twice.adjoint();
    const std::vector<double>&a = single.gradient, &b = twice.gradient;
    double difference = 0, size = 0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      difference += (a[j] - b[j]) * (a[j] - b[j]);
      size += b[j] * b[j];
    }
    const double error = std::sqrt(difference / size);
    text += fmt::format(
        "  verified: its gradient, lanes against double precision: relative difference {:.1e} (allowed 1e-4)\n", error);
    require_right(error < 1e-4, "the gradient through a chain is wrong");
  }
  // Forward keeps nothing of the path; the gradient is a fresh batch all the way and back; the adjoint alone is along a
  // path that was kept.
  text += fmt::format("  {:>12}{:>10}{:>12}{:>12}{:>14}{:>28}\n", "samples", "forward", "gradient", "adjoint",
                      "joint step", "forward, adjoint to that");
  for (const std::size_t n : {1'000, 10'000}) {
    DenoisingBench<float> forgets(n, denoising_steps), keeps(n);
    forgets.sample();
    keeps.sample();
    const auto nanoseconds = [&](auto&& work) {  // 20 calls at once: a few milliseconds would measure the moment
      return median_seconds(work, 20'000 / n) / static_cast<double>(n * denoising_steps) * 1e9;
    };
    const double forward = nanoseconds([&] { forgets.sample(); }),
                 gradient = nanoseconds([&] { forgets.sample_and_adjoint(); }),
                 adjoint = nanoseconds([&] { keeps.adjoint(); }), joint = joint_step(n);
    text += fmt::format("  {:>12}{:>10.2f}{:>12.2f}{:>12.2f}{:>14.2f}{:>22.2f}, {:.2f}\n", n, forward, gradient,
                        adjoint, joint, forward / joint, adjoint / joint);
  }
  text += memory
              ? fmt::format(
                    "  extra memory of the gradient, 10,000 samples: {:.1f} MB\n  where its path is kept: {:.1f} MB\n",
                    memory->extra(), kept ? kept->extra() : 0)
              : "  extra memory of the gradient: this system does not say\n";
  return text;
}

// Gradients of a stationary law by the linear system, verified against the covariance that each is equal to.
std::string finite_gradients() {
  using Sizes = std::vector<std::int64_t>;
  std::string text = "\na gradient through the stationary law of a chain, by the linear system\n";
  text += fmt::format("  {:>12}{:>10}{:>12}{:>18}\n", "", "states", "ms", "relative error");
  for (const auto& rows : {time_gradients(Sizes{100, 300, 1000}, {.dense = true}),
                           time_gradients(Sizes{4000}, {.dense = true, .repeats = 0}),
                           time_gradients(Sizes{1000, 10'000, 100'000, 1'000'000})})
    for (const GradientTiming& r : rows) {
      require_right(r.gradient_error < 1e-8,
                    fmt::format("the gradient of {} states is wrong: {}", r.states, r.gradient_error));
      text += fmt::format("  {:>12}{:>10}{:>12.3g}{:>18.1e}\n", r.dense ? "dense" : "banded", r.states, r.seconds * 1e3,
                          r.gradient_error);
    }
  return text;
}

}  // namespace

int bench(const BenchOptions& o) {
  choose_isa(o.isa);
  if (!o.only.empty() && o.only != "particles") {
    if (!is_first()) return 0;
    leave_to_first();
    become_networks("bench --only " + o.only);
  }
  if (has_networks()) return bench_networks(o.only);
  start_processes({"bench", {{"--isa", o.isa ? std::string(to_string(*o.isa)) : ""}}, {}});
  if (processes()) return bench_processes();
  std::string text = fmt::format("{}, {} cores, kernels {}; ns for each particle and step, medians of 9\n",
                                 processor_name(), std::thread::hardware_concurrency(), to_string(active_isa()));
  verify(text);

  // The unavoidable parts of a step of 256 particles, six wells and a reward: bits, normals, seven exponentials.
  const KernelSet& kernels = active_kernels();
  alignas(64) static float work[7 * block_size], result[7 * block_size];
  for (std::size_t i = 0; i < std::size(work); ++i)
    work[i] = static_cast<float>(-60.0 * exp2_unit * static_cast<double>(i % 97) / 97);
  const NoiseKey key = Noise(1).at(Stream::sampling, {});
  const auto timed = [](auto&& work_on) { return median_seconds(work_on, 4000, 25) / block_size * 1e9; };
  const double bits = timed([&] { kernels.bits(key, 2, 0, groups_per_block, result); });
  const double normals = timed([&] { kernels.normals(key, 2, 0, groups_per_block, result); });
  const double exponentials = timed([&] { kernels.exponentials(work, 7 * groups_per_block, result); });
  const double parts = normals + exponentials;
  text +=
      "the joint step of the paper's experiment (6 wells, 2 dimensions), one thread, and its unavoidable parts alone\n";
  text += fmt::format("  random bits {:.2f} + to normals {:.2f} + 7 exponentials {:.2f} = {:.2f}\n", bits,
                      normals - bits, exponentials, parts);
  text += fmt::format("  {:>12}{:>10}{:>18}{:>16}\n", "particles", "step", "step / parts", "2 threads");
  for (const std::size_t n : {1'000, 10'000, 100'000, 1'000'000}) {
    const double one = joint_step(n);
    Workers pair(2);
    const double two = joint_step(n, 6, 2, &pair);
    text += fmt::format("  {:>12}{:>10.2f}{:>18.2f}{:>10.2f} ({:.2f}x)\n", n, one, one / parts, two, one / two);
  }
  text += fmt::format("  two threads with exponentials of their own, which share nothing: {:.2f}x\n",
                      two_threads_apart(kernels));

  // A user's potential: derivatives by hand, and by dual numbers from the value alone.
  alignas(64) static float noise[2 * block_size], signal[block_size];
  kernels.normals(key, 2, 0, groups_per_block, noise);
  const std::vector<double> ring_theta{3, 2};
  const auto ring = [&](auto potential, auto pass) {
    potential.prepare(ring_theta);
    Population<float> x(block_size, 2);
    StandardNormalStart<float>{Noise(1)}.draw(x, 0);
    double sums[5] = {};
    bool nonfinite = false;
    const Pass<float> request{
        .noise = noise, .step = 0.1f, .scale = 0.1f, .nonfinite = &nonfinite, .sums = sums, .signal = signal};
    const double time = timed([&] { pass(potential, x.block(0), request); });
    require_right(!nonfinite, "a sample of the ring is not finite");
    return std::pair{time, static_cast<double>(x(7, 0))};
  };
  for (std::size_t i = 0; i < block_size; ++i) signal[i] = static_cast<float>(i % 7);
  const auto [by_hand, hand_sample] = ring(RingByHand{}, kernels.ring_by_hand);
  const auto [by_duals, dual_sample] = ring(RingByDuals{}, kernels.ring_by_duals);
  require_right(std::abs(hand_sample - dual_sample) < 1e-3,
                "derivatives by hand and by dual numbers lead to different samples");
  text += fmt::format(
      "\na ring with two parameters, its joint pass without the noise: derivatives by hand {:.2f}, by dual numbers "
      "{:.2f} "
      "({:.2f}x)\n",
      by_hand, by_duals, by_duals / by_hand);

  std::string times;
  text += "\nwells (2 dimensions, 10,000 particles)\n ";
  for (const std::size_t k : {2, 4, 8, 16, 32, 64}) {
    text += fmt::format("{:>8}", k);
    times += fmt::format("{:>8.2f}", joint_step(10'000, k, 2));
  }
  text += "\n " + times + "\n";
  text += joint_steps_by_dimension();
  text += loop_with_metrics();
  text += denoising_chains();
  text += finite_gradients();
  print(text);
  if (o.only.empty() && networks_were_built()) become_networks("bench");
  return 0;
}

}  // namespace program
