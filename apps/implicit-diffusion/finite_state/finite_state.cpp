#include "finite_state/finite_state.hpp"

#include "experiment/finished_parts.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/run_directory.hpp"
#include "experiment/table_reader.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/finite/sampler.hpp"
#include "implicit_diffusion/finite/timing.hpp"
#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "implicit_diffusion/report/chart.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <numbers>
#include <thread>

namespace program {
namespace {

using namespace implicit_diffusion;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

const Words<Rule> rules{{"heat-bath", Rule::heat_bath}, {"metropolis", Rule::metropolis}};

double mean(std::span<const double> p, std::span<const double> f) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] * f[i];
  return sum;
}

double divergence(std::span<const double> p, std::span<const double> q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) sum += p[i] * std::log(p[i] / q[i]);
  return std::max(sum, 0.0);
}

// One of the three loops, and what is written down of it: a row every log_every steps and one at the end.
struct Track {
  const char* name;   // of its column
  const char* label;  // in words
  std::vector<double> theta = {};
  Outcome outcome = {};
  std::vector<double> steps = {}, seconds = {}, reward = {}, exact_reward = {}, objective = {}, kl = {};
  std::vector<double> thetas = {};  // row by row
  StatePopulation samples = {};     // at the end; empty where the loop has none
};

// The rings' figures at a theta: all by the exact law.
class Judge {
 public:
  explicit Judge(const RingProblem& ring) : ring_(ring), gradient_(ring.chain, ring.objective) {}

  // theta without the drift, where `drift` is false.
  void look(Track& t, std::span<const double> theta, bool drift, double reward_of_the_samples) {
    std::vector<double> full(drift ? 0 : 1, 0.0), gradient(ring_.start.size());
    full.insert(full.end(), theta.begin(), theta.end());
    try {
      t.objective.push_back(gradient_.exact(full, gradient));
      t.exact_reward.push_back(mean(gradient_.law(), ring_.objective.reward()));
      t.kl.push_back(divergence(ring_.best_law, gradient_.law()));
    } catch (const Error&) {  // a chain that falls apart has no law: the loop is about to say that it diverged
      for (auto* figures : {&t.objective, &t.exact_reward, &t.kl}) figures->resize(t.steps.size(), Figures::none);
    }
    t.reward.push_back(reward_of_the_samples);
    t.thetas.insert(t.thetas.end(), full.begin(), full.end());
    t.theta.assign(full.begin(), full.end());
  }

 private:
  const RingProblem& ring_;
  ChainGradient<RingChain, RewardObjective> gradient_;
};

template <class Population, class Sampler, class Estimator>
Population follow(Track& t, const FiniteStateConfiguration& c, const RingProblem& ring, Sampler& sampler,
                  Estimator& estimator, Population population, std::span<const double> start, std::stop_token stop) {
  Judge judge(ring);
  const bool drift = start.size() == ring.start.size();
  State<Population, GradientDescent> s{0, std::vector<double>(start.begin(), start.end()), std::move(population),
                                       GradientDescent{{.scale = c.learning_rate}}};
  std::vector<double> shares(c.ring.states);
  const auto begin = std::chrono::steady_clock::now();
  const auto look = [&](const auto& state) {
    if constexpr (std::is_same_v<Population, StatePopulation>)
      empirical(state.population, shares);
    else
      shares = state.population.p;
    t.steps.push_back(static_cast<double>(state.step));
    t.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    judge.look(t, state.theta, drift, mean(shares, ring.objective.reward()));
  };
  t.outcome = single_loop(
      sampler, estimator, s, {.steps = c.steps},
      [&](const auto& state) {
        if (state.step % c.log_every == 0) look(state);
      },
      stop);
  if (t.steps.back() != static_cast<double>(s.step)) look(s);
  return std::move(s.population);
}

