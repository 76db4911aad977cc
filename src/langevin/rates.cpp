#include "implicit_diffusion/langevin/rates.hpp"

#include "../require.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace implicit_diffusion {
namespace {

double squared_gradient(double theta, double c) {
  const double g = erf((theta - c) / std::numbers::sqrt2);
  return g * g;
}

double estimate(double m, double v, double c) { return v * erf((m - c) / std::sqrt(2 * v)); }

// theta, m, v and the integral of |grad l|^2.
using Flow = std::array<double, 4>;

Flow speed(double t, const Flow& y, double c) {
  const double eps = t < 1 ? 1 : 1 / std::sqrt(t);
  return {-eps * estimate(y[1], y[2], c), y[0] - y[1], 2 - 2 * y[2], squared_gradient(y[0], c)};
}

Flow along(const Flow& y, double h, const Flow& k) {
  Flow out;
  for (std::size_t i = 0; i < y.size(); ++i) out[i] = y[i] + h * k[i];
  return out;
}

template <class Run>
std::vector<RateRow> worst_over(std::span<const double> targets, std::vector<RateRow> rows, Run&& run) {
  for (const double c : targets) {
    const std::vector<MeanField> states = run(c);
    const double gap = initial_gap(c);
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (states[r].average / gap > rows[r].worst_average) rows[r] = {rows[r].horizon, states[r].average / gap, c};
  }
  return rows;
}

}  // namespace

std::vector<MeanField> mean_field_recursion(const SchedulePair& schedules, double c,
                                            std::span<const std::int64_t> steps) {
  std::vector<MeanField> out;
  MeanField s;
  double sum = 0;
  std::int64_t k = 0;
  for (const std::int64_t end : steps) {
    for (; k < end; ++k) {
      sum += squared_gradient(s.theta, c);
      const double gamma = schedules.sampler(k), gradient = estimate(s.m, s.v, c);
      s.m -= gamma * (s.m - s.theta);
      s.v = (1 - gamma) * (1 - gamma) * s.v + 2 * gamma;
      s.theta -= schedules.optimizer(k) * gradient;
    }
    s.average = sum / static_cast<double>(std::max<std::int64_t>(k, 1));
    out.push_back(s);
  }
  return out;
}

std::vector<MeanField> mean_field_flow(double c, std::span<const double> times, int steps_per_time) {
  require(steps_per_time > 0, "flow.steps_per_time", "it must be positive");
  std::vector<MeanField> out;
  Flow y{0, 0, 1, 0};
  const double h = 1.0 / steps_per_time;
  std::int64_t k = 0;
  for (const double time : times) {
    for (const std::int64_t end = std::llround(time * steps_per_time); k < end; ++k) {
      const double t = static_cast<double>(k) * h;
      const Flow a = speed(t, y, c), b = speed(t + h / 2, along(y, h / 2, a), c);
      const Flow d = speed(t + h / 2, along(y, h / 2, b), c), e = speed(t + h, along(y, h, d), c);
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += h / 6 * (a[i] + 2 * b[i] + 2 * d[i] + e[i]);
    }
    out.push_back({y[0], y[1], y[2], y[3] / (static_cast<double>(std::max<std::int64_t>(k, 1)) * h)});
  }
  return out;
}

double initial_gap(double c) {
  const double unit = std::sqrt(2 / std::numbers::pi);  // inf l = E|Z|
  return unit * (exp(-c * c / 2) - 1) + c * erf(c / std::numbers::sqrt2);
}

std::vector<double> rate_targets(double largest, double ratio) {
  require_positive("rates.largest", largest);
  require(ratio > 1, "rates.ratio", "it must be above 1");
  std::vector<double> out;
  for (double c = 1; c <= largest; c *= ratio) out.push_back(c);
  return out;
}

std::vector<RateRow> discrete_rates(double exponent, double scale, std::span<const double> targets,
                                    std::span<const std::int64_t> steps) {
  require_not_negative("rates.exponent", exponent);
  require_positive("rates.scale", scale);
  std::vector<RateRow> rows;
  for (const std::int64_t k : steps) rows.push_back({static_cast<double>(k), 0, 0});
  const SchedulePair schedules{{scale, exponent}, {scale, 2 * exponent}};
  return worst_over(targets, std::move(rows), [&](double c) { return mean_field_recursion(schedules, c, steps); });
}

std::vector<RateRow> flow_rates(std::span<const double> targets, std::span<const double> times, int steps_per_time) {
  std::vector<RateRow> rows;
  for (const double t : times) rows.push_back({t, 0, 0});
  return worst_over(targets, std::move(rows), [&](double c) { return mean_field_flow(c, times, steps_per_time); });
}

double fitted_slope(std::span<const RateRow> rows) {
  const auto n = static_cast<double>(rows.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const RateRow& row : rows) {
    x += log(row.horizon) / n;
    y += log(row.worst_average) / n;
  }
  for (const RateRow& row : rows) {
    xx += (log(row.horizon) - x) * (log(row.horizon) - x);
    xy += (log(row.horizon) - x) * (log(row.worst_average) - y);
  }
  return xy / xx;
}

}  // namespace implicit_diffusion
