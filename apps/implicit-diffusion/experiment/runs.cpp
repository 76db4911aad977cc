#include "experiment/runs.hpp"

#include "experiment/console.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/launch.hpp"
#include "experiment/task_pool.hpp"
#include "experiment/warnings.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/parallel.hpp"
#include "implicit_diffusion/population_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

// A column for each figure that some run has.
std::string repeats_table(const std::vector<Summary>& runs, const Summary& over) {
  std::vector<FigureName> shown;
  for (const FigureName& f : figure_names)
    if (std::ranges::any_of(runs, [&](const Summary& s) { return std::isfinite(s.figures.*f.value); }))
      shown.push_back(f);
  const auto width = [](const FigureName& f) {
    return std::max<std::size_t>(10, std::string_view(f.label).size() + 2);
  };
  const auto row = [&](const auto& seed, std::string_view status, const auto& steps, const Figures& figures) {
    std::string line = fmt::format("{:>8}  {:<12}{:>8}", seed, status, steps);
    for (const FigureName& f : shown) line += fmt::format("{:>{}}", figure_text(figures.*f.value, f.digits), width(f));
    return line;
  };
  std::string text = fmt::format("{:>8}  {:<12}{:>8}", "seed", "status", "steps");
  for (const FigureName& f : shown) text += fmt::format("{:>{}}", f.label, width(f));
  for (const Reached& r : runs.front().reached) text += fmt::format("{:>16}", "step of " + r.threshold);
  for (const Summary& s : runs) {
    text += "\n" + row(s.seed, s.status, s.steps, s.figures);
    for (const Reached& r : s.reached) text += fmt::format("{:>16}", r.step ? fmt::format("{}", *r.step) : "never");
  }
  text += "\n" + row("mean", "", "", over.figures);
  for (std::size_t k = 0; k < runs.front().reached.size(); ++k) {
    double sum = 0;
    for (const Summary& s : runs) sum += s.reached[k].step ? static_cast<double>(*s.reached[k].step) : Figures::none;
    text += fmt::format("{:>16}", figure_text(sum / static_cast<double>(runs.size()), 0));
  }
  return text + "\n";
}

int run_repeats(std::span<const Common* const> seeds, std::int64_t steps, const RunOptions& o, const fs::path& folder,
                const Interrupt& interrupt, const std::function<FinishedRun(std::size_t, const RunContext&)>& run,
                const Experiment& experiment) {
  const std::size_t threads = thread_count(o);
  std::vector<FolderRun> folders;
  for (const Common* c : seeds) folders.push_back({c, folder / fmt::format("seed-{}", c->seed), 1});
  const auto begin = std::chrono::steady_clock::now();
  const Common& first = *seeds.front();
  Progress progress(first.experiment, seeds.size(), static_cast<double>(steps) * static_cast<double>(seeds.size()),
                    o.quiet);
  std::vector<std::optional<FinishedRun>> results(seeds.size());
  std::mutex mutex;
  std::size_t finished = 0;
  run_in_folders(
      folders, threads, o.resume, interrupt.token(), &progress,
      [&](std::size_t i, const RunContext& context) {
        results[i] = run(i, context);
        const std::string& status = results[i]->summary.status;
        const std::lock_guard lock(mutex);
        progress.say(fmt::format("seed {} {}, {} of {}", seeds[i]->seed, status == "completed" ? "done" : status,
                                 ++finished, seeds.size()));
      },
      finished_runs(results));
  progress.finish();
  const int signal = interrupt.signal(processes());
  if (!is_first()) return 0;
  if (o.resume) write_configuration(folder, first);

  std::vector<Summary> summaries;
  for (const auto& r : results)
    if (r) summaries.push_back(r->summary);
  if (summaries.empty()) return 128 + signal;
  Summary over = summary_over(summaries);
  if (summaries.size() < seeds.size() && over.status == "completed") over.status = "interrupted";
  over.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  over.threads = threads;
  if (processes()) over.processes = processes()->ranks();
  io::write_file(folder / "summary.json", to_json(over, summaries));

  if (!o.no_report) io::write_file(folder / "report.html", experiment.report(folder));
  print(repeats_table(summaries, over) + io::display(o.no_report ? folder : folder / "report.html") + "\n");
  print_warnings(over.warnings);
  for (const auto& r : results)
    if (r && !r->complaints.empty()) {
      complain(fmt::format("{}: {}", first.experiment, r->complaints.front()));
      break;
    }
  return exit_code(over.status, signal);
}

}  // namespace

void RunContext::write(const fs::path& name, std::string_view bytes) const {
  if (writes()) io::write_file(folder / name, bytes);
}

void RunContext::write_samples(const char* name, const Population<float>& x) const {
  write_pieces(name, io::npy_header_of_floats(std::array{x.total(), x.dimension()}),
               [&](const PieceSink& sink) { give_rows(x, sink); });
}

void RunContext::write_pieces(const char* name, const std::string& header,
                              const std::function<void(const PieceSink&)>& give) const {
  if (!writes()) return give([](std::string_view) {});
  io::FileWriter file(folder / name);
  file.append(header);
  give([&](std::string_view piece) { file.append(piece); });
  file.commit();
}

void RunContext::say_if_too_few(std::size_t samples) const {
  constexpr std::size_t worthwhile = blocks_per_thread * block_size;
  if (processes && samples < worthwhile * processes->ranks() && !quiet)
    progress->say(fmt::format("{} samples are few for {} processes, one would be faster; the results are the same",
                              samples, processes->ranks()));
}

