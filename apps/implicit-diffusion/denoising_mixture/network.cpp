// A network as the score of a mixture: trained by denoising score matching on samples of the base, then finetuned by
// the loops. Needs LibTorch.
//
// The law of a network is not known. Samples of it are counted to the components of the tilted law, as exact samples of
// that law are, and shares and means are compared.
#include "denoising_mixture/score_network.hpp"

#include "denoising_mixture/loop_run.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/torch/points.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"
#include "networks/training_run.hpp"
#include "networks/weights.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

// Noise that no loop draws from.
Noise evaluation_noise(const DenoisingConfiguration& c) { return Noise(problem_seed(c.seed, "evaluation")); }

void write_samples(const RunContext& context, const char* name, const TensorSamples& x) {
  context.write_pieces(name, io::npy_header_of_floats(std::array{x.total(), x.dimension()}),
                       [&](const PieceSink& sink) { give_pieces(x, sink); });
}

void save(const fs::path& folder, const DenoisingConfiguration& c, const TensorParameters& theta) {
  const Json config{{"_class_name", "MlpScore"},   {"inputs", c.base.dimension()},
                    {"widths", c.network->widths}, {"time_features", c.network->time_features},
                    {"prediction", "epsilon"},     {"time", "2000 / pi acos(exp(-tau))"},
                    {"activation", "silu"}};
  save_network(folder, config, score_network_steps(c).network().layout, theta);
}

// Complete samples at theta, of a seed that no loop uses: those of all processes, on all of them.
Population<float> sample(const DenoisingConfiguration& c, const TensorParameters& theta, std::size_t count,
                         Workers& workers, Processes* processes) {
  constexpr std::size_t each = 10'000;
  const NetworkSteps steps = score_network_steps(c).with(evaluation_noise(c), &workers);
  ReverseChain<NetworkSteps> chain(steps, c.grid(static_cast<std::size_t>(c.steps_per_sample)),
                                   {.dynamics = c.dynamics, .slots = 1, .keep_every = 1'000'000});
  DenoisingSampler<NetworkSteps> sampler(chain);
  Population<float> all(count, c.base.dimension());
  for (std::size_t first = 0, round = 0; first < count; first += each, ++round) {
    auto batch = PathBatch<NetworkSteps>::of(steps.samples(std::min(each, count - first), processes));
    DenoisingStart<NetworkSteps>{evaluation_noise(c)}.draw(batch, static_cast<std::int64_t>(round));
    sampler.advance(batch, theta, {});
    const Population<float> some = to_population(gathered(batch.points));
    for (std::size_t j = 0; j < some.dimension(); ++j)
      std::ranges::copy(some.coordinate(j), all.coordinate(j).begin() + static_cast<std::ptrdiff_t>(first));
  }
  return all;
}

// Batches of the base. Processes draw all of a batch, which costs little beside a network, and each keeps its part.
struct BaseSource {
  MixtureSampler sampler;
  std::size_t dimension;

  void draw(TensorSamples& x, std::int64_t round) const {
    Population<float> points(x.total(), dimension);
    sampler.draw(points, round);
    x = to_samples(points, x.shard(), x.processes());
  }
};

class NetworkSubject {
 public:
  using Engine = NetworkSteps;
  using Theta = TensorParameters;

  NetworkSubject(const DenoisingConfiguration& c, const RunContext& context, Workers& workers, Theta trained)
      : c_(c), context_(context), workers_(workers), trained_(std::move(trained)) {
    context.say_if_too_few_shards(samples().tiles().total);
  }

  Theta start() const { return trained_; }
  TensorSamples samples() const { return steps_.samples(static_cast<std::size_t>(c_.batch), context_.processes); }
  ReverseChain<NetworkSteps> chain(Workers* workers) const {
    return {steps_.with(Noise(c_.seed), workers),
            c_.grid(static_cast<std::size_t>(c_.steps_per_sample)),
            {.dynamics = c_.dynamics,
             .slots = static_cast<std::size_t>(c_.slots),
             .keep_every = static_cast<std::size_t>(c_.keep_every)},
            std::pair{NetworkSteps::model(), trained_}};
  }
  TensorReward reward() const { return linear_reward(c_.direction); }

