#include "experiment/run_directory.hpp"
#include "experiment/warnings.hpp"
#include "figures/curves.hpp"
#include "figures/opening.hpp"
#include "figures/tables.hpp"
#include "images/experiment.hpp"
#include "images/strip.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/report/histogram.hpp"
#include "implicit_diffusion/report/pixels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

std::string img(const fs::path& file, const std::string& description, std::size_t enlarged = 2) {
  return report::to_img(io::read_file(file), description, enlarged);
}

report::Section strip_section(const std::string& heading, const fs::path& folder, const std::string& text) {
  report::Section section{.heading = heading, .text = text};
  for (const auto& [step, file] : pictures_by_step(folder))
    section.figures.push_back(
        {img(file, fmt::format("samples after {} steps", step)), fmt::format("After {} steps.", step), true});
  return section;
}

std::string row_text(const Json& r, const char* key, int digits) { return figure_text(number_or_nan(r, key), digits); }
std::vector<double> numbers_of(const Json& r, const char* key) {
  return r.contains(key) && r[key].is_array() ? r[key].get<std::vector<double>>() : std::vector<double>();
}

// What curves and pictures of a setting are called; M is part of it where it differs.
struct SettingNames {
  bool with_slots;

  explicit SettingNames(const ImagesPlan& c) : with_slots(c.sweep_slots.size() > 1) {}
  std::string operator()(double lambda, std::int64_t slots) const {
    return fmt::format("λ = {}", four_digits(lambda)) + (!with_slots  ? ""
                                                         : slots == 1 ? ", nested"
                                                                      : fmt::format(", M = {}", slots));
  }
  std::string operator()(const Json& r) const {
    return (*this)(number_or_nan(r, "lambda"), r.value("slots", std::int64_t{0}));
  }
};

report::Table results_table(const Json& rows) {
  report::Table t{{"λ",
                   "β",
                   "loop",
                   "reward before",
                   "reward",
                   "± ",
                   "clipped",
                   "path KL",
                   "± ",
                   "oracle: reward",
                   "KL",
                   "effective images",
                   "recognised before",
                   "recognised",
                   "class entropy before",
                   "class entropy",
                   "Fréchet before",
                   "Fréchet",
                   "floor",
                   "seconds"}};
  for (const Json& r : rows)
    t.rows.push_back({row_text(r, "lambda", 1),
                      row_text(r, "beta", 2),
                      r.value("method", ""),
                      row_text(r, "reward_before", 4),
                      row_text(r, "reward", 4),
                      row_text(r, "reward_standard_error", 4),
                      row_text(r, "reward_clipped", 4),
                      row_text(r, "path_kl", 3),
                      row_text(r, "path_kl_standard_error", 3),
                      row_text(r, "oracle_reward", 4),
                      row_text(r, "oracle_kl", 3),
                      row_text(r, "oracle_effective_samples", 0),
                      row_text(r, "recognised_before", 3),
                      row_text(r, "recognised", 3),
                      row_text(r, "class_entropy_before", 3),
                      row_text(r, "class_entropy", 3),
                      row_text(r, "frechet_distance_before", 1),
                      row_text(r, "frechet_distance", 1),
                      row_text(r, "frechet_floor", 1),
                      row_text(r, "seconds", 0)});
  return t;
}

// Reward against KL: every setting from where it began, and the curve of the tilted data.
report::Figure reward_against_kl(const Json& rows, const SettingNames& name) {
  report::LineChart chart{.title = "Reward against KL", .x_label = "KL (nats)", .y_label = "reward"};
  // The oracle's curves of both signs begin at the data: each is a series of its own.
  std::vector<report::Series> oracles;
  for (const Json& r : rows) {
    report::Series s{.label = name(r)};
    s.add(0, number_or_nan(r, "reward_before"));
    s.add(number_or_nan(r, "path_kl"), number_or_nan(r, "reward"));
    chart.series.push_back(std::move(s));
    if (!r.contains("oracle_curve") || r["oracle_curve"].empty()) continue;
    const bool up = number_or_nan(r, "lambda") > 0;
    report::Series o{.label = up ? "tilted data, λ > 0" : "tilted data, λ < 0"};
    for (const Json& point : r["oracle_curve"]) o.add(point[0].get<double>(), point[1].get<double>());
    const auto same = std::ranges::find(oracles, o.label, &report::Series::label);
    if (same == oracles.end())
      oracles.push_back(std::move(o));
    else if (o.x.size() > 1 && o.x.back() > same->x.back())
      *same = std::move(o);
  }
  for (report::Series& o : oracles) chart.series.push_back(std::move(o));
  return {report::to_svg(chart),
          "Each line goes from the samples before finetuning to those after it, whose KL is that of the paths. The "
          "curves are the data reweighted by exp(λ R / β): the best that any law can do, for the law of the data. They "
          "end where fewer than 100 images have most of the weight."};
}

