// A Langevin experiment, checked at its first theta. Numbers without noise are compared at points of the law
// (probe_points.hpp):
//
//     dV/dx, dV/dtheta          in double precision against central differences of V, in single against double
//     unrolled                  its gradient against central differences of -mean R(x'(theta)), with the same noise
//     guided                    its drift against central differences of V - lambda R, and of its step
//
// and the sampler by what it does to many copies of one point, and to chains that have been running for ever:
//
//     one step                  mean and variance of x' - x: -g dV/dx and 2 g
//     stationary law            of a quadratic potential: covariance (P - g P^2 / 2)^-1, which is not P^-1
#include "implicit_diffusion/differences.hpp"
#include "implicit_diffusion/finite/implicit_function.hpp"
#include "langevin/experiment.hpp"
#include "langevin/probe_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  for (std::size_t j = 0; j < units.size(); ++j) {
    const std::vector<double> row = differences([&](double t) { return values_at(j, t); }, units[j]);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

// The row of a comparison at n points, without the number of the point.
CheckRow at_points(CheckRow row, std::string what) {
  row.what = std::move(what);
  return row;
}

void check_derivatives(const ProbePoints& probes, Rows& rows) {
  const std::size_t n = probes.points.size();
  const Population<float> single = in_single_precision(probes.points);
  Potential<float> fast = probes.fast;
  fast.prepare(probes.theta);

  const std::vector<double> dx = gradients_x(probes.exact, probes.points);
  const std::vector<double> dx_quotients = all_differences(
      probes.unit_x, [&](std::size_t j, double t) { return values(probes.exact, shifted(probes.points, j, t)); });
  const std::vector<double> allowed_x = tolerances(probes.unit_x, n, difference_error);
  rows.push_back(at_points(compare("", dx_quotients, dx, allowed_x), "dV/dx, central differences"));
  rows.push_back(at_points(compare("", dx, gradients_x(fast, single),
                                   tolerances(probes.unit_x, n, single_precision_errors * probes.rounding)),
                           "dV/dx, single precision"));

  const std::vector<double> dt = gradients_theta(probes.exact, probes.points, probes.parameters);
  const std::vector<double> dt_quotients = all_differences(probes.unit_theta, [&](std::size_t k, double t) {
    Potential<double> there = probes.exact;
    there.prepare(probes.moved(k, t));
    return values(there, probes.points);
  });
  rows.push_back(at_points(compare("", dt_quotients, dt, tolerances(probes.unit_theta, n, difference_error)),
                           "dV/dtheta, central differences"));
  rows.push_back(at_points(compare("", dt, gradients_theta(fast, single, probes.parameters),
                                   tolerances(probes.unit_theta, n, single_precision_errors * probes.rounding)),
                           "dV/dtheta, single precision"));

  std::vector<double> wrong = dx;
  for (double& g : wrong) g *= 1.001;
  rows.push_back(at_points(must_be_off(compare("", dx_quotients, wrong, allowed_x)), "  dV/dx times 1.001"));
}

// One step from many copies of the point at which V is steepest. The standard errors are known: sqrt(2 g / n) of the
// mean, 2 g sqrt(2 / n) of the variance; to them come roundings of x in single precision.
void check_step(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  const std::size_t d = probes.exact.dimension(), n = (std::size_t{1} << 20) / d;
  const double g = c.step_size;
  const std::vector<double> slopes = gradients_x(probes.exact, probes.points);
  std::size_t steepest = 0;
  double most = 0;
  for (std::size_t i = 0; i < probes.points.size(); ++i) {
    double size = 0;
    for (std::size_t j = 0; j < d; ++j) size += std::pow(slopes[j * probes.points.size() + i] * probes.unit_x[j], 2);
    if (size > most) steepest = i;
    most = std::max(most, size);
  }

  const auto spacing = [&](std::size_t j) { return 0x1p-24 * std::abs(probes.points(steepest, j)); };
  for (std::size_t j = 0; j < d; ++j)
    if (spacing(j) > 0.1 * std::sqrt(2 * g)) {
      rows.push_back(left_out("one step", fmt::format("step_size {}: single precision does not resolve its noise", g)));
      return;
    }

  Population<float> x(n, d);
  for (std::size_t j = 0; j < d; ++j)
    for (float& v : x.coordinate(j)) v = static_cast<float>(probes.points(steepest, j));
  Langevin<float>(probes.fast, {.step_size = {g}, .noise = Noise(c.seed)}).advance(x, probes.theta, {});

  std::vector<double> expected, mean(d), mean_error, variance(d), halved(d), variance_error;
  for (std::size_t j = 0; j < d; ++j) {
    const double from = probes.points(steepest, j);
    for (const float v : x.coordinate(j)) mean[j] += (static_cast<double>(v) - from) / static_cast<double>(n);
    for (const float v : x.coordinate(j))
      variance[j] += std::pow(static_cast<double>(v) - from - mean[j], 2) / static_cast<double>(n - 1);
    halved[j] = variance[j] / 2;
    expected.push_back(-g * slopes[j * probes.points.size() + steepest]);
    mean_error.push_back(std::sqrt(2 * g / static_cast<double>(n)) + spacing(j));
    variance_error.push_back(2 * g * std::sqrt(2.0 / static_cast<double>(n)) + spacing(j) * std::sqrt(2 * g));
  }
  rows.push_back(compare_means("one step: mean of x' - x", expected, mean, mean_error));
  const std::vector<double> two_g(d, 2 * g);
  rows.push_back(compare_means("one step: variance of x' - x", two_g, variance, variance_error));
  rows.push_back(must_be_off(compare_means("  with noise sqrt(g) z", two_g, halved, variance_error)));
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
    std::fill(unit.begin(), unit.end(), 0.0);
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
    rows.push_back(left_out(what, fmt::format("step_size {} is not stable, below {:.6g} it is", g, *stable)));
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
  if (bias > 2 * largest_z)
    rows.push_back(must_be_off(compare_means(wrong, unbiased, got, error)));
  else
    rows.push_back(left_out(wrong, fmt::format("at step_size {} it is too small to be seen", g)));
}

