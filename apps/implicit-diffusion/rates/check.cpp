#include "problems/mean_field.hpp"
#include "rates/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace program {
namespace {

using namespace implicit_diffusion;

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
RateRow worst_by_hand(double horizon, const std::vector<double>& targets, auto&& average) {
  RateRow worst{horizon, 0, 0};
  for (const double c : targets)
    if (const double ratio = average(c) / gap_by_quadrature(c); ratio > worst.worst_average)
      worst = {horizon, ratio, c};
  return worst;
}

std::vector<double> as_vector(const MeanField& s) { return {s.theta, s.m, s.v, s.average}; }

std::vector<CheckRow> check_rates() {
  constexpr double digits = 1e-10, flow_digits = 2e-6;
  const problems::MeanFieldAnswers known;
  const auto follow = [&](const SchedulePair& schedules) {
    return mean_field_recursion(schedules, known.target, known.steps);
  };
  const std::vector<MeanField> s = follow(cube_root_pair(known.scale)),
                               wrong = follow({{known.scale, 0.5}, {known.scale, 1.0}});
  const std::vector<double> after_5 = as_vector(known.after_5), after_1000{s[1].theta, s[1].average},
                            known_1000{known.theta_after_1000, known.average_after_1000};

  const std::vector<double> targets{1, 2.5, 6}, times{1, 12};
  std::vector<double> gaps_by_hand, gaps, flows_by_hand, flows;
  for (const double c : targets) {
    gaps_by_hand.push_back(gap_by_quadrature(c));
    gaps.push_back(initial_gap(c));
    const std::vector<MeanField> flow = mean_field_flow(c, times);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const MeanField hand = flow_by_hand(c, static_cast<int>(times[i]));
      flows_by_hand.insert(flows_by_hand.end(), {hand.theta, hand.m, hand.v, hand.average});
      flows.insert(flows.end(), {flow[i].theta, flow[i].m, flow[i].v, flow[i].average});
    }
  }

  std::vector<RateRow> flow_rows, recursion_rows;
  for (const double time : times)
    flow_rows.push_back(
        worst_by_hand(time, targets, [&](double c) { return flow_by_hand(c, static_cast<int>(time)).average; }));
  const std::vector<std::int64_t> steps{10, 300};
  constexpr double scale = 0.5;
  for (const std::int64_t k : steps)
    recursion_rows.push_back(
        worst_by_hand(static_cast<double>(k), targets, [&](double c) { return average_by_hand(c, scale, k); }));

  // Slopes of 2 K^-0.4, one of the points moved: those of least squares at log K = 0, 1, 3.
  const std::vector<RateRow> line{
      {1, 2, 1}, {std::exp(1.0), 2 * std::exp(-0.4 + 0.7), 1}, {std::exp(3.0), 2 * std::exp(-1.2), 1}};
  return {
      compare("after 5 steps, known numbers", after_5, as_vector(s[0]), digits),
      compare("after 1000 steps, known numbers", known_1000, after_1000, digits),
      must_be_off(compare("  with square roots for cube roots", after_5, as_vector(wrong[0]), digits)),
      compare("l(0) - inf l, quadrature", gaps_by_hand, gaps, digits),
      compare("flow, midpoint rule in small steps", flows_by_hand, flows, flow_digits),
      compare("worst of the flow, by hand", numbers_of(flow_rows), numbers_of(flow_rates(targets, times)), flow_digits),
      compare("worst of the recursion, by hand", numbers_of(recursion_rows),
              numbers_of(discrete_rates(1.0 / 3, scale, targets, steps)), digits),
      compare("fitted slope, by hand", std::vector{-0.4 - 0.7 / 14}, std::vector{fitted_slope(line)}, digits)};
}

}  // namespace

std::vector<Problem> RatesExperiment::checks() const { return {{configuration().experiment, check_rates}}; }

}  // namespace program
