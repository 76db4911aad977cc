#include "implicit_diffusion/langevin/wells.hpp"

#include "../require.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace implicit_diffusion {
namespace {

// The values f(0), ..., f(n - 1).
template <class F>
std::vector<double> tabulate(std::size_t n, F&& f) {
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = f(i);
  return values;
}

}  // namespace

double log_sum_exp(std::span<const double> t) {
  const double top = *std::max_element(t.begin(), t.end());
  double sum = 0;
  for (const double v : t) sum += exp(v - top);
  return top + log(sum);
}

std::vector<double> softmax(std::span<const double> t) {
  const double norm = log_sum_exp(t);
  return tabulate(t.size(), [&](std::size_t i) { return exp(t[i] - norm); });
}

EqualWells::EqualWells(std::vector<std::vector<double>> centres, double q)
    : dimension_(centres.empty() ? 0 : centres.front().size()),
      size_(centres.size()),
      q_(q),
      centres_(std::move(centres)) {
  require(size_ != 0 && dimension_ != 0, "centres", "no centre is given");
  for (const auto& c : centres_)
    require(c.size() == dimension_, "centres", "centres of {} and of {} coordinates", dimension_, c.size());
  require_positive("width", q);
  centre_.fill(size_ * dimension_, [&](std::size_t k) { return centres_[k / dimension_][k % dimension_]; });
  slope_.fill(size_ * dimension_,
              [&](std::size_t k) { return 2.0 / q * centres_[k / dimension_][k % dimension_] * unit; });
  for (const auto& c : centres_) squares_.push_back(std::inner_product(c.begin(), c.end(), c.begin(), 0.0));
  double steepest = 1;
  for (std::size_t i = 0; i < size_; ++i) {
    steepness_.push_back(0);
    for (std::size_t j = 0; j < dimension_; ++j) {
      const double a = std::abs(slope_.exact()[i * dimension_ + j]) / exp2_unit;
      steepness_.back() += a;
      steepest = std::max(steepest, a);
    }
  }
  // So that sum_i e_i a_i, in the units of exp2_fixed(), stays below 2^123 and its reciprocal is normal.
  highest_ = 100 - log(steepest * static_cast<double>(size_)) * std::numbers::log2e;
  set_log_weights([](std::size_t) { return 0.0; });
}

void EqualWells::update_radius() {
  // Within the radius every term is above 2^-125, a normal number, and at most 2^highest_. |a_i . x| <= |a_i|_1
  // |x|_max.
  constexpr double lowest = -125;
  double radius = 1e30;
  for (std::size_t i = 0; i < size_; ++i) {
    const double offset = offset_.exact()[i] / exp2_unit;
    const double room = std::min(highest_ - offset, offset - lowest);
    radius = std::min(radius, room < 0 ? -1.0 : steepness_[i] == 0 ? radius : room / steepness_[i]);
  }
  const double scale[] = {2.0 / q_, 1.0 / q_, radius, 1 / unit, -unit / q_};
  scale_.fill(std::size(scale), [&](std::size_t i) { return scale[i]; });
}

GaussianMixture EqualWells::law_of(std::span<const double> weights) const {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
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
  const double top = *std::max_element(theta.begin(), theta.end());
  weight_.fill(theta.size(), [&](std::size_t i) { return exp(theta[i] - top); });
  const double sum = std::accumulate(weight_.exact().begin(), weight_.exact().end(), 0.0);
  const double norm = top + log(sum);
  set_log_weights([&](std::size_t i) { return theta[i] - norm; });
  for (std::size_t i = 0; i < theta.size(); ++i) weight_.set(i, weight_.exact()[i] / sum);
}

GaussianMixture SoftmaxWells::law(std::span<const double> theta) const { return law_of(softmax(theta)); }

LogisticWells::LogisticWells(std::vector<std::vector<double>> centres, double q, double floor)
    : EqualWells(std::move(centres), q), floor_(floor) {
  require(floor > 0 && floor < 1, "floor", "{} is not between 0 and 1", floor);
}

void LogisticWells::prepare(std::span<const double> theta) {
  const auto weight = [&](std::size_t i) { return floor_ + (1 - floor_) * sigmoid(theta[i]); };
  set_log_weights([&](std::size_t i) { return log(weight(i)); });
  log_slope_.fill(theta.size(),
                  [&](std::size_t i) { return (1 - floor_) * sigmoid(theta[i]) * sigmoid(-theta[i]) / weight(i); });
}

GaussianMixture LogisticWells::law(std::span<const double> theta) const {
  return law_of(tabulate(theta.size(), [&](std::size_t i) { return floor_ + (1 - floor_) * sigmoid(theta[i]); }));
}

}  // namespace implicit_diffusion
