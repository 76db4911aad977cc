#include "experiment/checkpoints.hpp"
#include "experiment/runs.hpp"
#include "experiment/task_pool.hpp"
#include "experiment/together.hpp"
#include "experiment/warnings.hpp"
#include "finite_state/experiment.hpp"
#include "finite_state/timing.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/finite/sampler.hpp"
#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

namespace program {
namespace {

using namespace implicit_diffusion;

double mean(std::span<const double> p, std::span<const double> f) {
  return std::inner_product(p.begin(), p.end(), f.begin(), 0.0);
}

double divergence(std::span<const double> p, std::span<const double> q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) sum += p[i] * std::log(p[i] / q[i]);
  return std::max(sum, 0.0);
}

// A loop, and what is written down of it: a row every log_every steps and one at the end.
struct Track {
  const char* name;   // of its column
  const char* label;  // in words
  const char* with;   // what it moves
  std::vector<double> theta = {};
  Outcome outcome = {};
  std::vector<double> steps = {}, seconds = {}, reward = {}, exact_reward = {}, objective = {}, kl = {};
  std::vector<double> thetas = {};  // row by row
  StatePopulation samples = {};     // at the end; empty where the loop has none
};

// The drift is 0 where theta begins without it. The figures are all by the exact law.
template <class Population, class Sampler, class Estimator>
void follow(Track& t, const FiniteStateConfiguration& c, const RingProblem& ring, Sampler& sampler,
            Estimator& estimator, Population population, std::span<const double> start, const RunContext& context) {
  State<Population, GradientDescent> s{0, std::vector<double>(start.begin(), start.end()), std::move(population),
                                       GradientDescent{{c.learning_rate}}};
  ChainGradient judge(ring.chain, ring.objective);
  std::vector<double> shares(c.ring.states), gradient(ring.start.size());
  const auto begin = std::chrono::steady_clock::now();
  constexpr double loops = 3;
  Progress::Loop progress(context.progress, context.weight / loops);
  const auto record = [&](const auto& state) {
    if constexpr (std::is_same_v<Population, StatePopulation>)
      empirical(state.population, shares);
    else
      shares = state.population.p;
    t.steps.push_back(static_cast<double>(state.step));
    t.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    t.reward.push_back(mean(shares, ring.objective.reward()));
    t.theta.assign(ring.start.size() - start.size(), 0.0);
    t.theta.insert(t.theta.end(), state.theta.begin(), state.theta.end());
    t.thetas.insert(t.thetas.end(), t.theta.begin(), t.theta.end());
    try {
      t.objective.push_back(judge.exact(t.theta, gradient));
      t.exact_reward.push_back(mean(judge.law(), ring.objective.reward()));
      t.kl.push_back(divergence(ring.best_law, judge.law()));
    } catch (const Error&) {  // a chain that falls apart has no law: the loop is about to say that it diverged
      for (auto* figures : {&t.objective, &t.exact_reward, &t.kl}) figures->resize(t.steps.size(), Figures::none);
    }
  };
  Together together(context.processes, context.stop);
  t.outcome = single_loop(
      sampler, estimator, s, {.steps = c.steps},
      [&](const auto& state) {
        (void)together(false);
        if (state.step % c.log_every == 0) record(state);
        progress(state.step);
      },
      together.stop());
  if (t.steps.back() != static_cast<double>(s.step)) record(s);
  if constexpr (std::is_same_v<Population, StatePopulation>) t.samples = whole(s.population);
}

// A loop that has ended, as numbers: all rows, then theta, then the states of its samples.
std::vector<double> track_numbers(const Track& t) {
  std::vector<double> v;
  for (const auto* row : {&t.steps, &t.seconds, &t.reward, &t.exact_reward, &t.objective, &t.kl, &t.thetas, &t.theta})
    v.insert(v.end(), row->begin(), row->end());
  v.insert(v.end(), t.samples.states.begin(), t.samples.states.end());
  return v;
}
// And back; false where it is of another number of steps.
bool restore(Track& t, const FiniteStateConfiguration& c, std::size_t p, std::size_t samples,
             const FinishedParts& parts) {
  const auto numbers = parts.find(t.name);
  const std::int64_t last = c.steps % c.log_every == 0 ? 0 : 1;  // beside those of every log_every-th step
  const auto rows = static_cast<std::size_t>(c.steps / c.log_every + last) + 1;
  if (!numbers || rows > numbers->size() || numbers->size() != rows * (6 + p) + p + samples) return false;
  if ((*numbers)[rows - 1] != static_cast<double>(c.steps)) return false;
  auto from = numbers->begin();
  const auto take = [&](std::vector<double>& to, std::size_t n) {
    to.assign(from, from + static_cast<std::ptrdiff_t>(n));
    from += static_cast<std::ptrdiff_t>(n);
  };
  for (auto* row : {&t.steps, &t.seconds, &t.reward, &t.exact_reward, &t.objective, &t.kl}) take(*row, rows);
  take(t.thetas, rows * p);
  take(t.theta, p);
  for (; from != numbers->end(); ++from) {
    if (!(*from >= 0 && *from < static_cast<double>(c.ring.states)))
      parts.refuse(t.name, "has a state that is not one");
    t.samples.states.push_back(static_cast<std::uint32_t>(*from));
  }
  return true;
}

FinishedRun run_once(const FiniteStateConfiguration& c, const RunContext& context) {
  FinishedParts parts(c, context, c.steps);
  Workers workers(std::max<std::size_t>(context.threads, 2) - 1);  // one is left for the other loop
  context.say_if_fewer(context.threads > 1 ? workers.threads() + 1 : 1);
  const RingProblem ring = ring_problem(c.ring, c.reward, c.beta);
  const std::vector<double> inner(c.start.begin() + 1, c.start.end());
  const auto n = static_cast<std::size_t>(c.particles);

  // The same problem three times: without noise; with samples of the chain, and the linear system; with samples moved
  // by a rule that keeps the Gibbs law, and a covariance.
  std::array tracks{Track{"law", "the law itself", "the law itself"},
                    Track{"particles", "samples, linear system", "samples of the chain"},
                    Track{"gibbs", "samples, covariance", "samples of the Gibbs law"}};
  const auto loop = [&](Track& t, auto& sampler, auto& estimator, auto population, std::span<const double> start) {
    constexpr bool sampled = std::is_same_v<decltype(population), StatePopulation>;
    if (restore(t, c, ring.start.size(), sampled ? n : 0, parts)) return;
    follow(t, c, ring, sampler, estimator, std::move(population), start, context);
    if (t.outcome.status == Status::completed) parts.keep(t.name, track_numbers(t));
    if (!context.quiet && !context.stop.stop_requested())
      context.progress->say(fmt::format("the loop with {} has ended", t.with));
  };
  // The linear system takes most of the time: the two loops that have one run beside each other. Those of several
  // processes exchange messages, which must come in one order.
  run_tasks(2, context.processes ? 1 : context.threads, [&](std::size_t i) {
    ChainGradient estimator(ring.chain, ring.objective);
    if (i == 0) {
      ChainSampler sampler(ring.chain);
      loop(tracks[0], sampler, estimator, uniform_distribution(c.ring.states), c.start);
    } else {
      ChainSampler sampler(ring.chain, {.noise = Noise(c.seed), .workers = &workers});
      loop(tracks[1], sampler, estimator, spread_population(n, c.ring.states, context.processes), c.start);
    }
  });
  const RingPotential potential(c.ring.states, c.ring.harmonics);
  GibbsSampler sampler(potential, Graph::ring(c.ring.states, c.ring.width),
                       {.rule = c.rule, .noise = Noise(c.seed), .workers = &workers});
  GibbsGradient estimator(potential, ring.objective);
  loop(tracks[2], sampler, estimator, spread_population(n, c.ring.states, context.processes), inner);
  const double seconds = parts.seconds();
  std::vector<GradientTiming> timings;
  if (!any(context.processes, context.stop.stop_requested()) && context.writes()) {
    timings = time_gradients(c.dense_sizes, {.dense = true});
    const auto banded = time_gradients(c.band_sizes);
    timings.insert(timings.end(), banded.begin(), banded.end());
    if (!context.quiet) context.progress->say("the gradients have been timed");
  }

  Status status = Status::completed;
  for (const Track& t : tracks)
    if (t.outcome.status == Status::diverged || status == Status::completed) status = t.outcome.status;

  // The run's own files are those of the samples with the linear system.
  const Track& main = tracks[1];
  std::vector<std::string> header{"step",     "gradient_evaluations", "seconds", "reward", "exact_reward",
                                  "exact_kl", "log_likelihood"};
  for (const Track& t : tracks)
    header.insert(header.end(), {fmt::format("objective_{}", t.name), fmt::format("reward_{}", t.name)});
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < main.steps.size(); ++i) {
    rows.push_back({main.steps[i], main.steps[i], main.seconds[i], main.reward[i], main.exact_reward[i], main.kl[i],
                    Figures::none});
    for (const Track& t : tracks) {
      const bool there = i < t.steps.size() && t.steps[i] == main.steps[i];
      rows.back().insert(rows.back().end(),
                         {there ? t.objective[i] : Figures::none, there ? t.reward[i] : Figures::none});
    }
  }
  context.write("metrics.csv", io::csv_bytes(header, rows));
  context.write("theta.npy", io::npy_bytes(main.thetas, std::array{main.steps.size(), ring.start.size()}));
  if (status != Status::diverged) {
    const std::vector<float> states(main.samples.states.begin(), main.samples.states.end());
    context.write("samples.npy", io::npy_bytes(states, std::array{states.size(), std::size_t{1}}));
  }

