// The stage `finetune`: a model of a folder, a reward, and the path KL to where it began.
#include "images/stages.hpp"

#include "images/strip.hpp"
#include "images/warnings.hpp"
#include "implicit_diffusion/denoising/checkpoint.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/sha256.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "networks/training_run.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
using Batch = PathBatch<NetworkSteps>;

// The model that the experiment is about. Throws a data Error where it makes other images.
Diffusion model_for(const ImagesConfiguration& c) {
  if (c.model.empty())
    throw Error(ErrorKind::usage, "finetune.model", "no folder is given; --model DIR names that of a pretrained model");
  Diffusion model = load_diffusion(c.model);
  const std::vector<std::int64_t> wanted{static_cast<std::int64_t>(c.shape.channels),
                                         static_cast<std::int64_t>(c.shape.height),
                                         static_cast<std::int64_t>(c.shape.width)};
  if (model.network.sample != wanted)
    throw Error(ErrorKind::data, c.model,
                fmt::format("the model makes images of {}, data.shape says {}", fmt::join(model.network.sample, " x "),
                            fmt::join(wanted, " x ")));
  return model;
}

// The base first.
std::vector<StartedWith> begun_with(const ImagesConfiguration& c) {
  std::vector<StartedWith> all{{"finetune.model", io::display(c.model), ModelWeights(c.model).sha256()}};
  if (!c.judge.empty())
    all.push_back({"finetune.classifier", io::display(c.judge),
                   io::sha256_of_file(std::filesystem::path(c.judge) / "classifier.safetensors")});
  if (!c.data.empty())
    all.push_back({"data.folder", io::display(c.data), fingerprint_of(*open_images(c.data, c.shape))});
  return all;
}

class Finetuning {
 public:
  Finetuning(const ImagesConfiguration& c, const RunContext& context, SharedFigures& shared)
      : c_(c), context_(context), shared_(shared) {
    context.say_if_fewer(workers_.threads());
    context.say_if_too_few_shards(empty().points.tiles().total);
    if (!c.data.empty()) require_same_labels(*open_images(c.data, c.shape), c.data, judge());  // before the work
    if (context.writes()) io::make_directory(context.folder / "pictures");
  }

  FinishedRun run() {
    const ScheduledAdam adam({.adam = {.rate = c_.finetune.learning_rate,
                                       .first_decay = c_.finetune.first_decay,
                                       .second_decay = c_.finetune.second_decay,
                                       .epsilon = c_.finetune.epsilon},
                              .warm_up = c_.finetune.warm_up,
                              .decay = decay_of(c_.finetune),
                              .clip = c_.finetune.clip});
    if (c_.slots == 1) {
      State<Batch, ScheduledAdam, TensorParameters> s{0, model_.theta, empty(), adam};
      resume(s);
      const NestedOptions cold{.steps = c_.steps, .inner_steps = 1, .warm_start = false};
      outcome_ = nested_loop(
          sampler_, gradient_, start_, s, cold, [&](const auto& now) { observe(now); }, checkpoints_.stop());
      return finish(s);
    }
    QueueState<Batch, ScheduledAdam, TensorParameters> s{0, model_.theta, {}, adam};
    const QueueOptions options{.steps = c_.steps, .slots = c_.slots};
    if (!resume(s)) start_queue(sampler_, start_, s, options, empty());
    outcome_ = queue_loop(
        sampler_, gradient_, start_, s, options, [&](const auto& now) { observe(now); }, checkpoints_.stop());
    return finish(s);
  }

 private:
  Batch empty() const {
    return Batch::of(TensorSamples(static_cast<std::size_t>(c_.finetune.batch), model_.network.sample, at::kFloat,
                                   shard_, context_.processes));
  }
  // Samples of the evaluation's own seed, at theta.
  ImageSamples sampled(const TensorParameters& theta, std::int64_t n) { return sampled(model_, theta, n); }
  ImageSamples sampled(const Diffusion& model, const TensorParameters& theta, std::int64_t n) {
    const NetworkSteps steps = model.steps(Noise(static_cast<std::uint64_t>(c_.evaluation_seed)), &workers_, shard_);
    return sample_images(steps, theta, {grid_, c_.dynamics, c_.last_step},
                         places(model_, static_cast<std::size_t>(n), shard_, {}, context_.processes), model_.theta);
  }
  double objective(const SampleFigures& f) const { return c_.lambda * f.reward.mean - c_.beta * f.path_kl.mean; }

