#include "langevin/run.hpp"

#include "experiment/interrupt.hpp"
#include "experiment/progress.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "langevin/checkpoints.hpp"
#include "langevin/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

// For each component of the learnt mixture the one of the target that it is nearest to, all together: the least sum of
// squared distances between means, by trying all orders (up to 8 components).
std::optional<std::vector<std::size_t>> permutation(const Configuration& c, std::span<const double> theta) {
  constexpr std::size_t most = 8;
  if (c.potential.kind != PotentialKind::mixture || !c.reference || c.reference->theta.empty()) return std::nullopt;
  const Mixture mixture(c.potential.components, c.potential.dimension, {c.potential.covariance, c.potential.kappa});
  const std::size_t n = mixture.components();
  if (n > most) return std::nullopt;
  std::vector<std::size_t> order(n), best;
  std::iota(order.begin(), order.end(), std::size_t{0});
  double least = std::numeric_limits<double>::infinity();
  do {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t a = 0; a < mixture.dimension(); ++a) {
        const double gap = theta[mixture.mean_at(i) + a] - c.reference->theta[mixture.mean_at(order[i]) + a];
        sum += gap * gap;
      }
    if (sum < least) {
      least = sum;
      best = order;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

Summary summarise(const Configuration& c, const RunResult& r, const Recorder& recorder, double seconds,
                  std::size_t threads) {
  const std::int64_t each = gradient_evaluations_per_step(c);
  Summary s{.experiment = c.experiment,
            .method = std::string(to_string(c.method)),
            .seed = c.seed,
            .steps = r.state.step,
            .status = std::string(to_string(r.outcome.status)),
            .theta = r.state.theta,
            .figures = recorder.last(),
            .reached = {},
            .gradient_evaluations = r.state.step * each,
            .seconds = seconds,
            .threads = threads,
            .isa = std::string(to_string(active_level())),
            .permutation = permutation(c, r.state.theta),
            .more = {}};
  for (const auto& [threshold, step] : recorder.crossings())
    s.reached.push_back({written(threshold), step, step ? std::optional(*step * each) : std::nullopt});
  return s;
}

// What may help a run that diverged: weights of the objective that are out of proportion are named first.
std::string advice(const Divergence& d, const Configuration& c, std::span<const double> theta) {
  Potential<float> potential = make_potential(c.potential);
  potential.prepare(theta);
  if (const auto stable = potential.largest_stable_step(); stable && c.step_size >= *stable)
    return fmt::format("step_size is {}, the chain is stable below {:.6g}", c.step_size, *stable);

  constexpr double strong = 100;
  std::vector<std::string> changes;
  const bool learns = moves_theta(c.method);
  const bool smooth = c.method == Method::guided || c.method == Method::unrolled;
  if (const auto& r = smooth ? c.smooth_reward : c.reward; r && (learns || smooth)) {
    const char* table = smooth ? "smooth_reward" : "reward";
    const bool scaled = r->kind == RewardKind::hard || r->kind == RewardKind::smooth;
    if (c.method != Method::unrolled && std::abs(r->lambda) > (learns ? strong : 0))
      changes.push_back(fmt::format("{}.lambda nearer to 0 than {}", table, r->lambda));
    if (scaled && r->denominator < 1 / strong)
      changes.push_back(fmt::format("{}.denominator larger than {}", table, r->denominator));
  }
  if (learns && !smooth && c.reference && c.reference->beta > strong)
    changes.push_back(fmt::format("reference.beta smaller than {}", c.reference->beta));
  if (learns && !smooth && c.base && c.base->beta > strong)
    changes.push_back(fmt::format("base.beta smaller than {}", c.base->beta));
  const bool overflows = learns && d.where == Divergence::Where::gradient && !changes.empty();
  if (learns && !overflows) changes.push_back(fmt::format("learning_rate smaller than {}", c.learning_rate));
  if (!overflows) changes.push_back(fmt::format("step_size smaller than {}", c.step_size));
  return fmt::format("a {} may help", fmt::join(changes, " or a "));
}

std::string describe(const Divergence& d, const Configuration& c, std::span<const double> theta) {
  std::string text = fmt::format("diverged at step {}: ", d.step);
  switch (d.where) {
    case Divergence::Where::sample:
      text += fmt::format("coordinate {} of sample {} is not finite", d.coordinate + 1, d.sample);
      break;
    case Divergence::Where::gradient:
      text += fmt::format("coordinate {} of the gradient is not finite", d.coordinate + 1);
      break;
    case Divergence::Where::parameter:
      text += fmt::format("coordinate {} of theta left the domain of the potential", d.coordinate + 1);
      break;
  }
  return text + "; " + advice(d, c, theta);
}

// `resume`: goes on from the newest checkpoint, where there is one.
Done run_one(const Configuration& c, const fs::path& folder, std::size_t threads, bool quiet, bool resume,
             std::stop_token stop) {
  Workers workers(threads);
  Recorder recorder(c, &workers);
  Checkpoints checkpoints(c, folder);
  const auto go_on = [&](RunState& state) {
    const auto refused = [&](const std::string& why) { complain(why + "; an older one is tried"); };
    const bool found = checkpoints.resume(state, recorder, refused);
    if (found && state.step > c.steps)
      throw Error(ErrorKind::usage, "steps",
                  fmt::format("{}: {} has done {} already", c.steps, io::display(folder), state.step));
    if (!quiet && found) print_error(fmt::format("{}: goes on at step {}\n", c.experiment, state.step));
    if (!quiet && !found) print_error(fmt::format("{}: there is no checkpoint, begins at step 0\n", c.experiment));
    write_configuration(folder, c);
  };
  Progress progress(c.experiment, c.steps, quiet);
  const RunResult r = run_method(
      c, &workers,
      [&](const RunState& state) {
        recorder(state);
        checkpoints(state, recorder);
        progress(state.step, recorder.last());
      },
      stop, resume ? go_on : std::function<void(RunState&)>());
  // Made before the row of the last state, which is none of a longer run; written after the files of this one.
  const auto last = r.outcome.status == Status::diverged ? std::nullopt : checkpoints.make(r.state, recorder);
  recorder.finish(r.state, r.outcome.status == Status::diverged);
  const double seconds = recorder.seconds();
  progress.finish();
  Done done{summarise(c, r, recorder, seconds, threads), r.outcome, {}};
  if (r.outcome.divergence) done.divergence = describe(*r.outcome.divergence, c, r.state.theta);
  write_run(folder, r, recorder, done.summary);
  checkpoints.write(last, r.state.step);
  return done;
}

// The closing table of one run.
std::string closing_table(const Summary& s, const fs::path& folder, bool report) {
  std::string text = fmt::format("{} ({}, seed {}): {}, {} steps in {:.2f} s\n", s.experiment, s.method, s.seed,
                                 s.status, s.steps, s.seconds);
  const auto row = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<29}{}\n", label, value);
  };
  const auto figure = [&](double value, std::string_view label, int digits) {
    if (std::isfinite(value)) row(label, shown(value, digits));
  };
  figure(s.figures.reward, "reward", 4);
  figure(s.figures.exact_reward, "exact reward", 4);
  figure(s.figures.exact_kl, "exact KL", 5);
  figure(s.figures.log_likelihood, "log-likelihood", 3);
  figure(s.figures.data_log_likelihood, "data log-likelihood", 4);
  for (const Reached& r : s.reached)
    row(fmt::format("log-likelihood {} reached", r.threshold), r.step ? fmt::format("at step {}", *r.step) : "never");
  constexpr std::size_t most = 24;
  if (s.theta.size() <= most) {
    std::string theta;
    for (const double t : s.theta) theta += (theta.empty() ? "" : " ") + shown(t, 3);
    row("theta", theta);
  }
  if (s.permutation) row("permutation", fmt::format("[{}]", fmt::join(*s.permutation, ",")));
  row(report ? "report" : "files", io::display(report ? folder / "report.html" : folder));
  return text;
}

