#include "implicit_diffusion/langevin/rewards.hpp"

#include "implicit_diffusion/error.hpp"

#include <Eigen/Dense>

#include <cmath>
#include <numbers>

namespace implicit_diffusion {

ScaledBump::ScaledBump(std::vector<double> centre, double width, double denominator)
    : centre_(std::move(centre)), width_(width), denominator_(denominator) {
  require_positive("reward.width", width);
  require_positive("reward.denominator", denominator);
  factor_.assign({-std::numbers::log2e * exp2_unit / width, 1 / denominator});
}

// With X ~ N(m, S) and t = width / 2, N(m, S) exp(-|x - c|^2 / (2 t)) is an unnormalised Gaussian of covariance T = (S^-1 + I/t)^-1 and mean
// m + S (S + t I)^-1 (c - m), whose mass is det(I + S/t)^(-1/2) exp(-(m - c)' (S + t I)^-1 (m - c) / 2).
ScaledBump::Tilted ScaledBump::tilt(const Gaussian& g) const {
  const auto d = static_cast<Eigen::Index>(g.mean.size());
  const Eigen::Map<const Eigen::MatrixXd> s(g.covariance.data(), d, d);
  const Eigen::Map<const Eigen::VectorXd> m(g.mean.data(), d), c(centre_.exact().data(), d);
  const double t = width_ / 2;
  const Eigen::MatrixXd sum = s + t * Eigen::MatrixXd::Identity(d, d);
  const Eigen::LLT<Eigen::MatrixXd> solver(sum);
  const Eigen::VectorXd solved = solver.solve(c - m);
  const Eigen::MatrixXd covariance = t * solver.solve(Eigen::MatrixXd(s));
  const double determinant = (sum / t).determinant();
  return {std::exp(-0.5 * (c - m).dot(solved)) / std::sqrt(determinant) / denominator_, (m + s * solved)(0), covariance(0, 0)};
}

double HardReward::expectation(const Gaussian& g) const {
  const ScaledBump::Tilted y = bump_.tilt(g);
  return y.mass * 0.5 * std::erfc(-y.mean / std::sqrt(2 * y.variance));
}

SmoothReward::SmoothReward(std::vector<double> centre, double width, double denominator, double softness)
    : bump_(std::move(centre), width, denominator), softness_(softness) {
  require_positive("reward.softness", softness);
}

double SmoothReward::expectation(const Gaussian& g) const {
  static const Quadrature quadrature = gauss_hermite(128);
  const ScaledBump::Tilted y = bump_.tilt(g);
  double sum = 0;
  for (std::size_t i = 0; i < quadrature.nodes.size(); ++i)
    sum += quadrature.weights[i] * sigmoid((y.mean + std::sqrt(y.variance) * quadrature.nodes[i]) / softness_);
  return y.mass * sum;
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
