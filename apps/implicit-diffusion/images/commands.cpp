// The commands `pretrain`, `finetune`, `sample` and `evaluate`.
#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/launch.hpp"
#include "experiment/registry.hpp"
#include "experiment/run_directory.hpp"
#include "images/evaluation.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/safetensors.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "networks/commands.hpp"

#include <fmt/format.h>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

// A folder as TOML has it; relative ones are relative to where the program was started.
std::string quoted_folder(const std::string& folder) { return toml_string(fs::absolute(folder).string()); }

// Throws a usage Error where the experiment has no such stages.
void require_images(const RunOptions& o) {
  const auto experiment = load_experiment(o.experiment, {});
  if (!dynamic_cast<const ImagesExperiment*>(experiment.get()))
    throw Error(ErrorKind::usage, io::excerpt(o.experiment), "is not an experiment with images");
}

std::size_t threads_of(std::uint64_t asked) {
  RunOptions o;
  o.threads = asked;
  return thread_count(o);
}

// What `count` chains of so many steps are made from: `start` (n, C, H, W) and `steps` (T, n, C, H, W), N(0, 1).
void write_noise(const fs::path& file, const TensorSamples& places, std::int64_t steps, const Noise& noise) {
  const auto drawn = [&](const PieceSink& sink, Stream stream, StepKey key) {
    TensorSamples z = places;
    TensorTiles::fill_normals(z, noise, stream, key);
    give_pieces(z, sink);
  };
  std::vector<std::int64_t> shape = places.x().sizes().vec(), all = shape;
  all.insert(all.begin(), steps);
  io::SafetensorsWriter writer;
  writer.put("start", io::Dtype::f32, shape, [&](const PieceSink& sink) { drawn(sink, Stream::initial, {}); });
  writer.put("steps", io::Dtype::f32, all, [&](const PieceSink& sink) {
    for (std::int64_t n = 0; n < steps; ++n) drawn(sink, Stream::sampling, {.index = n});
  });
  writer.write(file);
}

// A model's chains. Throws a data Error where its noise levels end before the grid's last one.
TimeGrid grid_of(const Diffusion& model, const std::string& folder, std::int64_t steps, const std::string& grid) {
  ImagesConfiguration c;
  c.steps_per_sample = steps;
  c.grid = grid == "uniform"  ? ImagesConfiguration::Grid::uniform
           : grid == "cosine" ? ImagesConfiguration::Grid::cosine
                              : ImagesConfiguration::Grid::log_linear;
  if (c.grid == ImagesConfiguration::Grid::log_linear && c.tau_min >= model.horizon)
    throw Error(ErrorKind::data, io::display(folder),
                fmt::format("its horizon, {}, is below the last noise level of the log-linear grid, {}", model.horizon,
                            c.tau_min));
  return c.time_grid(model.horizon);
}

// Throws a data Error where samples hold what is not finite: they are no pictures. The folders that were made for them
// go.
void require_finite(const TensorSamples& x, const std::string& model, const std::vector<fs::path>& made_folders = {}) {
  const auto at = find_nonfinite(x);
  if (!at) return;
  std::error_code none;
  for (const fs::path& p : made_folders) fs::remove(p, none);
  throw Error(ErrorKind::data, io::display(model),
              fmt::format("sample {} is not finite: the model diverges along its chain", at->sample));
}

// Says so where the folder does not say at which noise levels its network works and what it predicts.
Diffusion load_told(const std::string& folder) {
  Diffusion model = load_diffusion(folder);
  if (!model.folder.scheduler && is_first())
    complain(
        fmt::format("warning: {}: there is no scheduler: its network is taken to predict the noise at the times of "
                    "DDPMScheduler's defaults",
                    io::display(folder)));
  return model;
}

[[noreturn]] void refuse_without_effect(const char* option, const char* whose) {
  throw Error(ErrorKind::usage, option, fmt::format("has an effect with {} alone", whose));
}

// Throws an output Error where a file cannot be there, before the work.
void require_folder_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  if (std::error_code none; !folder.empty() && !fs::is_directory(folder, none))
    throw Error(ErrorKind::output, io::display(file), "its folder does not exist");
}

}  // namespace

int pretrain(const PretrainOptions& o) {
  require_images(o);
  const std::string stage = o.classifier ? "classifier" : "pretrain";
  return run_changed(o, {{"stage", stage, "pretrain"}}, stage + ".");
}

int finetune(const FinetuneOptions& o) {
  require_images(o);
  std::vector<Override> changes{{"stage", "finetune", "finetune"}};
  if (!o.model.empty()) changes.push_back({"finetune.model", quoted_folder(o.model), "--model"});
  if (!o.classifier.empty()) changes.push_back({"finetune.classifier", quoted_folder(o.classifier), "--classifier"});
  return run_changed(o, changes, "finetune.");
}