  const Batch* finished_batch(const auto& s) const {
    if constexpr (requires { s.slots; })
      return s.slots.back().step == chain_.steps() ? &s.slots.back() : nullptr;
    else
      return s.population.step == chain_.steps() ? &s.population : nullptr;
  }

  // `counts`: it has a picture, and may be the best.
  std::vector<double> measure(const auto& s, bool counts = true) {
    const ImageSamples x = sampled(s.theta, c_.strip);
    if (counts)
      context_.write(fmt::format("pictures/step-{:06}.png", s.step),
                     picture_of(x.images, static_cast<std::size_t>(c_.strip), 16));
    const SampleFigures f = figures_of(x, reward_, judge(), nullptr, &workers_);
    if (counts && (!best_objective_ || objective(f) > *best_objective_)) {
      best_objective_ = objective(f);
      best_ = s.theta;
      best_step_ = s.step;
    }
    BatchObjective own{Figures::none, Figures::none, Figures::none};
    if (const Batch* b = finished_batch(s)) own = objective_of<NetworkSteps>(*b, reward_, objective_);
    constexpr double none = Figures::none;
    latest_ = f;
    return {static_cast<double>(s.step),
            static_cast<double>((sampler_.cost() + gradient_.cost()).evaluations + evaluations_before_),
            rows_.seconds(),
            f.reward.mean,
            none,
            none,
            none,
            f.path_kl.mean,
            f.reward.standard_error,
            f.path_kl.standard_error,
            f.reward_clipped,
            objective(f),
            own.reward,
            own.path_kl,
            f.entropy,
            f.diversity};
  }

  void observe(const auto& s) {
    if (rows_.is_due(s.step)) rows_.add(s.step, measure(s), {});
    checkpoints_.write_if_due(s.step, [&](io::CheckpointWriter& w) { return save_run(w, s); });
    progress_(s.step, {}, fmt::format("reward {:.4f}  path KL {:.3f}", latest_.reward.mean, latest_.path_kl.mean));
  }

  bool save_run(io::CheckpointWriter& w, const auto& s) const {
    if (first_nonfinite(s.theta) || !all_finite(s.optimizer.memory())) return false;
    save(w, s, chain_);
    rows_.save(w, "last_row");
    for (const StartedWith& with : started_with_) with.save(w);
    io::save(w, "decay", decay_of(c_.finetune));
    io::save(w, "best", best_);
    io::save(w, "best_objective",
             std::vector<double>{best_objective_.value_or(0), static_cast<double>(best_step_), latest_.reward.mean,
                                 latest_.path_kl.mean});
    io::save(w, "evaluations", (sampler_.cost() + gradient_.cost()).evaluations + evaluations_before_);
    return true;
  }
  bool resume(auto& s) {
    const auto from = [&](const io::CheckpointReader& r) {
      for (const StartedWith& with : started_with_) with.compare(r);
      if constexpr (requires { s.slots; })
        restore(r, s, chain_, empty());
      else
        restore(r, s, chain_);
      rows_.restore(r, 0, "last_row");
      best_ = zeros_like(model_.theta);
      io::restore(r, "best", best_);
      const auto best = r.numbers<double>("best_objective");
      if (best.size() != 4) r.refuse("best_objective", "has another size");
      best_objective_ = best[0];
      best_step_ = static_cast<std::int64_t>(best[1]);
      latest_.reward.mean = best[2];
      latest_.path_kl.mean = best[3];
      evaluations_before_ = r.number<std::uint64_t>("evaluations");
      require_same_decay(r, c_.finetune);
      return s.step;
    };
    const bool found = context_.resume && checkpoints_.resume(c_.steps, context_.quiet, from);
    rows_.start_clock();
    return found;
  }

