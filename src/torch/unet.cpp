#include "implicit_diffusion/torch/unet.hpp"

#include "implicit_diffusion/error.hpp"
#include "layers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

namespace implicit_diffusion {
namespace {

using at::Tensor;
using namespace layers;
using Config = UNetConfig;

Tensor activate(Config::Activation by, const Tensor& x) {
  switch (by) {
    case Config::Activation::mish:
      return at::mish(x);
    case Config::Activation::gelu:
      return at::gelu(x);
    case Config::Activation::relu:
      return at::relu(x);
    default:
      return at::silu(x);
  }
}

Tensor half_size(const Tensor& x) { return at::avg_pool2d(x, 2); }
Tensor twice_the_size(const Tensor& x) { return at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}); }
Tensor divided(const Tensor& x, double scale) { return scale == 1 ? x : x / scale; }

enum class Resolution { same, half, twice };

class Resnet {
 public:
  Resnet(const Places& places, const std::string& name, const Config& c, double scale = 1,
         Resolution resolution = Resolution::same)
      : norm1_(places, name + ".norm1", c.norm_num_groups, c.norm_eps),
        norm2_(places, name + ".norm2", c.norm_num_groups, c.norm_eps),
        conv1_(places, name + ".conv1"),
        conv2_(places, name + ".conv2"),
        time_(places, name + ".time_emb_proj"),
        act_(c.act_fn),
        scale_shift_(c.resnet_time_scale_shift == Config::TimeScaleShift::scale_shift),
        scale_(scale),
        resolution_(resolution) {
    if (places.has(name + ".conv_shortcut.weight")) shortcut_.emplace(places, name + ".conv_shortcut", 1, 0);
  }

  // e is the embedding after its activation, which all resnets share.
  Tensor operator()(Weights w, const Tensor& x, const Tensor& e) const {
    Tensor h = conv1_(w, resized(activate(act_, norm1_(w, x))));
    const Tensor shift = time_(w, e).unsqueeze(-1).unsqueeze(-1);
    if (scale_shift_) {
      const std::vector<Tensor> parts = shift.chunk(2, 1);
      h = norm2_(w, h) * (1 + parts[0]) + parts[1];
    } else {
      h = norm2_(w, h + shift);
    }
    h = conv2_(w, activate(act_, h));
    const Tensor past = resized(x);
    return divided((shortcut_ ? (*shortcut_)(w, past) : past) + h, scale_);
  }

 private:
  Tensor resized(const Tensor& x) const {
    if (resolution_ == Resolution::half) return half_size(x);
    if (resolution_ == Resolution::twice) return twice_the_size(x);
    return x;
  }

  GroupNorm norm1_, norm2_;
  Convolution conv1_, conv2_;
  std::optional<Convolution> shortcut_;
  Linear time_;
  Config::Activation act_;
  bool scale_shift_;
  double scale_;
  Resolution resolution_;
};

// Channels come before pixels throughout: no tensor is turned over.
class Attention {
 public:
  Attention(const Places& places, const std::string& name, const Config& c, std::int64_t channels,
            std::optional<std::int64_t> groups, double scale = 1)
      : query_(places, name + ".to_q"),
        key_(places, name + ".to_k"),
        value_(places, name + ".to_v"),
        out_(places, name + ".to_out.0"),
        heads_(c.heads(channels)),
        width_(c.head_width(channels)),
        scale_(scale) {
    if (groups) norm_.emplace(places, name + ".group_norm", *groups, c.norm_eps);
  }

  Tensor operator()(Weights w, const Tensor& x) const {
    const std::int64_t n = x.size(0), height = x.size(2), width = x.size(3);
    const Tensor z = norm_ ? (*norm_)(w, x) : x;
    const auto heads = [&](const Linear& to) {
      return to.on_channels(w, z).reshape({n * heads_, width_, height * width});
    };
    const Tensor q = heads(query_) / std::sqrt(static_cast<double>(width_));
    const Tensor p = at::softmax(at::bmm(q.transpose(1, 2), heads(key_)), -1);  // (n heads, pixels, pixels)
    const Tensor v = at::bmm(heads(value_), p.transpose(1, 2));
    return divided(x + out_.on_channels(w, v.view({n, heads_ * width_, height, width})), scale_);
  }

 private:
  std::optional<GroupNorm> norm_;
  Linear query_, key_, value_, out_;
  std::int64_t heads_, width_;
  double scale_;
};

// A level of the way down or up: resnets, each followed by attention where there is some, then another resolution.
struct Level {
  std::vector<Resnet> resnets;
  std::vector<Attention> attentions;
  std::optional<Convolution> convolution;
  std::optional<Resnet> resnet;