std::string repeats_table(const std::vector<Summary>& runs, const Summary& over, const fs::path& folder, bool report) {
  const auto row = [](const auto& seed, std::string_view status, const auto& steps, const Figures& f) {
    return fmt::format("{:>8}  {:<12}{:>8}{:>10}{:>14}{:>10}{:>16}", seed, status, steps, shown(f.reward, 4),
                       shown(f.exact_reward, 4), shown(f.exact_kl, 5), shown(f.log_likelihood, 3));
  };
  std::string text = fmt::format("{:>8}  {:<12}{:>8}{:>10}{:>14}{:>10}{:>16}", "seed", "status", "steps", "reward",
                                 "exact reward", "exact KL", "log-likelihood");
  for (const Reached& r : runs.front().reached) text += fmt::format("{:>16}", "step of " + r.threshold);
  for (const Summary& s : runs) {
    text += "\n" + row(s.seed, s.status, s.steps, s.figures);
    for (const Reached& r : s.reached) text += fmt::format("{:>16}", r.step ? fmt::format("{}", *r.step) : "never");
  }
  text += "\n" + row("mean", "", "", over.figures);
  for (std::size_t k = 0; k < runs.front().reached.size(); ++k) {
    double sum = 0;
    for (const Summary& s : runs) sum += s.reached[k].step ? static_cast<double>(*s.reached[k].step) : Figures::none;
    text += fmt::format("{:>16}", shown(sum / static_cast<double>(runs.size()), 0));
  }
  return text + fmt::format("\n{}\n", io::display(report ? folder / "report.html" : folder));
}

}  // namespace

