// An experiment with images: one stage, or all of them in folders of their own. Needs LibTorch.
#include "experiment/console.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/launch.hpp"
#include "experiment/warnings.hpp"
#include "images/stages.hpp"
#include "images/strip.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

FinishedRun run_stage(const ImagesConfiguration& c, const RunContext& context, SharedFigures& shared) {
  if (c.stage == Stage::classifier) return run_classifier(c, context);
  if (c.stage == Stage::pretrain) return run_pretraining(c, context);
  return run_finetuning(c, context, shared);
}
FinishedRun run_alone(const ImagesConfiguration& c, const RunContext& context) {
  SharedFigures shared;
  return run_stage(c, context, shared);
}

// Work of a step, in evaluations of a network for one image: a classifier's are cheap, a gradient is three of them, and
// a step of finetuning takes every sample all the way and back, beside the frozen model.
double work_of_step(const ImagesConfiguration& c) {
  if (c.stage == Stage::classifier) return 0.05 * static_cast<double>(c.classifier.batch);
  if (c.stage == Stage::pretrain) return 3.0 * static_cast<double>(c.pretrain.batch);
  const double training = 8.0 * static_cast<double>(c.finetune.batch),
               evaluation = 2.0 * static_cast<double>(c.strip) / static_cast<double>(c.evaluate_every);
  return static_cast<double>(c.steps_per_sample) * (training + evaluation);
}

// summary.json of a stage that has come to its end, where --resume finds one.
std::optional<Json> completed(const fs::path& folder, std::int64_t steps) {
  std::error_code none;
  if (!fs::exists(folder / "summary.json", none)) return {};
  Json json = SummaryFile(folder / "summary.json").json();
  return json.value("status", "") == "completed" && json.value("steps", std::int64_t{-1}) == steps
             ? std::optional(std::move(json))
             : std::nullopt;
}

std::string table_of(const ImagesPlan& plan, const std::string& status, const Json& results, const Json& seconds,
                     double accuracy) {
  std::string text = fmt::format("{} (seed {}): {}\n", plan.experiment, plan.seed, status);
  if (std::isfinite(accuracy)) text += fmt::format("  {:<24}{:>8.1f} %\n", "classifier, right for", 100 * accuracy);
  for (const auto& [stage, s] : seconds.items()) text += fmt::format("  {:<24}{:>8.0f} s\n", stage, s.get<double>());
  text += fmt::format("  {:>8}{:>8}{:>9}{:>9}{:>8}{:>9}{:>8}{:>12}{:>9}{:>10}{:>8}{:>9}\n", "lambda", "loop", "before",
                      "reward", "+-", "path KL", "+-", "recognised", "entropy", "oracle R", "KL", "Frechet");
  const auto number = [](const Json& r, const char* key, int digits) {
    return figure_text(number_or_nan(r, key), digits);
  };
  for (const Json& r : results)
    text +=
        fmt::format("  {:>8}{:>8}{:>9}{:>9}{:>8}{:>9}{:>8}{:>12}{:>9}{:>10}{:>8}{:>9}\n", number(r, "lambda", 1),
                    r.value("method", ""), number(r, "reward_before", 4), number(r, "reward", 4),
                    number(r, "reward_standard_error", 4), number(r, "path_kl", 3),
                    number(r, "path_kl_standard_error", 3), number(r, "recognised", 3), number(r, "class_entropy", 3),
                    number(r, "oracle_reward", 4), number(r, "oracle_kl", 3), number(r, "frechet_distance", 1));
  return text + (status == "interrupted" ? "  continue with --resume\n" : "");
}

// The same seeds from the least lambda to the greatest: a run backwards to where it began, and another one forwards.
void write_strip(const ImagesPlan& plan, const fs::path& folder) {
  std::map<double, fs::path> runs;
  for (const StageRun& s : plan.stages)
    if (s.configuration.stage == Stage::finetune)
      runs.try_emplace(s.configuration.lambda, folder / "settings" / s.folder);
  if (runs.empty()) return;
  std::vector<fs::path> pictures = halving_pictures(runs.rbegin()->second);
  if (runs.size() > 1) pictures.pop_back();
  std::ranges::reverse(pictures);
  if (runs.size() > 1) {
    const std::vector<fs::path> back = halving_pictures(runs.begin()->second);
    pictures.insert(pictures.begin(), back.begin(), back.end());
  }
  io::make_directory(folder / "pictures");
  io::write_file(folder / "pictures/strip.png", strip_of(pictures, plan.shape.height));
}