  Tensor layer(std::size_t j, Weights w, const Tensor& x, const Tensor& e) const {
    const Tensor h = resnets[j](w, x, e);
    return attentions.empty() ? h : attentions[j](w, h);
  }
};

class UNet {
 public:
  UNet(const Config& config, const Layout& layout) : UNet(config, Places(layout)) {}

  Tensor operator()(Weights w, const NetworkInput& in) const {
    Tensor x = in.x;
    if (c_.center_input_sample) x = 2 * x - 1;
    if (c_.patch > 1) x = at::pixel_unshuffle(x, c_.patch);
    const Tensor e = activate(c_.act_fn, embedding(w, in, x.scalar_type()));

    std::vector<Tensor> passed{conv_in_(w, x)};  // by the way down to the way up
    Tensor h = passed.front();
    for (const Level& level : down_) {
      for (std::size_t j = 0; j < level.resnets.size(); ++j) passed.push_back(h = level.layer(j, w, h, e));
      if (level.resnet) passed.push_back(h = (*level.resnet)(w, h, e));
      if (level.convolution) {
        // Padding 0 means: at the right and the bottom only.
        const bool one_sided = level.convolution->padding == 0;
        passed.push_back(h = (*level.convolution)(w, one_sided ? at::constant_pad_nd(h, {0, 1, 0, 1}) : h));
      }
    }
    if (c_.mid_block) {
      h = middle_.resnets[0](w, h, e);
      if (!middle_.attentions.empty()) h = middle_.attentions[0](w, h);
      h = middle_.resnets[1](w, h, e);
    }
    for (const Level& level : up_) {
      for (std::size_t j = 0; j < level.resnets.size(); ++j) {
        h = level.layer(j, w, at::cat({h, passed.back()}, 1), e);
        passed.pop_back();
      }
      if (level.resnet) h = (*level.resnet)(w, h, e);
      if (level.convolution) h = (*level.convolution)(w, twice_the_size(h));
    }
    h = conv_out_(w, at::silu(norm_out_(w, h)));
    if (c_.time_embedding_type == Config::TimeEmbedding::fourier) h = h / in.t.to(h.scalar_type()).view({-1, 1, 1, 1});
    return c_.patch > 1 ? at::pixel_shuffle(h, c_.patch) : h;
  }

 private:
  UNet(const Config& c, const Places& places)
      : c_(c),
        conv_in_(places, "conv_in"),
        conv_out_(places, "conv_out"),
        norm_out_(places, "conv_norm_out", c.norm_num_groups, c.norm_eps),
        time1_(places, "time_embedding.linear_1"),
        time2_(places, "time_embedding.linear_2") {
    const std::size_t n = c.levels();
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t width = c.block_out_channels[i], opposite = c.block_out_channels[n - 1 - i];
      const auto layers = static_cast<std::size_t>(c.layers_per_block);
      down_.push_back(level(places, fmt::format("down_blocks.{}", i), layers, width, ".downsamplers.0"));
      up_.push_back(level(places, fmt::format("up_blocks.{}", i), layers + 1, opposite, ".upsamplers.0"));
    }
    if (c.mid_block) {
      middle_.resnets.emplace_back(places, "mid_block.resnets.0", c, c.mid_block_scale_factor);
      if (c.add_attention)
        middle_.attentions.emplace_back(places, "mid_block.attentions.0", c, c.block_out_channels.back(),
                                        c.mid_attention_groups(), c.mid_block_scale_factor);
      middle_.resnets.emplace_back(places, "mid_block.resnets.1", c, c.mid_block_scale_factor);
    }
    if (c.time_embedding_type == Config::TimeEmbedding::positional)
      frequencies_ = embedding_frequencies(c.block_out_channels.front() / 2, c.freq_shift);
    else
      time_table_ = places["time_proj.weight"];
    if (c.class_embed_type == Config::ClassEmbedding::timestep) {
      class1_.emplace(places, "class_embedding.linear_1");
      class2_.emplace(places, "class_embedding.linear_2");
    }
    if (c.classes()) class_table_ = places["class_embedding.weight"];
  }

  // What a level has is what the layout lists for it.
  Level level(const Places& places, const std::string& name, std::size_t layers, std::int64_t width,
              const std::string& resample) const {
    Level result;
    for (std::size_t j = 0; j < layers; ++j) {
      result.resnets.emplace_back(places, fmt::format("{}.resnets.{}", name, j), c_);
      const std::string attention = fmt::format("{}.attentions.{}", name, j);
      if (places.has(attention + ".to_q.weight"))
        result.attentions.emplace_back(places, attention, c_, width, c_.norm_num_groups);
    }
    const bool down = resample.starts_with(".down");
    if (places.has(name + resample + ".conv.weight"))
      result.convolution.emplace(places, name + resample + ".conv", down ? 2 : 1, down ? c_.downsample_padding : 1);
    if (places.has(name + resample + ".conv1.weight"))
      result.resnet.emplace(places, name + resample, c_, 1, down ? Resolution::half : Resolution::twice);
    return result;
  }

  // (n, E)
  Tensor embedding(Weights w, const NetworkInput& in, at::ScalarType type) const {
    Tensor e = time2_(w, at::silu(time1_(w, features(w, in.t, type))));
    if (class_table_) e = e + at::embedding(w[*class_table_], in.labels);
    if (class1_) e = e + (*class2_)(w, at::silu((*class1_)(w, features(w, in.labels, type))));
    if (c_.class_embed_type == Config::ClassEmbedding::identity) e = e + in.labels.to(type);
    return e;
  }
  // Of times, or of labels that are embedded as times are.
  Tensor features(Weights w, const Tensor& t, at::ScalarType type) const {
    switch (c_.time_embedding_type) {
      case Config::TimeEmbedding::learned:
        return at::embedding(w[time_table_], row_numbers(t));
      case Config::TimeEmbedding::fourier: {
        const Tensor a = t.to(type).log().unsqueeze(1) * w[time_table_].detach() * (2 * M_PI);
        return at::cat({a.sin(), a.cos()}, 1);
      }
      default:
        return embed_time(t, frequencies_, c_.block_out_channels.front(), c_.flip_sin_to_cos, type);
    }
  }
  static Tensor row_numbers(const Tensor& t) {
    Tensor rows = t.to(at::kLong);
    if (!at::equal(rows.to(t.scalar_type()), t))
      throw Error(ErrorKind::usage, "time_embedding_type", "a learned time embedding has no times between its rows");
    return rows;
  }

  Config c_;
  Convolution conv_in_, conv_out_;
  GroupNorm norm_out_;
  Linear time1_, time2_;
  std::optional<Linear> class1_, class2_;
  std::optional<std::size_t> class_table_;
  std::size_t time_table_ = 0;
  Tensor frequencies_;
  std::vector<Level> down_, up_;
  Level middle_;
};

}  // namespace

