#include "denoising_mixture/exact_gradient.hpp"

#include "implicit_diffusion/denoising/score_model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace program {
namespace {

using namespace implicit_diffusion;
using Numbers = std::vector<double>;

// Points on the line, and weights of normal densities on them.
struct Line {
  double first, spacing;
  Population<double> points;

  std::size_t size() const { return points.size(); }
  double at(std::size_t i) const { return first + static_cast<double>(i) * spacing; }

  // use(j, w_j, u_j) for the points around m: u_j = (y_j - m) / s, w_j = exp(-u_j^2 / 2), which is a product that goes
  // on from point to point.
  template <class Use>
  void for_each_weight(double m, double s, Use&& use) const {
    constexpr double reach = 6.5;  // beyond it there is 1e-10
    const double low = std::ceil((m - reach * s - first) / spacing),
                 high = std::floor((m + reach * s - first) / spacing);
    const auto begin = static_cast<std::size_t>(std::clamp(low, 0.0, static_cast<double>(size()))),
               end = static_cast<std::size_t>(std::clamp(high + 1, 0.0, static_cast<double>(size())));
    const double d = spacing / s, again = std::exp(-d * d);
    double u = (at(begin) - m) / s, w = std::exp(-u * u / 2), ratio = std::exp(-d * (u + d / 2));
    for (std::size_t j = begin; j < end; ++j, u += d, w *= ratio, ratio *= again) use(j, w, u);
  }
};

std::optional<Line> make_line(const DenoisingConfiguration& c, const TimeGrid& grid, const GaussianMixture& law) {
  constexpr double reach = 6.5, most = 10'000;
  double low = -reach, high = reach, narrow = 1, leftmost = 0, rightmost = 0;
  for (const GaussianMixture* m : {&c.base, &law})
    for (const Gaussian& g : m->components) {
      const double deviation = std::sqrt(g.covariance[0]);
      low = std::min(low, g.mean[0] - reach * deviation);
      high = std::max(high, g.mean[0] + reach * deviation);
      leftmost = std::min(leftmost, g.mean[0]);
      rightmost = std::max(rightmost, g.mean[0]);
      narrow = std::min(narrow, deviation);
    }
  double noise = 1;
  for (std::size_t n = 0; n < grid.steps(); ++n) noise = std::min(noise, std::sqrt(2 * grid.step(n)));
  // Between two components at a distance d one takes over from the other within deviation^2 / d.
  const double change = narrow * narrow / std::max(rightmost - leftmost, narrow);
  const double spacing = std::min(noise / 8, change / 3);
  if ((high - low) / spacing > most) return std::nullopt;
  Line line{low, spacing, Population<double>(static_cast<std::size_t>((high - low) / spacing) + 1, 1)};
  for (std::size_t i = 0; i < line.size(); ++i) line.points(i, 0) = line.at(i);
  return line;
}

// The score of a model at all points, before step n.
Numbers scores(const ScoreModel<double>& model, std::size_t n, const Line& line) {
  Numbers all;
  Population<double> to = line.points;
  for (std::size_t b = 0; b < to.blocks(); ++b) {
    const Block<double> block = to.block(b);
    model.forward(n, nullptr, {{0, 1, 0, 0}, line.points.block(b), block, nullptr, nullptr});
    for (std::size_t i = 0; i < block.size; ++i) all.push_back(block(i, 0));
  }
  return all;
}

}  // namespace

std::optional<Numbers> exact_gradient(const DenoisingConfiguration& c, const TimeGrid& grid, const Numbers& theta) {
  const MixtureModel model = c.model();
  const std::optional<Line> line = make_line(c, grid, model.law(theta));
  if (!line) return std::nullopt;
  const std::size_t steps = grid.steps(), points = line->size();
  const auto prepared_at = [&](const Numbers& at) {
    ScoreModel<double> score = model.score<double>();
    score.prepare(at, grid);
    return score;
  };
  const ScoreModel<double> here = prepared_at(theta), frozen = prepared_at(model.parameters_of(c.base));
  const auto step = [&](std::size_t n) { return step_coefficients(Dynamics::euler_sde, grid.tau[n], grid.step(n)); };

  // Back: what is still to come, and what its expectation gains as the mean of the step moves.
  std::vector<Numbers> score(steps), pull(steps, Numbers(points));
  Numbers v(points), next;
  for (std::size_t i = 0; i < points; ++i) v[i] = -c.lambda * c.direction[0] * line->at(i);
  for (std::size_t n = steps; n-- > 0;) {
    const StepCoefficients k = step(n);
    score[n] = scores(here, n, *line);
    const Numbers base = scores(frozen, n, *line);
    next.swap(v);
    v.assign(points, 0.0);
    for (std::size_t i = 0; i < points; ++i) {
      double mass = 0, sum = 0, slope = 0;
      line->for_each_weight(k.growth * line->at(i) + k.pull * score[n][i], k.noise,
                            [&](std::size_t j, double w, double u) {
                              mass += w;
                              sum += w * next[j];
                              slope += w * u * next[j];
                            });
      if (!(mass > 0)) continue;
      const double apart = score[n][i] - base[i];
      v[i] = c.beta * k.penalty * apart * apart + sum / mass;
      pull[n][i] = k.pull * slope / mass / k.noise + 2 * c.beta * k.penalty * apart;
    }
  }

  // Forward: the density, and the gradient with it.
  constexpr double h = 1e-5;
  std::vector<ScoreModel<double>> up, down;
  for (std::size_t j = 0; j < theta.size(); ++j) {
    Numbers at = theta;
    at[j] = theta[j] + h;
    up.push_back(prepared_at(at));
    at[j] = theta[j] - h;
    down.push_back(prepared_at(at));
  }
  Numbers gradient(theta.size()), p(points);
  for (std::size_t i = 0; i < points; ++i)
    p[i] = line->spacing * std::exp(-line->at(i) * line->at(i) / 2) / std::sqrt(2 * std::numbers::pi);
  for (std::size_t n = 0; n < steps; ++n) {
    const StepCoefficients k = step(n);
    for (std::size_t j = 0; j < theta.size(); ++j) {
      const Numbers more = scores(up[j], n, *line), less = scores(down[j], n, *line);
      for (std::size_t i = 0; i < points; ++i) gradient[j] += p[i] * pull[n][i] * (more[i] - less[i]) / (2 * h);
    }
    next.assign(points, 0.0);
    const double share = line->spacing / (k.noise * std::sqrt(2 * std::numbers::pi));
    for (std::size_t i = 0; i < points; ++i)
      if (p[i] > 1e-15)
        line->for_each_weight(k.growth * line->at(i) + k.pull * score[n][i], k.noise,
                              [&](std::size_t j, double w, double) { next[j] += share * p[i] * w; });
    p.swap(next);
  }
  return gradient;
}

}  // namespace program
