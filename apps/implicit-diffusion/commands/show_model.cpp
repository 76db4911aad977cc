// What a model folder holds, and what is wrong with it.
#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/models/model_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace program {

using namespace implicit_diffusion;

namespace {

constexpr std::size_t most_faults = 20;  // that are listed

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string counted(std::int64_t n, const char* thing) { return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s"); }

std::string line(const char* name, const std::string& text) { return fmt::format("{:<12}{}\n", name, text); }

std::string describe_images(const UNetConfig& c) {
  std::string text = counted(c.image_channels(), "channel");
  if (!c.sample_size.empty()) text += fmt::format(", {} x {} pixels", c.image_height(), c.image_width());
  if (c.patch > 1) text += fmt::format(", in patches of {0} x {0}", c.patch);
  if (c.classes()) text += fmt::format(", {} classes", *c.classes());
  return text;
}

std::string describe_levels(const UNetConfig& c) {
  std::vector<std::string> levels;
  for (std::size_t i = 0; i < c.levels(); ++i) {
    const bool attention = c.down_block_types[i] == UNetConfig::Block::attention;
    levels.push_back(fmt::format("{}{}", c.block_out_channels[i], attention ? " with attention" : ""));
  }
  return fmt::format("{}; {} each, {}", fmt::join(levels, ", "), counted(c.layers_per_block, "layer"),
                     counted(c.norm_num_groups, "group"));
}

std::string describe_schedule(const SchedulerConfig& c) {
  const DiscreteSchedule schedule(c);
  const std::string betas =
      !c.trained_betas.empty() ? "betas of its own"
                               : fmt::format("{}, beta {} to {}", to_string(c.beta_schedule), c.beta_start, c.beta_end);
  return fmt::format("{}, {} times; tau {:.3g} to {:.3g}, horizon {:.3g}", betas, schedule.size(), schedule.tau(0),
                     schedule.tau(schedule.size() - 1), schedule.horizon());
}

std::string describe(const ModelFolder& model, const Layout& layout) {
  const UNetConfig& c = model.network;
  std::string text = line("network", "UNet2DModel, " + counted(static_cast<std::int64_t>(c.levels()), "level"));
  text += line("images", describe_images(c));
  text += line("widths", describe_levels(c));
  text += line("parameters", fmt::format("{} in {} tensors", with_commas(elements_of(layout)), layout.size()));
  if (model.scheduler) {
    text += line("prediction", std::string(to_string(model.scheduler->prediction_type)));
    text += line("schedule", describe_schedule(*model.scheduler));
    text += line("sampling", fmt::format("{}{}", to_string(model.scheduler->variance_type),
                                         model.scheduler->clip_sample
                                             ? fmt::format(", clipped to {}", model.scheduler->clip_sample_range)
                                             : ""));
  } else {
    text += line("schedule", "not said: there is no scheduler_config.json");
  }
  if (model.origin) {
    const ModelOrigin& o = *model.origin;
    text += line("trained", fmt::format("schedule {}, horizon {}", io::printable(o.schedule, 40), o.horizon));
    if (o.base)
      text += line("base", fmt::format("{} ({}...)", io::printable(o.base->path, 200), o.base->sha256.substr(0, 12)));
  }
  return text;
}

}  // namespace

int show_model(const ShowModelOptions& o) {
  const ModelFolder model = read_model_folder(o.folder);
  const Layout layout = parameter_layout(model.network);
  print(describe(model, layout));
  const ModelWeights weights(o.folder);
  std::string files = line("weights", fmt::format("{} tensors in", weights.tensors()));
  for (const std::filesystem::path& file : weights.files()) files += line("", io::display(file));
  print(files);

  const std::vector<std::string> faults = weights.faults(layout, true);
  if (faults.empty()) {
    print(line("state", "complete, and every value is finite"));
    return 0;
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(faults.size(), most_faults); ++i) list += line(i == 0 ? "wrong" : "", faults[i]);
  if (faults.size() > most_faults) list += line("", fmt::format("and {} more", faults.size() - most_faults));
  print(list);
  throw Error(ErrorKind::data, io::display(weights.files().front()),
              faults.size() == 1 ? faults.front()
                                 : fmt::format("{}; {} tensors are wrong in all", faults.front(), faults.size()));
}

}  // namespace program
