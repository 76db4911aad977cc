// The stages `classifier` and `pretrain`: one loop, two losses.
#include "images/stages.hpp"

#include "experiment/console.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/images/source.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"
#include "networks/training_run.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace program {
namespace {

using namespace implicit_diffusion;

// A training of a stage, with what its summary has beside that of any.
using StageTraining = TrainingRun<ImageSource>;
TrainingRows rows_of(const ImagesConfiguration& c) { return {c.log_every, c.checkpoint_every}; }

Summary stage_summary(const StageTraining& run, const ImagesConfiguration& c) {
  Summary s = summary_of(run, std::string(to_string(c.stage)));
  s.more["stage"] = to_string(c.stage);
  s.more["peak_memory_bytes"] = peak_memory_bytes();
  return s;
}

FinishedRun finished(const StageTraining& run, const Summary& s, const std::string& result) {
  run.context.write("summary.json", to_json(s));
  std::string table = fmt::format("{} {} (seed {}): {} after {} steps in {:.1f} s\n", s.experiment, s.method, s.seed,
                                  s.status, s.steps, s.seconds);
  table += fmt::format("  {:<29}{}\n", "loss", figure_text(run.last_loss(), 4));
  table += fmt::format("  {:<29}{}\n", "images per second", figure_text(run.speed(), 1));
  table += result;
  if (s.status == "interrupted") table += "  continue with --resume\n";
  FinishedRun done{s, std::move(table), {}};
  if (s.status == "diverged")
    done.complaints.push_back(fmt::format("training diverged after {} steps; a learning_rate smaller than {} may help",
                                          s.steps, run.keys.learning_rate));
  return done;
}

void require_labels(const data::DataSet& set, const ImagesConfiguration& c) {
  if (static_cast<std::int64_t>(set.class_names().size()) != c.classes)
    throw Error(ErrorKind::data, io::display(c.data),
                fmt::format("has labels of {} classes, data.classes says {}", set.class_names().size(), c.classes));
}

StartedWith data_of(const data::DataSet& set, const ImagesConfiguration& c) {
  return {"data.folder", io::display(c.data), fingerprint_of(set)};
}

// Says so where images are of another shape than the model's, and are made to fit it.
void say_if_changed(const data::DataSet& set, const ImagesConfiguration& c, const RunContext& context) {
  const data::ImageShape is = set.image(0).shape, wanted = c.shape;
  if (is != wanted && !context.quiet && context.writes())
    print_error(fmt::format("{}: images of {} x {} x {} become {} x {} x {}\n", c.experiment, is.channels, is.height,
                            is.width, wanted.channels, wanted.height, wanted.width));
}

}  // namespace