report::Figure histogram_of(const Json& r, const std::string& name) {
  return {report::to_svg(report::ClassPlot{.title = "Classes, " + name,
                                           .x_label = "class",
                                           .y_label = "share of samples",
                                           .shares = numbers_of(r, "class_histogram"),
                                           .label = "after",
                                           .outline = numbers_of(r, "class_histogram_before"),
                                           .outline_label = "before"}),
          "What the classifier takes the samples for, before and after."};
}

const std::vector<CurveSpec> training_curves{
    {.column = "loss",
     .title = "Loss",
     .y_label = "loss",
     .log_y = true,
     .meaning = "Mean over the steps since the row before."},
    {.column = "images_per_second", .title = "Speed", .y_label = "images per second"}};
const std::vector<CurveSpec> finetuning_curves{
    {.column = "reward",
     .title = "Reward",
     .y_label = "reward",
     .second = "population_reward",
     .second_label = "training population"},
    {.column = "path_kl",
     .title = "Negative path KL",
     .y_label = "nats",
     .second = "population_path_kl",
     .second_label = "training population"},
    {.column = "objective", .title = "λ R − β KL", .y_label = "objective"},
    {.column = "class_entropy", .title = "Entropy of classes", .y_label = "nats"},
    {.column = "diversity", .title = "Diversity", .y_label = "mean distance of features"}};

// The paper draws the KL with its sign turned, so that reward and KL both rise where a run does well.
void turn_kl(const CurveSpec& spec, report::LineChart& chart, std::string& caption) {
  if (spec.column != "path_kl") return;
  for (report::Series& s : chart.series)
    for (double& y : s.y) y = -y;
  caption = "The price with its sign turned: higher is closer to the pretrained model.";
}

// What a finetuned model was judged by, in one sentence for each setting.
std::string setting_sentence(const Json& r, const SettingNames& name) {
  const double before = number_or_nan(r, "reward_before"), after = number_or_nan(r, "reward");
  std::string text = fmt::format("With {} the reward {} at a path KL of {}", name(r), change_text(before, after),
                                 figure_text(number_or_nan(r, "path_kl"), 2));
  if (std::isfinite(number_or_nan(r, "oracle_reward")))
    text += fmt::format("; the tilted data has {} at {}", row_text(r, "oracle_reward", 4), row_text(r, "oracle_kl", 2));
  return text + ".";
}

void add_setting(report::Page& page, const Json& rows, const fs::path& folder, const std::string& name) {
  page.sections.push_back(strip_section(
      name, folder, "The same seeds along finetuning: every picture begins with the same noise, and only θ differs."));
  std::error_code none;
  report::Section pictures{.heading = name + ": before and after"};
  for (const auto& [file, caption] : {std::pair{"before.png", "Before."}, {"after.png", "After."}})
    if (fs::exists(folder / "pictures" / file, none))
      pictures.figures.push_back({img(folder / "pictures" / file, caption), caption, true});
  for (const Json& r : rows)
    if (r.contains("class_histogram") && !r["class_histogram"].empty())
      pictures.figures.push_back(histogram_of(r, name));
  if (!pictures.figures.empty()) page.sections.push_back(std::move(pictures));
}

Json results_in(const Json& summary) {
  return summary.contains("results") && summary["results"].is_array() ? summary["results"] : Json::array();
}

report::Page page_of(const ImagesPlan& c, const fs::path& folder, const Json& summary) {
  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}, stage {}, seed {}", c.experiment, to_string(c.stage), c.seed)};
  const std::string status = summary.value("status", "");
  page.notice = how_it_ended(status, summary.value("steps", std::int64_t{0}), c.steps);
  page.warnings = messages_of(read_warnings(summary));
  page.footer = footer;
  if (const double bytes = number_or_nan(summary, "peak_memory_bytes"); std::isfinite(bytes))
    page.facts.push_back({"Memory at most", fmt::format("{:.0f} MB", bytes / 1e6), ""});
  page.facts.push_back({"Time", fmt::format("{:.0f} s", number_or_nan(summary, "seconds")), ""});
  (void)folder;
  return page;
}

void add_training(report::Page& page, const fs::path& folder) {
  const RunTable table = read_run_table(folder, {"step", "loss"});
  add_curves(page, {{"run", {&table}}}, Axis::steps, training_curves);
}

std::string training_report(const ImagesPlan& c, const fs::path& folder, const Json& summary) {
  report::Page page = page_of(c, folder, summary);
  const bool classifier = c.stage == Stage::classifier;
  page.opening =
      classifier
          ? fmt::format("A classifier was trained to judge samples: it is right for {:.2f} % of the test images.",
                        100 * number_or_nan(summary, "accuracy"))
          : fmt::format(
                "A network of {} parameters was trained by denoising score matching for {} steps of "
                "{} images. Look at the pictures: are they recognisable?",
                summary.value("parameters", 0), summary.value("steps", 0), c.pretrain.batch);
  page.facts.push_back({"Loss", row_text(summary, "loss", 4), ""});
  page.facts.push_back({"Speed", row_text(summary, "images_per_second", 0), "images per second"});
  if (!classifier)
    page.sections.push_back(
        strip_section("Samples", folder, "The same seeds along training, of the averaged weights."));
  add_training(page, folder);
  page.sections.push_back(repeat_section(c.resolved.text(), folder, ""));
  return report::to_html(page);
}

