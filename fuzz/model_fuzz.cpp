// The JSON files of a model folder. The first byte says which one the rest is.
#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/models/model_folder.hpp"

#include <optional>

namespace {

using namespace implicit_diffusion;

// Accepted or refused, without a crash; and what was accepted, written again, reads back the same.
template <class Parse, class Write>
auto check(std::string_view text, Parse parse, Write write) {
  std::optional<decltype(parse(text, ""))> value;
  try {
    value = parse(text, "input");
  } catch (const Error& e) {
    fuzz::require(e.kind() == ErrorKind::data && std::string_view(e.what()).starts_with("input: "),
                  "a refusal is a data Error that names the file");
    fuzz::require(std::string_view(e.what()).find('\n') == std::string_view::npos, "a refusal is one line");
    return value;
  }
  const std::string written = write(*value);
  fuzz::require(parse(written, "written") == *value && write(parse(written, "written")) == written,
                "what was written reads back the same");
  return value;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  UNetConfig plain, all;
  all.sample_size = {32, 64};
  all.block_out_channels = {8, 16};
  all.down_block_types = all.up_block_types = {UNetConfig::Block::attention, UNetConfig::Block::plain};
  all.norm_num_groups = 4;
  all.patch = 1;
  all.num_class_embeds = 10;
  all.other_keys = {{"_name_or_path", "\"x\""}};
  SchedulerConfig schedule, own;
  schedule.num_train_timesteps = own.num_train_timesteps = 3;
  own.trained_betas = {0.1, 0.2, 0.3};
  ModelOrigin origin;
  origin.base = {"base", std::string(64, '0')};
  return {"0{}",
          "0" + unet_config_json(plain),
          "0" + unet_config_json(all),
          "1" + scheduler_config_json(schedule),
          "1" + scheduler_config_json(own),
          "2" + model_origin_json(origin)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::text(data, size).substr(1);
  switch (data[0] % 3) {
    case 0:
      if (const auto config = check(text, parse_unet_config, unet_config_json))
        fuzz::require(elements_of(parameter_layout(*config)) > 0, "a network has parameters");
      break;
    case 1:
      if (const auto config = check(text, parse_scheduler_config, scheduler_config_json)) {
        const DiscreteSchedule schedule(*config);
        fuzz::require(schedule.horizon() > 0, "a schedule has a horizon");
        (void)schedule.network_time(1);
      }
      break;
    default:
      check(text, parse_model_origin, model_origin_json);
  }
  return 0;
}
