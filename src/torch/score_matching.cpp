#include "implicit_diffusion/torch/score_matching.hpp"

#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace implicit_diffusion {

double level_at(LevelLaw law, double horizon, double u) {
  const double tau = law == LevelLaw::uniform ? u * horizon : -std::log(std::cos(u * std::acos(std::exp(-horizon))));
  return std::clamp(tau, 1e-5, horizon);
}

SampleLoss score_matching_loss(const ScoreMatchingOptions& o) {
  if (!(o.horizon > 0)) throw Error(ErrorKind::usage, "horizon", "it must be positive");
  return [o](const NetworkAt& network, const LossInput& in) {
    const TensorTile& data = in.samples;
    const std::int64_t n = data.size();
    // The noise level of every sample, as what multiplies it: of shape (n, 1, ...), as samples are (n, C, H, W).
    std::vector<std::int64_t> column(static_cast<std::size_t>(data.x.dim()), 1);
    column[0] = n;
    const auto of_sample = [&](const at::Tensor& numbers) { return numbers.to(data.x.scalar_type()).view(column); };
    at::Tensor a = at::empty({n}, at::kDouble), s = at::empty_like(a), t = at::empty_like(a);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::size_t sample = data.first + static_cast<std::size_t>(i);
      const double share = o.noise.uniform(Stream::component, {.round = in.step}, 1, sample, 0);
      const double u = (static_cast<double>(sample % in.batch) + share) / static_cast<double>(in.batch);
      const double tau = level_at(o.law, o.horizon, u);
      a.data_ptr<double>()[i] = std::exp(-tau);
      s.data_ptr<double>()[i] = std::sqrt(-std::expm1(-2 * tau));
      t.data_ptr<double>()[i] = o.time ? o.time(tau) : tau;
    }
    at::Tensor x, target;
    {
      const at::NoGradGuard no_graph;
      const at::Tensor eps = detail::normals(o.noise, Stream::sampling, {.round = in.step}, data);
      x = of_sample(a) * data.x + of_sample(s) * eps;
      if (o.prediction == Prediction::v)
        target = of_sample(a) * eps - of_sample(s) * data.x;
      else
        target = o.prediction == Prediction::epsilon ? eps : -eps;
    }
    at::Tensor out = network({x, t.to(data.x.scalar_type()), data.labels});
    if (out.sizes() != x.sizes())
      throw Error(ErrorKind::usage, "network", "what it predicts must have the shape of its samples");
    if (o.prediction == Prediction::score) out = of_sample(s) * out;
    return (out - target).square().reshape({n, -1}).mean(1);
  };
}

}  // namespace implicit_diffusion