  const ClassifierModel* judge() const { return judge_ ? &*judge_ : nullptr; }

  void save_weights(const char* name, const TensorParameters& theta) const {
    Diffusion made = model_;
    if (!made.folder.origin) {
      made.folder.origin.emplace();
      made.folder.origin->horizon = model_.horizon;
      made.folder.origin->patch = model_.folder.network.patch;
      made.folder.origin->prediction = model_.folder.scheduler.value_or(SchedulerConfig{}).prediction_type;
    }
    made.folder.origin->base = ModelOrigin::Base{c_.model_key, started_with_.front().hash};
    if (context_.writes()) save_diffusion(context_.folder / name, made, theta);
  }

  FinishedRun finish(const auto& s) {
    // A gradient may be finite and its square not: Adam then stands still.
    if (outcome_.status != Status::diverged && !all_finite(s.optimizer.memory())) outcome_.status = Status::diverged;
    // First, so that a run which goes on from here has seen what one that was never stopped has.
    if (outcome_.status != Status::diverged)
      checkpoints_.write(s.step, [&](io::CheckpointWriter& w) { return save_run(w, s); });
    if (rows_.needs_last(s.step) && outcome_.status != Status::diverged)
      rows_.add_last(measure(s, outcome_.status == Status::completed), {});
    if (context_.writes()) rows_.write(context_.folder);
    Summary summary = summary_of(c_, context_.threads);
    summary.method = loop_of(c_.slots);
    if (context_.processes) summary.processes = context_.processes->ranks();
    summary.steps = s.step;
    summary.status = to_string(outcome_.status);
    summary.gradient_evaluations =
        static_cast<std::int64_t>((sampler_.cost() + gradient_.cost()).evaluations + evaluations_before_);
    summary.seconds = rows_.seconds();
    FinishedRun done{summary, {}, {}};
    if (outcome_.status == Status::diverged) {
      done.complaints.push_back(
          s.step == 0
              ? fmt::format("finetuning diverged at its first step; the samples or gradients of {} are not finite",
                            io::display(c_.model))
              : fmt::format("finetuning diverged after {} steps; a learning_rate smaller than {} or a smaller "
                            "lambda / beta may help",
                            s.step, c_.finetune.learning_rate));
    } else {
      save_weights("model", s.theta);
    }
    if (best_objective_) save_weights("model-best", best_);
    if (outcome_.status == Status::completed) try {
        evaluate(s.theta, done.summary);
      } catch (const Stopped&) {  // to be done again
        done.summary.status = to_string(Status::interrupted);
      }
    done.summary.more["stage"] = "finetune";
    done.summary.more["best_step"] = best_step_;
    done.summary.more["peak_memory_bytes"] = peak_memory_bytes();
    context_.write("summary.json", to_json(done.summary));
    done.table = table_of(done.summary);
    return done;
  }

  // The model, whose network throws Stopped where the run is asked to stop. (Processes of a job would not stop at the
  // same place: there, it is the model.)
  Diffusion stoppable() const {
    Diffusion m = model_;
    if (context_.processes) return m;
    m.network.forward = [forward = m.network.forward, stop = context_.stop](std::span<const at::Tensor> w,
                                                                            const NetworkInput& in) {
      if (stop.stop_requested()) throw Stopped();
      return forward(w, in);
    };
    return m;
  }

