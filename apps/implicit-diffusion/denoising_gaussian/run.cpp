#include "denoising_gaussian/experiment.hpp"

#include "denoising_gaussian/queue.hpp"
#include "denoising_gaussian/results.hpp"
#include "experiment/console.hpp"
#include "experiment/finished_parts.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/runs.hpp"
#include "experiment/task_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace program {
namespace {

using namespace implicit_diffusion;

struct MeanAndError {
  double mean, error;
};
MeanAndError mean_and_error(const std::vector<double>& v) {
  const auto n = static_cast<double>(v.size());
  double mean = 0, squares = 0;
  for (const double x : v) mean += x / n;
  for (const double x : v) squares += (x - mean) * (x - mean);
  return {mean, std::sqrt(squares / (n - 1) / n)};
}

// All repeats of one setting.
struct SettingRun {
  std::vector<SampledQueue> queues;
  Status status = Status::completed;
};

SettingRun run_setting(const DenoisingGaussianConfiguration& c, const GaussianDenoising& model, std::size_t setting,
                       std::size_t threads, const std::stop_token& stop, Progress& progress) {
  SettingRun run{std::vector<SampledQueue>(static_cast<std::size_t>(c.repeats))};
  run_tasks(run.queues.size(), threads, [&](std::size_t r) {
    Progress::Loop loop(&progress, c.slots(model.horizon));
    run.queues[r] = sampled_queue(model, c.slots(model.horizon), c.batch, loop_seed(c.seed, setting, r), stop,
                                  [&](std::int64_t step) { loop(step); });
    progress.finish_run();
  });
  for (const SampledQueue& q : run.queues)
    if (q.outcome.status == Status::diverged || run.status == Status::completed) run.status = q.outcome.status;
  return run;
}

// What is kept of a setting: evaluations, then mean and standard error of theta over the repeats, at every step where
// the path is wanted, else at the last.
std::vector<double> numbers_of(const SettingRun& run, bool whole_path) {
  std::vector<double> numbers{0};
  for (const SampledQueue& q : run.queues) numbers[0] += static_cast<double>(q.evaluations);
  const std::size_t steps = run.queues.front().theta.size();
  for (std::size_t k = whole_path ? 0 : steps - 1; k < steps; ++k) {
    std::vector<double> here;
    for (const SampledQueue& q : run.queues) here.push_back(q.theta[k]);
    const MeanAndError sampled = mean_and_error(here);
    numbers.insert(numbers.end(), {sampled.mean, sampled.error});
  }
  return numbers;
}

GaussianRow row_of(const DenoisingGaussianConfiguration& c, const GaussianDenoising& model,
                   const std::vector<double>& numbers) {
  const int m = c.slots(model.horizon);
  const double deviation = queue_deviation(model, m, 2 * m, static_cast<std::size_t>(c.batch)).back();
  return {.horizon = model.horizon,
          .eta = model.eta,
          .theta = numbers[numbers.size() - 2],
          .standard_error = numbers.back(),
          .expected_error = deviation / std::sqrt(static_cast<double>(c.repeats)),
          .mean_field = queue_recursion(model, m, 2 * m).back(),
          .delay_equation = delay_solution(model, 2 * model.horizon).theta};
}

GaussianPath path_of(double eta, const std::vector<double>& numbers) {
  GaussianPath p{eta, {}, {}};
  for (std::size_t k = 1; k < numbers.size(); k += 2) {
    p.theta.push_back(numbers[k]);
    p.standard_error.push_back(numbers[k + 1]);
  }
  return p;
}

// What is said of a setting that diverged.
std::string advice(const DenoisingGaussianConfiguration& c, const GaussianDenoising& model, const SettingRun& run) {
  std::int64_t step = 0;
  for (const SampledQueue& q : run.queues)
    if (q.outcome.divergence && (step == 0 || q.outcome.divergence->step < step)) step = q.outcome.divergence->step;
  std::string text =
      fmt::format("{}: eta = {}, T = {}: diverged at step {}: a sample, the gradient or theta is not finite",
                  c.experiment, model.eta, model.horizon, step);
  constexpr int quickly_found = 128;  // of the limit, by eigenvalues of matrices of this order: a second
  if (const int m = c.slots(model.horizon); m <= quickly_found)
    text += fmt::format("; with {} slots the queue is stable below eta = {:.4g}", m, stability_limit(model.horizon, m));
  return text;
}

}  // namespace

