// The stages `classifier` and `pretrain`: one loop, two losses.
#include "images/stages.hpp"

#include "experiment/checkpoints.hpp"
#include "experiment/recorder.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/images/source.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <chrono>

namespace program {
namespace {

using namespace implicit_diffusion;

AveragedAdam optimizer_of(const TrainingKeys& k) {
  return AveragedAdam({{.adam = {.rate = k.learning_rate,
                                 .first_decay = k.first_decay,
                                 .second_decay = k.second_decay,
                                 .epsilon = k.epsilon},
                        .warm_up = k.warm_up,
                        .decay = k.decay ? k.steps : 0,
                        .clip = k.clip},
                       k.average});
}

// Where a run of `steps` is a longer one's beginning, the falling rate would be another: it is part of the identity.
struct TrainingRun {
  const ImagesConfiguration& c;
  const RunContext& context;
  const TrainingKeys& keys;
  LossGradient& gradient;
  ImageSource& source;
  TrainingState state;
  std::function<void(const TrainingState&)> every;  // what else is done after a step

  RowRecorder rows{with_common_columns({"loss", "images_per_second"}), c.log_every};
  Checkpoints checkpoints{c, context, c.checkpoint_every, std::chrono::minutes(5)};
  Progress::Loop progress{context.progress, context.weight};
  double losses = 0;  // since the last row
  std::int64_t batches = 0, last_step = -1;
  Outcome outcome{};

  void run() {
    context.say_if_too_few_shards(state.population.tiles().total);
    if (context.resume) checkpoints.resume(keys.steps, context.quiet, [&](const auto& r) { return restore(r); });
    rows.start_clock();
    outcome = train(
        gradient, source, state, keys.steps, [&](const TrainingState& s) { observe(s); }, checkpoints.stop());
    if (rows.needs_last(state.step)) rows.add_last(row(state), {});
    if (context.writes()) rows.write(context.folder);
    if (outcome.status != Status::diverged)
      checkpoints.write(state.step, [&](io::CheckpointWriter& w) { return save(w, state); });
  }

  double speed() const {
    const double seconds = rows.seconds();
    return seconds > 0 ? static_cast<double>(state.step * keys.batch) / seconds : Figures::none;
  }
  double mean_loss() const { return batches > 0 ? losses / static_cast<double>(batches) : Figures::none; }

