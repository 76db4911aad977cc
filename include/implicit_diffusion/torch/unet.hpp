// The network that diffusers calls UNet2DModel, as a Network: models/unet_config.hpp describes it.
//
// The same weights give the same outputs and the same vector-Jacobian products as there, within the rounding of single
// precision; with `patch` p, those of diffusers on p x p patches. Times are those of diffusers, fractions included.
//
//     e = linear_2(silu(linear_1(embedding of t))) + embedding of the label
//
//     resnet      h = conv_1(silu(norm_1(x)));  h = norm_2(h + W e), or norm_2(h) (1 + W_1 e) + W_2 e;
//                 (shortcut(x) + conv_2(silu(h))) / scale
//     attention   (x + to_out(softmax(q' k / sqrt(d)) v)) / scale, q, k, v linear in norm(x), for each head of width d
//
// The weights of a "fourier" time embedding are constants, as in diffusers: their gradient is zero.
#pragma once

#include "implicit_diffusion/models/unet_config.hpp"
#include "implicit_diffusion/torch/network.hpp"

namespace implicit_diffusion {

struct UNetOptions {
  // A network that was trained with dropout can be evaluated, without it, but not trained: noise here is by key.
  bool inference_only = false;
  // How images lie in memory inside: by channel, or by pixel. The results are the same but for rounding; which is
  // faster depends on the processor.
  bool channels_last = false;
};

// Throws a usage Error that names the key unless the config is valid, says sample_size,
// and, unless for inference only, has no dropout. Labels are 64-bit integers (n), below num_class_embeds; with
// class_embed_type "timestep" numbers (n), with "identity" embeddings (n, E).
Network make_unet(const UNetConfig& config, UNetOptions options = {});

// Weights to begin training with: as a new model of diffusers has them (initial_parameters, but rows of tables of
// embeddings are N(0, 1), the frequencies of a "fourier" embedding N(0, 16^2)), or, if `zero_outputs`, with zeros in
// the last convolution and in the last layer of every resnet and attention. Then the network is 0 at first and every
// block passes its input on, which trains faster.
TensorParameters initial_unet(const UNetConfig& config, const Noise& noise, bool zero_outputs = false,
                              at::ScalarType type = at::ScalarType::Float);

}  // namespace implicit_diffusion
