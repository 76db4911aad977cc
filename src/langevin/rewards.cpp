#include "implicit_diffusion/langevin/rewards.hpp"

#include "../require.hpp"
#include "implicit_diffusion/langevin/reward.hpp"
#include "matrices.hpp"

#include <cmath>
#include <numbers>

namespace implicit_diffusion {

void refuse_reward(std::size_t its_dimension, std::size_t dimension) {
  throw Error(ErrorKind::usage, "reward",
              fmt::format("it is of dimension {}, the samples are of dimension {}", its_dimension, dimension));
}

ScaledBump::ScaledBump(const std::vector<double>& centre, double width, double denominator)
    : centre_(centre), width_(width), denominator_(denominator) {
  require_positive("width", width);
  require_positive("denominator", denominator);
  factor_ = std::vector{-std::numbers::log2e * exp2_unit / width, 1 / denominator};
}

// With X ~ N(m, S) and t = width / 2, N(m, S) exp(-|x - c|^2 / (2 t)) is an unnormalised Gaussian of covariance T =
// (S^-1 + I/t)^-1 and mean m + S (S + t I)^-1 (c - m), whose mass is det(I + S/t)^(-1/2) exp(-(m - c)' (S + t I)^-1 (m
// - c) / 2).
ScaledBump::Tilted ScaledBump::tilt(const Gaussian& g) const {
  const std::size_t d = g.mean.size();
  const double t = width_ / 2;
  std::vector<double> sum = g.covariance, factor(d * d), inverse(d * d), precision(d * d);  // of S + t I
  for (std::size_t a = 0; a < d; ++a) sum[a * d + a] += t;
  detail::cholesky(sum.data(), d, factor.data());
  detail::invert_lower(factor.data(), d, inverse.data());
  detail::precision_from_inverse_factor(inverse.data(), d, precision.data());

  double form = 0, mean = g.mean[0], variance = 0, log_determinant = 0;
  for (std::size_t a = 0; a < d; ++a) {
    double solved = 0;  // row a of (S + t I)^-1 (c - m)
    for (std::size_t b = 0; b < d; ++b) solved += precision[a * d + b] * (centre_.exact()[b] - g.mean[b]);
    form += (centre_.exact()[a] - g.mean[a]) * solved;
    mean += g.covariance[a] * solved;
    variance += t * precision[a] * g.covariance[a * d];
    log_determinant += 2 * std::log(factor[a * d + a]) - std::log(t);
  }
  return {std::exp(-0.5 * (form + log_determinant)) / denominator_, mean, variance};
}

double HardReward::expectation(const Gaussian& g) const {
  const ScaledBump::Tilted y = bump_.tilt(g);
  return y.mass * 0.5 * std::erfc(-y.mean / std::sqrt(2 * y.variance));
}

SmoothReward::SmoothReward(const std::vector<double>& centre, double width, double denominator, double softness)
    : bump_(centre, width, denominator), softness_(softness) {
  require_positive("softness", softness);
}

// E sigmoid(Y / softness), Y ~ N(m, v), is P(Y + softness L > 0) with L logistic: an average of normal distribution
// functions over L when the softness is small beside sqrt(v), of sigmoids over Y when it is not. Each is smooth on the
// scale of its quadrature.
double SmoothReward::expectation(const Gaussian& g) const {
  static const Quadrature quadrature = gauss_hermite(128);
  const ScaledBump::Tilted y = bump_.tilt(g);
  const double deviation = std::sqrt(y.variance);
  double sum = 0;
  if (softness_ >= deviation) {
    for (std::size_t i = 0; i < quadrature.nodes.size(); ++i)
      sum += quadrature.weights[i] * sigmoid((y.mean + deviation * quadrature.nodes[i]) / softness_);
  } else {
    // The trapezoidal rule converges geometrically: the density of L is analytic for |Im L| < pi and below 1e-17 beyond
    // 40.
    constexpr double spacing = 0.125;
    for (int i = -320; i <= 320; ++i) {
      const double l = spacing * i, s = sigmoid(l);
      sum += spacing * s * (1 - s) * 0.5 * std::erfc(-(y.mean + softness_ * l) / (deviation * std::numbers::sqrt2));
    }
  }
  return y.mass * sum;
}

RadiusReward::RadiusReward(const std::vector<double>& centre, double radius, double s)
    : centre_(centre), radius_(radius), s_(s) {
  require_positive("radius", radius);
  require_positive("width", s);
}

double QuadraticReward::expectation(const Gaussian& g) const {
  const std::size_t d = g.mean.size();
  double sum = 0;
  for (std::size_t j = 0; j < d; ++j) {
    const double distance = g.mean[j] - target_.exact()[j];
    sum += distance * distance + g.covariance[j * d + j];
  }
  return -sum;
}

}  // namespace implicit_diffusion
