#include "../io/json.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/models/model_folder.hpp"

#include <fmt/format.h>

#include <array>

namespace implicit_diffusion {
namespace {

using io::Json;
using io::JsonObject;
using namespace std::string_view_literals;

constexpr std::array beta_schedules{"linear"sv, "scaled_linear"sv, "squaredcos_cap_v2"sv, "sigmoid"sv, "laplace"sv};
constexpr std::array predictions{"epsilon"sv, "sample"sv, "v_prediction"sv};
constexpr std::array variances{"fixed_small"sv,     "fixed_small_log"sv, "fixed_large"sv,
                               "fixed_large_log"sv, "learned"sv,         "learned_range"sv};
constexpr std::array spacings{"leading"sv, "linspace"sv, "trailing"sv};
// Variance preserving, and with the same fields: others may mean another process.
constexpr std::array schedulers{"DDPMScheduler"sv, "DDIMScheduler"sv, "PNDMScheduler"sv};

constexpr std::int64_t newest_format = 1;  // of implicit_diffusion.json

template <class Enum>
Enum read_word(JsonObject& file, const char* key, Enum missing, JsonObject::Words known) {
  return static_cast<Enum>(file.word(key, static_cast<std::size_t>(missing), known));
}

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string_view to_string(SchedulerConfig::Prediction p) { return predictions[static_cast<std::size_t>(p)]; }
std::string_view to_string(SchedulerConfig::BetaSchedule s) { return beta_schedules[static_cast<std::size_t>(s)]; }
std::string_view to_string(SchedulerConfig::Variance v) { return variances[static_cast<std::size_t>(v)]; }

SchedulerConfig parse_scheduler_config(std::string_view json, const std::string& where) {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();  // DiscreteSchedule knows the bounds
  JsonObject file(json, where);
  SchedulerConfig c;
  c.class_name = schedulers[file.word("_class_name", 0, schedulers)];
  if (c.class_name == "PNDMScheduler") c.clip_sample = c.set_alpha_to_one = false;  // its defaults
  c.num_train_timesteps = file.integer("num_train_timesteps", c.num_train_timesteps, 1, any);
  c.beta_start = file.number("beta_start", c.beta_start);
  c.beta_end = file.number("beta_end", c.beta_end);
  c.beta_schedule = read_word(file, "beta_schedule", c.beta_schedule, beta_schedules);
  c.trained_betas = file.numbers("trained_betas");
  c.rescale_betas_zero_snr = file.boolean("rescale_betas_zero_snr", c.rescale_betas_zero_snr);
  c.prediction_type = read_word(file, "prediction_type", c.prediction_type, predictions);
  c.variance_type = read_word(file, "variance_type", c.variance_type, variances);
  c.clip_sample = file.boolean("clip_sample", c.clip_sample);
  c.clip_sample_range = file.number("clip_sample_range", c.clip_sample_range);
  c.thresholding = file.boolean("thresholding", c.thresholding);
  c.dynamic_thresholding_ratio = file.number("dynamic_thresholding_ratio", c.dynamic_thresholding_ratio);
  c.sample_max_value = file.number("sample_max_value", c.sample_max_value);
  c.timestep_spacing = read_word(file, "timestep_spacing", c.timestep_spacing, spacings);
  c.steps_offset = file.integer("steps_offset", c.steps_offset, 0, any);
  c.set_alpha_to_one = file.boolean("set_alpha_to_one", c.set_alpha_to_one);
  c.other_keys = file.others();
  try {
    (void)DiscreteSchedule(c);
  } catch (const Error& e) {
    throw Error(ErrorKind::data, where, e.what());
  }
  return c;
}

std::string scheduler_config_json(const SchedulerConfig& c) {
  Json json = {{"_class_name", c.class_name},
               {"num_train_timesteps", c.num_train_timesteps},
               {"beta_start", c.beta_start},
               {"beta_end", c.beta_end},
               {"beta_schedule", to_string(c.beta_schedule)},
               {"trained_betas", c.trained_betas.empty() ? Json() : Json(c.trained_betas)},
               {"rescale_betas_zero_snr", c.rescale_betas_zero_snr},
               {"prediction_type", to_string(c.prediction_type)},
               {"clip_sample", c.clip_sample},
               {"clip_sample_range", c.clip_sample_range},
               {"thresholding", c.thresholding},
               {"dynamic_thresholding_ratio", c.dynamic_thresholding_ratio},
               {"sample_max_value", c.sample_max_value},
               {"timestep_spacing", spacings[static_cast<std::size_t>(c.timestep_spacing)]},
               {"steps_offset", c.steps_offset}};
  // Each of these is a key of one class, and unknown to the other.
  const SchedulerConfig defaults;
  if (c.class_name == "DDPMScheduler" || c.variance_type != defaults.variance_type)
    json["variance_type"] = to_string(c.variance_type);
  if (c.class_name != "DDPMScheduler" || !c.set_alpha_to_one) json["set_alpha_to_one"] = c.set_alpha_to_one;
  io::add_others(json, c.other_keys);
  return io::json_bytes(json);
}

ModelOrigin parse_model_origin(std::string_view json, const std::string& where) {
  JsonObject file(json, where);
  ModelOrigin origin;
  const std::int64_t format = file.integer("format", newest_format, 1, std::numeric_limits<std::int64_t>::max());
  if (format > newest_format) file.refuse("format", fmt::format("{} is of a newer version of this program", format));
  if (const Json& base = file.raw("base"); !base.is_null()) {
    JsonObject object = JsonObject::of(base, where + ": base");
    origin.base = {object.text("path", ""), object.text("sha256", "")};
    if (origin.base->path.empty()) object.refuse("path", "is missing");
    if (!is_digest(origin.base->sha256)) object.refuse("sha256", "is not 64 hexadecimal digits");
  }
  origin.schedule = file.text("schedule", origin.schedule);
  origin.horizon = file.number("horizon", origin.horizon);
  if (!(origin.horizon > 0)) file.refuse("horizon", fmt::format("{} is not positive", origin.horizon));
  if (constexpr double longest = 30; origin.horizon > longest)  // e^-30 is nothing beside 1 in single precision
    file.refuse("horizon", fmt::format("{} must be at most {}", origin.horizon, longest));
  origin.patch = file.integer("patch", origin.patch, 1, std::numeric_limits<std::int64_t>::max());
  origin.prediction = read_word(file, "prediction", origin.prediction, predictions);
  origin.other_keys = file.others();
  return origin;
}

std::string model_origin_json(const ModelOrigin& origin) {
  Json json = {{"format", newest_format},   {"base", Json()},        {"schedule", origin.schedule},
               {"horizon", origin.horizon}, {"patch", origin.patch}, {"prediction", to_string(origin.prediction)}};
  if (origin.base) json["base"] = {{"path", origin.base->path}, {"sha256", origin.base->sha256}};
  io::add_others(json, origin.other_keys);
  return io::json_bytes(json);
}

}  // namespace implicit_diffusion
