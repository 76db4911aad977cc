#include "implicit_diffusion/models/unet_config.hpp"

#include "../io/json.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace implicit_diffusion {
namespace {

using io::Json;
using io::JsonObject;
using namespace std::string_view_literals;

// What config.json calls the values of each enumeration, in its order.
constexpr std::array down_blocks{"DownBlock2D"sv, "AttnDownBlock2D"sv};
constexpr std::array up_blocks{"UpBlock2D"sv, "AttnUpBlock2D"sv};
constexpr std::array time_embeddings{"positional"sv, "fourier"sv, "learned"sv};
constexpr std::array resamples{"conv"sv, "resnet"sv};
constexpr std::array time_scale_shifts{"default"sv, "scale_shift"sv};
constexpr std::array class_embeddings{"timestep"sv, "identity"sv};
constexpr std::array activations{"silu"sv, "swish"sv, "mish"sv, "gelu"sv, "relu"sv};
constexpr std::array class_names{"UNet2DModel"sv};
constexpr std::array mid_blocks{"UNetMidBlock2D"sv};

// Larger networks do not exist, and sizes in these bounds cannot overflow a product.
constexpr std::size_t most_levels = 16;
constexpr std::int64_t most_layers = 64, most_channels = 1 << 16, most_rows = 1 << 24, most_pixels = 1 << 16,
                       most_patch = 64;

template <class Enum>
Enum word(JsonObject& file, const char* key, Enum missing, JsonObject::Words known) {
  return static_cast<Enum>(file.word(key, static_cast<std::size_t>(missing), known));
}

using Blocks = std::vector<UNetConfig::Block>;
Blocks blocks(JsonObject& file, const char* key, const Blocks& missing, JsonObject::Words known) {
  if (!file.contains(key)) return missing;
  Blocks all;
  for (const std::size_t place : file.words(key, {}, known)) all.push_back(static_cast<UNetConfig::Block>(place));
  return all;
}
Json names_of(const Blocks& blocks, JsonObject::Words known) {
  Json names = Json::array();
  for (const UNetConfig::Block b : blocks) names.push_back(known[static_cast<std::size_t>(b)]);
  return names;
}
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Lists the parameters; groups of every normalisation must divide its channels.
class ParameterList {
 public:
  explicit ParameterList(const UNetConfig& config) : c_(config), e_(config.embedding_width()) {}

  Layout list() {
    const std::vector<std::int64_t>& c = c_.block_out_channels;
    const std::size_t n = c.size();
    const auto layers = static_cast<std::size_t>(c_.layers_per_block);
    convolution("conv_in", c_.in_channels, c.front(), 3);
    embeddings();

    for (std::size_t i = 0; i < n; ++i) {
      const std::string block = fmt::format("down_blocks.{}", i);
      const bool attention = c_.down_block_types[i] == UNetConfig::Block::attention;
      for (std::size_t j = 0; j < layers; ++j) {
        resnet(fmt::format("{}.resnets.{}", block, j), j > 0 || i == 0 ? c[i] : c[i - 1], c[i]);
        if (attention) this->attention(fmt::format("{}.attentions.{}", block, j), c[i], c_.norm_num_groups);
      }
      if (i + 1 < n) resample(block + ".downsamplers.0", c[i], attention ? c_.downsample_type : plain);
    }

    if (c_.mid_block) {
      resnet("mid_block.resnets.0", c.back(), c.back());
      if (c_.add_attention) attention("mid_block.attentions.0", c.back(), c_.mid_attention_groups());
      resnet("mid_block.resnets.1", c.back(), c.back());
    }

    for (std::size_t i = 0; i < n; ++i) {
      const std::string block = fmt::format("up_blocks.{}", i);
      const bool attention = c_.up_block_types[i] == UNetConfig::Block::attention;
      const std::int64_t width = c[n - 1 - i], before = i == 0 ? width : c[n - i],
                         after = i + 1 < n ? c[n - 2 - i] : c[0];
      for (std::size_t j = 0; j <= layers; ++j) {
        const std::int64_t from_below = j == 0 ? before : width, from_the_side = j == layers ? after : width;
        resnet(fmt::format("{}.resnets.{}", block, j), from_below + from_the_side, width);
        if (attention) this->attention(fmt::format("{}.attentions.{}", block, j), width, c_.norm_num_groups);
      }
      if (i + 1 < n) resample(block + ".upsamplers.0", width, attention ? c_.upsample_type : plain);
    }

    norm("conv_norm_out", c.front(), c_.norm_num_groups);
    convolution("conv_out", c.front(), c_.out_channels, 3);
    return std::move(all_);
  }