  LawFigures figures(const Theta& theta) const {
    constexpr std::int64_t along = 10'000;
    return judge(theta, std::min(along, c_.network->samples));
  }
  LawFigures figures_at_end(const Theta& theta) const { return judge(theta, c_.network->samples); }
  LawFigures figures_when_stopped(const Theta&) const { return {c_.base, {Figures::none, Figures::none}}; }
  static std::span<const double> columns(const Theta&) { return {}; }
  void write(const RunContext& context, const Theta& theta, const TensorSamples* samples) const {
    if (samples) write_samples(context, "samples.npy", *samples);
    if (context.writes()) save(context.folder / "model", c_, theta);
  }
  static std::vector<Warning> warnings(const Theta&) { return {}; }

 private:
  LawFigures judge(const Theta& theta, std::int64_t count) const {
    if (first_nonfinite(theta)) return {c_.base, {Figures::none, Figures::none}};
    const GaussianMixture law =
        counted(tilted_, sample(c_, theta, static_cast<std::size_t>(count), workers_, context_.processes));
    return {law, distance(law, best_)};
  }

  const DenoisingConfiguration& c_;
  const RunContext& context_;
  Workers& workers_;
  const Theta trained_;
  const NetworkSteps steps_ = score_network_steps(c_);
  const GaussianMixture tilted_ = c_.tilted();
  const GaussianMixture best_ = counted_tilted(c_);
};

}  // namespace

std::string train_score_network(const DenoisingConfiguration& c, const RunContext& outer, const fs::path& folder) {
  const TrainingKeys& keys = c.network->training;
  RunContext context = outer;
  context.folder = folder;
  context.weight = outer.weight * training_work(c) / std::max(1.0, static_cast<double>(keys.steps));
  const bool begun = from_first(context.processes, [&] {
                       std::error_code none;
                       const bool there = outer.resume && fs::exists(folder / "checkpoints", none);
                       if (!there) io::make_directory(folder);
                       return std::string(there ? "yes" : "no");
                     }) == "yes";
  context.resume = begun;
  context.quiet = true;
  Workers workers(context.threads);
  const NetworkSteps steps = score_network_steps(c);
  const Noise noise(c.seed);
  const ScoreMatchingOptions matching{.prediction = steps.options().prediction,
                                      .law = LevelLaw::cosine,
                                      .horizon = c.grid(static_cast<std::size_t>(c.steps_per_sample)).tau.front(),
                                      .time = steps.options().time,
                                      .noise = noise};
  LossGradient gradient(steps.network(), score_matching_loss(matching), &workers);
  // Of another seed: the sampler takes components from the stream from which the loss takes noise levels.
  const BaseSource source{MixtureSampler(c.base, Noise(problem_seed(c.seed, "data"))), c.base.dimension()};
  TrainingRun run{c,
                  context,
                  keys,
                  {std::max<std::int64_t>(1, keys.steps / 100), c.checkpoint_every, "points"},
                  gradient,
                  source,
                  {0, initial_parameters(steps.network().layout, noise),
                   TensorSamples(static_cast<std::size_t>(keys.batch), steps.network().sample, at::kFloat,
                                 static_cast<std::size_t>(keys.shard), context.processes),
                   optimizer_of(keys)},
                  {}};
  run.run();
  if (run.outcome.status == Status::completed) {
    constexpr std::size_t shown = 1000;
    const Population<float> x = sample(c, run.trained(), shown, workers, context.processes);
    if (context.writes()) {
      RunContext alone = context;
      alone.processes = nullptr;
      alone.write_samples("samples.npy", x);
      save(folder / "model", c, run.trained());
    }
  }
  context.write("summary.json", to_json(summary_of(run, "training")));
  return from_first(context.processes, [&] { return std::string(to_string(run.outcome.status)); });
}

DenoisingRow run_score_network(const DenoisingConfiguration& c, const RunContext& context, const fs::path& training) {
  Workers workers(context.threads);
  NetworkSubject subject(c, context, workers,
                         load_network(training / "model", score_network_steps(c).network().layout));
  return LoopRun(c, context, subject, workers).run();
}

}  // namespace program
