// A Langevin experiment, checked at its first theta. Numbers without noise are compared at points of the law
// (probe_points.hpp):
//
//     dV/dx, dV/dtheta          in double precision against central differences of V, in single against double
//     unrolled                  its gradient against central differences of -lambda mean R(x'(theta)), same noise
//     guided                    its drift against central differences of V - lambda R, and of its step
//
// and the sampler by what it does to many copies of one point, and to chains that have been running for ever:
//
//     step_size                 below the largest for which the chain is stable
//     one step                  mean and variance of x' - x: -g dV/dx and 2 g
//     stationary law            of a quadratic potential: covariance (P - g P^2 / 2)^-1, which is not P^-1
//
// The closed form of E[R] is compared with exact samples, and the gradients are in check_gradients.cpp.
#include "implicit_diffusion/differences.hpp"
#include "implicit_diffusion/finite/implicit_function.hpp"
#include "implicit_diffusion/population_arrays.hpp"
#include "langevin/experiment.hpp"
#include "langevin/probe_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace program {
namespace {

using namespace implicit_diffusion;
using Rows = std::vector<CheckRow>;

// What central differences are allowed, in units; roundings of single precision that kernels are.
constexpr double difference_error = 1e-8;
constexpr double single_precision_errors = 2;

// The points with coordinate j moved by t.
Population<double> shifted(Population<double> x, std::size_t j, double t) {
  for (double& v : x.coordinate(j)) v += t;
  return x;
}

// For each of the rows of n numbers the same tolerance.
std::vector<double> tolerances(std::span<const double> units, std::size_t n, double share) {
  std::vector<double> all;
  for (const double unit : units) all.insert(all.end(), n, share / unit);
  return all;
}

// Central differences of values_at(j, t), a number for each point, in each of the units.
template <class ValuesAt>
std::vector<double> all_differences(std::span<const double> units, ValuesAt&& values_at) {
  std::vector<double> all;
  for (std::size_t j = 0; j < units.size(); ++j)
    append(all, differences([&](double t) { return values_at(j, t); }, units[j]));
  return all;
}

// A comparison at all points, in rows as long as there are units; its row goes without the number of the point.
CheckRow compare_at_points(const std::string& what, const std::vector<double>& expected, const std::vector<double>& got,
                           std::span<const double> units, double share) {
  CheckRow row = compare("", expected, got, tolerances(units, expected.size() / units.size(), share));
  row.what = what;
  return row;
}

void check_derivatives(const ProbePoints& probes, Rows& rows) {
  const Population<float> single = in_single_precision(probes.points);
  const Potential<float> fast = prepared(probes.fast, probes.theta);
  const auto check = [&](const std::string& name, std::span<const double> units, const std::vector<double>& quotients,
                         const std::vector<double>& exact, const std::vector<double>& in_single) {
    rows.push_back(compare_at_points(name + ", central differences", quotients, exact, units, difference_error));
    rows.push_back(compare_at_points(name + ", single precision", exact, in_single, units,
                                     single_precision_errors * probes.rounding));
  };
  const std::vector<double> dx = gradients_x(probes.exact, probes.points);
  const std::vector<double> dx_quotients = all_differences(
      probes.unit_x, [&](std::size_t j, double t) { return values(probes.exact, shifted(probes.points, j, t)); });
  check("dV/dx", probes.unit_x, dx_quotients, dx, gradients_x(fast, single));
  check("dV/dtheta", probes.unit_theta,
        all_differences(
            probes.unit_theta,
            [&](std::size_t k, double t) { return values(prepared(probes.exact, probes.moved(k, t)), probes.points); }),
        gradients_theta(probes.exact, probes.points, probes.parameters),
        gradients_theta(fast, single, probes.parameters));
  const char* const wrong = "  dV/dx times 1.001";
  const auto against = [&](const std::vector<double>& expected) {
    return compare_at_points(wrong, expected, scaled(dx, 1.001), probes.unit_x, difference_error);
  };
  const CheckRow seen = against(dx);
  rows.push_back(seen.error > 2 * seen.allowed ? must_be_off(against(dx_quotients))
                                               : left_out(wrong, "V is too flat for it to be seen"));
}

// The chain of a step beyond the limit goes to infinity, whatever else is right.
void check_step_size(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  const auto limit = probes.exact.largest_stable_step();
  if (!limit) return;
  const double below_one = std::nextafter(1.0, 0.0);
  rows.push_back(compare("step_size over the largest stable", std::vector{0.0}, std::vector{c.step_size / *limit},
                         std::vector{below_one}));
}

// One step from many copies of the point at which V is steepest. The standard errors are known: sqrt(2 g / n) of the
// mean, 2 g sqrt(2 / n) of the variance; to them come roundings of x in single precision.
void check_step(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  const std::size_t d = probes.exact.dimension(), n = (std::size_t{1} << 20) / d, points = probes.points.size();
  const double g = c.step_size;
  const std::vector<double> slopes = gradients_x(probes.exact, probes.points);
  std::vector<double> sizes(points);
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t i = 0; i < points; ++i) sizes[i] += std::pow(slopes[j * points + i] * probes.unit_x[j], 2);
  const auto steepest = static_cast<std::size_t>(std::ranges::max_element(sizes) - sizes.begin());

