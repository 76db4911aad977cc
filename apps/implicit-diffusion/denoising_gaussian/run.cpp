#include "denoising_gaussian/experiment.hpp"
#include "experiment/checkpoints.hpp"
#include "experiment/runs.hpp"
#include "experiment/table_reader.hpp"
#include "experiment/task_pool.hpp"
#include "experiment/together.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {
namespace {

using namespace implicit_diffusion;

// Queues as a message to other processes, and back.
std::string pack(const std::vector<SampledQueue>& queues) {
  Json all = Json::array();
  for (const SampledQueue& q : queues)
    all.push_back({static_cast<int>(q.outcome.status), q.outcome.divergence ? q.outcome.divergence->step : -1,
                   q.evaluations, q.theta});
  return all.dump();
}
std::vector<SampledQueue> unpack_queues(const std::string& message) {
  std::vector<SampledQueue> queues;
  for (const Json& j : Json::parse(message)) {
    SampledQueue& q = queues.emplace_back();
    q.outcome.status = static_cast<Status>(j[0].get<int>());
    if (const std::int64_t step = j[1]; step >= 0) q.outcome.divergence = Divergence{{}, step, 0, 0};
    q.evaluations = j[2];
    for (const Json& v : j[3]) q.theta.push_back(v.is_number() ? v.get<double>() : Figures::none);
  }
  return queues;
}

// All repeats of one setting. Of several processes, each makes every so many-th of them.
std::vector<SampledQueue> run_setting(const DenoisingGaussianConfiguration& c, const GaussianDenoising& model,
                                      std::size_t setting, const RunContext& context, Progress& progress) {
  const std::size_t ranks = context.processes ? context.processes->ranks() : 1;
  const std::size_t rank = context.processes ? context.processes->rank() : 0;
  const auto all = static_cast<std::size_t>(c.repeats);
  std::vector<SampledQueue> own((all + ranks - 1 - rank) / ranks);
  run_tasks(own.size(), context.threads, [&](std::size_t i) {
    Progress::Loop loop(&progress, c.slots(model.horizon));
    own[i] = sampled_queue(c, model, setting, i * ranks + rank, context.stop, [&](std::int64_t step) { loop(step); });
    progress.finish_run();
  });
  if (!context.processes) return own;
  std::vector<SampledQueue> queues(all);
  const std::vector<std::string> messages = from_all(context.processes, pack(own));
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::vector<SampledQueue> theirs = unpack_queues(messages[r]);
    for (std::size_t i = 0; i < theirs.size(); ++i) queues[i * ranks + r] = theirs[i];
  }
  return queues;
}