 private:
  static constexpr auto plain = UNetConfig::Resample::convolution;

  void add(const std::string& layer, std::vector<std::int64_t> weight) {
    const std::int64_t out = weight.front();
    all_.push_back({layer + ".weight", std::move(weight)});
    all_.push_back({layer + ".bias", {out}});
  }
  void convolution(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t side) {
    add(name, {out, in, side, side});
  }
  void linear(const std::string& name, std::int64_t in, std::int64_t out) { add(name, {out, in}); }
  void norm(const std::string& name, std::int64_t channels, std::int64_t groups) {
    if (channels % groups != 0)
      throw Error(ErrorKind::usage, "norm_num_groups",
                  fmt::format("the {} channels of {} cannot be split into {} groups", channels, name, groups));
    add(name, {channels});
  }

  void embeddings() {
    const std::int64_t c0 = c_.block_out_channels.front();
    const bool fourier = c_.time_embedding_type == UNetConfig::TimeEmbedding::fourier;
    const std::int64_t features = fourier ? 2 * c0 : c0;
    if (fourier) all_.push_back({"time_proj.weight", {c0}});
    if (c_.time_embedding_type == UNetConfig::TimeEmbedding::learned)
      all_.push_back({"time_proj.weight", {*c_.num_train_timesteps, c0}});
    linear("time_embedding.linear_1", features, e_);
    linear("time_embedding.linear_2", e_, e_);
    if (c_.class_embed_type == UNetConfig::ClassEmbedding::timestep) {
      linear("class_embedding.linear_1", features, e_);
      linear("class_embedding.linear_2", e_, e_);
    }
    if (c_.classes()) all_.push_back({"class_embedding.weight", {*c_.classes(), e_}});
  }

  void resnet(const std::string& name, std::int64_t in, std::int64_t out) {
    const bool scale_shift = c_.resnet_time_scale_shift == UNetConfig::TimeScaleShift::scale_shift;
    norm(name + ".norm1", in, c_.norm_num_groups);
    convolution(name + ".conv1", in, out, 3);
    linear(name + ".time_emb_proj", e_, scale_shift ? 2 * out : out);
    norm(name + ".norm2", out, c_.norm_num_groups);
    convolution(name + ".conv2", out, out, 3);
    if (in != out) convolution(name + ".conv_shortcut", in, out, 1);
  }

  void attention(const std::string& name, std::int64_t channels, std::optional<std::int64_t> groups) {
    const std::int64_t inner = c_.heads(channels) * c_.head_width(channels);
    if (inner == 0)
      throw Error(ErrorKind::usage, "attention_head_dim",
                  fmt::format("{} is wider than the {} channels of {}", c_.head_width(channels), channels, name));
    if (groups) norm(name + ".group_norm", channels, *groups);
    for (const char* part : {".to_q", ".to_k", ".to_v"}) linear(name + part, channels, inner);
    linear(name + ".to_out.0", inner, channels);
  }

  void resample(const std::string& name, std::int64_t channels, UNetConfig::Resample by) {
    if (by == UNetConfig::Resample::resnet)
      resnet(name, channels, channels);
    else
      convolution(name + ".conv", channels, channels, 3);
  }

  const UNetConfig& c_;
  std::int64_t e_;
  Layout all_;
};

}  // namespace

std::optional<std::int64_t> UNetConfig::mid_attention_groups() const {
  if (attn_norm_num_groups) return attn_norm_num_groups;
  return resnet_time_scale_shift == TimeScaleShift::add ? std::optional(norm_num_groups) : std::nullopt;
}