  Summary s = summary_of(c, context.threads);
  s.method = "implicit";
  s.steps = static_cast<std::int64_t>(main.steps.back());
  s.status = to_string(status);
  s.theta = main.theta;
  s.figures = {main.reward.back(), main.exact_reward.back(), main.kl.back()};
  s.gradient_evaluations = s.steps;
  s.seconds = seconds;
  if (status == Status::completed && !c.shortened)
    if (auto moving = warn_if_moving("objective", main.objective, false)) s.warnings.push_back(std::move(*moving));
  Json& more = s.more;
  more["results"] = Json::array();
  for (const GradientTiming& r : timings)
    more["results"].push_back({{"states", r.states},
                               {"gradient_error", r.gradient_error},
                               {"seconds", r.seconds},
                               {"form", r.dense ? "dense" : "banded"}});
  more["optimum"] = ring.optimum;
  more["best_reward"] = mean(ring.best_law, ring.objective.reward());
  more["best_objective"] = ring.objective.value(ring.best_law);
  for (const Track& t : tracks)
    more["loops"].push_back({{"loop", t.name},
                             {"theta", t.theta},
                             {"reward", t.reward.back()},
                             {"exact_reward", t.exact_reward.back()},
                             {"objective", t.objective.back()},
                             {"exact_kl", t.kl.back()}});
  if (context.processes) s.processes = context.processes->ranks();
  context.write("summary.json", to_json(s));