// What is kept of a setting: evaluations, then mean and standard error of theta over the repeats, at every step where
// the path is wanted, else at the last.
std::vector<double> numbers_of(const std::vector<SampledQueue>& queues, bool whole_path) {
  std::vector<double> numbers{0};
  for (const SampledQueue& q : queues) numbers[0] += static_cast<double>(q.evaluations);
  const auto n = static_cast<double>(queues.size());
  const std::size_t steps = queues.front().theta.size();
  for (std::size_t k = whole_path ? 0 : steps - 1; k < steps; ++k) {
    double mean = 0, squares = 0;
    for (const SampledQueue& q : queues) mean += q.theta[k] / n;
    for (const SampledQueue& q : queues) squares += (q.theta[k] - mean) * (q.theta[k] - mean);
    numbers.insert(numbers.end(), {mean, std::sqrt(squares / (n - 1) / n)});
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
std::string advice(const DenoisingGaussianConfiguration& c, const GaussianDenoising& model,
                   const std::vector<SampledQueue>& queues) {
  std::int64_t step = 0;
  for (const SampledQueue& q : queues)
    if (q.outcome.divergence && (step == 0 || q.outcome.divergence->step < step)) step = q.outcome.divergence->step;
  std::string text = fmt::format("eta = {}, T = {}: diverged at step {}: a sample, the gradient or theta is not finite",
                                 model.eta, model.horizon, step);
  constexpr int quickly_found = 512;  // the limit of so many slots: in a tenth of a second
  if (const int m = c.slots(model.horizon); m <= quickly_found)
    if (const std::optional<double> limit = stability_limit(model.horizon, m))
      text += fmt::format("; with {} slots the queue is stable below eta = {:.4g}", m, *limit);
  return text;
}

const EnumNames<DecayRegime> regimes{{"exponential", DecayRegime::exponential},
                                     {"critical", DecayRegime::critical},
                                     {"oscillating", DecayRegime::oscillating}};

Json json_of(const DenoisingGaussianConfiguration& c, const GaussianResults& r) {
  Json results = Json::array(), rates = Json::array(), paths = Json::array();
  for (const GaussianRow& row : r.rows)
    results.push_back({{"horizon", row.horizon},
                       {"eta", row.eta},
                       {"theta", row.theta},
                       {"standard_error", row.standard_error},
                       {"expected_error", row.expected_error},
                       {"mean_field", row.mean_field},
                       {"delay_equation", row.delay_equation},
                       {"target", c.target}});
  for (const double eta : c.etas)
    rates.push_back({{"eta", eta},
                     {"regime", name_of(decay_regime(eta), regimes)},
                     {"fitted", c.fitted_rate(eta)},
                     {"theory", decay_rate(eta)}});
  for (const GaussianPath& p : r.paths)
    paths.push_back(
        {{"horizon", c.path_horizon}, {"eta", p.eta}, {"theta", p.theta}, {"standard_error", p.standard_error}});
  return {{"results", std::move(results)}, {"decay_rates", std::move(rates)}, {"paths", std::move(paths)}};
}

// The rates of the theory, which no sample has a part in.
std::string closed_form_rates(const DenoisingGaussianConfiguration& c) {
  std::string text = fmt::format("  Without samples: the rate at which the closed form nears the target as T grows\n");
  text += fmt::format("  {:>8}{:>22}{:>12}\n", "eta", "fitted to T = 3 to 8", "in theory");
  for (const double eta : c.etas)
    text += fmt::format("  {:>8.4g}{:>22.4f}{:>12.4f}\n", eta, c.fitted_rate(eta), decay_rate(eta));
  return text;
}

FinishedRun run_once(const DenoisingGaussianConfiguration& c, const RunContext& context) {
  FinishedParts parts(c, context, 0);  // steps are not a key of it
  double work = 0;                     // a step of a queue moves all of its slots
  for (const double horizon : c.horizons) work += 2.0 * c.slots(horizon) * c.slots(horizon);
  const auto loops = static_cast<double>(c.repeats), etas = static_cast<double>(c.etas.size());
  Progress progress(c.experiment, static_cast<std::size_t>(c.repeats) * c.etas.size() * c.horizons.size(),
                    work * loops * etas, context.quiet);

  FinishedRun done{summary_of(c, context.threads), {}, {}};
  Summary& s = done.summary;
  GaussianResults results;
  Status status = Status::completed;
  std::size_t setting = 0;
  for (std::size_t e = 0; e < c.etas.size() && status == Status::completed; ++e) {
    for (std::size_t i = 0; i < c.horizons.size(); ++i, ++setting) {
      const GaussianDenoising model = c.model(c.etas[e], c.horizons[i]);
      const bool whole_path = model.horizon == c.path_horizon;
      const std::string part = fmt::format("eta-{}.horizon-{}", e, i);
      std::optional<std::vector<double>> numbers = parts.find(part);
      if (numbers &&
          numbers->size() != (whole_path ? 1 + 2 * (2 * static_cast<std::size_t>(c.slots(model.horizon)) + 1) : 3))
        parts.refuse(part, "has another size");
      if (!numbers) {
        const std::vector<SampledQueue> queues = run_setting(c, model, setting, context, progress);
        for (const SampledQueue& q : queues)
          if (q.outcome.status == Status::diverged || status == Status::completed) status = q.outcome.status;
        if (status == Status::diverged) done.complaints = {advice(c, model, queues)};
        if (status != Status::completed) break;
        numbers = numbers_of(queues, whole_path);
        parts.keep(part, *numbers);
      }
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
  if (context.processes) s.processes = context.processes->ranks();
  context.write("summary.json", to_json(s));

  done.table = fmt::format("{}: {} in {:.2f} s\n", c.experiment, s.status, s.seconds);
  done.table += fmt::format("  {:>8}{:>10}{:>12}{:>12}{:>12}{:>12}\n", "eta", "horizon", "theta(2T)", "error",
                            "recursion", "theory");
  for (const GaussianRow& row : results.rows)
    done.table += fmt::format("  {:>8.4g}{:>10.4g}{:>12.4f}{:>12.4f}{:>12.4f}{:>12.4f}\n", row.eta, row.horizon,
                              row.theta, row.standard_error, row.mean_field, row.delay_equation);
  done.table += closed_form_rates(c);
  return done;
}

}  // namespace

SampledQueue sampled_queue(const DenoisingGaussianConfiguration& c, const GaussianDenoising& model, std::size_t setting,
                           std::size_t repeat, std::stop_token stop, const std::function<void(std::int64_t)>& observe) {
  const int slots = c.slots(model.horizon);
  const auto m = static_cast<std::size_t>(slots);
  const StepKey at{.round = static_cast<std::int64_t>(setting), .index = static_cast<std::int64_t>(repeat)};
  const auto half = [&](std::size_t k) -> std::uint64_t { return Noise(c.seed).bits(Stream::user, at, 2, 0, k); };
  const Noise noise(half(1) << 32 | half(0));
  ReverseChain<float> chain(
      GaussianScore{}, uniform_grid(model.horizon, m),
      {.dynamics = Dynamics::euler_sde, .slots = m, .keep_every = 1, .normals = normals_of<float>(noise)});
  DenoisingSampler<float> sampler(chain);
  PathGradient<float> estimator(chain, QuadraticReward({model.target}));
  DenoisingStart<float> start{noise};
  PathBatch<float> empty;
  empty.points = Population<float>(static_cast<std::size_t>(c.batch), 1);

  const double h = model.horizon / slots;
  QueueState<PathBatch<float>, GradientDescent> s{0, {model.theta_0}, {}, GradientDescent{{model.eta * h}}};
  const QueueOptions options{.steps = 2 * std::int64_t{slots}, .slots = slots, .warm_start = false};
  start_queue(sampler, start, s, options, empty);
  SampledQueue result;
  result.outcome = queue_loop(
      sampler, estimator, start, s, options,
      [&](const auto& now) {
        result.theta.push_back(now.theta[0]);
        if (observe) observe(now.step);
      },
      stop);
  result.evaluations = static_cast<std::int64_t>(sampler.cost().evaluations);
  return result;
}

std::unique_ptr<Experiment> read_denoising_gaussian(const Document& d) {
  return std::make_unique<DenoisingGaussianExperiment>(read_denoising_gaussian_configuration(d));
}

int DenoisingGaussianExperiment::run(const RunOptions& o) const {
  const Common* const one[] = {&configuration()};
  return run_or_repeat(
      one, 1, o, [&](std::size_t, const RunContext& context) { return run_once(configuration(), context); }, *this);
}

}  // namespace program