void require_valid(const UNetConfig& config, const std::string& where, ErrorKind kind) {
  const auto refuse = [&](const char* key, const std::string& what) {
    throw Error(kind, where, fmt::format("{}: {}", key, what));
  };
  const auto within = [&](const char* key, std::int64_t value, std::int64_t most, std::int64_t least = 1) {
    if (value < least || value > most) refuse(key, fmt::format("{} is not between {} and {}", value, least, most));
  };
  const auto within_if = [&](const char* key, const std::optional<std::int64_t>& value, std::int64_t most) {
    if (value) within(key, *value, most);
  };
  const std::size_t n = config.levels();
  if (n == 0 || n > most_levels)
    refuse("block_out_channels", fmt::format("{} levels, not between 1 and {}", n, most_levels));
  for (const std::int64_t width : config.block_out_channels) within("block_out_channels", width, most_channels);
  if (config.down_block_types.size() != n)
    refuse("down_block_types", fmt::format("{} blocks for {} widths", config.down_block_types.size(), n));
  if (config.up_block_types.size() != n)
    refuse("up_block_types", fmt::format("{} blocks for {} widths", config.up_block_types.size(), n));
  within("in_channels", config.in_channels, most_channels);
  within("out_channels", config.out_channels, most_channels);
  within("layers_per_block", config.layers_per_block, most_layers);
  within("downsample_padding", config.downsample_padding, 1, 0);
  within("norm_num_groups", config.norm_num_groups, most_channels);
  within_if("attn_norm_num_groups", config.attn_norm_num_groups, most_channels);
  within_if("attention_head_dim", config.attention_head_dim, most_channels);
  within_if("time_embedding_dim", config.time_embedding_dim, 4 * most_channels);
  within_if("num_class_embeds", config.num_class_embeds, most_rows);
  within_if("num_train_timesteps", config.num_train_timesteps, most_rows);
  within("freq_shift", config.freq_shift, most_channels, 0);
  if (config.time_embedding_type == UNetConfig::TimeEmbedding::positional && !config.block_out_channels.empty() &&
      config.freq_shift >= config.block_out_channels.front() / 2 && config.freq_shift > 0)
    refuse("freq_shift", fmt::format("{} is not below half of block_out_channels[0], {}: the frequencies divide by the "
                                     "difference",
                                     config.freq_shift, config.block_out_channels.front()));
  if (!(config.norm_eps > 0 && config.norm_eps < 1))
    refuse("norm_eps", fmt::format("{} is not between 0 and 1", config.norm_eps));
  if (!(config.dropout >= 0 && config.dropout < 1))
    refuse("dropout", fmt::format("{} is not at least 0 and below 1", config.dropout));
  if (!(config.mid_block_scale_factor > 0 && std::isfinite(config.mid_block_scale_factor)))
    refuse("mid_block_scale_factor", fmt::format("{} is not positive", config.mid_block_scale_factor));
  if (config.time_embedding_type == UNetConfig::TimeEmbedding::learned && !config.num_train_timesteps)
    refuse("num_train_timesteps", "is missing; a learned time embedding needs it");

  within("patch", config.patch, most_patch);
  const std::int64_t pixels = config.patch * config.patch;
  if (config.in_channels % pixels != 0 || config.out_channels % pixels != 0)
    refuse("patch", fmt::format("{} in_channels and {} out_channels are no whole patches of {} x {}",
                                config.in_channels, config.out_channels, config.patch, config.patch));
  if (config.sample_size.size() > 2) refuse("sample_size", "is neither one number nor two");
  for (const std::int64_t side : config.sample_size) {
    within("sample_size", side, most_pixels);
    if (side % (std::int64_t{1} << (n - 1)) != 0)
      refuse("sample_size", fmt::format("{} cannot be halved {} times", side, n - 1));
  }
  try {
    (void)ParameterList(config).list();
  } catch (const Error& e) {
    throw Error(kind, where, e.what());
  }
}

