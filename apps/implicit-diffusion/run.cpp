#include "commands.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "interrupt.hpp"
#include "progress.hpp"
#include "run_directory.hpp"
#include "run_report.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

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
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Options {
  std::string experiment, output;
  std::vector<std::string> set;
  std::string seed, steps;  // empty: as the file says
  std::uint64_t repeats = 1, threads = 0;
  bool has_seed = false, has_steps = false, overwrite = false, print_config = false, quick = false, quiet = false,
       no_report = false;
};

// One finished run.
struct Done {
  Json summary;
  Outcome outcome;
  std::string divergence;  // in words
};

Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }
Json number(const std::optional<std::int64_t>& v) { return v ? Json(*v) : Json(nullptr); }

std::string_view to_string(Status status) {
  switch (status) {
    case Status::completed:
      return "completed";
    case Status::interrupted:
      return "interrupted";
    case Status::diverged:
      return "diverged";
  }
  return "";
}

// For each component of the learnt mixture the one of the target that it is nearest to, all together: the least sum of
// squared distances between means, by trying all orders (up to 8 components).
Json permutation(const Configuration& c, std::span<const double> theta) {
  constexpr std::size_t most = 8;
  if (c.potential.kind != PotentialKind::mixture || !c.reference || c.reference->theta.empty()) return nullptr;
  const Mixture mixture(c.potential.components, c.potential.dimension, {c.potential.covariance, c.potential.kappa});
  const std::size_t n = mixture.components();
  if (n > most) return nullptr;
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

Json summarise(const Configuration& c, const RunResult& r, const Recorder& recorder, double seconds,
               std::size_t threads) {
  const Figures& f = recorder.last();
  Json first = Json::object(), evaluations = Json::object();
  const std::int64_t each = gradient_evaluations_per_step(c);
  for (const Crossing& crossing : recorder.crossings()) {
    first[written(crossing.threshold)] = number(crossing.step);
    evaluations[written(crossing.threshold)] =
        number(crossing.step ? std::optional(*crossing.step * each) : std::nullopt);
  }
  Json s{{"experiment", c.experiment},
         {"method", to_string(c.method)},
         {"seed", c.seed},
         {"steps", r.state.step},
         {"status", to_string(r.outcome.status)},
         {"theta", r.state.theta},
         {"reward", number(f.reward)},
         {"exact_reward", number(f.exact_reward)},
         {"exact_kl", number(f.exact_kl)},
         {"log_likelihood", number(f.log_likelihood)},
         {"first_step_at", first},
         {"gradient_evaluations_at", evaluations},
         {"gradient_evaluations", r.state.step * each},
         {"seconds", seconds},
         {"threads", threads},
         {"version", IMPLICIT_DIFFUSION_VERSION},
         {"format", 1}};
  if (std::isfinite(f.data_log_likelihood)) s["data_log_likelihood"] = f.data_log_likelihood;
  if (c.potential.kind == PotentialKind::mixture) s["permutation"] = permutation(c, r.state.theta);
  return s;
}

std::string describe(const Divergence& d, const Configuration& c) {
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
  Potential<float> potential = make_potential(c.potential);
  potential.prepare(c.start.theta);
  const auto stable = potential.largest_stable_step();
  if (stable && c.step_size >= *stable)
    text += fmt::format("; step_size is {}, the chain is stable below {:.6g}", c.step_size, *stable);
  else if (d.where != Divergence::Where::sample)
    text += fmt::format("; a learning_rate smaller than {} may help", c.learning_rate);
  return text;
}

Done run_one(const Configuration& c, const fs::path& folder, std::size_t threads, bool quiet, std::stop_token stop) {
  Workers workers(threads);
  Recorder recorder(c, &workers);
  Progress progress(c.experiment, c.steps, quiet);
  const RunResult r = run_method(
      c, &workers,
      [&](const RunState& state) {
        recorder(state);
        progress(state.step, recorder.last());
      },
      stop);
  recorder.finish(r.state, r.outcome.status == Status::diverged);
  const double seconds = recorder.seconds();
  progress.finish();
  Done done{summarise(c, r, recorder, seconds, threads), r.outcome, {}};
  if (r.outcome.divergence) done.divergence = describe(*r.outcome.divergence, c);
  write_run(folder, c, r, recorder, done.summary);
  return done;
}

std::string show(const Json& v, int digits) {
  if (v.is_number_float()) return fmt::format("{:.{}f}", v.get<double>(), digits);
  return v.is_null() ? "-" : v.dump();
}

// The closing table of one run.
std::string closing_table(const Json& s, const fs::path& folder, bool report) {
  std::string text = fmt::format("{} ({}, seed {}): {}, {} steps in {:.2f} s\n", s["experiment"].get<std::string>(),
                                 s["method"].get<std::string>(), s["seed"].dump(), s["status"].get<std::string>(),
                                 s["steps"].dump(), s["seconds"].get<double>());
  const auto row = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<18}{}\n", label, value);
  };
  const auto figure = [&](const char* key, std::string_view label, int digits) {
    if (s.contains(key) && !s[key].is_null()) row(label, show(s[key], digits));
  };
  figure("reward", "reward", 4);
  figure("exact_reward", "exact reward", 4);
  figure("exact_kl", "exact KL", 5);
  figure("log_likelihood", "log-likelihood", 3);
  figure("data_log_likelihood", "data log-likelihood", 4);
  for (const auto& [threshold, step] : s["first_step_at"].items())
    row(fmt::format("{} reached", threshold), step.is_null() ? "never" : fmt::format("at step {}", step.dump()));
  if (s["theta"].size() <= 24) {
    std::string theta;
    for (const Json& t : s["theta"]) theta += (theta.empty() ? "" : " ") + show(t, 3);
    row("theta", theta);
  }
  if (s.contains("permutation") && !s["permutation"].is_null()) row("permutation", s["permutation"].dump());
  row(report ? "report" : "files", io::display(report ? folder / "report.html" : folder));
  return text;
}