void RunContext::say_if_too_few_shards(std::size_t shards) const {
  if (processes && shards < processes->ranks() && !quiet)
    progress->say(
        fmt::format("{} shards are too few for {} processes, some have nothing to do; the results are the same", shards,
                    processes->ranks()));
}

void RunContext::say_if_fewer(std::size_t started) const {
  if (started < threads && !quiet)
    progress->say(fmt::format("{} of {} threads could be started; the results are the same", started, threads));
}

namespace {

// An Error as a message, and back.
std::string pack(const Error& e) { return Json{static_cast<int>(e.kind()), e.where(), e.reason()}.dump(); }
Error unpack_error(const std::string& message) {
  const Json j = Json::parse(message);
  return {static_cast<ErrorKind>(j[0].get<int>()), j[1].get<std::string>(), j[2].get<std::string>()};
}

}  // namespace

void run_in_folders(std::span<const FolderRun> runs, std::size_t threads, bool resume, const std::stop_token& stop,
                    Progress* progress, const std::function<void(std::size_t, const RunContext&)>& run,
                    const RunResults& results) {
  MpiJob* const job = processes();
  const std::size_t ranks = job ? job->ranks() : 1;
  const std::size_t at_once = std::min(threads, (runs.size() + ranks - 1) / ranks);
  const auto run_one = [&](std::size_t i) {
    const FolderRun& r = runs[i];
    io::make_directory(r.folder);
    if (std::error_code none; !resume || !fs::exists(r.folder / "config.toml", none))
      write_configuration(r.folder, *r.configuration);
    run(i, {.folder = r.folder,
            .threads = threads / at_once,
            .resume = resume,
            .stop = stop,
            .progress = progress,
            .weight = r.weight});
    if (progress) progress->finish_run();
  };
  if (!job) return run_tasks(runs.size(), at_once, run_one, stop);

  constexpr char done = '+', failed = '-';
  job->begin_tasks(runs.size());
  run_tasks(at_once, at_once, [&](std::size_t) {
    for (std::size_t i = 0; !stop.stop_requested() && (i = job->next_task()) < runs.size();) try {
        run_one(i);
        job->put_result(i, done + (job->rank() == 0 ? std::string() : results.pack(i)));
      } catch (const Error& e) {
        job->put_result(i, failed + pack(e));
      }
    if (stop.stop_requested()) job->stop_tasks();  // whichever of them was asked to stop
  });
  const std::vector<std::string> messages = job->end_tasks();
  std::optional<Error> failure;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].size() > 1 && messages[i][0] == done) results.unpack(i, messages[i].substr(1));
    if (messages[i].empty() || messages[i][0] != failed) continue;
    const Error e = unpack_error(messages[i].substr(1));
    if (failure)
      complain(e.what());
    else
      failure = e;
  }
  if (failure) throw Error(*failure);
}

RunResults finished_runs(std::vector<std::optional<FinishedRun>>& results) {
  return {[&](std::size_t i) {
            return Json{pack(results[i]->summary), results[i]->table, results[i]->complaints}.dump();
          },
          [&](std::size_t i, const std::string& message) {
            const Json j = Json::parse(message);
            results[i] = FinishedRun{unpack_summary(j[0].get<std::string>()), j[1].get<std::string>(),
                                     j[2].get<std::vector<std::string>>()};
          }};
}

std::vector<std::size_t> longest_first(std::size_t count, const std::function<double(std::size_t)>& work) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work(a) > work(b); });
  return order;
}

int exit_code(const std::string& status, int signal) {
  if (status == "diverged") return exit_diverged;
  return status == "interrupted" ? 128 + signal : 0;
}

int run_or_repeat(std::span<const Common* const> seeds, std::int64_t steps, const RunOptions& o,
                  const std::function<FinishedRun(std::size_t, const RunContext&)>& run, const Experiment& experiment) {
  const Common& c = *seeds.front();
  if (c.seed + seeds.size() - 1 > largest_seed)
    throw Error(ErrorKind::usage, "--repeats",
                fmt::format("{} runs from seed {} need seeds beyond {}", seeds.size(), c.seed, largest_seed));
  const Interrupt interrupt;
  const OpenFolder opened(o, c);
  const fs::path& folder = opened.path;
  from_first(processes(), [&] {
    if (o.resume) require_same_seeds(folder, c.seed, seeds.size());
    return "";
  });
  if (seeds.size() > 1) return run_repeats(seeds, steps, o, folder, interrupt, run, experiment);
  const bool shared = experiment.is_shared();
  if (!shared && !is_first()) return 0;

  Progress progress(c.experiment, 1, static_cast<double>(steps), o.quiet);
  const FinishedRun r = run(0, {.folder = folder,
                                .threads = thread_count(o),
                                .resume = o.resume,
                                .quiet = o.quiet,
                                .stop = interrupt.token(),
                                .progress = &progress,
                                .processes = shared ? processes() : nullptr});
  progress.finish();
  const int signal = interrupt.signal(shared ? processes() : nullptr);
  if (is_first()) close_run(folder, r.table, o, experiment);
  print_warnings(r.summary.warnings);
  for (const std::string& complaint : r.complaints) complain(fmt::format("{}: {}", c.experiment, complaint));
  return exit_code(r.summary.status, signal);
}

}  // namespace program
