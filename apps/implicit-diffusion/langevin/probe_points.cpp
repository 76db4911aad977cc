#include "langevin/probe_points.hpp"

#include "implicit_diffusion/population_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace program {

using namespace implicit_diffusion;

namespace {

constexpr std::size_t points_in_all = 256;
constexpr std::size_t most_parameters = 64;

// The step is halved until no point runs away: a potential that grows faster than a square, as a double well does,
// throws out those that start too far from the middle.
Population<double> draw_points(const LangevinConfiguration& c, const Potential<double>& potential,
                               const std::vector<double>& theta) {
  constexpr std::int64_t steps = 100;
  Population<double> x(points_in_all, potential.dimension());
  for (double step = c.step_size;; step /= 2) {
    StandardNormalStart<double>{check_noise(c.seed)}.draw(x, -1);
    Langevin<double> chain(potential, {.step_size = {step}, .noise = check_noise(c.seed)});
    for (std::int64_t k = 0; k < steps; ++k) chain.advance(x, theta, {.round = k});
    if (!find_nonfinite(x) || step < 1e-6 * c.step_size) return x;
  }
}

Population<double> draw_points(GaussianMixture law, std::uint64_t seed) {
  std::fill(law.weights.begin(), law.weights.end(), 1.0 / static_cast<double>(law.weights.size()));
  Population<double> x(points_in_all, law.dimension());
  MixtureSampler(law, check_noise(seed)).draw(x, -1);
  return x;
}

// At most `unit`, and so short that V moves by 4 at most from a point to one so far along the axis.
double short_unit(double unit, std::size_t axis, const Potential<double>& potential, const Population<double>& points) {
  const std::vector<double> here = values(potential, points);
  const auto most_moved = [&](double by) {
    Population<double> there = points;
    for (double& v : there.coordinate(axis)) v += by;
    const std::vector<double> moved = values(potential, there);
    double most = 0;
    for (std::size_t i = 0; i < here.size(); ++i) most = std::max(most, std::abs(moved[i] - here[i]));
    return most;
  };
  while (unit > 1e-30 && !(most_moved(unit) <= 4 && most_moved(-unit) <= 4)) unit /= 2;
  return unit;
}

}  // namespace

ProbePoints::ProbePoints(const LangevinConfiguration& c, const std::vector<double>& at)
    : fast(c.potential.make<float>()),
      exact(c.potential.make<double>()),
      theta(at),
      law(fast.law(at)),
      points(law ? draw_points(*law, c.seed) : draw_points(c, exact, at)) {
  exact.prepare(theta);
  const std::size_t p = exact.parameters(), shown = std::min(p, most_parameters);
  for (std::size_t k = 0; k < shown; ++k) parameters.push_back(k * p / shown);

  const std::size_t n = points.size();
  const std::vector<double> by_x = gradients_x(exact, points), by_theta = gradients_theta(exact, points, parameters);
  // Wells are all alike: their slopes show how narrow they are.
  std::vector<double> narrowest(exact.dimension(), std::numeric_limits<double>::infinity());
  if (std::holds_alternative<MixtureSpec>(c.potential.part))
    for (std::size_t i = 0; i < law->components.size(); ++i) {
      if (law->weights[i] < std::numeric_limits<double>::epsilon()) continue;  // V does not show it
      const std::vector<double> deviations = conditional_deviations(law->components[i]);
      for (std::size_t j = 0; j < narrowest.size(); ++j) narrowest[j] = std::min(narrowest[j], deviations[j]);
    }
  rounding = 0;
  for (std::size_t j = 0; j < exact.dimension(); ++j) {
    unit_x.push_back(short_unit(unit_of(largest(std::span(by_x).subspan(j * n, n))), j, exact, points));
    unit_x[j] = std::min(unit_x[j], narrowest[j]);
    rounding = std::max(rounding, largest(points.coordinate(j)) / unit_x[j]);
  }
  rounding = 0x1p-23 * (rounding + static_cast<double>(exact.dimension()));
  for (std::size_t k = 0; k < shown; ++k) {
    unit_theta.push_back(
        std::min(unit_of(largest(std::span(by_theta).subspan(k * n, n))), c.potential.scale(theta, parameters[k])));
  }
}

double ProbePoints::height(const RewardSpec& spec) const {
  const Reward<double> reward = spec.make<double>();
  const auto centre = from_rows<double, double>(spec.centre, spec.centre.size());
  return std::max(largest(values(reward, points)), largest(values(reward, centre)));
}

std::vector<double> ProbePoints::chosen(std::span<const double> all) const {
  std::vector<double> some;
  for (const std::size_t j : parameters) some.push_back(all[j]);
  return some;
}

std::vector<double> ProbePoints::moved(std::size_t k, double t) const {
  std::vector<double> there = theta;
  there[parameters[k]] += t;
  return there;
}

Population<float> in_single_precision(const Population<double>& x) {
  return from_rows<float, double>(to_rows(x), x.dimension());
}

double largest(std::span<const double> numbers) {
  double most = 0;
  for (const double v : numbers) most = std::max(most, std::abs(v));
  return most;
}

double mean_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

std::vector<double> scaled(std::vector<double> numbers, double factor) {
  for (double& v : numbers) v *= factor;
  return numbers;
}

}  // namespace program