  const auto spacing = [&](std::size_t j) { return 0x1p-24 * std::abs(probes.points(steepest, j)); };
  for (std::size_t j = 0; j < d; ++j)
    if (spacing(j) > 0.1 * std::sqrt(2 * g)) {
      rows.push_back(left_out("one step", "single precision does not resolve its noise"));
      return;
    }

  Population<float> x(n, d);
  for (std::size_t j = 0; j < d; ++j)
    std::ranges::fill(x.coordinate(j), static_cast<float>(probes.points(steepest, j)));
  Langevin<float>(probes.fast, {.step_size = {g}, .noise = Noise(c.seed)}).advance(x, probes.theta, {});

  std::vector<double> expected, mean(d), mean_error, variance(d), variance_error;
  for (std::size_t j = 0; j < d; ++j) {
    const double from = probes.points(steepest, j);
    for (const float v : x.coordinate(j)) mean[j] += (static_cast<double>(v) - from) / static_cast<double>(n);
    for (const float v : x.coordinate(j))
      variance[j] += std::pow(static_cast<double>(v) - from - mean[j], 2) / static_cast<double>(n - 1);
    expected.push_back(-g * slopes[j * points + steepest]);
    mean_error.push_back(std::sqrt(2 * g / static_cast<double>(n)) + spacing(j));
    variance_error.push_back(2 * g * std::sqrt(2.0 / static_cast<double>(n)) + spacing(j) * std::sqrt(2 * g));
  }
  rows.push_back(compare_means("one step: mean of x' - x", expected, mean, mean_error));
  const std::vector<double> two_g(d, 2 * g);
  rows.push_back(compare_means("one step: variance of x' - x", two_g, variance, variance_error));
  const char* const halved = "  with noise sqrt(g) z";
  // Far from the origin, roundings of x hide half of the variance.
  rows.push_back(g > 2 * largest_z * largest(variance_error)
                     ? must_be_off(compare_means(halved, two_g, scaled(variance, 0.5), variance_error))
                     : left_out(halved, "in single precision it is too small to be seen"));
}

// (P - g P^2 / 2)^-1.
std::vector<double> stationary_covariance(const std::vector<std::vector<double>>& p, double g) {
  const std::size_t d = p.size();
  std::vector<double> matrix(d * d), inverse(d * d), unit(d);
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = 0; b < d; ++b) {
      matrix[a * d + b] = p[a][b];
      for (std::size_t k = 0; k < d; ++k) matrix[a * d + b] -= 0.5 * g * p[a][k] * p[k][b];
    }
  const ImplicitFunction system(std::move(matrix), d);
  for (std::size_t a = 0; a < d; ++a) {
    unit.assign(d, 0.0);
    unit[a] = 1;
    system.solve(unit, std::span(inverse).subspan(a * d, d));
  }
  return inverse;
}