  // On the final samples, before and after on the same noise, beside the data and its tilt. Throws Stopped.
  void evaluate(const TensorParameters& theta, Summary& summary) {
    const Diffusion model = stoppable();
    if (!shared_.data && !c_.data.empty())
      shared_.data = figures_of_data(c_.data, c_.shape, reward_, judge(), &workers_, context_.processes,
                                     context_.processes ? std::stop_token() : context_.stop);
    const DataFigures* data = shared_.data ? &*shared_.data : nullptr;
    const auto n = static_cast<std::size_t>(c_.samples);
    if (!shared_.before) {
      const ImageSamples x = sampled(model, model_.theta, c_.samples);
      shared_.before = figures_of(x, reward_, judge(), data, &workers_);
      shared_.picture_before = picture_of(x.images, 128, 16);
    }
    const SampleFigures& before = *shared_.before;
    const ImageSamples x = sampled(model, theta, c_.samples);
    const SampleFigures after = figures_of(x, reward_, judge(), data, &workers_);
    context_.write("samples.npy", npy_of(x.images));
    context_.write("pictures/before.png", *shared_.picture_before);
    context_.write("pictures/after.png", picture_of(x.images, 128, 16));
    if (context_.writes()) {
      std::vector<std::filesystem::path> pictures;
      for (const auto& [step, picture] : pictures_by_step(context_.folder)) pictures.push_back(picture);
      io::write_file(context_.folder / "pictures/strip.png", strip_of(pictures, c_.shape.height));
    }
    std::optional<Oracle> oracle;
    if (data && c_.beta > 0) oracle = data->oracle(c_.lambda / c_.beta, model_.classes() > 0);
    summary.warnings =
        warnings_of({.lambda = c_.lambda,
                     .beta = c_.beta,
                     .reward_before = {before.reward.mean, before.reward.standard_error},
                     .reward = {after.reward.mean, after.reward.standard_error},
                     .path_kl = {after.path_kl.mean, after.path_kl.standard_error},
                     .entropy_before = before.entropy,
                     .entropy = after.entropy,
                     .oracle_entropy = oracle ? data->oracle_entropy(*oracle) : Figures::none,
                     .population_reward = rows_.column("population_reward"),
                     .judge_accuracy = judge_ ? judge_->accuracy.value_or(Figures::none) : Figures::none,
                     .population_share = static_cast<double>(c_.finetune.batch) / static_cast<double>(c_.samples)});
    summary.figures.reward = after.reward.mean;
    const bool enough = oracle && oracle->effective_samples >= 100;
    Json row{{"lambda", c_.lambda},
             {"beta", c_.beta},
             {"method", loop_of(c_.slots)},
             {"slots", c_.slots},
             {"reward_before", before.reward.mean},
             {"reward", after.reward.mean},
             {"reward_standard_error", json_number(after.reward.standard_error)},
             {"reward_clipped", after.reward_clipped},
             {"path_kl", after.path_kl.mean},
             {"path_kl_standard_error", json_number(after.path_kl.standard_error)},
             {"frechet_distance_before", json_number(before.frechet)},
             {"frechet_distance", json_number(after.frechet)},
             {"frechet_floor", json_number(data ? data->floor(n) : Figures::none)},
             {"recognised_before", json_number(before.recognised)},
             {"recognised", json_number(after.recognised)},
             {"class_entropy_before", json_number(before.entropy)},
             {"class_entropy", json_number(after.entropy)},
             {"diversity_before", json_number(before.diversity)},
             {"diversity", json_number(after.diversity)},
             {"oracle_reward", json_number(enough ? oracle->reward : Figures::none)},
             {"oracle_kl", json_number(enough ? oracle->kl : Figures::none)},
             {"oracle_effective_samples", json_number(oracle ? oracle->effective_samples : Figures::none)},
             {"class_histogram_before", before.histogram},
             {"class_histogram", after.histogram},
             {"seconds", summary.seconds},  // of finetuning, without this evaluation
             {"warnings", Json::array()}};
    for (const Warning& w : summary.warnings) row["warnings"].push_back(w.kind);
    if (data && c_.beta > 0) {
      Json curve = Json::array();
      const double ratio = c_.lambda / c_.beta;
      for (int k = 0; k <= 20; ++k) {
        const Oracle at = data->oracle(ratio * k / 20, model_.classes() > 0);
        if (at.effective_samples >= 100) curve.push_back({at.kl, at.reward});
      }
      row["oracle_curve"] = std::move(curve);
    }
    summary.more["results"] = Json::array({std::move(row)});
  }

