// Training a network: a loss that is a mean over samples, its gradient, and the optimizer that is usual for it.
//
//     L(theta) = mean over a batch of loss_i(theta)
//
// A batch is what a source draws: any object with draw(samples, round), as fresh populations of the loops have it
// (concepts.hpp). The gradient is taken shard by shard and added as a tree, so it has the same bits for any number of
// threads, and of processes that share the batch. Training is then the nested loop without sampling:
//
//     LossGradient gradient(network, score_matching_loss({.prediction = Prediction::v}), &workers);
//     TrainingState state{0, theta, samples, AveragedAdam({.adam = {.rate = 2e-3}})};
//     train(gradient, source, state, 1000, observer);
//     ... average_of(state.optimizer) ...
#pragma once

#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/average.hpp"
#include "implicit_diffusion/torch/network.hpp"
#include "implicit_diffusion/torch/tiles.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// What a loss is given: a whole shard, filled up with copies, whose losses count for nothing.
struct LossInput {
  TensorTile samples;
  std::size_t batch;  // samples of the whole batch
  std::int64_t step;  // of the training, the key of its noise
};
// A number for each sample of the shard, (n), with its graph. `network` is the function at the present weights.
using NetworkAt = std::function<at::Tensor(const NetworkInput& in)>;
using SampleLoss = std::function<at::Tensor(const NetworkAt& network, const LossInput& in)>;

// The gradient estimator of a loss.
class LossGradient {
 public:
  LossGradient(Network network, SampleLoss loss, Workers* workers = nullptr)
      : network_(std::move(network)), loss_(std::move(loss)), workers_(workers) {}

  // Throws a usage Error where theta or the samples are not of the network's shape, or the batch is empty.
  void estimate(const TensorSamples& batch, const TensorParameters& theta, std::int64_t step,
                TensorParameters& gradient);

  // The mean of the last batch, before its step.
  double loss() const { return mean_; }
  const Network& network() const { return network_; }

 private:
  Network network_;
  SampleLoss loss_;
  Workers* workers_;
  NetworkWeights weights_;
  double mean_ = 0;
};

// -ln of the probability that scores (n, classes) give to the labels.
SampleLoss cross_entropy_loss();

// ---- the optimizer

// Euclidean, squared, in double precision and in one order.
double squared_norm(const TensorParameters& v);

// Adam whose rate rises over the first steps and falls to 0 over all of them, on gradients of bounded length:
//
//     eta_k = eta min(1, (k + 1) / warm_up) (1 + cos(pi k / decay)) / 2          g <- g min(1, clip / |g|)
struct ScheduledAdamOptions {
  static constexpr const char* name = "adam";

  AdamOptions adam = {};
  std::int64_t warm_up = 0;  // 0: none
  std::int64_t decay = 0;    // 0: the rate stays
  double clip = 0;           // 0: whatever the length

  template <class Theta>
  static OptimizerMemory<Theta> begin() {
    return AdamOptions::begin<Theta>();
  }
  double rate(std::int64_t step) const;
  template <class Theta>
  void update(Theta& theta, const Theta& gradient, std::int64_t step, OptimizerMemory<Theta>& memory) const {
    AdamOptions now = adam;
    now.rate = rate(step);
    const double norm = clip > 0 ? std::sqrt(squared_norm(gradient)) : 0;
    if (norm <= clip) return now.update(theta, gradient, step, memory);
    Theta shorter = gradient;
    for_each_element([c = clip / norm](auto& g) { set_element(g, c * g); }, shorter);
    now.update(theta, shorter, step, memory);
  }
};
using ScheduledAdam = RememberingOptimizer<ScheduledAdamOptions, TensorParameters>;

// The same with a moving average of theta beside it (optimizer/average.hpp), the model that is kept.
struct AveragedAdamOptions : ScheduledAdamOptions {
  double average_decay = 0.999;

  template <class Theta>
  static OptimizerMemory<Theta> begin() {
    return {{1.0, 1.0}, 3};
  }
  template <class Theta>
  void update(Theta& theta, const Theta& gradient, std::int64_t step, OptimizerMemory<Theta>& memory) const {
    if (step == 0) memory.moments[2] = theta;
    ScheduledAdamOptions::update(theta, gradient, step, memory);
    update_average(memory.moments[2], theta, step, average_decay);
  }
};
using AveragedAdam = RememberingOptimizer<AveragedAdamOptions, TensorParameters>;

// The average, or theta before the first step.
inline const TensorParameters& average_of(const AveragedAdam& optimizer, const TensorParameters& theta) {
  return optimizer.memory().moments.empty() ? theta : optimizer.memory().moments[2];
}

// ---- the loop

using TrainingState = State<TensorSamples, AveragedAdam, TensorParameters>;

// Runs until state.step == steps: batch k of the source, one step of the optimizer.
template <class Source, class Observer = const decltype(ignore)&>
Outcome train(LossGradient& gradient, Source& source, TrainingState& state, std::int64_t steps,
              Observer&& observe = ignore, std::stop_token stop = {}) {
  struct Still {  // samples are as they were drawn
    void advance(TensorSamples&, const TensorParameters&, StepKey) {}
  } still;
  return nested_loop(still, gradient, source, state, {.steps = steps, .inner_steps = 0, .warm_start = false}, observe,
                     std::move(stop));
}

}  // namespace implicit_diffusion