 private:
  std::vector<double> row(const TrainingState& s) const {
    const auto k = static_cast<double>(s.step);
    return {k, k, rows.seconds(), Figures::none, Figures::none, Figures::none, Figures::none, mean_loss(), speed()};
  }
  void observe(const TrainingState& s) {
    if (s.step > last_step && last_step >= 0) {
      losses += gradient.loss();
      ++batches;
    }
    last_step = s.step;
    const double shown = mean_loss();
    if (rows.is_due(s.step)) {
      rows.add(s.step, row(s), {});
      losses = 0;
      batches = 0;
    }
    if (every) every(s);
    checkpoints.write_if_due(s.step, [&](io::CheckpointWriter& w) { return save(w, s); });
    progress(s.step, {}, std::isfinite(shown) ? fmt::format("loss {:.4f}  {:.0f} images/s", shown, speed()) : "");
  }
  bool save(io::CheckpointWriter& w, const TrainingState& s) const {
    save_parameters(w, s);
    rows.save(w, "last_row");
    io::save(w, "losses", std::vector<double>{losses, static_cast<double>(batches)});
    io::save(w, "decay", decay_of(keys));
    return true;
  }
  std::int64_t restore(const io::CheckpointReader& r) {
    restore_parameters(r, state);
    rows.restore(r, 0, "last_row");
    const auto kept = r.numbers<double>("losses");
    if (kept.size() != 2) r.refuse("losses", "has another size");
    losses = kept[0];
    batches = static_cast<std::int64_t>(kept[1]);
    last_step = state.step;
    require_same_decay(r, keys);
    return state.step;
  }
};

Summary summary_of(const TrainingRun& run, std::size_t parameters) {
  Summary s = summary_of(run.c, run.context.threads);
  s.method = to_string(run.c.stage);
  if (run.context.processes) s.processes = run.context.processes->ranks();
  s.steps = run.state.step;
  s.status = to_string(run.outcome.status);
  s.gradient_evaluations = run.state.step;
  s.seconds = run.rows.seconds();
  const std::vector<double> losses = run.rows.column("loss");
  s.more = {{"stage", to_string(run.c.stage)},
            {"parameters", parameters},
            {"loss", json_number(losses.empty() ? Figures::none : losses.back())},
            {"images_per_second", json_number(run.speed())},
            {"peak_memory_bytes", peak_memory_bytes()}};
  return s;
}

std::string table_of(const TrainingRun& run, const Summary& s, const std::string& result) {
  std::string text = fmt::format("{} {} (seed {}): {} after {} steps in {:.1f} s\n", run.c.experiment,
                                 to_string(run.c.stage), run.c.seed, s.status, s.steps, s.seconds);
  const std::vector<double> losses = run.rows.column("loss");
  text += fmt::format("  {:<29}{}\n", "loss", figure_text(losses.empty() ? Figures::none : losses.back(), 4));
  text += fmt::format("  {:<29}{}\n", "images per second", figure_text(run.speed(), 1));
  text += result;
  return text + (s.status == "interrupted" ? "  continue with --resume\n" : "");
}

FinishedRun finished(const TrainingRun& run, Summary s, const std::string& result) {
  run.context.write("summary.json", to_json(s));
  FinishedRun done{s, table_of(run, s, result), {}};
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

}  // namespace

void require_same_decay(const io::CheckpointReader& reader, const TrainingKeys& k) {
  if (const auto before = reader.number<std::int64_t>("decay"); before != decay_of(k))
    throw Error(ErrorKind::usage, "steps",
                fmt::format("{}: the learning rate of this run falls over {} steps, so it cannot be made longer",
                            k.steps, before));
}

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
                  gradient,
                  source,
                  {0, initial_parameters(network.layout, Noise(c.seed)),
                   TensorSamples(static_cast<std::size_t>(c.classifier.batch), network.sample, at::kFloat, shard,
                                 context.processes),
                   optimizer_of(c.classifier)},
                  {}};
  run.run();
  Summary s = summary_of(run, run.state.theta.size());
  std::string result;
  if (run.outcome.status != Status::diverged) {
    model.theta = average_of(run.state.optimizer, run.state.theta);
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
  return finished(run, std::move(s), result);
}

FinishedRun run_pretraining(const ImagesConfiguration& c, const RunContext& context) {
  Workers workers(context.threads);
  context.say_if_fewer(workers.threads());
  const auto shard = static_cast<std::size_t>(c.pretrain.shard);
  const auto set = open_images(c.data, c.shape);
  if (c.conditional) require_labels(*set, c);
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
                  gradient,
                  source,
                  {0, model.theta,
                   TensorSamples(static_cast<std::size_t>(c.pretrain.batch), model.network.sample, at::kFloat, shard,
                                 context.processes),
                   optimizer_of(c.pretrain)},
                  [&](const TrainingState& s) {
                    if (s.step > 0 && s.step % c.sample_every == 0) draw(s, true);
                  }};
  run.run();
  Summary s = summary_of(run, model.theta.size());
  if (run.outcome.status != Status::diverged) {
    if (context.writes())
      save_diffusion(context.folder / "model", model, average_of(run.state.optimizer, run.state.theta));
    context.write("samples.npy", npy_of(draw(run.state, run.outcome.status == Status::completed)));
  }
  return finished(run, std::move(s), fmt::format("  {:<29}{}\n", "parameters", model.theta.size()));
}

}  // namespace program