// Chains that start with the law they ought to keep, and 64 steps later still have. The covariance of n Gaussian pairs
// has standard error sqrt((s_aa s_bb + s_ab^2) / (n - 1)).
void check_stationary_law(const LangevinConfiguration& c, const Matrix& precision, const ProbePoints& probes,
                          Rows& rows) {
  const std::size_t d = probes.exact.dimension(), n = (std::size_t{1} << 17) / d;
  const double g = c.step_size;
  const char* const what = "covariance after 64 steps";
  if (const auto stable = probes.exact.largest_stable_step(); stable && g >= *stable) {
    rows.push_back(left_out(what, fmt::format("step_size {} is unstable; it must be below {:.6g}", g, *stable)));
    return;
  }
  const std::vector<double> s = stationary_covariance(precision, g);
  Population<float> x(n, d);
  MixtureSampler({{1.0}, {{probes.theta, s}}}, check_noise(c.seed)).draw(x, -2);
  Langevin<float> sampler(probes.fast, {.step_size = {g}, .noise = Noise(c.seed)});
  for (std::int64_t k = 0; k < 64; ++k) sampler.advance(x, probes.theta, {.round = k});

  std::vector<double> mean(d), mean_error, expected, unbiased, got, error;
  for (std::size_t a = 0; a < d; ++a) {
    for (const float v : x.coordinate(a)) mean[a] += static_cast<double>(v) / static_cast<double>(n);
    mean_error.push_back(std::sqrt(s[a * d + a] / static_cast<double>(n)) + 0x1p-24 * std::abs(probes.theta[a]));
  }
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i)
        sum += (static_cast<double>(x(i, a)) - mean[a]) * (static_cast<double>(x(i, b)) - mean[b]);
      got.push_back(sum / static_cast<double>(n - 1));
      expected.push_back(s[a * d + b]);
      unbiased.push_back(probes.law->components[0].covariance[a * d + b]);
      error.push_back(
          std::sqrt((s[a * d + a] * s[b * d + b] + s[a * d + b] * s[a * d + b]) / static_cast<double>(n - 1)));
    }
  rows.push_back(compare_means("mean after 64 steps", probes.theta, mean, mean_error));
  rows.push_back(compare_means(what, expected, got, error));

  double bias = 0;
  for (std::size_t k = 0; k < error.size(); ++k) bias = std::max(bias, std::abs(expected[k] - unbiased[k]) / error[k]);
  const char* const wrong = "  without the bias of the step";
  rows.push_back(bias > 2 * largest_z ? must_be_off(compare_means(wrong, unbiased, got, error))
                                      : left_out(wrong, fmt::format("too small to detect at step_size {}", g)));
}

template <class Real>
std::vector<double> unrolled_gradient(const LangevinConfiguration& c, const ProbePoints& probes,
                                      const Potential<Real>& potential, Population<Real> x) {
  std::vector<double> gradient(probes.theta.size());
  Unrolled<Real> unrolled(potential, c.smooth_reward->make<Real>(),
                          {.step_size = {c.step_size}, .noise = Noise(c.seed)}, c.smooth_reward->lambda);
  unrolled.advance(x, probes.theta, {});
  unrolled.estimate(x, probes.theta, 0, gradient);
  return probes.chosen(gradient);
}

// The points, each moved along the first axis, a reach at a time, until neither it nor where its step leads is within
// reach of a kink of R: there differences are not derivatives. Nothing where that has no end.
std::optional<Population<double>> clear_of_kinks(const RewardSpec& spec, const ProbePoints& probes,
                                                 const LangevinOptions& options, double reach) {
  Population<double> x = probes.points;
  for (int tries = 0; tries < 1000; ++tries) {
    Population<double> next = x;
    Langevin<double>(probes.exact, options).advance(next, probes.theta, {});
    const std::vector<double> here = to_rows(x), there = to_rows(next);
    const std::size_t d = x.dimension();
    const auto near = [&](const std::vector<double>& rows, std::size_t i) {
      return spec.distance_to_kink(std::span(rows).subspan(i * d, d)) < reach;
    };
    bool clear = true;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (near(here, i) || near(there, i)) {
        x(i, 0) += reach;
        clear = false;
      }
    if (clear) return x;
  }
  return std::nullopt;
}