// A loop that has ended, as numbers: all rows, then theta, then the states of its samples.
std::vector<double> numbers_of(const Track& t) {
  std::vector<double> v;
  for (const auto* row : {&t.steps, &t.seconds, &t.reward, &t.exact_reward, &t.objective, &t.kl, &t.thetas, &t.theta})
    v.insert(v.end(), row->begin(), row->end());
  v.insert(v.end(), t.samples.states.begin(), t.samples.states.end());
  return v;
}
// And back; false where it is of another number of steps.
bool take_up(Track& t, const FiniteStateConfiguration& c, std::size_t p, std::size_t samples,
             const FinishedParts& parts) {
  const auto numbers = parts.find(t.name);
  const auto rows = static_cast<std::size_t>((c.steps + c.log_every - 1) / c.log_every + 1);
  if (!numbers || numbers->size() != rows * (6 + p) + p + samples) return false;
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

std::string parameter_name(std::size_t j) {
  return j == 0 ? "drift c" : fmt::format("{}{}", j % 2 == 1 ? "a" : "b", (j + 1) / 2);
}

Json timing_rows(const std::vector<GradientTiming>& rows) {
  Json out = Json::array();
  for (const GradientTiming& r : rows)
    out.push_back({{"states", r.states},
                   {"gradient_error", r.gradient_error},
                   {"seconds", r.seconds},
                   {"form", r.dense ? "dense" : "banded"}});
  return out;
}

std::vector<std::size_t> sizes(const std::vector<std::int64_t>& v) { return {v.begin(), v.end()}; }

// Density on [0, 2 pi) of a law on the ring, or of shares put into `bins`.
report::Series density(const std::string& label, std::span<const double> p, std::size_t bins) {
  report::Series s{label, {}, {}};
  const std::size_t n = p.size();
  bins = std::min(bins, n);
  for (std::size_t b = 0; b < bins; ++b) {
    const std::size_t first = b * n / bins, last = (b + 1) * n / bins;
    double mass = 0;
    for (std::size_t i = first; i < last; ++i) mass += p[i];
    const double h = 2 * std::numbers::pi / static_cast<double>(n);
    s.x.push_back(h * (static_cast<double>(first + last - 1) / 2));
    s.y.push_back(mass / (h * static_cast<double>(last - first)));
  }
  return s;
}

}  // namespace

FiniteStateConfiguration read_finite_state(const Document& d) {
  using Sign = Section::Sign;
  FiniteStateConfiguration c;
  Section top(d);
  top.text("kind", "finite-state");
  read_common(top, d, c);
  constexpr std::int64_t most = 1'000'000;
  c.ring.states = static_cast<std::size_t>(top.integer("states", 1000, 3, most));
  c.ring.harmonics = static_cast<std::size_t>(top.integer("harmonics", 2, 1, 100));
  c.ring.width = static_cast<std::size_t>(top.integer("width", 20, 1, most));
  if (c.ring.states <= 2 * c.ring.harmonics)
    top.fail("harmonics", fmt::format("{} need more than {} states", c.ring.harmonics, 2 * c.ring.harmonics));
  if (c.ring.states <= 2 * c.ring.width)
    top.fail("width", fmt::format("{} needs more than {} states", c.ring.width, 2 * c.ring.width));
  constexpr double most_work = 2e9;  // some seconds for each step, in which a run cannot be stopped
  if (const double entries = 2 * static_cast<double>(c.ring.width);
      static_cast<double>(c.ring.states) * entries * entries > most_work)
    top.fail("width", fmt::format("{} on {} states take too long: states (2 width)^2 must be at most {}", c.ring.width,
                                  c.ring.states, most_work));
  c.reward = top.numbers("reward", {0.5, 0.2, -0.3, 0.1});
  if (c.reward.empty() || c.reward.size() > 2 * c.ring.harmonics)
    top.fail("reward", fmt::format("{} coefficients, {} harmonics have 1 to {}", c.reward.size(), c.ring.harmonics,
                                   2 * c.ring.harmonics));
  c.beta = top.number("beta", c.beta, Sign::positive);
  c.rule = top.word("rule", c.rule, rules);
  c.particles = top.integer("particles", c.particles, 2, 100'000'000);
  c.steps = top.integer("steps", c.steps, 0);
  c.learning_rate = top.number("learning_rate", c.learning_rate, Sign::not_negative);
  c.log_every = top.integer("log_every", c.log_every, 1);
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));
  Section start = top.section("start");
  const std::size_t parameters = 1 + 2 * c.ring.harmonics;
  c.start = start.numbers("theta", std::vector<double>(parameters, 0.0));
  if (c.start.size() != parameters)
    start.fail("theta", fmt::format("{} numbers, the chain has {} parameters", c.start.size(), parameters));
  Section timing = top.section("timing");
  constexpr std::int64_t smallest = 5, most_dense = 4000;
  c.dense_sizes = timing.integers("dense", {}, smallest, most_dense);
  c.band_sizes = timing.integers("banded", {}, smallest, most);
  finish(c, d, {&top, &start, &timing});
  return c;
}