int sample(const SampleOptions& o) {
  const bool discrete = o.sampler == "ddpm" || o.sampler == "ddim";
  if (o.eta && o.sampler != "ddim") refuse_without_effect("--eta", "--sampler ddim");
  if (o.grid && discrete) refuse_without_effect("--grid", "--sampler sde and ode");
  const std::string grid = o.grid.value_or("log-linear");
  const double eta = o.eta.value_or(0);
  start_processes({"sample",
                   {{"DIR", o.model},
                    {"--output", o.output},
                    {"--noise", o.noise},
                    {"--count", to_toml(o.count)},
                    {"--seed", to_toml(o.seed)},
                    {"--steps", to_toml(o.steps)},
                    {"--labels", to_toml(o.labels)},
                    {"--sampler", o.sampler},
                    {"--grid", grid},
                    {"--eta", to_toml(eta)},
                    {"--shard", to_toml(o.shard)},
                    {"--portable-bits", to_toml(o.portable_bits)}},
                   {}});
  const Diffusion model = load_told(o.model);
  Workers workers(threads_of(o.threads));
  const Noise noise(static_cast<std::uint64_t>(o.seed));
  const auto count = static_cast<std::size_t>(o.count), shard = static_cast<std::size_t>(o.shard);
  const TensorSamples x = places(model, count, shard, o.labels, processes());
  const std::int64_t steps = o.steps > 0 ? o.steps : discrete ? 50 : 64;
  if (const auto times = static_cast<std::int64_t>(model.schedule.size()); discrete && steps > times)
    throw Error(ErrorKind::usage, "--steps", fmt::format("{}: the schedule of the model has {} times", steps, times));
  const ImageChain chain{discrete ? TimeGrid{} : grid_of(model, o.model, steps, grid),
                         o.sampler == "ode" ? Dynamics::euler_ode : Dynamics::euler_sde, LastStep::mean};
  require_folder_of(o.noise);
  if (!o.noise.empty()) require_no_result(o.noise, "--noise", {o.model});
  // The folder is made before the work, so that one that cannot be is known at once.
  const fs::path folder = o.output.empty() ? fs::path("samples") : fs::path(o.output);
  std::vector<fs::path> made_folders;
  from_first(processes(), [&] {
    for (const char* name : {"samples.png", "samples.npy"}) require_no_result(folder / name, "--output", {o.model});
    for (const char* name : {"samples.png", "samples.npy"})
      if (std::error_code none; o.output.empty() && fs::exists(folder / name, none))
        throw Error(ErrorKind::output, io::display(folder / name),
                    "exists; --output names another folder, or this one to replace it");
    made_folders = io::make_directory(folder);
    return "";
  });
  TensorSamples made;
  if (discrete) {
    made = sample_discrete(model, model.theta, o.sampler == "ddpm" ? DiscreteSampler::ddpm : DiscreteSampler::ddim,
                           static_cast<std::size_t>(steps), eta, x, noise, &workers);
  } else {
    made = sample_images(model.steps(noise, &workers, shard), model.theta, chain, x).images;
  }
  require_finite(made, o.model, made_folders);
  made = gathered(made);
  if (!is_first()) return 0;
  io::write_file(folder / "samples.npy", npy_of(made));
  io::write_file(folder / "samples.png", picture_of(made, 400, 16));
  if (!o.noise.empty()) write_noise(o.noise, places(model, count), steps, noise);
  print(fmt::format("{} samples: {}\n", o.count, io::display(folder / "samples.png")));
  return 0;
}