void check_baselines(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  const RewardSpec& spec = *c.smooth_reward;
  const Reward<double> reward = spec.make<double>();
  const double g = c.step_size;
  // What is below the numbers of single precision is nothing to a run.
  const double height_alone =
      std::max<double>(largest(values(reward, probes.points)), std::numeric_limits<float>::min());
  const double height = std::abs(spec.lambda) * height_alone;
  const LangevinOptions options{.step_size = {g}, .noise = Noise(c.seed)};

  std::vector<double> unit_x = probes.unit_x, unit_theta = probes.unit_theta;
  double finer = 1;
  const std::size_t n = probes.points.size();
  const std::vector<double> slopes = gradients_x(reward, probes.points);
  for (std::size_t j = 0; j < unit_x.size(); ++j) {
    const double length = std::min(spec.length(), height_alone * unit_of(largest(std::span(slopes).subspan(j * n, n))));
    finer = std::min(finer, length / unit_x[j]);
    unit_x[j] = std::min(unit_x[j], length);
  }
  for (double& unit : unit_theta) unit *= finer;
  const auto cleared = clear_of_kinks(spec, probes, options, *std::ranges::max_element(unit_x));
  if (!cleared) {
    rows.push_back(left_out("unrolled, guided", "the reward has a kink wherever there are samples"));
    return;
  }
  const Population<double>& points = *cleared;

  // Unrolling through one step.
  std::vector<double> quotients;
  for (std::size_t k = 0; k < unit_theta.size(); ++k) {
    const auto objective = [&](double t) {
      Population<double> x = points;
      Langevin<double>(probes.exact, options).advance(x, probes.moved(k, t), {});
      return -spec.lambda * mean_of(values(reward, x));
    };
    quotients.push_back(difference(objective, unit_theta[k]));
  }
  const std::vector<double> unrolled = unrolled_gradient(c, probes, probes.exact, points);
  const std::vector<double> allowed = tolerances(unit_theta, 1, difference_error * height);
  rows.push_back(compare("unrolled, differences, same noise", quotients, unrolled, allowed));
  rows.push_back(compare("unrolled, single precision", unrolled,
                         unrolled_gradient(c, probes, probes.fast, in_single_precision(points)),
                         tolerances(unit_theta, 1, single_precision_errors * probes.rounding * height)));
  const char* const minus = "  minus unrolled";
  const bool vanishes = compare("", scaled(unrolled, 0), unrolled, allowed).verdict == Verdict::ok;
  rows.push_back(vanishes ? left_out(minus, "the unrolled gradient vanishes")
                          : must_be_off(compare(minus, quotients, scaled(unrolled, -1), allowed)));

  // Guidance.
  const Potential<double> bent = prepared(guided<double>(probes.exact, reward, spec.lambda), probes.theta);
  const double share = difference_error * (1 + height);
  const auto differences_of = [&](const auto& f) {
    return all_differences(unit_x, [&](std::size_t j, double t) { return values(f, shifted(points, j, t)); });
  };
  rows.push_back(compare_at_points("guided: drift, central differences", differences_of(bent),
                                   gradients_x(bent, points), unit_x, share));

  Population<double> plain = points, pulled = points;
  Langevin<double>(probes.exact, options).advance(plain, probes.theta, {});
  Langevin<double>(bent, options).advance(pulled, probes.theta, {});
  std::vector<double> pull;
  for (std::size_t j = 0; j < probes.exact.dimension(); ++j)
    for (std::size_t i = 0; i < pulled.size(); ++i) pull.push_back((pulled(i, j) - plain(i, j)) / g);
  double rounding = 0;  // of the two positions, in units
  for (std::size_t j = 0; j < unit_x.size(); ++j)
    rounding = std::max(rounding, 0x1p-51 * largest(pulled.coordinate(j)) / g * unit_x[j]);
  rows.push_back(compare_at_points("guided: step less plain step, over g", scaled(differences_of(reward), spec.lambda),
                                   pull, unit_x, share + rounding));
}

// The mean reward of exact samples against the closed form.
void check_expected_reward(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  const Reward<float> reward = c.reward->make<float>();
  const char* const what = "E[R] of exact samples";
  const std::optional<double> exact = reward.expectation(*probes.law);
  if (!exact) {
    rows.push_back(left_out(what, "E[R] has no closed form"));
    return;
  }
  constexpr std::size_t batches = 1000, size = 1000;
  const MixtureSampler samples(*probes.law, check_noise(c.seed));
  Population<float> x(size, probes.law->dimension());
  BatchMeans means(1);
  for (std::size_t b = 0; b < batches; ++b) {
    samples.draw(x, static_cast<std::int64_t>(b));
    means.add(std::vector<double>{mean_of(values(reward, x))});
  }
  const double unseen = (3.0 / (batches * size) + probes.rounding) * probes.height(*c.reward);
  const std::vector<double> error{means.standard_error()[0] + unseen};
  rows.push_back(compare_means(what, std::vector<double>{*exact}, means.mean(), error));
}

Rows check_langevin(const LangevinConfiguration& c) {
  check_input_files(c);
  Rows rows;
  const ProbePoints probes(c, c.start.theta);
  check_derivatives(probes, rows);
  check_step_size(c, probes, rows);
  check_step(c, probes, rows);
  if (const auto* quadratic = std::get_if<QuadraticSpec>(&c.potential.part))
    check_stationary_law(c, quadratic->precision, probes, rows);
  if (c.smooth_reward) check_baselines(c, probes, rows);
  if (!probes.law) {
    rows.push_back(left_out("gradients", "the law of this potential has no closed form"));
    return rows;
  }
  if (c.reward) check_expected_reward(c, probes, rows);
  check_gradients(c, probes, rows);
  return rows;
}

}  // namespace

std::vector<Problem> LangevinExperiment::checks() const {
  return {langevin_problem(configuration().experiment, configuration())};
}

Problem langevin_problem(const std::string& name, LangevinConfiguration c) {
  c.seed = problem_seed(c.seed, name);
  return {name, [c = std::move(c)] { return check_langevin(c); }};
}

}  // namespace program
