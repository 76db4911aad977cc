// A model of a few thousand parameters, with everything that a folder can hold.
#pragma once

#include <numeric>
#include <vector>

#include "implicit_diffusion/models/model_folder.hpp"

namespace implicit_diffusion {

inline ModelFolder small_model() {
  ModelFolder model;
  UNetConfig& c = model.network;
  c.sample_size = {4};
  c.in_channels = c.out_channels = 4;
  c.block_out_channels = {8, 8};
  c.down_block_types = {UNetConfig::Block::plain, UNetConfig::Block::attention};
  c.up_block_types = {UNetConfig::Block::attention, UNetConfig::Block::plain};
  c.layers_per_block = 1;
  c.norm_num_groups = 4;
  c.num_class_embeds = 3;
  c.patch = 2;
  model.scheduler = cosine_scheduler_config();
  model.origin.emplace();
  model.origin->patch = 2;
  model.origin->prediction = SchedulerConfig::Prediction::v_prediction;
  return model;
}

inline std::vector<float> small_theta() {
  std::vector<float> theta(static_cast<std::size_t>(elements_of(parameter_layout(small_model().network))));
  std::iota(theta.begin(), theta.end(), -1000.0F);
  return theta;
}

}  // namespace implicit_diffusion
