// Central differences of sixth order:
//
//     f'(0) = [45 (f(h) - f(-h)) - 9 (f(2h) - f(-2h)) + (f(3h) - f(-3h))] / (60 h)  +  h^6 f^(7) / 140
//
// With h a hundredth of the unit in which f varies, truncation is 1e-14 times a seventh derivative and rounding 1e-14
// f: both far below 1e-8 f.
#pragma once

#include <cstddef>
#include <vector>

namespace implicit_diffusion {

inline constexpr double difference_step = 0.01;  // h, in units

// Of f(t), a number, at t = 0.
template <class F>
double difference(F&& f, double unit) {
  const double h = difference_step * unit;
  return (45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (60 * h);
}

// Of f(t), several numbers.
template <class F>
std::vector<double> differences(F&& f, double unit) {
  const double h = difference_step * unit;
  std::vector<double> sum;
  const auto add = [&](double t, double weight) {
    const std::vector<double> values = f(t);
    sum.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) sum[i] += weight / (60 * h) * values[i];
  };
  add(h, 45), add(-h, -45), add(2 * h, -9), add(-2 * h, 9), add(3 * h, 1), add(-3 * h, -1);
  return sum;
}

}  // namespace implicit_diffusion
