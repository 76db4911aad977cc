#include "rates/experiment.hpp"

#include "implicit_diffusion/langevin/rates.hpp"
#include "problems/mean_field.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace program {

using namespace implicit_diffusion;
using Rows = std::vector<CheckRow>;

namespace {

// E|X - c| of a standard normal X by Simpson's rule, on either side of the kink.
double mean_distance(double c) {
  constexpr int pieces = 4000;
  const auto density = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); };
  const auto side = [&](double from, double to) {
    const double h = (to - from) / pieces;
    double sum = 0;
    for (int i = 0; i <= pieces; ++i) {
      const double x = from + i * h, weight = i == 0 || i == pieces ? 1 : i % 2 == 1 ? 4 : 2;
      sum += weight * std::abs(x - c) * density(x) * h / 3;
    }
    return sum;
  };
  const double far = std::abs(c) + 12;
  return side(-far, c) + side(c, far);
}
double gap_by_quadrature(double c) { return mean_distance(c) - mean_distance(0); }

double erf_of(double x) { return std::erf(x / std::numbers::sqrt2); }

// The recursion with the proved pair of schedules, written out: the average after `steps`.
double average_by_hand(double c, double scale, std::int64_t steps) {
  double theta = 0, m = 0, v = 1, sum = 0;
  for (std::int64_t k = 1; k <= steps; ++k) {
    const double gamma = scale * std::pow(static_cast<double>(k), -1.0 / 3), eps = gamma / scale;
    const double estimate = v * erf_of((m - c) / std::sqrt(v));
    sum += std::pow(erf_of(theta - c), 2);
    m += gamma * (theta - m);
    v += -2 * gamma * v + gamma * gamma * v + 2 * gamma;
    theta -= gamma * eps * estimate;
  }
  return sum / static_cast<double>(steps);
}

// The flow by the midpoint rule in small steps; v = 1 stays.
MeanField flow_by_hand(double c, int time) {
  constexpr int pieces = 2000;
  constexpr double h = 1.0 / pieces;
  double theta = 0, m = 0, sum = 0;
  for (int k = 0; k < time * pieces; ++k) {
    const double t = (k + 0.5) * h, eps = std::min(1.0, 1 / std::sqrt(t)),
                 begin = std::min(1.0, 1 / std::sqrt(t - h / 2));
    const double theta_half = theta - h / 2 * begin * erf_of(m - c), m_half = m + h / 2 * (theta - m);
    sum += h * std::pow(erf_of(theta_half - c), 2);
    theta -= h * eps * erf_of(m_half - c);
    m += h * (theta_half - m_half);
  }
  return {.theta = theta, .m = m, .v = 1, .average = sum / time};
}

// Worst cases over a few targets: averages divided by gaps, all written out.
template <class Average>
RateRow worst_by_hand(double horizon, const std::vector<double>& targets, Average&& average) {
  RateRow worst{horizon, 0, 0};
  for (const double c : targets)
    if (const double ratio = average(c) / gap_by_quadrature(c); ratio > worst.worst_average)
      worst = {horizon, ratio, c};
  return worst;
}

void check_flow(Rows& rows) {
  constexpr double digits = 1e-10, flow_digits = 2e-6;
  const std::vector<double> targets{1, 2.5, 6};
  std::vector<double> expected, got;
  for (const double c : targets) expected.push_back(gap_by_quadrature(c)), got.push_back(initial_gap(c));
  rows.push_back(compare("l(0) - inf l, quadrature", expected, got, digits));

  const std::vector<double> times{1, 12};
  expected.clear(), got.clear();
  for (const double c : targets) {
    const std::vector<MeanField> flow = mean_field_flow(c, times);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const MeanField hand = flow_by_hand(c, static_cast<int>(times[i]));
      expected.insert(expected.end(), {hand.theta, hand.m, hand.v, hand.average});
      got.insert(got.end(), {flow[i].theta, flow[i].m, flow[i].v, flow[i].average});
    }
  }
  rows.push_back(compare("flow, midpoint rule in small steps", expected, got, flow_digits));

  const auto numbers = [](const std::vector<RateRow>& all) {
    std::vector<double> out;
    for (const RateRow& r : all) out.insert(out.end(), {r.horizon, r.worst_average, r.worst_target});
    return out;
  };
  std::vector<RateRow> by_hand;
  for (const double time : times)
    by_hand.push_back(
        worst_by_hand(time, targets, [&](double c) { return flow_by_hand(c, static_cast<int>(time)).average; }));
  rows.push_back(
      compare("worst of the flow, by hand", numbers(by_hand), numbers(flow_rates(targets, times)), flow_digits));

  by_hand.clear();
  const std::vector<std::int64_t> steps{10, 300};
  constexpr double scale = 0.5;
  for (const std::int64_t k : steps)
    by_hand.push_back(
        worst_by_hand(static_cast<double>(k), targets, [&](double c) { return average_by_hand(c, scale, k); }));
  rows.push_back(compare("worst of the recursion, by hand", numbers(by_hand),
                         numbers(discrete_rates(1.0 / 3, scale, targets, steps)), digits));

  // Slopes of 2 K^-0.4, one of the points moved: those of least squares at log K = 0, 1, 3.
  const std::vector<RateRow> line{
      {1, 2, 1}, {std::exp(1.0), 2 * std::exp(-0.4 + 0.7), 1}, {std::exp(3.0), 2 * std::exp(-1.2), 1}};
  rows.push_back(
      compare("fitted slope, by hand", std::vector{-0.4 - 0.7 / 14}, std::vector{fitted_slope(line)}, digits));
}

Rows check_rates() {
  const problems::MeanFieldAnswers known;
  constexpr double digits = 1e-10;
  const auto numbers = [](const MeanField& s) { return std::vector<double>{s.theta, s.m, s.v, s.average}; };
  const std::vector<MeanField> s = mean_field_recursion(cube_root_pair(known.scale), known.target, known.steps);
  const std::vector<double> after_5 = numbers(known.after_5);
  const std::vector<double> after_1000{known.theta_after_1000, known.average_after_1000};
  const SchedulePair square_roots{{known.scale, 0.5}, {known.scale, 1.0}};
  const std::vector<MeanField> wrong = mean_field_recursion(square_roots, known.target, known.steps);
  Rows rows{
      compare("after 5 steps, known numbers", after_5, numbers(s[0]), digits),
      compare("after 1000 steps, known numbers", after_1000, std::vector<double>{s[1].theta, s[1].average}, digits),
      must_be_off(compare("  with square roots for cube roots", after_5, numbers(wrong[0]), digits))};
  check_flow(rows);
  return rows;
}

}  // namespace

std::vector<Problem> RatesExperiment::checks() const { return {{configuration().experiment, check_rates}}; }

}  // namespace program