Network make_unet(const UNetConfig& config, UNetOptions options) {
  require_valid(config, "network");
  const auto refuse = [](const char* key, const std::string& what) {
    throw Error(ErrorKind::usage, "network", fmt::format("{}: {}", key, what));
  };
  if (config.sample_size.empty()) refuse("sample_size", "is missing");
  if (config.dropout != 0 && !options.inference_only)
    refuse("dropout", fmt::format("{}: a network with dropout can be evaluated, but not trained", config.dropout));

  Layout layout = parameter_layout(config);
  const auto net = std::make_shared<const UNet>(config, layout);
  return {.layout = std::move(layout),
          .sample = {config.image_channels(), config.image_height(), config.image_width()},
          .forward = [net, last = options.channels_last](Weights w, const NetworkInput& in) {
            if (!last) return (*net)(w, in);
            NetworkInput by_pixel = in;
            by_pixel.x = in.x.contiguous(at::MemoryFormat::ChannelsLast);
            return (*net)(w, by_pixel).contiguous();
          }};
}

TensorParameters initial_unet(const UNetConfig& config, const Noise& noise, bool zero_outputs, at::ScalarType type) {
  const Layout layout = parameter_layout(config);
  TensorParameters theta = initial_parameters(layout, noise, type);
  (void)theta.edit();  // what follows are views of its own memory
  const std::vector<Tensor> weights = weights_of(layout, theta);
  const bool fourier = config.time_embedding_type == UNetConfig::TimeEmbedding::fourier;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const std::string& name = layout[i].name;
    if (name == "class_embedding.weight" || name == "time_proj.weight") {
      const float width = fourier && name == "time_proj.weight" ? 16 : 1;
      const Tensor numbers = at::empty({weights[i].numel()}, at::kFloat);
      for (std::int64_t j = 0; j < numbers.numel(); ++j)
        numbers.data_ptr<float>()[j] = width * noise.normal(Stream::initial, {.round = static_cast<std::int64_t>(i)}, 1,
                                                            static_cast<std::size_t>(j), 0);
      weights[i].copy_(numbers.view(layout[i].shape));
    }
    const bool last_layer = name.starts_with("conv_out.") || name.find(".conv2.") != std::string::npos ||
                            name.find(".to_out.0.") != std::string::npos;
    if (zero_outputs && last_layer) weights[i].zero_();
  }
  return theta;
}

}  // namespace implicit_diffusion
