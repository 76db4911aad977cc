#include "implicit_diffusion/torch/training.hpp"

#include "autograd.hpp"
#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numbers>

namespace implicit_diffusion {

void LossGradient::estimate(const TensorSamples& batch, const TensorParameters& theta, std::int64_t step,
                            TensorParameters& gradient) {
  if (batch.total() == 0) throw Error(ErrorKind::usage, "batch", "it is empty");
  if (batch.sample_shape() != network_.sample)
    throw Error(ErrorKind::usage, "batch", "its samples are not of the network's shape");
  weights_.set(network_.layout, theta);
  const auto n = static_cast<double>(batch.total());
  TensorNumbers losses = TensorTiles::numbers(batch);
  gradient = zeros_like(theta);
  TensorTiles::sum(workers_, batch, gradient, [&](std::size_t k, TensorParameters& sum) {
    detail::use_one_thread();
    const TensorTile part = TensorTiles::tile(batch, k);
    const std::int64_t size = part.size();
    const at::AutoGradMode graph(true);
    const NetworkAt network = [&](const NetworkInput& in) { return evaluate(network_, weights_.leaves(), in); };
    const LossInput in{
        {detail::fill_up(part.x, part.shard), detail::fill_up(part.labels, part.shard), part.first, part.shard},
        batch.total(),
        step};
    const at::Tensor loss = detail::unless_refused("loss", [&] { return loss_(network, in); });
    if (!loss.defined() || loss.dim() != 1 || loss.size(0) != in.samples.size())
      throw Error(ErrorKind::usage, "loss", "it must be one number for each sample");
    const at::NoGradGuard no_graph;
    detail::add_numbers(loss, size, 1, TensorTiles::numbers_of(losses, k));
    const at::Tensor c = detail::fill_up_with_zeros(at::full({size}, 1 / n, loss.options()), part.shard);
    detail::add_gradients(detail::pull_back(loss, weights_.leaves(), c), weights_.leaves(), sum);
  });
  mean_ = 0;
  in_turn(batch.tiles(), {&mean_, 1}, [&] {
    for (const double loss : losses.values) mean_ += loss / n;
  });
}

SampleLoss cross_entropy_loss() {
  return [](const NetworkAt& network, const LossInput& in) {
    if (!in.samples.labels.defined()) throw Error(ErrorKind::usage, "labels", "a classifier learns from labels");
    const at::Tensor log_p = at::log_softmax(network({in.samples.x, {}, in.samples.labels}), 1);
    return -log_p.gather(1, in.samples.labels.unsqueeze(1)).squeeze(1);
  };
}

double squared_norm(const TensorParameters& v) {
  const auto over = [n = v.size()](const auto* x) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
    return sum;
  };
  if (v.size() == 0) return 0;
  return v.type() == at::kFloat ? over(v.read().data_ptr<float>()) : over(v.read().data_ptr<double>());
}

double ScheduledAdamOptions::rate(std::int64_t step) const {
  double eta = adam.rate(step);
  const auto k = static_cast<double>(step);
  if (warm_up > 0) eta *= std::min(1.0, (k + 1) / static_cast<double>(warm_up));
  if (decay > 0) eta *= 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, k / static_cast<double>(decay))));
  return eta;
}

}  // namespace implicit_diffusion
