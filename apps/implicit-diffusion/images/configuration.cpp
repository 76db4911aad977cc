#include "images/experiment.hpp"

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;
using Sign = TableReader::Sign;
using Grid = ImagesConfiguration::Grid;

const EnumNames<Stage> stages{{"all", Stage::all},
                              {"classifier", Stage::classifier},
                              {"pretrain", Stage::pretrain},
                              {"finetune", Stage::finetune}};
const EnumNames<bool> predictions{{"v", true}, {"epsilon", false}};
const EnumNames<bool> level_laws{{"cosine", false}, {"ornstein-uhlenbeck", true}};
const EnumNames<Grid> grids{{"log-linear", Grid::log_linear}, {"uniform", Grid::uniform}, {"cosine", Grid::cosine}};
const EnumNames<LastStep> last_steps{{"mean", LastStep::mean}, {"noise", LastStep::noise}};
const EnumNames<Dynamics> dynamics{{"sde", Dynamics::euler_sde}, {"ode", Dynamics::euler_ode}};
const std::vector<std::string> size_names{"small", "paper"};
const std::vector<std::string> rewards{"brightness", "redness", "contrast", "class"};

constexpr std::int64_t most = 100'000'000;

// A folder as the file has it; relative ones belong to the folder of the file.
std::string folder_of(const std::string& key, const Document& d) {
  if (key.empty()) return {};
  const fs::path p(key);
  return (p.is_absolute() ? p : d.folder / p).string();
}