int run_finite_state(const FiniteStateConfiguration& c, const RunOptions& o) {
  const Interrupt interrupt;
  const OpenFolder folder = open_folder(o, c);
  FinishedParts parts(c, folder.path, o);
  if (o.resume) write_configuration(folder.path, c);
  const std::size_t threads = thread_count(o);
  Workers workers(std::max<std::size_t>(threads, 2) - 1);  // one is left for the other loop
  const RingProblem ring = ring_problem(c.ring, c.reward, c.beta);
  const std::vector<double> inner(c.start.begin() + 1, c.start.end());
  const auto n = static_cast<std::size_t>(c.particles);
  const auto say = [&](const std::string& what) {
    if (!o.quiet) print_error(fmt::format("{}: {}\n", c.experiment, what));
  };

  // The same problem three times: without noise; with samples of the chain, and the linear system; with samples moved by
  // a rule that keeps the Gibbs law, and a covariance.
  std::array tracks{Track{"law", "the law itself"}, Track{"particles", "samples, linear system"},
                    Track{"gibbs", "samples, covariance"}};
  const auto loop = [&](Track& t, const char* what, auto& sampler, auto& estimator, auto population,
                        std::span<const double> start) {
    constexpr bool sampled = std::is_same_v<decltype(population), StatePopulation>;
    if (take_up(t, c, ring.start.size(), sampled ? n : 0, parts)) return;
    auto end = follow(t, c, ring, sampler, estimator, std::move(population), start, interrupt.token());
    if constexpr (sampled) t.samples = std::move(end);
    if (t.outcome.status == Status::completed) parts.keep(t.name, numbers_of(t));
    if (!interrupt.token().stop_requested()) say(fmt::format("the loop with {} has ended", what));
  };
  {
    // The linear system takes most of the time: the two loops that have one run beside each other.
    std::exception_ptr failure;
    std::jthread other([&] {
      try {
        ChainSampler sampler(ring.chain);
        ChainGradient estimator(ring.chain, ring.objective);
        loop(tracks[0], "the law itself", sampler, estimator, uniform_distribution(c.ring.states), c.start);
      } catch (...) {
        failure = std::current_exception();
      }
    });
    if (threads == 1) other.join();
    ChainSampler sampler(ring.chain, {.noise = Noise(c.seed), .workers = &workers});
    ChainGradient estimator(ring.chain, ring.objective);
    loop(tracks[1], "samples of the chain", sampler, estimator, spread_population(n, c.ring.states), c.start);
    if (other.joinable()) other.join();
    if (failure) std::rethrow_exception(failure);
  }
  {
    const RingPotential potential(c.ring.states, c.ring.harmonics);
    GibbsSampler sampler(potential, Graph::ring(c.ring.states, c.ring.width),
                         {.rule = c.rule, .noise = Noise(c.seed), .workers = &workers});
    GibbsGradient estimator(potential, ring.objective);
    loop(tracks[2], "samples of the Gibbs law", sampler, estimator, spread_population(n, c.ring.states), inner);
  }
  const double seconds = parts.seconds();
  std::vector<GradientTiming> timings;
  if (!interrupt.token().stop_requested()) {
    timings = time_dense_gradients(sizes(c.dense_sizes));
    const auto banded = time_banded_gradients(sizes(c.band_sizes));
    timings.insert(timings.end(), banded.begin(), banded.end());
    say("the gradients have been timed");
  }

  Status status = Status::completed;
  for (const Track& t : tracks)
    if (t.outcome.status == Status::diverged || status == Status::completed) status = t.outcome.status;

  // The run's own files are those of the samples with the linear system.
  const Track& main = tracks[1];
  std::vector<std::string> header{"step",     "gradient_evaluations", "seconds", "reward", "exact_reward",
                                  "exact_kl", "log_likelihood"};
  for (const Track& t : tracks) {
    header.push_back(fmt::format("objective_{}", t.name));
    header.push_back(fmt::format("reward_{}", t.name));
  }
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < main.steps.size(); ++i) {
    rows.push_back({main.steps[i], main.steps[i], main.seconds[i], main.reward[i], main.exact_reward[i], main.kl[i],
                    Figures::none});
    for (const Track& t : tracks) {
      const bool there = i < t.steps.size() && t.steps[i] == main.steps[i];
      rows.back().push_back(there ? t.objective[i] : Figures::none);
      rows.back().push_back(there ? t.reward[i] : Figures::none);
    }
  }
  io::write_file(folder.path / "metrics.csv", io::csv_bytes(header, rows));
  io::write_file(folder.path / "theta.npy",
                 io::npy_bytes(main.thetas, std::array{main.steps.size(), ring.start.size()}));
  if (status != Status::diverged) {
    const std::vector<float> states(main.samples.states.begin(), main.samples.states.end());
    io::write_file(folder.path / "samples.npy", io::npy_bytes(states, std::array{states.size(), std::size_t{1}}));
  }

  Summary s = summary_of(c);
  s.method = "implicit";
  s.steps = static_cast<std::int64_t>(main.steps.back());
  s.status = to_string(status);
  s.theta = main.theta;
  s.figures = {main.reward.back(), main.exact_reward.back(), main.kl.back()};
  s.gradient_evaluations = s.steps;
  s.seconds = seconds;
  s.threads = threads;
  s.isa = to_string(active_level());
  Json more{{"results", timing_rows(timings)}};
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
  s.more = more.dump();
  io::write_file(folder.path / "summary.json", to_json(s));

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
  int code = 0;
  if (status == Status::interrupted) code = 128 + interrupt.signal();
  if (status == Status::diverged) code = exit_diverged;
  code = close_run(folder.path, text, o, code, [&] { return finite_state_report(c, folder.path); });
  for (const Track& t : tracks)
    if (t.outcome.divergence)
      complain(fmt::format(
          "{}: {}: diverged at step {}: coordinate {} of the gradient or of theta is not finite; a "
          "learning_rate smaller than {} may help",
          c.experiment, t.label, t.outcome.divergence->step, t.outcome.divergence->coordinate + 1, c.learning_rate));
  return code;
}

