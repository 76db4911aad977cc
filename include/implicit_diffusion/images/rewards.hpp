// Rewards of images with pixels in [-1, 1], C x H x W. With p = (x + 1) / 2, a pixel in [0, 1]:
//
//     brightness      mean of p
//     redness         mean of p over red, minus its mean over green and blue; for images of three channels
//     contrast        standard deviation of p over one image
//     class           ln of the probability that a classifier gives to a class
//
// Pixels are taken as they are, unclipped: samples of a diffusion go beyond [-1, 1] a little.
#pragma once

#include "implicit_diffusion/torch/classifier.hpp"
#include "implicit_diffusion/torch/tiles.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace implicit_diffusion {

TensorReward brightness_reward();
TensorReward redness_reward();
TensorReward contrast_reward();
// Throws a usage Error unless the class is one of the classifier's, and the weights are.
TensorReward class_reward(const ClassifierConfig& config, const TensorParameters& weights, std::int64_t chosen);

// R of each sample; and of each with its pixels clipped to [-1, 1]. Of samples that processes share, all have all.
std::vector<double> rewards_of(const TensorSamples& x, const TensorReward& reward, Workers* workers = nullptr);
std::vector<double> clipped_rewards_of(const TensorSamples& x, const TensorReward& reward, Workers* workers = nullptr);

// The oracle: data reweighted by w_i ~ exp(ratio R_i), ratio = lambda / beta, is the law that minimises -lambda E[R] +
// beta KL to the data,
//
//     E_w[R],     KL = sum_i w_i ln(n w_i),     effective samples = 1 / sum_i w_i^2
//
// within each class, then averaged over classes, where labels are given: the law of a conditional model. It is the
// data's law, not that of a model; and a few images only where the effective samples are few.
struct Oracle {
  double reward = 0, kl = 0, effective_samples = 0;
  std::vector<double> weights;  // of the data, their sum 1
};
// Throws a usage Error where there are no rewards, or labels are not as many (or none at all).
Oracle tilted_data(const std::vector<double>& rewards, const std::vector<std::uint32_t>& labels, double ratio);

}  // namespace implicit_diffusion