FinishedRun run_classifier(const ImagesConfiguration& c, const RunContext& context) {
  Workers workers(context.threads);
  context.say_if_fewer(workers.threads());
  const auto set = open_images(c.data, c.shape);
  require_labels(*set, c);
  ClassifierModel model{{.channels = static_cast<std::int64_t>(c.shape.channels),
                         .height = static_cast<std::int64_t>(c.shape.height),
                         .width = static_cast<std::int64_t>(c.shape.width),
                         .classes = c.classes,
                         .features = c.features},
                        set->class_names(),
                        {},
                        {}};
  const Network network = make_classifier(model.config);
  const data::Batches batches(*set, {c.seed, static_cast<std::size_t>(c.classifier.batch), c.shape, c.flip});
  const auto shard = static_cast<std::size_t>(c.classifier.shard);
  ImageSource source(batches, true, shard);
  LossGradient gradient(network, cross_entropy_loss(), &workers);
  TrainingRun run{c,
                  context,
                  c.classifier,
                  rows_of(c),
                  gradient,
                  source,
                  {0, initial_parameters(network.layout, Noise(c.seed)),
                   TensorSamples(static_cast<std::size_t>(c.classifier.batch), network.sample, at::kFloat, shard,
                                 context.processes),
                   optimizer_of(c.classifier)},
                  {},
                  {data_of(*set, c)}};
  run.run();
  Summary s = stage_summary(run, c);
  std::string result;
  if (run.outcome.status != Status::diverged) {
    model.theta = run.trained();
    // On test images where there are some, else on those that it learnt from.
    const auto test = [&]() -> std::unique_ptr<data::DataSet> {
      try {
        return data::open_data_set(c.data, {.split = data::Split::test});
      } catch (const Error&) {
        return nullptr;
      }
    }();
    const data::DataSet& judged_on = test ? *test : *set;
    const TensorSamples x = images_of(judged_on, c.shape, 0, std::min<std::size_t>(judged_on.size(), 10'000), true, 250,
                                      {}, context.processes);
    const Judged judged = judge(model.config, model.theta, x, &workers);
    model.accuracy = recognised(judged, gathered_labels(x));
    s.more["accuracy"] = *model.accuracy;
    if (context.writes()) save_classifier(context.folder / "classifier", model);
    result = fmt::format("  {:<29}{:.2f} % of {} {} images\n", "right", 100 * *model.accuracy, x.total(),
                         test ? "test" : "training");
  }
  return finished(run, s, result);
}

FinishedRun run_pretraining(const ImagesConfiguration& c, const RunContext& context) {
  Workers workers(context.threads);
  context.say_if_fewer(workers.threads());
  const auto shard = static_cast<std::size_t>(c.pretrain.shard);
  const auto set = open_images(c.data, c.shape);
  if (c.conditional) require_labels(*set, c);
  say_if_changed(*set, c, context);
  Diffusion model = new_diffusion(c.network, Noise(c.seed), c.predicts_v ? Prediction::v : Prediction::epsilon,
                                  c.horizon, c.zero_outputs);
  model.folder.origin->schedule = c.uniform_levels ? "ornstein-uhlenbeck" : "cosine";
  const NetworkSteps steps = model.steps(Noise(static_cast<std::uint64_t>(c.evaluation_seed)), &workers, shard);
  const data::Batches batches(*set, {c.seed, static_cast<std::size_t>(c.pretrain.batch), c.shape, c.flip});
  ImageSource source(batches, c.conditional, shard);
  LossGradient gradient(model.network,
                        score_matching_loss({.prediction = model.prediction,
                                             .law = c.uniform_levels ? LevelLaw::uniform : LevelLaw::cosine,
                                             .horizon = c.horizon,
                                             .time = steps.options().time,
                                             .noise = Noise(c.seed)}),
                        &workers);
  const ImageChain chain{c.time_grid(c.horizon), Dynamics::euler_sde, LastStep::mean};
  const TensorSamples strip = places(model, static_cast<std::size_t>(c.strip), shard, {}, context.processes);
  if (context.writes()) io::make_directory(context.folder / "pictures");
  const auto draw = [&](const TrainingState& s, bool picture) {
    const ImageSamples x = sample_images(steps, average_of(s.optimizer, s.theta), chain, strip);
    if (picture) context.write(fmt::format("pictures/step-{:06}.png", s.step), picture_of(x.images, strip.total(), 16));
    return x.images;
  };
  TrainingRun run{c,
                  context,
                  c.pretrain,
                  rows_of(c),
                  gradient,
                  source,
                  {0, model.theta,
                   TensorSamples(static_cast<std::size_t>(c.pretrain.batch), model.network.sample, at::kFloat, shard,
                                 context.processes),
                   optimizer_of(c.pretrain)},
                  [&](const TrainingState& s) {
                    if (s.step > 0 && s.step % c.sample_every == 0) draw(s, true);
                  },
                  {data_of(*set, c)}};
  run.run();
  Summary s = stage_summary(run, c);
  if (run.outcome.status != Status::diverged) {
    if (context.writes()) save_diffusion(context.folder / "model", model, run.trained());
    context.write("samples.npy", npy_of(draw(run.state, run.outcome.status == Status::completed)));
  }
  return finished(run, s, fmt::format("  {:<29}{}\n", "parameters", model.theta.size()));
}

}  // namespace program