double mean_of(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

template <class Real>
std::vector<double> unrolled_gradient(const LangevinConfiguration& c, const ProbePoints& probes,
                                      const Potential<Real>& potential, Population<Real> x) {
  std::vector<double> gradient(probes.theta.size());
  Unrolled<Real> unrolled(potential, c.smooth_reward->make<Real>(),
                          {.step_size = {c.step_size}, .noise = Noise(c.seed)});
  unrolled.advance(x, probes.theta, {});
  unrolled.estimate(x, probes.theta, 0, gradient);
  return probes.chosen(gradient);
}

void check_baselines(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  const RewardSpec& spec = *c.smooth_reward;
  const Reward<double> reward = spec.make<double>();
  const std::size_t n = probes.points.size();
  const double g = c.step_size, height = std::max(largest(values(reward, probes.points)), 1e-300);
  const LangevinOptions options{.step_size = {g}, .noise = Noise(c.seed)};

  std::vector<double> unit_x = probes.unit_x, unit_theta = probes.unit_theta;
  double finer = 1;
  for (double& unit : unit_x) {
    finer = std::min(finer, spec.length() / unit);
    unit = std::min(unit, spec.length());
  }
  for (double& unit : unit_theta) unit *= finer;

  // Unrolling through one step.
  std::vector<double> quotients;
  for (std::size_t k = 0; k < unit_theta.size(); ++k) {
    const auto objective = [&](double t) {
      Population<double> x = probes.points;
      Langevin<double>(probes.exact, options).advance(x, probes.moved(k, t), {});
      return -mean_of(values(reward, x));
    };
    quotients.push_back(difference(objective, unit_theta[k]));
  }
  const std::vector<double> unrolled = unrolled_gradient(c, probes, probes.exact, probes.points);
  const std::vector<double> allowed = tolerances(unit_theta, 1, difference_error * height);
  rows.push_back(compare("unrolled, differences, same noise", quotients, unrolled, allowed));
  rows.push_back(compare("unrolled, single precision", unrolled,
                         unrolled_gradient(c, probes, probes.fast, in_single_precision(probes.points)),
                         tolerances(unit_theta, 1, single_precision_errors * probes.rounding * height)));
  std::vector<double> wrong = unrolled;
  for (double& v : wrong) v *= -1;
  const char* const minus = "  minus unrolled";
  if (compare("", std::vector<double>(unrolled.size()), unrolled, allowed).verdict == Verdict::off)
    rows.push_back(must_be_off(compare(minus, quotients, wrong, allowed)));
  else
    rows.push_back(left_out(minus, "the unrolled gradient vanishes"));

  // Guidance.
  Potential<double> bent = guided<double>(probes.exact, reward, spec.lambda);
  bent.prepare(probes.theta);
  const auto differences_of = [&](const auto& f) {
    return all_differences(unit_x, [&](std::size_t j, double t) { return values(f, shifted(probes.points, j, t)); });
  };
  rows.push_back(at_points(compare("", differences_of(bent), gradients_x(bent, probes.points),
                                   tolerances(unit_x, n, difference_error * (1 + std::abs(spec.lambda) * height))),
                           "guided: drift, central differences"));

  Population<double> plain = probes.points, pulled = probes.points;
  Langevin<double>(probes.exact, options).advance(plain, probes.theta, {});
  Langevin<double>(bent, options).advance(pulled, probes.theta, {});
  std::vector<double> pull, slopes = differences_of(reward);
  for (std::size_t j = 0; j < probes.exact.dimension(); ++j)
    for (std::size_t i = 0; i < n; ++i) pull.push_back((pulled(i, j) - plain(i, j)) / g);
  for (double& s : slopes) s *= spec.lambda;
  rows.push_back(at_points(
      compare("", slopes, pull, tolerances(unit_x, n, difference_error * (1 + std::abs(spec.lambda) * height))),
      "guided: step less plain step, over g"));
}

Rows check_langevin(const LangevinConfiguration& c) {
  check_files(c);
  Rows rows;
  const ProbePoints probes(c, c.start.theta);
  check_derivatives(probes, rows);
  check_step(c, probes, rows);
  if (const auto* quadratic = std::get_if<QuadraticSpec>(&c.potential.part))
    check_stationary_law(c, quadratic->precision, probes, rows);
  if (c.smooth_reward) check_baselines(c, probes, rows);
  if (!probes.law) {
    rows.push_back(left_out("gradients", "the law of the potential is not known"));
    return rows;
  }
  const Rows gradients = check_gradients(c);
  rows.insert(rows.end(), gradients.begin(), gradients.end());
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