UNetConfig parse_unet_config(std::string_view json, const std::string& where) {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();  // require_valid knows the bounds
  JsonObject file(json, where);
  (void)file.word("_class_name", 0, class_names);
  UNetConfig c;
  if (const Json& size = file.raw("sample_size"); size.is_array())
    c.sample_size = file.integers("sample_size", {}, 1, any);
  else if (!size.is_null())
    c.sample_size = {file.integer("sample_size", 0, 1, any)};
  c.in_channels = file.integer("in_channels", c.in_channels, 1, any);
  c.out_channels = file.integer("out_channels", c.out_channels, 1, any);
  c.center_input_sample = file.boolean("center_input_sample", c.center_input_sample);
  c.time_embedding_type = word(file, "time_embedding_type", c.time_embedding_type, time_embeddings);
  c.time_embedding_dim = file.optional_integer("time_embedding_dim", 1, any);
  c.freq_shift = file.integer("freq_shift", c.freq_shift, 0, any);
  c.flip_sin_to_cos = file.boolean("flip_sin_to_cos", c.flip_sin_to_cos);
  c.down_block_types = blocks(file, "down_block_types", c.down_block_types, down_blocks);
  if (file.contains("mid_block_type") && file.raw("mid_block_type").is_null())
    c.mid_block = false;
  else
    (void)file.word("mid_block_type", 0, mid_blocks);
  c.up_block_types = blocks(file, "up_block_types", c.up_block_types, up_blocks);
  c.block_out_channels = file.integers("block_out_channels", c.block_out_channels, 1, any);
  c.layers_per_block = file.integer("layers_per_block", c.layers_per_block, 1, any);
  c.mid_block_scale_factor = file.number("mid_block_scale_factor", c.mid_block_scale_factor);
  c.downsample_padding = file.integer("downsample_padding", c.downsample_padding, 0, any);
  c.downsample_type = word(file, "downsample_type", c.downsample_type, resamples);
  c.upsample_type = word(file, "upsample_type", c.upsample_type, resamples);
  c.dropout = file.number("dropout", c.dropout);
  c.act_fn = word(file, "act_fn", c.act_fn, activations);
  if (file.contains("attention_head_dim")) c.attention_head_dim = file.optional_integer("attention_head_dim", 1, any);
  c.norm_num_groups = file.integer("norm_num_groups", c.norm_num_groups, 1, any);
  c.attn_norm_num_groups = file.optional_integer("attn_norm_num_groups", 1, any);
  c.norm_eps = file.number("norm_eps", c.norm_eps);
  c.resnet_time_scale_shift = word(file, "resnet_time_scale_shift", c.resnet_time_scale_shift, time_scale_shifts);
  c.add_attention = file.boolean("add_attention", c.add_attention);
  if (!file.raw("class_embed_type").is_null())
    c.class_embed_type = word(file, "class_embed_type", UNetConfig::ClassEmbedding::timestep, class_embeddings);
  c.num_class_embeds = file.optional_integer("num_class_embeds", 1, any);
  c.num_train_timesteps = file.optional_integer("num_train_timesteps", 1, any);
  c.patch = file.integer("patch", c.patch, 1, any);
  c.other_keys = file.others();
  require_valid(c, where, ErrorKind::data);
  return c;
}

std::string unet_config_json(const UNetConfig& c) {
  const auto in = [](JsonObject::Words known, auto value) { return known[static_cast<std::size_t>(value)]; };
  Json json = {{"_class_name", class_names[0]},
               {"in_channels", c.in_channels},
               {"out_channels", c.out_channels},
               {"center_input_sample", c.center_input_sample},
               {"time_embedding_type", in(time_embeddings, c.time_embedding_type)},
               {"time_embedding_dim", or_null(c.time_embedding_dim)},
               {"freq_shift", c.freq_shift},
               {"flip_sin_to_cos", c.flip_sin_to_cos},
               {"down_block_types", names_of(c.down_block_types, down_blocks)},
               {"mid_block_type", c.mid_block ? Json(mid_blocks[0]) : Json()},
               {"up_block_types", names_of(c.up_block_types, up_blocks)},
               {"block_out_channels", c.block_out_channels},
               {"layers_per_block", c.layers_per_block},
               {"mid_block_scale_factor", c.mid_block_scale_factor},
               {"downsample_padding", c.downsample_padding},
               {"downsample_type", in(resamples, c.downsample_type)},
               {"upsample_type", in(resamples, c.upsample_type)},
               {"dropout", c.dropout},
               {"act_fn", in(activations, c.act_fn)},
               {"attention_head_dim", or_null(c.attention_head_dim)},
               {"norm_num_groups", c.norm_num_groups},
               {"attn_norm_num_groups", or_null(c.attn_norm_num_groups)},
               {"norm_eps", c.norm_eps},
               {"resnet_time_scale_shift", in(time_scale_shifts, c.resnet_time_scale_shift)},
               {"add_attention", c.add_attention},
               {"class_embed_type", c.class_embed_type ? Json(in(class_embeddings, *c.class_embed_type)) : Json()},
               {"num_class_embeds", or_null(c.num_class_embeds)},
               {"num_train_timesteps", or_null(c.num_train_timesteps)}};
  json["sample_size"] = c.sample_size.empty()       ? Json()
                        : c.sample_size.size() == 1 ? Json(c.sample_size.front())
                                                    : Json(c.sample_size);
  if (c.patch != 1) json["patch"] = c.patch;
  io::add_others(json, c.other_keys);
  return io::json_bytes(json);
}

Layout parameter_layout(const UNetConfig& config) { return ParameterList(config).list(); }

}  // namespace implicit_diffusion
