#include "implicit_diffusion/torch/steps.hpp"

#include "autograd.hpp"
#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <utility>

namespace implicit_diffusion {

NetworkSteps::NetworkSteps(Network network, NetworkStepsOptions options)
    : network_(std::move(network)), options_(std::move(options)), parameters_(elements_of(network_.layout)) {
  if (options_.shard == 0) throw Error(ErrorKind::usage, "shard", "it must have a sample at least");
}

NetworkSteps::Conversion NetworkSteps::conversion(Prediction prediction, double tau) {
  if (prediction == Prediction::score) return {1, 0};
  if (!(tau > 0))
    throw Error(ErrorKind::usage, "tau", std::to_string(tau) + ": without noise a prediction is no score");
  // 1 / s and a / s, as in denoising/prediction.hpp
  if (prediction == Prediction::epsilon) return {-1 / std::sqrt(-std::expm1(-2 * tau)), 0};
  return {-1 / std::sqrt(std::expm1(2 * tau)), -1};
}

NetworkSteps::Conversion NetworkSteps::conversion_of_frozen(double tau) const {
  return conversion(options_.frozen ? options_.frozen->prediction : options_.prediction, tau);
}

NetworkInput NetworkSteps::input(const Tile& y, const ReverseStep& step) const {
  const double t = options_.time ? options_.time(step.tau) : step.tau;
  at::Tensor x = detail::fill_up(y.x, y.shard);
  at::Tensor times = at::full({x.size(0)}, t, x.options());
  at::Tensor labels = y.labels;
  if (!labels.defined() && options_.classes > 0)
    labels = detail::labels(options_.noise, {.round = step.key.round}, options_.classes, y);
  return {std::move(x), std::move(times), detail::fill_up(labels, y.shard)};
}

NetworkInput NetworkSteps::input_of_frozen(NetworkInput in, const ReverseStep& step) const {
  if (options_.frozen) in.t = at::full_like(in.t, options_.frozen->time ? options_.frozen->time(step.tau) : step.tau);
  return in;
}

at::Tensor NetworkSteps::predict(const std::vector<at::Tensor>& weights, const NetworkInput& in) const {
  at::Tensor out = evaluate(network_, weights, in);
  if (!out.defined() || out.sizes() != in.x.sizes())
    throw Error(ErrorKind::usage, "network", "what it predicts must have the shape of its samples");
  return out;
}

void NetworkSteps::forward(const Model& model, const Model* frozen, const ReverseStep& step, const Tile& from,
                           const Tile& to, double* u) const {
  const at::NoGradGuard no_graph;
  const auto [factor, share] = conversion(options_.prediction, step.tau);
  const NetworkInput in = input(from, step);
  const at::Tensor out = predict(model.constants(), in).narrow(0, 0, from.size());
  if (u) {
    const auto [factor_0, share_0] = conversion_of_frozen(step.tau);
    const at::Tensor out_0 = predict(frozen->constants(), input_of_frozen(in, step)).narrow(0, 0, from.size());
    at::Tensor gap = at::sub(out, out_0, factor_0 / factor);  // D / factor
    if (share != share_0) gap.add_(from.x, (share - share_0) / factor);
    detail::add_numbers(gap.reshape({from.size(), -1}).to(at::kDouble).square().sum(1), from.size(),
                        step.c.penalty * factor * factor, u);
  }
  // growth y + pull (factor out + share y) + noise xi
  at::Tensor next = from.x * (step.c.growth + step.c.pull * share);
  next.add_(out, step.c.pull * factor);
  if (step.c.noise > 0) next.add_(detail::normals(options_.noise, Stream::sampling, step.key, from), step.c.noise);
  to.x.copy_(next);
}

void NetworkSteps::backward(const Model& model, const Model* frozen, const ReverseStep& step, double beta,
                            const Tile& at, const Tile& a, Sum& sum) const {
  const auto [factor, share] = conversion(options_.prediction, step.tau);
  const auto with_graph = [&](const std::vector<at::Tensor>& weights, NetworkInput& in) {
    const at::AutoGradMode graph(true);
    in.x = detail::leaf_of(in.x);
    return predict(weights, in);
  };
  // score_y' c without the share's part, for the samples of the tile
  const auto pulled_to = [&](const at::Tensor& back_to_y, const at::Tensor& to, double sign) {
    if (back_to_y.defined()) to.add_(back_to_y.narrow(0, 0, at.size()), sign);
  };
  NetworkInput in = input(at, step);
  at::Tensor out = with_graph(model.leaves(), in);

  const at::NoGradGuard no_graph;
  at::Tensor c = a.x * step.c.pull;       // pull a + 2 beta penalty D
  at::Tensor next = a.x * step.c.growth;  // growth a + s_y' c - 2 beta penalty s_0,y' D
  if (frozen) {
    const auto [factor_0, share_0] = conversion_of_frozen(step.tau);
    NetworkInput in_0 = input_of_frozen(in, step);
    const at::Tensor out_0 = with_graph(frozen->constants(), in_0);
    at::Tensor gap = at::sub(out, out_0, factor_0 / factor).narrow(0, 0, at.size());  // D / factor
    if (share != share_0) gap.add_(at.x, (share - share_0) / factor);
    gap.mul_(2 * beta * step.c.penalty * factor);  // 2 beta penalty D
    c.add_(gap);
    const at::Tensor cotangent = detail::fill_up_with_zeros(gap * factor_0, at.shard);
    pulled_to(detail::pull_back(out_0, {in_0.x}, cotangent)[0], next, -1);
    if (share_0 != 0) next.sub_(gap, share_0);
  }
  std::vector<at::Tensor> wanted{in.x};
  wanted.insert(wanted.end(), model.leaves().begin(), model.leaves().end());
  const std::vector<at::Tensor> back = detail::pull_back(out, wanted, detail::fill_up_with_zeros(c * factor, at.shard));
  pulled_to(back[0], next, 1);
  if (share != 0) next.add_(c, share);
  a.x.copy_(next);
  detail::add_gradients(std::span(back).subspan(1), model.leaves(), sum);
}

}  // namespace implicit_diffusion