// Mean of a figure over runs, null where one has none.
Json mean_of(const std::vector<Json>& runs, const char* key) {
  double sum = 0;
  for (const Json& r : runs) {
    if (!r[key].is_number()) return nullptr;
    sum += r[key].get<double>();
  }
  return number(sum / static_cast<double>(runs.size()));
}

std::string repeats_table(const std::vector<Json>& runs, const fs::path& folder, bool report) {
  std::string text = fmt::format("{:>8}  {:<12}{:>8}{:>10}{:>14}{:>10}{:>16}", "seed", "status", "steps", "reward",
                                 "exact reward", "exact KL", "log-likelihood");
  for (const auto& [threshold, step] : runs.front()["first_step_at"].items())
    text += fmt::format("{:>10}", "at " + threshold);
  text += "\n";
  for (const Json& r : runs) {
    text += fmt::format("{:>8}  {:<12}{:>8}{:>10}{:>14}{:>10}{:>16}", r["seed"].dump(), r["status"].get<std::string>(),
                        r["steps"].dump(), show(r["reward"], 4), show(r["exact_reward"], 4), show(r["exact_kl"], 5),
                        show(r["log_likelihood"], 3));
    for (const auto& [threshold, step] : r["first_step_at"].items())
      text += fmt::format("{:>10}", step.is_null() ? "never" : step.dump());
    text += "\n";
  }
  text += fmt::format("{:>8}  {:<12}{:>8}{:>10}{:>14}{:>10}{:>16}", "mean", "", "", show(mean_of(runs, "reward"), 4),
                      show(mean_of(runs, "exact_reward"), 4), show(mean_of(runs, "exact_kl"), 5),
                      show(mean_of(runs, "log_likelihood"), 3));
  for (const auto& [threshold, step] : runs.front()["first_step_at"].items()) {
    double sum = 0;
    bool all = true;
    for (const Json& r : runs) {
      const Json& at = r["first_step_at"][threshold];
      all = all && at.is_number();
      if (at.is_number()) sum += at.get<double>();
    }
    text += fmt::format("{:>10}", all ? fmt::format("{:.0f}", sum / static_cast<double>(runs.size())) : "-");
  }
  return text + fmt::format("\n{}\n", io::display(report ? folder / "report.html" : folder));
}

// The summary over all repeats.
Json summarise_repeats(const std::vector<Json>& runs, std::size_t wanted, std::size_t threads, double seconds) {
  Json top = runs.front();
  if (runs.size() < wanted && top["status"] == "completed") top["status"] = "interrupted";
  Json seeds = Json::array();
  std::int64_t evaluations = 0;
  for (const Json& r : runs) {
    seeds.push_back(r["seed"]);
    evaluations += r["gradient_evaluations"].get<std::int64_t>();
    if (r["status"] != "completed" && top["status"] != "diverged") top["status"] = r["status"];
  }
  for (const char* key : {"reward", "exact_reward", "exact_kl", "log_likelihood"}) top[key] = mean_of(runs, key);
  for (const char* key : {"theta", "first_step_at", "gradient_evaluations_at"})
    top[key] = nullptr;  // they belong to a single run
  top.erase("permutation");
  top["gradient_evaluations"] = evaluations;
  top["seconds"] = seconds;
  top["threads"] = threads;
  top["seeds"] = std::move(seeds);
  top["runs"] = runs;
  return top;
}

