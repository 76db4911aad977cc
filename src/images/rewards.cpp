#include "implicit_diffusion/images/rewards.hpp"

#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace implicit_diffusion {

using at::Tensor;

TensorReward brightness_reward() {
  return TensorReward([](const Tensor& x) { return (x.flatten(1).mean(1) + 1) / 2; });
}

TensorReward redness_reward() {
  return TensorReward([](const Tensor& x) {
    if (x.size(1) != 3) throw Error(ErrorKind::usage, "reward", "redness is for images of three channels");
    const Tensor means = x.flatten(2).mean(2);  // (n, 3)
    return (means.select(1, 0) - (means.select(1, 1) + means.select(1, 2)) / 2) / 2;
  });
}

TensorReward contrast_reward() {
  // The square root has no slope at 0: an image of one value has contrast 1e-6.
  return TensorReward([](const Tensor& x) {
    const Tensor flat = x.flatten(1);
    return at::sqrt((flat - flat.mean(1, true)).square().mean(1) + 4e-12) / 2;
  });
}

TensorReward class_reward(const ClassifierConfig& config, const TensorParameters& weights, std::int64_t chosen) {
  if (chosen < 0 || chosen >= config.classes)
    throw Error(ErrorKind::usage, "reward", fmt::format("class {}: the classifier has {}", chosen, config.classes));
  const Network network = make_classifier(config);
  const std::vector<Tensor> w = weights_of(network.layout, weights);
  return TensorReward([network, w, keep = weights, chosen](const Tensor& x) {
    return at::log_softmax(evaluate(network, w, {x, {}, {}}), 1).select(1, chosen);
  });
}

std::vector<double> rewards_of(const TensorSamples& x, const TensorReward& reward, Workers* workers) {
  TensorNumbers r = TensorTiles::numbers(x);
  TensorTiles::for_each(workers, TensorTiles::tiles(x),
                        [&](std::size_t k) { reward.add(TensorTiles::tile(x, k), 1, TensorTiles::numbers_of(r, k)); });
  return gathered(r);
}

std::vector<double> clipped_rewards_of(const TensorSamples& x, const TensorReward& reward, Workers* workers) {
  TensorSamples clipped = x;
  clipped.x().clamp_(-1, 1);
  return rewards_of(clipped, reward, workers);
}

Oracle tilted_data(const std::vector<double>& rewards, const std::vector<std::uint32_t>& labels, double ratio) {
  if (rewards.empty()) throw Error(ErrorKind::usage, "rewards", "there are none");
  if (!labels.empty() && labels.size() != rewards.size())
    throw Error(ErrorKind::usage, "labels", "there must be one for each reward");
  struct Class {
    double largest = -INFINITY, sum = 0, count = 0;
  };
  std::map<std::uint32_t, Class> classes;
  const auto of = [&](std::size_t i) -> Class& { return classes[labels.empty() ? 0 : labels[i]]; };
  for (std::size_t i = 0; i < rewards.size(); ++i) of(i).largest = std::max(of(i).largest, ratio * rewards[i]);
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    of(i).sum += std::exp(ratio * rewards[i] - of(i).largest);
    of(i).count += 1;
  }
  Oracle oracle;
  double squares = 0;
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    const Class& c = of(i);
    const double log_share = ratio * rewards[i] - c.largest - std::log(c.sum);  // within its class
    const double w = std::exp(log_share) / static_cast<double>(classes.size());
    oracle.reward += w * rewards[i];
    oracle.kl += w * (log_share + std::log(c.count));
    squares += w * w;
    oracle.weights.push_back(w);
  }
  oracle.effective_samples = 1 / squares;
  return oracle;
}

}  // namespace implicit_diffusion