std::string finetuning_report(const ImagesPlan& c, const fs::path& folder, const Json& summary) {
  report::Page page = page_of(c, folder, summary);
  const SettingNames name(c);
  const Json rows = results_in(summary);
  std::vector<std::string> sentences{
      fmt::format("A model was finetuned to {} in {} steps, with the path KL to where it began as the price.", c.reward,
                  summary.value("steps", 0))};
  for (const Json& r : rows) sentences.push_back(setting_sentence(r, name));
  if (c.dynamics == Dynamics::euler_ode)
    sentences.emplace_back(
        "Its samples follow the probability flow, which has no noise: the path KL is the penalty of the SDE along it.");
  page.opening = paragraph(sentences);
  add_setting(page, rows, folder, name(c.lambda, c.slots));
  const RunTable table = read_run_table(folder, {"step", "path_kl"});
  add_curves(page, {{"evaluation samples", {&table}}}, Axis::steps, finetuning_curves, turn_kl);
  if (!rows.empty()) {
    page.sections.push_back({.heading = "Reward and KL", .figures = {reward_against_kl(rows, name)}});
    page.sections.push_back({.heading = "Figures", .tables = {results_table(rows)}});
  }
  page.sections.push_back(repeat_section(c.resolved.text(), folder, ""));
  return report::to_html(page);
}

std::string whole_report(const ImagesPlan& c, const fs::path& folder, const Json& summary) {
  report::Page page = page_of(c, folder, summary);
  const SettingNames name(c);
  const Json rows = results_in(summary);
  std::vector<std::string> sentences{
      fmt::format("A diffusion model of images was pretrained and then finetuned to {}, with the path KL to the "
                  "pretrained model as the price, in {} settings.",
                  c.reward, rows.size())};
  for (const Json& r : rows) sentences.push_back(setting_sentence(r, name));
  page.opening = paragraph(sentences);

  std::vector<RunTable> tables;
  std::vector<Group> groups;
  std::error_code none;
  if (const fs::path strip = folder / "pictures/strip.png"; fs::exists(strip, none))
    page.sections.push_back(
        {.heading = "The same seeds",
         .text =
             "Each column begins with the same noise in every row. From the row of the pretrained model the weights "
             "of the least λ go upwards and those of the greatest downwards, at steps that double.",
         .figures = {{img(strip, "the same seeds from the least to the greatest λ"), "", true}}});
  tables.reserve(c.stages.size());
  for (const StageRun& s : c.stages) {
    const fs::path at = folder / "settings" / s.folder;
    if (s.configuration.stage != Stage::finetune || !fs::exists(at / "metrics.csv", none)) continue;
    const Json own = results_in(SummaryFile(at / "summary.json").json());
    groups.push_back({name(s.configuration.lambda, s.configuration.slots), {}});
    add_setting(page, own, at, groups.back().label);
    tables.push_back(read_run_table(at, {"step", "path_kl"}));
    groups.back().runs = {&tables.back()};
  }
  std::vector<CurveSpec> curves = finetuning_curves;
  for (CurveSpec& spec : curves) spec.second.clear();
  if (!groups.empty()) add_curves(page, groups, Axis::steps, curves, turn_kl);
  if (!rows.empty()) {
    page.sections.push_back({.heading = "Reward and KL", .figures = {reward_against_kl(rows, name)}});
    page.sections.push_back({.heading = "Figures",
                             .text = "Before and after on the same noise. ± is one standard error.",
                             .tables = {results_table(rows)}});
  }
  const fs::path pretrained = folder / "settings/pretrain";
  if (fs::exists(pretrained / "metrics.csv", none)) {
    page.sections.push_back(strip_section("Pretraining", pretrained, "Samples along pretraining."));
    add_training(page, pretrained);
  }
  report::Table times{{"stage", "seconds"}};
  if (summary.contains("stage_seconds"))
    for (const auto& [stage, s] : summary["stage_seconds"].items())
      times.rows.push_back({stage, fmt::format("{:.0f}", s.get<double>())});
  page.sections.push_back({.heading = "Time", .tables = {std::move(times)}});
  page.sections.push_back(repeat_section(c.resolved.text(), folder, ""));
  return report::to_html(page);
}

}  // namespace

std::string ImagesExperiment::report(const fs::path& folder) const {
  const ImagesPlan& c = configuration();
  const Json summary = SummaryFile(folder / "summary.json").json();
  if (c.stage == Stage::all) return whole_report(c, folder, summary);
  return c.stage == Stage::finetune ? finetuning_report(c, folder, summary) : training_report(c, folder, summary);
}

}  // namespace program