  std::string table_of(const Summary& s) const {
    std::string text = fmt::format("{} finetune (seed {}, lambda {}, beta {}): {} after {} steps in {:.1f} s\n",
                                   c_.experiment, c_.seed, c_.lambda, c_.beta, s.status, s.steps, s.seconds);
    if (s.status == "interrupted") return text + "  continue with --resume\n";
    if (!s.more.contains("results")) return text;
    const Json& r = s.more["results"][0];
    const auto line = [&](const char* what, const char* before, const char* after, const char* beside, int digits) {
      text += fmt::format(
          "  {:<20}{:>10}{:>10}{:>12}\n", what, before[0] ? figure_text(number_or_nan(r, before), digits) : "",
          figure_text(number_or_nan(r, after), digits), beside[0] ? figure_text(number_or_nan(r, beside), digits) : "");
    };
    text += fmt::format("  {:<20}{:>10}{:>10}{:>12}\n", "", "before", "after", "oracle");
    line("reward", "reward_before", "reward", "oracle_reward", 4);
    line("  standard error", "", "reward_standard_error", "", 4);
    line("  clipped", "", "reward_clipped", "", 4);
    line("path KL", "", "path_kl", "oracle_kl", 3);
    line("  standard error", "", "path_kl_standard_error", "", 3);
    line("recognised", "recognised_before", "recognised", "", 3);
    line("class entropy", "class_entropy_before", "class_entropy", "", 3);
    line("diversity", "diversity_before", "diversity", "", 3);
    text += fmt::format("  {:<20}{:>10}{:>10}{:>12}\n", "", "", "", "floor");
    line("Frechet distance", "frechet_distance_before", "frechet_distance", "frechet_floor", 1);
    return text;
  }

  const ImagesConfiguration& c_;
  const RunContext& context_;
  SharedFigures& shared_;
  Workers workers_{context_.threads};
  const std::size_t shard_ = static_cast<std::size_t>(c_.finetune.shard);
  const Diffusion model_ = model_for(c_);
  const std::optional<ClassifierModel> judge_ =
      c_.judge.empty() ? std::nullopt : std::optional(classifier_for(c_.judge, model_));
  const std::vector<StartedWith> started_with_ = begun_with(c_);
  const TensorReward reward_ =
      reward_called(c_.reward, c_.reward_class, judge_ ? &*judge_ : nullptr, model_.network.sample[0]);
  const DenoisingObjective objective_{c_.lambda, c_.beta};
  const TimeGrid grid_ = c_.time_grid(model_.horizon);
  DenoisingStart<NetworkSteps> start_{Noise(c_.seed)};
  ReverseChain<NetworkSteps> chain_{
      model_.steps(Noise(c_.seed), &workers_, shard_),
      grid_,
      {.dynamics = c_.dynamics, .slots = static_cast<std::size_t>(c_.slots), .last_step = c_.last_step},
      std::pair{NetworkSteps::model(), model_.theta}};
  DenoisingSampler<NetworkSteps> sampler_{chain_};
  PathGradient<NetworkSteps> gradient_{chain_, reward_, objective_,
                                       c_.last_steps > 0 ? static_cast<std::size_t>(c_.last_steps) : chain_.steps()};
  RowRecorder rows_{
      with_common_columns({"path_kl", "reward_standard_error", "path_kl_standard_error", "reward_clipped", "objective",
                           "population_reward", "population_path_kl", "class_entropy", "diversity"}),
      c_.log_every};
  Checkpoints checkpoints_{c_, context_, c_.checkpoint_every, std::chrono::minutes(5)};
  Progress::Loop progress_{context_.progress, context_.weight};
  std::optional<double> best_objective_;
  TensorParameters best_;
  std::int64_t best_step_ = 0;
  SampleFigures latest_;
  std::uint64_t evaluations_before_ = 0;
  Outcome outcome_;
};

}  // namespace

FinishedRun run_finetuning(const ImagesConfiguration& c, const RunContext& context, SharedFigures& shared) {
  return Finetuning(c, context, shared).run();
}

}  // namespace program