int run(const Options& o) {
  Overrides overrides{.set = {}, .quick = o.quick};
  for (const std::string& s : o.set) {
    const std::size_t equals = s.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorKind::usage, "--set", fmt::format("{} is not of the form key=value", io::excerpt(s)));
    overrides.set.push_back({s.substr(0, equals), s.substr(equals + 1), "--set " + s.substr(0, equals)});
  }
  if (o.has_seed) overrides.set.push_back({"seed", o.seed, "--seed"});
  if (o.has_steps) overrides.set.push_back({"steps", o.steps, "--steps"});
  const Configuration c = load_experiment(o.experiment, overrides);
  if (o.print_config) {
    print(c.resolved);
    return 0;
  }

  const std::size_t threads = o.threads ? o.threads : std::max(1U, std::thread::hardware_concurrency());
  const fs::path folder =
      o.output.empty() ? fs::path("runs") / fmt::format("{}-{}", c.experiment, c.seed) : fs::path(o.output);
  {  // What the run reads, read once before anything is written: a bad file leaves no folder behind.
    const Potential<float> potential = make_potential(c.potential);
    const Start start(c.start, static_cast<std::size_t>(c.particles), potential.dimension(), Noise(c.seed));
    if (c.reference && !c.reference->data.empty()) read_population(c.reference->data, potential.dimension());
  }
  if (o.overwrite)
    for (const auto& [key, file] : {std::pair{"start.samples", c.start.samples},
                                    std::pair{"reference.data", c.reference ? c.reference->data : fs::path()}})
      if (!file.empty() && is_replaced(folder, file))
        throw Error(ErrorKind::usage, key,
                    fmt::format("{} would be removed by --overwrite; choose another --output", io::display(file)));
  if (c.seed + o.repeats - 1 > largest_seed)
    throw Error(ErrorKind::usage, "--repeats",
                fmt::format("{} runs from seed {} need seeds beyond {}", o.repeats, c.seed, largest_seed));
  const Interrupt interrupt;
  prepare_directory(folder, o.overwrite);

  std::vector<Done> done;
  std::string text;
  if (o.repeats == 1) {
    done.push_back(run_one(c, folder, threads, o.quiet, interrupt.token()));
    text = closing_table(done.front().summary, folder, !o.no_report);
  } else {
    // Runs are independent: they are spread over the threads first, and what is left over goes into each.
    const std::size_t at_once = std::min<std::size_t>(threads, o.repeats);
    std::vector<std::optional<Done>> results(o.repeats);
    std::atomic<std::size_t> next{0}, finished{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto work = [&] {
      for (std::size_t i = next++; i < o.repeats && !interrupt.token().stop_requested(); i = next++) try {
          const Configuration mine = with_seed(c, c.seed + i);
          const fs::path place = folder / fmt::format("seed-{}", mine.seed);
          io::make_directory(place);
          results[i] = run_one(mine, place, threads / at_once, true, interrupt.token());
          if (!o.quiet)
            print_error(fmt::format("{}: seed {} done, {} of {}\n", c.experiment, mine.seed, ++finished, o.repeats));
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
          next = o.repeats;
        }
    };
    const auto begin = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> pool;
      for (std::size_t i = 1; i < at_once; ++i) pool.emplace_back(work);
      work();
    }
    if (failure) std::rethrow_exception(failure);
    std::vector<Json> summaries;
    for (auto& r : results)
      if (r) {
        summaries.push_back(r->summary);
        done.push_back(std::move(*r));
      }
    if (summaries.empty()) return 128 + interrupt.signal();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    io::write_file(folder / "config.toml", c.resolved);
    io::write_file(folder / "summary.json", summarise_repeats(summaries, o.repeats, threads, seconds).dump(2) + "\n");
    text = repeats_table(summaries, folder, !o.no_report);
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

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto o = std::make_shared<Options>();
  CLI::App* run_command =
      app.add_subcommand("run", "Run an experiment: one that comes with the program, or a TOML file of yours.");
  run_command->footer(
      "Example: implicit-diffusion run langevin-reward --seed 1 --set method=nested --set inner_steps=10");
  run_command->add_option("NAME", o->experiment, "name of an experiment (see list) or FILE.toml")->required();
  CLI::Option* seed = run_command->add_option("--seed", o->seed, "seed of all noise")->type_name("N");
  CLI::Option* steps = run_command->add_option("--steps", o->steps, "outer steps")->type_name("K");
  run_command->add_option("--repeats", o->repeats, "independent runs, with seeds N, N+1, ...")
      ->check(CLI::Range(1, 100000));
  run_command->add_option("--threads", o->threads, "threads (default: all cores); results do not depend on it")
      ->check(CLI::Range(1, 1024));
  run_command->add_option("--output", o->output, "folder of the run (default runs/NAME-SEED)");
  run_command->add_option("--set", o->set, "key=value: change a key of the experiment's file; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  run_command->add_flag("--overwrite", o->overwrite, "replace the run that is in the folder");
  run_command->add_flag("--print-config", o->print_config, "print the resolved configuration and stop");
  run_command->add_flag("--quick", o->quick, "a shortened form, where the experiment is long");
  run_command->add_flag("--quiet", o->quiet, "no progress on stderr");
  run_command->add_flag("--no-report", o->no_report, "no report.html");
  run_command->callback([o, seed, steps, &action] {
    o->has_seed = seed->count() > 0;
    o->has_steps = steps->count() > 0;
    action = [o] { return run(*o); };
  });
}

}  // namespace program