int run_all(const ImagesExperiment& experiment, const RunOptions& o) {
  const ImagesPlan& plan = experiment.configuration();
  (void)open_images(plan.data, plan.shape);  // before anything is written
  const Interrupt interrupt;
  const OpenFolder folder(o, plan);
  double work = 0;
  for (const StageRun& s : plan.stages)
    work += work_of_step(s.configuration) * static_cast<double>(s.configuration.steps);
  Progress progress(plan.experiment, plan.stages.size(), work, o.quiet);

  SharedFigures shared;
  Json results = Json::array(), seconds = Json::object();
  std::vector<NamedWarnings> warnings;
  std::string status = "completed";
  std::optional<std::string> complaint;
  double peak = 0, accuracy = Figures::none;
  for (const StageRun& stage : plan.stages) {
    const fs::path where = folder.path / "settings" / stage.folder;
    ImagesConfiguration c = stage.configuration;
    if (!c.model_key.empty()) c.model = (where / c.model_key).lexically_normal().string();
    if (!c.judge_key.empty()) c.judge = (where / c.judge_key).lexically_normal().string();
    // The first process sees what is there, and the others are told; they also wait here until it has written the model
    // that this stage begins with.
    const Json found = Json::parse(from_first(processes(), [&] {
      if (const auto done = o.resume ? completed(where, c.steps) : std::nullopt) return Json{{"done", *done}}.dump();
      io::make_directory(where);
      std::error_code none;
      const bool begun = o.resume && fs::exists(where / "config.toml", none);
      if (!begun) write_configuration(where, c);
      return Json{{"begun", begun}}.dump();
    }));
    std::optional<Json> there;
    if (found.contains("done")) there = found["done"];
    if (!there) {
      const FinishedRun done = run_stage(c,
                                         {.folder = where,
                                          .threads = thread_count(o),
                                          .resume = found["begun"].get<bool>(),
                                          .quiet = true,
                                          .stop = interrupt.token(),
                                          .progress = &progress,
                                          .weight = work_of_step(c),
                                          .processes = processes()},
                                         shared);
      there = Json::parse(from_first(processes(), [&] { return SummaryFile(where / "summary.json").json().dump(); }));
      if (!done.complaints.empty()) complaint = done.complaints.front();
      progress.say(fmt::format("{} {} in {:.0f} s", stage.folder,
                               done.summary.status == "completed" ? "done" : done.summary.status,
                               done.summary.seconds));
    } else {
      progress.say(stage.folder + " is done already");
    }
    progress.finish_run();
    seconds[stage.folder] = number_or_nan(*there, "seconds");
    peak = std::max(peak, number_or_nan(*there, "peak_memory_bytes"));
    if (c.stage == Stage::classifier) accuracy = number_or_nan(*there, "accuracy");
    if (there->contains("results"))
      for (const Json& row : (*there)["results"]) results.push_back(row);
    warnings.push_back({stage.folder, read_warnings(*there)});
    status = there->value("status", "interrupted");
    if (status != "completed") break;
  }
  progress.finish();
  const int signal = interrupt.signal(processes());
  if (!is_first()) return exit_code(status, signal);
  if (o.resume) write_configuration(folder.path, plan);

  Summary s = summary_of(plan, thread_count(o));
  s.method = loop_of(plan.slots);
  s.status = status;
  if (processes()) s.processes = processes()->ranks();
  s.steps = plan.finetune.steps;
  for (const auto& [stage, time] : seconds.items()) s.seconds += time.get<double>();
  s.warnings = warnings_over(warnings);
  s.more = {{"stage", "all"}, {"results", results}, {"stage_seconds", seconds}, {"peak_memory_bytes", peak}};
  io::write_file(folder.path / "summary.json", to_json(s));
  if (status == "completed") write_strip(plan, folder.path);
  close_run(folder.path, table_of(plan, status, results, seconds, accuracy), o, experiment);
  print_warnings(s.warnings);
  if (complaint) complain(fmt::format("{}: {}", plan.experiment, *complaint));
  return exit_code(status, signal);
}

// Throws a usage Error where --overwrite would remove what the run begins with.
void require_kept_models(const ImagesConfiguration& c, const RunOptions& o) {
  if (c.stage != Stage::all && c.stage != Stage::finetune) return;
  if (!c.model.empty()) require_kept("finetune.model", fs::path(c.model) / "config.json", o, c);
  if (!c.judge.empty()) require_kept("finetune.classifier", fs::path(c.judge) / "classifier.json", o, c);
}

}  // namespace

int run_images(const ImagesExperiment& experiment, const RunOptions& o) {
  require_kept_models(experiment.configuration(), o);
  if (experiment.configuration().stage == Stage::all) return run_all(experiment, o);
  return run_or_repeat(static_cast<const ImagesConfiguration&>(experiment.configuration()), o, run_alone, experiment);
}

}  // namespace program