int evaluate(const EvaluateOptions& o) {
  if (o.chosen && o.reward != "class") refuse_without_effect("--class", "--reward class");
  const std::int64_t chosen = o.chosen.value_or(0);
  start_processes({"evaluate",
                   {{"DIR", o.model},
                    {"--base", o.base},
                    {"--data", o.data},
                    {"--classifier", o.classifier},
                    {"--output", o.output},
                    {"--reward", o.reward},
                    {"--lambda-over-beta", to_toml(o.ratio)},
                    {"--class", to_toml(chosen)},
                    {"--count", to_toml(o.count)},
                    {"--seed", to_toml(o.seed)},
                    {"--steps", to_toml(o.steps)},
                    {"--grid", o.grid},
                    {"--shard", to_toml(o.shard)},
                    {"--portable-bits", to_toml(o.portable_bits)}},
                   {}});
  const fs::path file = o.output.empty() ? "evaluation.json" : o.output;
  require_folder_of(o.output);
  require_no_result(file, "--output", {o.model, o.base, o.classifier, o.data});
  const Diffusion model = load_told(o.model);
  Workers workers(threads_of(o.threads));
  std::optional<Diffusion> base;
  if (!o.base.empty()) {
    base = load_told(o.base);
    if (base->network.layout != model.network.layout || base->network.sample != model.network.sample)
      throw Error(ErrorKind::data, io::display(o.base),
                  "is of another shape than the model: there is no path KL to it");
  }
  std::optional<ClassifierModel> classifier;
  if (!o.classifier.empty()) classifier = classifier_for(o.classifier, model);
  const ClassifierModel* judge = classifier ? &*classifier : nullptr;
  const TensorReward reward = reward_called(o.reward, chosen, judge, model.network.sample[0]);
  std::optional<DataFigures> data;
  const data::ImageShape shape{static_cast<std::size_t>(model.network.sample[0]),
                               static_cast<std::size_t>(model.network.sample[1]),
                               static_cast<std::size_t>(model.network.sample[2])};
  if (!o.data.empty()) data = figures_of_data(o.data, shape, reward, judge, &workers, processes());
  const auto count = static_cast<std::size_t>(o.count), shard = static_cast<std::size_t>(o.shard);
  const NetworkSteps steps = model.steps(Noise(static_cast<std::uint64_t>(o.seed)), &workers, shard,
                                         base ? std::optional(base->meaning()) : std::nullopt);
  const ImageSamples x =
      sample_images(steps, model.theta, {grid_of(model, o.model, o.steps, o.grid)},
                    places(model, count, shard, {}, processes()), base ? std::optional(base->theta) : std::nullopt);
  require_finite(x.images, o.model);
  const SampleFigures f = figures_of(x, reward, judge, data ? &*data : nullptr, &workers);
  if (!is_first()) return 0;
  std::optional<Oracle> oracle;
  if (data && o.ratio != 0) oracle = data->oracle(o.ratio, model.classes() > 0);
  const bool enough = oracle && oracle->effective_samples >= 100;
  const double floor = data ? data->floor(count) : Figures::none;

  std::string table;
  const auto row = [&](const char* what, double value, int digits, const std::string& note) {
    if (std::isfinite(value)) table += fmt::format("{:<20}{:>12}  {}\n", what, figure_text(value, digits), note);
  };
  const auto error = [](const MeanAndError& m, int digits) { return "+- " + figure_text(m.standard_error, digits); };
  row(o.reward.c_str(), f.reward.mean, 4, error(f.reward, 4));
  row("  of clipped pixels", f.reward_clipped, 4, "");
  const double of_data = data ? mean_and_error(data->rewards).mean : Figures::none;
  row("  of the data", of_data, 4, "");
  row("path KL", f.path_kl.mean, 3, error(f.path_kl, 3));
  row("Frechet distance", f.frechet, 1, std::isfinite(floor) ? "floor " + figure_text(floor, 1) : "");
  row("recognised", f.recognised, 3, model.classes() > 0 ? "as its label" : "with a confidence above 0.9");
  row("confidence", f.confidence, 3, "");
  row("class entropy", f.entropy, 3, "");
  row("diversity", f.diversity, 3, "mean distance of features");
  if (enough) {
    row("oracle's reward", oracle->reward, 4, fmt::format("data tilted by {}", o.ratio));
    row("oracle's KL", oracle->kl, 3, fmt::format("{:.0f} effective images", oracle->effective_samples));
  } else if (oracle) {
    table +=
        fmt::format("{:<20}{:>12}  {:.0f} effective images are too few\n", "oracle", "-", oracle->effective_samples);
  }
  const Json json{{"model", o.model},
                  {"count", o.count},
                  {"seed", o.seed},
                  {"reward_name", o.reward},
                  {"reward", f.reward.mean},
                  {"reward_standard_error", json_number(f.reward.standard_error)},
                  {"reward_clipped", f.reward_clipped},
                  {"data_reward", json_number(of_data)},
                  {"path_kl", json_number(f.path_kl.mean)},
                  {"path_kl_standard_error", json_number(f.path_kl.standard_error)},
                  {"frechet_distance", json_number(f.frechet)},
                  {"frechet_floor", json_number(floor)},
                  {"recognised", json_number(f.recognised)},
                  {"confidence", json_number(f.confidence)},
                  {"class_entropy", json_number(f.entropy)},
                  {"class_histogram", f.histogram},
                  {"diversity", json_number(f.diversity)},
                  {"oracle_reward", json_number(enough ? oracle->reward : Figures::none)},
                  {"oracle_kl", json_number(enough ? oracle->kl : Figures::none)},
                  {"oracle_effective_samples", json_number(oracle ? oracle->effective_samples : Figures::none)}};
  io::write_file(file, json.dump(2) + "\n");
  print(table + io::display(file) + "\n");
  return 0;
}

}  // namespace program