std::string finite_state_report(const FiniteStateConfiguration& c, const fs::path& folder) {
  const std::string where = io::display(folder / "summary.json");
  const Json j = Json::parse(io::read_file(folder / "summary.json"), nullptr, false);
  const auto bad = [&](const char* what) { throw Error(ErrorKind::data, where, what); };
  if (!j.is_object()) bad("not a JSON object");
  for (const char* key : {"loops", "results"})
    if (!j.contains(key) || !j[key].is_array()) bad("loops, results: missing, or not arrays");
  const auto number = [&](const Json& row, const char* key) {
    if (!row.is_object() || !row.contains(key)) bad(key);
    return row[key].is_number() ? row[key].get<double>() : Figures::none;
  };
  const io::CsvTable metrics = io::read_csv(folder / "metrics.csv", io::EmptyCell::nan);
  io::Array samples;
  if (std::error_code none; fs::exists(folder / "samples.npy", none)) samples = io::read_npy(folder / "samples.npy");
  const RingProblem ring = ring_problem(c.ring, c.reward, c.beta);
  const auto column = [&](const std::string& name) -> const std::vector<double>& {
    for (std::size_t i = 0; i < metrics.header.size(); ++i)
      if (metrics.header[i] == name) return metrics.columns[i];
    throw Error(ErrorKind::data, io::display(folder / "metrics.csv"), fmt::format("has no column {}", name));
  };

  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}, seed {}: {} states, {} samples, {} steps", c.experiment, c.seed,
                                            c.ring.states, c.particles, c.steps),
                    .facts = {},
                    .sections = {},
                    .footer = footer};
  const double best = number(j, "best_objective");
  page.facts = {{"Exact reward", minus(fmt::format("{:.4f}", number(j, "exact_reward"))), "under the chain’s law"},
                {"Best reward", minus(fmt::format("{:.4f}", number(j, "best_reward"))), "of the optimum, known"},
                {"KL divergence", fmt::format("{:.2e}", number(j, "exact_kl")), "nats, from the best law"}};

  report::Section laws{
      .heading = "The law on the ring",
      .text =
          "A chain jumps among states on a circle: P(i, i+s) = σ(Vᵢ − Vᵢ₊ₛ + c h s)/(2w), with V a sum of harmonics "
          "whose coefficients are θ, and a drift c around the ring. θ is tuned so that the stationary law raises a "
          "reward and stays near to the uniform law: −E[R] + β KL(p ‖ uniform). The best law of all is exp(R/β)/Z, "
          "and the chain can reach it, at c = 0 and V = −R/β."};
  {
    report::LineChart chart{
        .title = "The stationary law", .x_label = "place on the ring", .y_label = "density", .series = {}};
    constexpr std::size_t curve_points = 400, bins = 60;
    ChainGradient gradient(ring.chain, ring.objective);
    std::vector<double> g(ring.start.size()), theta, shares(c.ring.states);
    const io::Array thetas = io::read_npy(folder / "theta.npy");
    if (thetas.shape.size() != 2 || thetas.shape[1] != g.size() || thetas.shape[0] == 0)
      throw Error(ErrorKind::data, io::display(folder / "theta.npy"), "has another shape");
    theta.assign(thetas.values.end() - static_cast<std::ptrdiff_t>(g.size()), thetas.values.end());
    try {
      gradient.exact(theta, g);
      chart.series.push_back(density("learnt from samples", gradient.law(), curve_points));
    } catch (const Error&) {
      page.notice = "The run diverged: at its last θ the chain falls apart, and has no law.";
    }
    for (const double state : samples.values) {
      if (!(state >= 0 && state < static_cast<double>(c.ring.states)))
        throw Error(ErrorKind::data, io::display(folder / "samples.npy"), "has a state that is not on the ring");
      shares[static_cast<std::size_t>(state)] += 1 / static_cast<double>(samples.values.size());
    }
    if (!samples.values.empty()) chart.series.push_back(density("the samples", shares, bins));
    gradient.exact(c.start, g);
    chart.series.push_back(density("at the start", gradient.law(), curve_points));
    // Dots, as it may lie under the learnt one.
    report::Series optimum = density("the best law", ring.best_law, curve_points);
    constexpr std::size_t dot = 8;
    for (std::size_t i = 0; i < optimum.y.size(); ++i)
      if (i % dot != 0) optimum.y[i] = Figures::none;
    chart.series.push_back(std::move(optimum));
    laws.figures.push_back(
        {report::to_svg(chart), "Learnt in a single loop: one move of every sample, one step of θ."});
    report::LineChart reward{.title = "The reward", .x_label = "place on the ring", .y_label = "R", .series = {}};
    report::Series r{"", {}, {}};
    for (std::size_t i = 0; i < c.ring.states; ++i) {
      r.x.push_back(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(c.ring.states));
      r.y.push_back(ring.objective.reward()[i]);
    }
    reward.series.push_back(std::move(r));
    laws.figures.push_back({report::to_svg(reward), "What a state earns."});
  }
  page.sections.push_back(std::move(laws));

  report::Section curves{
      .heading = "The single loop, three times",
      .text =
          "With the law itself, p ← p P(θ), there is no noise; where θ moves faster than the chain mixes the "
          "law swings about the optimum before it settles there. With samples the gradient comes from the same linear "
          "system, at their shares; or, where "
          "the law is a Gibbs law, from a covariance."};
  report::LineChart gap{.title = "Distance of the objective from its optimum",
                        .x_label = "step",
                        .y_label = "F(π*(θ)) − min F",
                        .series = {},
                        .log_y = true};
  report::LineChart reward{.title = "Reward",
                           .x_label = "step",
                           .y_label = "mean of R",
                           .series = {},
                           .levels = {{number(j, "best_reward"), "of the best law"}}};
  const std::array names{std::pair{"law", "the law itself"}, std::pair{"particles", "samples, linear system"},
                         std::pair{"gibbs", "samples, covariance"}};
  for (const auto& [name, label] : names) {
    report::Series s{label, column("step"), {}};
    for (const double v : column(fmt::format("objective_{}", name))) s.y.push_back(v - best);
    gap.series.push_back(std::move(s));
    reward.series.push_back({label, column("step"), column(fmt::format("reward_{}", name))});
  }
  curves.figures = {{report::to_svg(gap),
                     "Of the exact law at θ. Near the optimum the slope of the objective is the same in all states, so "
                     "that the noise of "
                     "the samples drops out of the gradient. The law itself has its slope from where it is, behind θ."},
                    {report::to_svg(reward), "Of the samples, or of the law that the loop carries along."}};
  report::Table table{{"loop", "reward", "exact reward", "objective", "KL"}, {}};
  for (const Json& row : j["loops"]) {
    std::string label = row.is_object() && row.contains("loop") && row["loop"].is_string() ? row["loop"] : "";
    for (const auto& [name, text] : names)
      if (label == name) label = text;
    table.rows.push_back({label, minus(fmt::format("{:.5f}", number(row, "reward"))),
                          minus(fmt::format("{:.5f}", number(row, "exact_reward"))),
                          minus(fmt::format("{:.6f}", number(row, "objective"))),
                          fmt::format("{:.2e}", number(row, "exact_kl"))});
  }
  table.rows.push_back({"the optimum", "", minus(fmt::format("{:.5f}", number(j, "best_reward"))),
                        minus(fmt::format("{:.6f}", best)), "0"});
  curves.tables.push_back(std::move(table));
  page.sections.push_back(std::move(curves));

  if (!j["results"].empty()) {
    report::Section sizes{.heading = "Gradients by the linear system",
                          .text =
                              "The gradient of a chain’s stationary law is one solve with I − P: dense LU, or sparse "
                              "where a state has few neighbours. Here it is taken on heat baths whose law is a Gibbs "
                              "law, so that the exact gradient is known: a covariance."};
    report::LineChart error{.title = "Error of the gradient",
                            .x_label = "states",
                            .y_label = "relative error",
                            .series = {},
                            .log_x = true,
                            .log_y = true};
    report::LineChart time{.title = "Time of a gradient",
                           .x_label = "states",
                           .y_label = "seconds",
                           .series = {},
                           .log_x = true,
                           .log_y = true};
    report::Table rows{{"form", "states", "relative error", "seconds"}, {}};
    for (const char* form : {"dense", "banded"}) {
      report::Series e{form, {}, {}}, t{form, {}, {}};
      for (const Json& row : j["results"]) {
        if (!row.is_object() || !row.contains("form") || row["form"] != form) continue;
        e.x.push_back(number(row, "states"));
        e.y.push_back(number(row, "gradient_error"));
        t.y.push_back(number(row, "seconds"));
        rows.rows.push_back({form, fmt::format("{:.0f}", e.x.back()), fmt::format("{:.1e}", e.y.back()),
                             fmt::format("{:.2g}", t.y.back())});
      }
      t.x = e.x;
      if (e.x.empty()) continue;
      error.series.push_back(std::move(e));
      time.series.push_back(std::move(t));
    }
    sizes.figures = {{report::to_svg(error), "Against the covariance, relative to its largest entry."},
                     {report::to_svg(time), "The median of three, with the probabilities and the factorisation."}};
    sizes.tables.push_back(std::move(rows));
    page.sections.push_back(std::move(sizes));
  }

  report::Section parameters{.heading = "Parameters"};
  report::Table values{{"parameter", "start", "learnt from samples", "optimum"}, {}};
  for (std::size_t k = 0; k < ring.optimum.size() && j["theta"].is_array() && k < j["theta"].size(); ++k)
    values.rows.push_back({parameter_name(k), minus(fmt::format("{:.4f}", c.start[k])),
                           j["theta"][k].is_number() ? minus(fmt::format("{:.4f}", j["theta"][k].get<double>())) : "",
                           minus(fmt::format("{:.4f}", ring.optimum[k]))});
  parameters.tables.push_back(std::move(values));
  page.sections.push_back(std::move(parameters));
  page.sections.push_back(repeat_section(c.resolved, folder, ""));
  return report::to_html(page);
}

}  // namespace program
