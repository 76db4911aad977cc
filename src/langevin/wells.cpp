#include "implicit_diffusion/langevin/wells.hpp"

#include "implicit_diffusion/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace implicit_diffusion {
namespace {

// From natural logarithms to the units of exp2_fixed().
constexpr double logarithm_unit = std::numbers::log2e * exp2_unit;

double log_sum_exp(std::span<const double> t) {
  const double top = *std::max_element(t.begin(), t.end());
  double sum = 0;
  for (const double v : t) sum += exp(v - top);
  return top + log(sum);
}

// The values f(0), ..., f(n - 1).
template <class F>
std::vector<double> tabulate(std::size_t n, F&& f) {
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = f(i);
  return values;
}

}  // namespace

std::vector<double> softmax(std::span<const double> t) {
  const double norm = log_sum_exp(t);
  return tabulate(t.size(), [&](std::size_t i) { return exp(t[i] - norm); });
}

EqualWells::EqualWells(std::vector<std::vector<double>> centres, double q)
    : dimension_(centres.empty() ? 0 : centres.front().size()), size_(centres.size()), q_(q), centres_(std::move(centres)) {
  if (size_ == 0 || dimension_ == 0) throw Error(ErrorKind::usage, "potential.centres", "no centre is given");
  for (const auto& c : centres_)
    if (c.size() != dimension_)
      throw Error(ErrorKind::usage, "potential.centres",
                  fmt::format("centres of {} and of {} coordinates", dimension_, c.size()));
  require_positive("potential.width", q);
  std::vector<double> slope;
  for (const auto& c : centres_)
    for (const double v : c) slope.push_back(2.0 / q * v * logarithm_unit);
  slope_.assign(slope);
  set_log_weights(std::vector<double>(size_));
}

void EqualWells::set_log_weights(std::span<const double> log_weights) {
  offset_.assign(tabulate(size_, [&](std::size_t i) {
    double square = 0;
    for (const double v : centres_[i]) square += v * v;
    return (log_weights[i] - square / q_) * logarithm_unit;
  }));

  // Within the radius every term is below 2^120 and some term above 2^-100, so that the sum is a normal number and terms that are cut off at
  // 2^-126 do not count in single precision. |a_i . x| <= |a_i|_1 |x|_max.
  double below = std::numeric_limits<double>::infinity(), above = -1;
  for (std::size_t i = 0; i < size_; ++i) {
    double slope = 0;
    for (std::size_t j = 0; j < dimension_; ++j) slope += std::abs(slope_.exact()[i * dimension_ + j]) / exp2_unit;
    const double offset = offset_.exact()[i] / exp2_unit;
    const auto limit = [slope](double room) { return room < 0 ? -1.0 : slope == 0 ? std::numeric_limits<double>::max() : room / slope; };
    below = std::min(below, limit(120 - offset));
    above = std::max(above, limit(offset + 100));
  }
  const double radius = std::min({below, above, 1e30});
  scale_.assign({2.0 / q_, 1.0 / q_, radius, 1 / logarithm_unit});
}

GaussianMixture EqualWells::law(std::span<const double> weights) const {
  double total = 0;
  for (const double w : weights) total += w;
  std::vector<double> covariance(dimension_ * dimension_);
  for (std::size_t j = 0; j < dimension_; ++j) covariance[j * dimension_ + j] = q_ / 2;
  GaussianMixture m;
  for (std::size_t i = 0; i < size_; ++i) {
    m.weights.push_back(weights[i] / total);
    m.components.push_back({centres_[i], covariance});
  }
  return m;
}

void SoftmaxWells::prepare(std::span<const double> theta) {
  const double norm = log_sum_exp(theta);
  wells_.set_log_weights(tabulate(theta.size(), [&](std::size_t i) { return theta[i] - norm; }));
  weight_.assign(softmax(theta));
}

GaussianMixture SoftmaxWells::law(std::span<const double> theta) const { return wells_.law(softmax(theta)); }

LogisticWells::LogisticWells(std::vector<std::vector<double>> centres, double q, double floor)
    : wells_(std::move(centres), q), floor_(floor) {
  if (!(floor > 0 && floor < 1))
    throw Error(ErrorKind::usage, "potential.floor", fmt::format("{} is not between 0 and 1", floor));
}

void LogisticWells::prepare(std::span<const double> theta) {
  const auto weight = [&](std::size_t i) { return floor_ + (1 - floor_) * sigmoid(theta[i]); };
  wells_.set_log_weights(tabulate(theta.size(), [&](std::size_t i) { return log(weight(i)); }));
  log_slope_.assign(tabulate(theta.size(), [&](std::size_t i) {
    return (1 - floor_) * sigmoid(theta[i]) * sigmoid(-theta[i]) / weight(i);
  }));
}

GaussianMixture LogisticWells::law(std::span<const double> theta) const {
  return wells_.law(tabulate(theta.size(), [&](std::size_t i) { return floor_ + (1 - floor_) * sigmoid(theta[i]); }));
}

}  // namespace implicit_diffusion
