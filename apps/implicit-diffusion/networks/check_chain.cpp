#include "networks/check_chain.hpp"

#include "implicit_diffusion/denoising/gradient.hpp"
#include "problems/whole_graph.hpp"

#include <ATen/ATen.h>

#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

std::vector<double> to_list(const at::Tensor& t) {
  const at::Tensor flat = t.to(at::kDouble).contiguous().flatten();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// The gradient of the adjoint, and the objective beside it.
struct Adjoint {
  TensorParameters gradient;
  double objective;
};
Adjoint adjoint(const ChainCheck& c, const TensorParameters& theta, double beta, at::ScalarType type,
                std::size_t shard) {
  const auto of_type = [&](const TensorParameters& v) { return TensorParameters(v.read().to(type)); };
  ReverseChain<NetworkSteps> chain(
      NetworkSteps(
          c.network,
          {.prediction = c.means.prediction, .time = c.means.time, .noise = c.noise, .shard = shard, .type = type}),
      c.grid, {.dynamics = c.dynamics, .last_step = c.last_step}, std::pair{NetworkSteps::model(), of_type(c.frozen)});
  const DenoisingObjective objective{c.objective.lambda, beta};
  PathGradient<NetworkSteps> path(chain, c.reward, objective);
  auto batch = PathBatch<NetworkSteps>::of(TensorSamples(c.places.x().to(type), c.places.labels(), shard));
  DenoisingStart<NetworkSteps>{c.noise}.draw(batch, 0);
  Adjoint a{of_type(zeros_like(theta)), 0};
  path.sample_and_estimate(batch, of_type(theta), {}, a.gradient);
  a.objective = objective_of<NetworkSteps>(batch, c.reward, objective).value;
  return a;
}

}  // namespace

void compare_slopes(std::vector<CheckRow>& rows, const std::string& what, const TensorParameters& theta,
                    const TensorParameters& gradient, const Noise& noise,
                    const std::function<double(const TensorParameters&)>& value) {
  const at::Tensor direction = at::empty({static_cast<std::int64_t>(theta.size())}, at::kDouble);
  for (std::int64_t j = 0; j < direction.numel(); ++j)
    direction.data_ptr<double>()[j] =
        noise.normal(Stream::user, {}, 1, static_cast<std::size_t>(j), 0) / std::sqrt(theta.size());
  const double slope = (gradient.read() * direction).sum().item<double>(), h = 1e-5;
  const auto at = [&](double t) { return value(TensorParameters(theta.read() + t * direction)); };
  const double difference = (at(h) - at(-h)) / (2 * h);
  // Errors of central differences: h^2 times a third derivative, and rounding over h.
  const double allowed = 1e-5 * (std::abs(difference) + 1e-3), wrong = 1.1 * slope;
  rows.push_back(compare(what, {&difference, 1}, {&slope, 1}, allowed));
  rows.push_back(must_be_off(compare("  1.1 times the gradient", {&difference, 1}, {&wrong, 1}, allowed)));
}

void check_chain(std::vector<CheckRow>& rows, const ChainCheck& c) {
  const std::size_t whole = c.places.size();
  const Adjoint exact = adjoint(c, c.theta, c.objective.beta, at::kDouble, whole);
  const problems::WholeGraph graph{.network = c.network,
                                   .prediction = c.means.prediction,
                                   .dynamics = c.dynamics,
                                   .grid = c.grid,
                                   .noise = c.noise,
                                   .objective = c.objective,
                                   .frozen = c.frozen,
                                   .reward = [&](const at::Tensor& x) { return c.reward(x, c.places.labels()); },
                                   .time = c.means.time,
                                   .last_step = c.last_step};
  TensorSamples start(c.places.x(), c.places.labels(), whole);
  TensorTiles::fill_normals(start, c.noise, Stream::initial, {});
  const std::vector<double> expected = to_list(graph(c.theta, start, 0).gradient), got = to_list(exact.gradient.read());
  double size = 0;
  for (const double v : expected) size = std::max(size, std::abs(v));
  // Roundings of sums over samples and steps, in double precision.
  const double allowed = 1e-10 * size;
  rows.push_back(compare(c.name + "adjoint, whole graph", expected, got, allowed));
  const char* const half = "  with half of beta";
  const std::vector<double> halved =
      to_list(adjoint(c, c.theta, c.objective.beta / 2, at::kDouble, whole).gradient.read());
  const CheckRow lost = compare(half, got, halved, allowed);
  rows.push_back(lost.error > 2 * lost.allowed ? must_be_off(compare(half, expected, halved, allowed))
                                               : left_out(half, "it is too little to be seen"));
  compare_slopes(
      rows, c.name + "adjoint, differences", c.theta, exact.gradient, c.noise,
      [&](const TensorParameters& t) { return adjoint(c, t, c.objective.beta, at::kDouble, whole).objective; });
  // In single precision: roundings grow along the chain.
  const std::vector<double> single = to_list(adjoint(c, c.theta, c.objective.beta, at::kFloat, 1).gradient.read());
  rows.push_back(compare("  in float, shards of 1", expected, single, 1e-5 * size));
  std::vector<double> longer = single;
  for (double& v : longer) v *= 1 + 1e-3;
  rows.push_back(must_be_off(compare("  that, a thousandth too long", expected, longer, 1e-5 * size)));
}

}  // namespace program
