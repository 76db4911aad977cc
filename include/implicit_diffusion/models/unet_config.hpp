// The network that diffusers calls UNet2DModel, described: its config.json, and from that alone the names and shapes of
// its parameters. Nothing here needs LibTorch.
//
// Widths c_0 .. c_{n-1} (block_out_channels), L = layers_per_block, E = time_embedding_dim, or 4 c_0. An image goes
// through
//
//     conv_in                          in_channels -> c_0
//     down_blocks.i, i < n             L resnets c_{i-1} -> c_i, each followed by attention in an AttnDownBlock2D, then
//                                      half the resolution (all but the last)
//     mid_block                        resnet, attention, resnet at c_{n-1}
//     up_blocks.i, i < n               L + 1 resnets, which also take what the way down left, with attention in an
//                                      AttnUpBlock2D, then twice the resolution (all but the last)
//     conv_norm_out, conv_out          c_0 -> out_channels
//
// and every resnet adds a projection of the embedding of the time, and of the class label where there are classes.
//
// The struct has the fields of config.json under their names and with their defaults, and one of ours: with `patch` p
// the network works on p x p patches of the image, space to depth: an image of C x H x W enters as p^2 C x H/p x W/p,
// channel (c p + i) p + j of the network being the pixels of channel c with row i and column j modulo p. in_channels,
// out_channels and sample_size are those that the network sees, so that diffusers, which ignores the key, opens the
// same network.
//
// Keys that are not known are kept, and written again.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/layout.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion {

struct UNetConfig {
  enum class Block { plain, attention };  // DownBlock2D and UpBlock2D; AttnDownBlock2D and AttnUpBlock2D
  enum class TimeEmbedding { positional, fourier, learned };
  enum class Resample { convolution, resnet };       // "conv", "resnet"; plain blocks always have the convolution
  enum class TimeScaleShift { add, scale_shift };    // "default", "scale_shift"
  enum class ClassEmbedding { timestep, identity };  // without one, a table where there is num_class_embeds
  enum class Activation { silu, swish, mish, gelu, relu };  // in resnets; swish is silu

  std::vector<std::int64_t> sample_size;  // empty: not said; n: n x n; else height, width
  std::int64_t in_channels = 3;
  std::int64_t out_channels = 3;
  bool center_input_sample = false;  // x -> 2 x - 1 first
  TimeEmbedding time_embedding_type = TimeEmbedding::positional;
  std::optional<std::int64_t> time_embedding_dim;  // E
  std::int64_t freq_shift = 0;
  bool flip_sin_to_cos = true;
  std::vector<Block> down_block_types{Block::plain, Block::attention, Block::attention, Block::attention};
  bool mid_block = true;  // mid_block_type: "UNetMidBlock2D" or null
  std::vector<Block> up_block_types{Block::attention, Block::attention, Block::attention, Block::plain};
  std::vector<std::int64_t> block_out_channels{224, 448, 672, 896};
  std::int64_t layers_per_block = 2;
  double mid_block_scale_factor = 1;
  std::int64_t downsample_padding = 1;  // 0: rows and columns of zeros at the right and the bottom only
  Resample downsample_type = Resample::convolution;
  Resample upsample_type = Resample::convolution;
  double dropout = 0;
  Activation act_fn = Activation::silu;
  std::optional<std::int64_t> attention_head_dim = 8;  // nothing: one head, as wide as the block
  std::int64_t norm_num_groups = 32;
  std::optional<std::int64_t> attn_norm_num_groups;  // of the attention in the middle
  double norm_eps = 1e-5;
  TimeScaleShift resnet_time_scale_shift = TimeScaleShift::add;
  bool add_attention = true;  // in the middle
  std::optional<ClassEmbedding> class_embed_type;
  std::optional<std::int64_t> num_class_embeds;
  std::optional<std::int64_t> num_train_timesteps;  // rows of a learned time embedding
  std::int64_t patch = 1;

  std::map<std::string, std::string> other_keys;  // of the file, each with its JSON text

  bool operator==(const UNetConfig&) const = default;

  std::size_t levels() const { return block_out_channels.size(); }
  std::int64_t embedding_width() const { return time_embedding_dim.value_or(4 * block_out_channels.front()); }  // E
  // Of the attention at a width: heads x width of each, which may be less than the block's.
  std::int64_t head_width(std::int64_t channels) const { return attention_head_dim.value_or(channels); }
  std::int64_t heads(std::int64_t channels) const { return channels / head_width(channels); }
  // Groups of the normalisation before the attention in the middle; nothing: there is none.
  std::optional<std::int64_t> mid_attention_groups() const;
  // Labels that can be given; nothing where there is no table of them.
  std::optional<std::int64_t> classes() const { return class_embed_type ? std::nullopt : num_class_embeds; }

  // Of the images, before they are cut into patches. 0 where sample_size is not said.
  std::int64_t image_channels() const { return in_channels / (patch * patch); }
  std::int64_t image_height() const { return sample_size.empty() ? 0 : patch * sample_size.front(); }
  std::int64_t image_width() const { return sample_size.empty() ? 0 : patch * sample_size.back(); }
};

// Throws an Error of the kind, which names the key, unless such a network exists: sizes in range, lists of equal
// length, widths that can be split into groups and heads, a sample_size that can be halved levels - 1 times.
void require_valid(const UNetConfig& config, const std::string& where, ErrorKind kind = ErrorKind::usage);

// Reads config.json; `where` stands for the name of the file. Throws a data Error where it is not valid.
UNetConfig parse_unet_config(std::string_view json, const std::string& where);

// The text of config.json: every key, and `patch` where it is not 1.
std::string unet_config_json(const UNetConfig& config);

// The parameters of the network, in the order of the list above; in the order of use within a block: resnet 0,
// attention 0, resnet 1, ..., and last what changes the resolution. This is also where they are in a flat theta, one
// behind the other. The config must be valid.
Layout parameter_layout(const UNetConfig& config);

}  // namespace implicit_diffusion