std::unique_ptr<Experiment> read_denoising_gaussian(const Document& d) {
  return std::make_unique<DenoisingGaussianExperiment>(read_denoising_gaussian_configuration(d));
}

int DenoisingGaussianExperiment::run(const RunOptions& o) const {
  const DenoisingGaussianConfiguration& c = configuration();
  const Interrupt interrupt;
  const OpenFolder folder = open_folder(o, c);
  FinishedParts parts(c, folder.path, o.resume, o.quiet);
  if (o.resume) write_configuration(folder.path, c);
  const std::size_t threads = thread_count(o);
  double work = 0;  // a step of a queue moves all of its slots
  for (const double horizon : c.horizons) work += 2.0 * c.slots(horizon) * c.slots(horizon);
  const auto loops = static_cast<double>(c.repeats), etas = static_cast<double>(c.etas.size());
  Progress progress(c.experiment, static_cast<std::size_t>(c.repeats) * c.etas.size() * c.horizons.size(),
                    work * loops * etas, o.quiet);

  Summary s = summary_of(c, threads);
  GaussianResults results;
  Status status = Status::completed;
  std::string trouble;
  std::size_t setting = 0;
  for (std::size_t e = 0; e < c.etas.size() && status == Status::completed; ++e) {
    for (std::size_t i = 0; i < c.horizons.size() && status == Status::completed; ++i) {
      const GaussianDenoising model = c.model(c.etas[e], c.horizons[i]);
      const bool whole_path = model.horizon == c.path_horizon;
      const std::string part = fmt::format("eta-{}.horizon-{}", e, i);
      std::optional<std::vector<double>> numbers = parts.find(part);
      if (numbers &&
          numbers->size() != (whole_path ? 1 + 2 * (2 * static_cast<std::size_t>(c.slots(model.horizon)) + 1) : 3))
        parts.refuse(part, "has another size");
      if (!numbers) {
        const SettingRun run = run_setting(c, model, setting, threads, interrupt.token(), progress);
        status = run.status;
        if (status == Status::diverged) trouble = advice(c, model, run);
        if (status != Status::completed) break;
        numbers = numbers_of(run, whole_path);
        parts.keep(part, *numbers);
      }
      ++setting;
      s.gradient_evaluations += static_cast<std::int64_t>(numbers->front());
      results.rows.push_back(row_of(c, model, *numbers));
      s.steps = std::max<std::int64_t>(s.steps, 2 * c.slots(model.horizon));
      if (whole_path) results.paths.push_back(path_of(model.eta, *numbers));
    }
    if (status == Status::completed) progress.say(fmt::format("eta = {} done", c.etas[e]));
  }
  progress.finish();

  s.status = to_string(status);
  s.seconds = parts.seconds();
  s.more = json_of(c, results);
  io::write_file(folder.path / "summary.json", to_json(s));

  std::string text = fmt::format("{}: {} in {:.2f} s\n", c.experiment, s.status, s.seconds);
  text += fmt::format("  {:>8}{:>10}{:>12}{:>12}{:>12}{:>12}{:>14}{:>10}\n", "eta", "horizon", "theta(2T)", "error",
                      "recursion", "theory", "rate, fitted", "theory");
  for (const GaussianRow& row : results.rows) {
    const bool last = &row == &results.rows.back() || (&row)[1].eta != row.eta;
    text += fmt::format("  {:>8.4g}{:>10.4g}{:>12.4f}{:>12.4f}{:>12.4f}{:>12.4f}{:>14}{:>10}\n", row.eta, row.horizon,
                        row.theta, row.standard_error, row.mean_field, row.delay_equation,
                        last ? fmt::format("{:.4f}", fitted_rate(c, row.eta)) : "",
                        last ? fmt::format("{:.4f}", decay_rate(row.eta)) : "");
  }
  close_run(folder.path, text, o, *this);
  if (!trouble.empty()) complain(trouble);
  return exit_code(s.status, interrupt.signal());
}

}  // namespace program