void read_data(TableReader& t, ImagesConfiguration& c, const Document& d) {
  const std::string folder = t.text("folder", "");
  c.data = folder_of(folder, d);
  // Absolute, so that the resolved configuration can be moved.
  if (!folder.empty()) t.record("folder", toml_string(fs::absolute(c.data).lexically_normal().string()));
  const auto sizes = t.integers("shape", {1, 28, 28}, 1, 16384);
  if (sizes.size() != 3) t.fail("shape", "three numbers are meant: channels, height, width");
  c.shape = {static_cast<std::size_t>(sizes[0]), static_cast<std::size_t>(sizes[1]),
             static_cast<std::size_t>(sizes[2])};
  if (c.shape.channels != 1 && c.shape.channels != 3)
    t.fail("shape", fmt::format("{} channels: images have 1 or 3", c.shape.channels));
  c.classes = t.integer("classes", 10, 0, 100'000);
  c.conditional = t.flag("conditional", false);
  if (c.conditional && c.classes < 1) t.fail("conditional", "there are no classes to be told");
  c.flip = t.flag("flip", false);
}

void read_network(TableReader& t, ImagesConfiguration& c, const Document& d) {
  UNetConfig& n = c.network;
  n.patch = t.integer("patch", 1, 1, 64);
  const auto height = static_cast<std::int64_t>(c.shape.height), width = static_cast<std::int64_t>(c.shape.width);
  if (height % n.patch != 0 || width % n.patch != 0)
    t.fail("patch", fmt::format("{} does not divide images of {} x {}", n.patch, height, width));
  n.sample_size = {height / n.patch, width / n.patch};
  if (height == width) n.sample_size.pop_back();
  n.in_channels = n.out_channels = static_cast<std::int64_t>(c.shape.channels) * n.patch * n.patch;
  n.block_out_channels = t.integers("channels", {32, 64}, 1, 100'000);
  n.layers_per_block = t.integer("layers", 1, 1, 100);
  n.norm_num_groups = t.integer("groups", 8, 1, 10'000);
  n.attention_head_dim = t.integer("head_width", 32, 1, 100'000);
  const std::vector<std::int64_t> attention = t.integers("attention", {}, 1, 16384);
  n.down_block_types.clear();
  for (std::size_t i = 0; i < n.levels(); ++i) {
    const bool has = std::ranges::find(attention, n.sample_size.front() >> i) != attention.end();
    n.down_block_types.push_back(has ? UNetConfig::Block::attention : UNetConfig::Block::plain);
  }
  n.up_block_types.assign(n.down_block_types.rbegin(), n.down_block_types.rend());
  if (c.conditional) n.num_class_embeds = c.classes;
  c.zero_outputs = t.flag("zero_outputs", true);
  try {
    require_valid(n, d.where);
  } catch (const Error& e) {
    throw Error(ErrorKind::usage, d.where, "network: " + e.reason());
  }
}

void require_divisor(const TableReader& t, std::int64_t slots, const ImagesConfiguration& c) {
  if (c.steps_per_sample % slots != 0)
    t.fail("slots", fmt::format("{} does not divide the {} steps of a sample", slots, c.steps_per_sample));
}

void read_finetune(TableReader& t, ImagesConfiguration& c, const Document& d) {
  c.model_key = t.text("model", "");
  c.model = folder_of(c.model_key, d);
  c.judge_key = t.text("classifier", "");
  c.judge = folder_of(c.judge_key, d);
  // A sweep has its stages in other folders.
  if (c.stage == Stage::all)
    for (auto& [key, name, folder] :
         {std::tuple{&c.model_key, "model", &c.model}, {&c.judge_key, "classifier", &c.judge}})
      if (!key->empty()) {
        *key = fs::absolute(*folder).lexically_normal().string();
        t.record(name, toml_string(*key));
      }
  c.reward = rewards[t.choice("reward", 0, rewards)];
  if (c.reward == "class") {
    c.reward_class = t.integer("class", 0, 0, 100'000);
    if (c.stage == Stage::finetune && c.judge.empty())
      t.fail("classifier", "no folder is given, and the reward is a classifier's; --classifier DIR names one");
  }
  if (c.reward == "redness" && c.shape.channels != 3) t.fail("reward", "redness is for images of three channels");
  c.lambda = t.number("lambda", c.lambda, Sign::any);
  c.beta = t.number("beta", c.beta, Sign::not_negative);
  c.steps_per_sample = t.integer("steps_per_sample", c.steps_per_sample, 2, 100'000);
  c.slots = t.integer("slots", c.slots, 1, 100'000);
  require_divisor(t, c.slots, c);
  c.last_steps = t.integer("last_steps", 0, 0, 100'000);
  c.dynamics = t.choice("dynamics", c.dynamics, dynamics);
  c.grid = t.choice("grid", c.grid, grids);
  c.tau_min = t.number("tau_min", c.tau_min, Sign::positive);
  if (c.grid == Grid::log_linear && c.tau_min >= c.horizon)
    t.fail("tau_min", fmt::format("{} must be below the horizon {}", c.tau_min, c.horizon));
  c.last_step = t.choice("last_step", c.last_step, last_steps);
  read_training(t, c.finetune, false);
  c.evaluate_every = t.integer("evaluate_every", c.evaluate_every, 1, most);
  c.strip = t.integer("strip", c.strip, 2, 100'000);
  c.samples = t.integer("samples", c.samples, 2, 1'000'000);
  if (c.samples < c.strip) t.fail("samples", fmt::format("{} are fewer than the {} of a strip", c.samples, c.strip));
  c.evaluation_seed = t.integer("evaluation_seed", c.evaluation_seed, 0);
}

ImagesConfiguration read_one(const Document& d) {
  ImagesConfiguration c;
  TableReader top(d);
  top.text("kind", "images");
  read_common(top, d, c);
  top.choice("size", 0, size_names);
  if (d.table.contains("steps"))
    top.fail("steps", "an experiment with images has stages; set pretrain.steps, finetune.steps or classifier.steps");
  c.stage = top.choice("stage", Stage::all, stages);
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));
  c.checkpoint_every = top.integer("checkpoint_every", 0, 0, most);
  TableReader data = top.table("data"), network = top.table("network"), classifier = top.table("classifier"),
              pretrain = top.table("pretrain"), finetune = top.table("finetune"), sweep = top.table("sweep");
  read_data(data, c, d);
  read_network(network, c, d);
  c.features = classifier.integer("features", c.features, 1, 4096);
  read_training(classifier, c.classifier, true);

  c.predicts_v = pretrain.choice("prediction", true, predictions);
  c.uniform_levels = pretrain.choice("schedule", false, level_laws);
  c.horizon = pretrain.number("horizon", c.horizon, Sign::positive);
  if (c.horizon > 30) pretrain.fail("horizon", fmt::format("{} must be at most 30", c.horizon));
  read_training(pretrain, c.pretrain, true);
  c.sample_every = pretrain.integer("sample_every", std::max<std::int64_t>(1, c.pretrain.steps / 5), 1, most);
  const std::int64_t log_every =
      pretrain.integer("log_every", std::max<std::int64_t>(1, c.pretrain.steps / 100), 1, most);
  read_finetune(finetune, c, d);
  c.lambdas = sweep.numbers("lambda", {});
  c.sweep_slots = sweep.integers("slots", {}, 1, 100'000);
  const auto refuse_replaced = [&](const std::string& key, bool swept) {
    if (c.stage == Stage::all && swept && d.from_command_line.contains("finetune." + key) &&
        !d.from_command_line.contains("sweep." + key))
      finetune.fail(key, fmt::format("has no effect, as sweep.{} takes its place; set that one", key));
  };
  refuse_replaced("lambda", !c.lambdas.empty());
  refuse_replaced("slots", !c.sweep_slots.empty());
  for (const std::int64_t slots : c.sweep_slots) require_divisor(sweep, slots, c);

  switch (c.stage) {
    case Stage::classifier:
      c.steps = c.classifier.steps;
      c.log_every = std::max<std::int64_t>(1, c.steps / 50);
      break;
    case Stage::finetune:
      c.steps = c.finetune.steps;
      c.log_every = c.evaluate_every;
      break;
    default:
      c.steps = c.pretrain.steps;
      c.log_every = log_every;
  }
  finish(c, d, {&top, &data, &network, &classifier, &pretrain, &finetune, &sweep});
  return c;
}

// A setting's folder: finetune-30, finetune--60; finetune-30-slots-1 where M differs.
std::string name_of_setting(double lambda, std::int64_t slots, bool with_slots) {
  return fmt::format("finetune-{}", lambda) + (with_slots ? fmt::format("-slots-{}", slots) : "");
}

}  // namespace

std::string_view to_string(Stage stage) { return name_of(stage, stages); }

TimeGrid ImagesConfiguration::time_grid(double from) const {
  const auto count = static_cast<std::size_t>(steps_per_sample);
  if (grid == Grid::uniform) return uniform_grid(from, count);
  // Of the angle: alpha = cos(pi t / 2).
  if (grid == Grid::cosine)
    return schedule_grid([](double t) { return std::cos(t * M_PI / 2); }, std::acos(std::exp(-from)) * 2 / M_PI, count);
  return log_linear_grid(from, count, tau_min);
}

ImagesPlan read_images_configuration(const Document& d) {
  ImagesPlan plan;
  static_cast<ImagesConfiguration&>(plan) = read_one(d);
  if (plan.stage != Stage::all) return plan;
  // Each stage is the same file with a few changes. What it begins with lies beside it.
  const auto stage = [&](const std::string& folder, const std::vector<Override>& changes) {
    Document one = d;
    for (const Override& o : changes) change(one, o);
    plan.stages.push_back({folder, read_one(one)});
  };
  std::string model = plan.model_key, judge = plan.judge_key;
  if (judge.empty() && plan.classes > 1) {
    stage("classifier", {{"stage", "classifier", "stage"}});
    judge = "../classifier/classifier";
  }
  if (model.empty()) {
    stage("pretrain", {{"stage", "pretrain", "stage"}});
    model = "../pretrain/model";
  }
  std::vector<double> lambdas = plan.lambdas;
  if (lambdas.empty()) lambdas.push_back(plan.lambda);
  std::vector<std::int64_t> all_slots = plan.sweep_slots;
  if (all_slots.empty()) all_slots.push_back(plan.slots);
  for (const double lambda : lambdas)
    for (const std::int64_t slots : all_slots)
      stage(name_of_setting(lambda, slots, all_slots.size() > 1),
            {{"stage", "finetune", "stage"},
             {"finetune.model", toml_string(model), "finetune.model"},
             {"finetune.classifier", toml_string(judge), "finetune.classifier"},
             {"finetune.lambda", toml_number(lambda), "sweep.lambda"},
             {"finetune.slots", fmt::format("{}", slots), "sweep.slots"}});
  return plan;
}

std::unique_ptr<Experiment> read_images(const Document& d) {
  return std::make_unique<ImagesExperiment>(read_images_configuration(d));
}

int ImagesExperiment::run(const RunOptions& o) const { return run_images(*this, o); }
std::vector<Problem> ImagesExperiment::checks() const { return check_images(configuration()); }

Experiment::Repeats ImagesExperiment::repeats() const {
  return {"", "experiments with images are run once; use --seed for another run"};
}

}  // namespace program