std::vector<std::optional<Done>> run_tasks(const std::vector<Task>& tasks, std::size_t threads, bool resume,
                                           std::stop_token stop,
                                           const std::function<void(const Task&, const Done&, std::size_t)>& said) {
  const std::size_t at_once = std::min<std::size_t>(threads, tasks.size());
  std::vector<std::optional<Done>> results(tasks.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t finished = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size() && !stop.stop_requested(); i = next++) try {
        const Task& task = tasks[i];
        io::make_directory(task.folder);
        if (std::error_code none; !resume || !fs::exists(task.folder / "config.toml", none))
          write_configuration(task.folder, task.configuration);
        results[i] = run_one(task.configuration, task.folder, threads / at_once, true, resume, stop);
        const std::lock_guard lock(mutex);
        said(task, *results[i], ++finished);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = tasks.size();
      }
  };
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < at_once; ++i) pool.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  return results;
}

void check_inputs(const Configuration& c, const RunOptions& o) {
  const Potential<float> potential = make_potential(c.potential);
  const Start start(c.start, static_cast<std::size_t>(c.particles), potential.dimension(), Noise(c.seed));
  if (c.reference && !c.reference->data.empty()) read_reference_data(c, potential);
  if (!o.overwrite) return;
  const fs::path folder = output_folder(o, c);
  for (const auto& [key, file] : {std::pair{"start.samples", c.start.samples},
                                  std::pair{"reference.data", c.reference ? c.reference->data : fs::path()}})
    if (!file.empty() && is_replaced(folder, file))
      throw Error(ErrorKind::usage, key,
                  fmt::format("{} would be removed by --overwrite; choose another --output", io::display(file)));
}

int run_langevin(const Configuration& c, const RunOptions& o) {
  const std::size_t threads = thread_count(o);
  check_inputs(c, o);  // before anything is written: a bad file leaves no folder behind
  if (c.seed + o.repeats - 1 > largest_seed)
    throw Error(ErrorKind::usage, "--repeats",
                fmt::format("{} runs from seed {} need seeds beyond {}", o.repeats, c.seed, largest_seed));
  const Interrupt interrupt;
  const OpenFolder open = open_folder(o, c);
  const fs::path& folder = open.path;

  std::vector<Done> done;
  std::string text;
  if (o.repeats == 1) {
    done.push_back(run_one(c, folder, threads, o.quiet, o.resume, interrupt.token()));
    text = closing_table(done.front().summary, folder, !o.no_report);
  } else {
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < o.repeats; ++i)
      tasks.push_back({with_seed(c, c.seed + i), folder / fmt::format("seed-{}", c.seed + i)});
    const auto begin = std::chrono::steady_clock::now();
    auto results = run_tasks(
        tasks, threads, o.resume, interrupt.token(), [&](const Task& task, const Done& d, std::size_t finished) {
          const std::string& status = d.summary.status;
          if (!o.quiet)
            print_error(fmt::format("{}: seed {} {}, {} of {}\n", c.experiment, task.configuration.seed,
                                    status == "completed" ? "done" : status, finished, o.repeats));
        });
    if (o.resume) write_configuration(folder, c);
    std::vector<Summary> summaries;
    for (auto& r : results)
      if (r) {
        summaries.push_back(r->summary);
        done.push_back(std::move(*r));
      }
    if (summaries.empty()) return 128 + interrupt.signal();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    Summary over = summary_over(summaries);
    if (summaries.size() < o.repeats && over.status == "completed") over.status = "interrupted";
    over.seconds = seconds;
    over.threads = threads;
    io::write_file(folder / "summary.json", to_json(over, summaries));
    text = repeats_table(summaries, over, folder, !o.no_report);
  }

  if (!o.no_report) write_report(folder, folder / "report.html");
  print(text);
  for (const Done& d : done)
    if (d.outcome.status == Status::diverged) {
      complain(fmt::format("{}: {}", c.experiment, d.divergence));
      return exit_diverged;
    }
  // A signal that came when all was done has interrupted nothing.
  const bool all = done.size() == o.repeats && std::all_of(done.begin(), done.end(), [](const Done& d) {
                     return d.outcome.status == Status::completed;
                   });
  return all ? 0 : 128 + interrupt.signal();
}

}  // namespace program