  std::string text =
      fmt::format("{} (seed {}): {}, {} steps in {:.2f} s\n", c.experiment, c.seed, s.status, s.steps, s.seconds);
  text += fmt::format("  {:<26}{:>10}{:>14}{:>12}{:>12}\n", "loop", "reward", "exact reward", "objective", "exact KL");
  for (const Track& t : tracks)
    text += fmt::format("  {:<26}{:>10.4f}{:>14.4f}{:>12.5f}{:>12.2e}\n", t.label, t.reward.back(),
                        t.exact_reward.back(), t.objective.back(), t.kl.back());
  text += fmt::format("  {:<26}{:>10}{:>14.4f}{:>12.5f}\n", "the optimum", "", more["best_reward"].get<double>(),
                      more["best_objective"].get<double>());
  if (!timings.empty()) text += fmt::format("  {:<26}{:>10}{:>14}{:>12}\n", "gradient", "states", "error", "seconds");
  for (const GradientTiming& t : timings)
    text += fmt::format("  {:<26}{:>10}{:>14.1e}{:>12.2g}\n", t.dense ? "dense" : "banded", t.states, t.gradient_error,
                        t.seconds);
  FinishedRun done{std::move(s), std::move(text), {}};
  const auto diverged = std::ranges::find_if(tracks, [](const Track& t) { return t.outcome.divergence.has_value(); });
  if (diverged != tracks.end())  // an error is one line: that of the first loop stands for all
    done.complaints = {fmt::format(
        "{}: diverged at step {}: coordinate {} of the gradient or of theta is not finite; a learning_rate smaller "
        "than {} may help",
        diverged->label, diverged->outcome.divergence->step, diverged->outcome.divergence->coordinate + 1,
        c.learning_rate)};
  return done;
}

}  // namespace

std::unique_ptr<Experiment> read_finite_state(const Document& d) {
  return std::make_unique<FiniteStateExperiment>(read_finite_state_configuration(d));
}

int FiniteStateExperiment::run(const RunOptions& o) const { return run_or_repeat(configuration(), o, run_once, *this); }

}  // namespace program
