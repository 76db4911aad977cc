#include "implicit_diffusion/denoising/gaussian_theory.hpp"

#include "../require.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <Eigen/QR>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace implicit_diffusion {
namespace {

void require_count(const char* name, std::int64_t value) { require(value >= 1, name, "{} must be positive", value); }

// c = 1 - e^-2T, without cancellation at small T.
double contraction(double horizon) {
  require_positive("denoising.horizon", horizon);
  return -std::expm1(-2 * horizon);
}

double checked_contraction(const GaussianDenoising& model) {
  require_positive("denoising.eta", model.eta);
  return contraction(model.horizon);
}

// e^-s C and e^-s S.
struct Propagator {
  double c, s;
};

Propagator propagator(double kappa, double s) {
  const double square = 1 - kappa, x = square * s * s;
  if (std::abs(x) < 1) {
    // The series of both in x: the first term left out is below 1 / 20!, a hundredth of a rounding.
    double c = 0, sine = 0, term = 1;
    for (int k = 0; k < 10; ++k) {
      c += term;
      sine += term / (2 * k + 1);
      term *= x / ((2 * k + 1) * (2 * k + 2));
    }
    return {exp(-s) * c, exp(-s) * s * sine};
  }
  if (square > 0) {
    const double d = std::sqrt(square);
    const double slow = exp(-s * kappa / (1 + d)), fast = exp(-s * (1 + d));  // kappa / (1 + d) = 1 - d
    return {(slow + fast) / 2, (slow - fast) / (2 * d)};
  }
  const double w = std::sqrt(-square);
  return {exp(-s) * std::cos(w * s), exp(-s) * std::sin(w * s) / w};
}

// How far theta(T + s) is from the segment's fixed point.
double distance(const GaussianDenoising& model, double c, double s) {
  const double kappa = 4 * model.eta * c;
  const Propagator e = propagator(kappa, s);
  return (model.theta_0 * c - model.target) * (e.c + e.s * (1 - kappa / 2));
}

// The coefficients of the recursion's polynomial, z^(M+1) - z^M + 2 eta h gain sum_j w_j z^j, from the lowest on.
std::vector<double> polynomial(const EulerChain& chain, double eta) {
  std::vector<double> a;
  for (const double w : chain.weights) a.push_back(2 * eta * chain.step * chain.gain * w);
  require(std::ranges::all_of(a, [](double x) { return std::isfinite(x); }), "denoising.eta",
          "{} is too large for this horizon: the recursion's coefficients are not finite", eta);
  a.insert(a.end(), {-1, 1});
  return a;
}

// Whether all roots of sum_j a_j z^j, with a leading coefficient of 1, have |z| < r, by the test of Schur and Cohn:
// with z in units of r, the product of the roots is within the unit circle, and so are all roots of a polynomial of
// one degree less. What underflows is too small to count.
bool roots_within(std::vector<double> a, double r) {
  double power = 1;
  for (std::size_t j = a.size(); j-- > 0; power /= r) a[j] *= power;
  std::vector<double> next;
  for (; a.size() > 1; a.swap(next)) {
    const double product = a.front() / a.back();
    if (!(std::abs(product) < 1)) return false;
    next.assign(a.begin() + 1, a.end());
    for (std::size_t j = 0; j < next.size(); ++j) next[j] -= product * a[next.size() - 1 - j];
  }
  return true;
}

// The functions that multiply a and b.
std::vector<double> decay_basis(DecayRegime regime, double frequency, double horizon) {
  if (regime == DecayRegime::exponential) return {1};
  if (regime == DecayRegime::critical) return {1, horizon};
  return {std::cos(frequency * horizon), std::sin(frequency * horizon)};
}

// The minimum of f between `low` and `high`, where it has one.
template <class Function>
double golden_section(double low, double high, Function&& f) {
  const double ratio = 1 / std::numbers::phi;
  double a = high - ratio * (high - low), b = low + ratio * (high - low), fa = f(a), fb = f(b);
  while (high - low > 1e-9) {
    if (fa < fb) {
      high = b, b = a, fb = fa;
      a = high - ratio * (high - low), fa = f(a);
    } else {
      low = a, a = b, fa = fb;
      b = low + ratio * (high - low), fb = f(b);
    }
  }
  return (low + high) / 2;
}

}  // namespace

double sde_output_mean(double theta, double horizon) { return theta * contraction(horizon); }

double ode_output_mean(double theta, double horizon) {
  require_positive("denoising.horizon", horizon);
  return -theta * std::expm1(-horizon);
}

double path_divergence(double difference, double horizon) { return difference * difference * contraction(horizon) / 2; }

double output_divergence(double difference, double horizon) {
  const double mean = sde_output_mean(difference, horizon);
  return mean * mean / 2;
}

double path_divergence(double difference, double horizon, int steps) {
  require_positive("denoising.horizon", horizon);
  require_count("denoising.steps", steps);
  const double h = horizon / steps;
  double sum = 0;
  for (int m = 0; m < steps; ++m) sum += exp(-2 * (horizon - m * h));
  return h * difference * difference * sum;
}

DelayState delay_solution(const GaussianDenoising& model, double time) {
  const double c = checked_contraction(model);
  require(time >= model.horizon && time <= 2 * model.horizon, "denoising.time",
          "{} must be between the horizon {} and its double", time, model.horizon);
  const DelayState rest = segment_fixed_point(model);
  const double s = time - model.horizon;
  const Propagator e = propagator(4 * model.eta * c, s);
  return {rest.theta + distance(model, c, s), rest.psi + (model.theta_0 * c - model.target) * (e.c + e.s) / 2};
}

double final_gap(const GaussianDenoising& model) {
  const double c = checked_contraction(model);
  return model.theta_0 * exp(-2 * model.horizon) + distance(model, c, model.horizon);
}

DelayState segment_fixed_point(const GaussianDenoising& model) {
  checked_contraction(model);
  return {model.target + model.theta_0 * exp(-2 * model.horizon), model.target / 2};
}

double delay_limit(const GaussianDenoising& model) { return model.target / checked_contraction(model); }

std::array<std::complex<double>, 2> delay_eigenvalues(const GaussianDenoising& model) {
  const double kappa = 4 * model.eta * checked_contraction(model);
  const std::complex<double> d = std::sqrt(std::complex<double>(1 - kappa));
  return {-kappa / (1.0 + d), -1.0 - d};
}

EulerChain euler_chain(double horizon, int steps) {
  require_positive("denoising.horizon", horizon);
  require_count("denoising.steps", steps);
  const double h = horizon / steps;
  EulerChain chain{h, std::vector<double>(static_cast<std::size_t>(steps)), 0, 1};
  double power = 1;  // (1 - h)^(M-1-j)
  for (int j = steps - 1; j >= 0; --j) {
    chain.weights[static_cast<std::size_t>(j)] = 2 * h * exp(-(horizon - j * h)) * power;
    power *= 1 - h;
    chain.variance = (1 - h) * (1 - h) * chain.variance + 2 * h;
  }
  chain.gain = std::accumulate(chain.weights.begin(), chain.weights.end(), 0.0);
  return chain;
}

std::vector<double> queue_recursion(const GaussianDenoising& model, int steps, std::int64_t iterations) {
  require_positive("denoising.eta", model.eta);
  const EulerChain chain = euler_chain(model.horizon, steps);
  require_count("denoising.iterations", iterations);
  const auto m = static_cast<std::size_t>(steps), end = static_cast<std::size_t>(iterations);
  std::vector<double> theta(end + 1, model.theta_0);
  for (std::size_t k = m; k < end; ++k) {
    const auto oldest = theta.begin() + static_cast<std::ptrdiff_t>(k - m);
    const double mean = std::inner_product(chain.weights.begin(), chain.weights.end(), oldest, 0.0);
    theta[k + 1] = theta[k] - 2 * model.eta * chain.step * chain.gain * (mean - model.target);
  }
  return theta;
}

std::vector<double> queue_deviation(const GaussianDenoising& model, int steps, std::int64_t iterations,
                                    std::size_t batch) {
  require_positive("denoising.eta", model.eta);
  const EulerChain chain = euler_chain(model.horizon, steps);
  require_count("denoising.iterations", iterations);
  require(batch != 0, "denoising.batch", "0 must be positive");
  const auto m = static_cast<std::size_t>(steps), end = static_cast<std::size_t>(iterations);
  const double a = 2 * model.eta * chain.step * chain.gain;
  const double push = a * std::sqrt(chain.variance / static_cast<double>(batch));
  std::vector<double> deviation(end + 1, 0.0), answer(m, 0.0);  // r_{i-M}, ..., r_{i-1}, then r_i
  answer.push_back(1);
  double squares = 0;
  for (std::size_t k = m; k < end; ++k) {
    squares += answer.back() * answer.back();
    deviation[k + 1] = push * std::sqrt(squares);
    const auto oldest = answer.end() - static_cast<std::ptrdiff_t>(m) - 1;
    answer.push_back(answer.back() - a * std::inner_product(chain.weights.begin(), chain.weights.end(), oldest, 0.0));
  }
  return deviation;
}

double recursion_radius(double horizon, int steps, double eta) {
  require_positive("denoising.eta", eta);
  const std::vector<double> a = polynomial(euler_chain(horizon, steps), eta);
  double low = 0, high = 1;
  while (!roots_within(a, high) && std::isfinite(2 * high)) high *= 2;
  for (double middle = high / 2; middle > low && middle < high; middle = (low + high) / 2)
    (roots_within(a, middle) ? high : low) = middle;
  return high;
}

// u = 2 eta h gain^2 is the share of its distance that theta would lose in a step if nothing were late. One lag of M
// steps is stable below u = 2 sin(pi / (4 M + 2)); the search begins far below. Modes may leave the unit circle and
// come back, so u ascends in small steps to where the first one leaves.
std::optional<double> stability_limit(double horizon, int steps) {
  const EulerChain chain = euler_chain(horizon, steps);
  const double unit = 1 / (2 * chain.step * chain.gain * chain.gain);
  if (!std::isfinite(unit) || unit == 0) return std::nullopt;
  const auto stable = [&](double u) { return roots_within(polynomial(chain, unit * u), 1); };
  double low = 0.1 / steps;
  if (!stable(low)) return std::nullopt;
  double high = low;
  while (stable(high)) low = high, high *= 1.01;
  while (high - low > 1e-11 * high) {
    const double middle = (low + high) / 2;
    (stable(middle) ? low : high) = middle;
  }
  return unit * (low + high) / 2;
}

DecayRegime decay_regime(double eta) {
  require_positive("denoising.eta", eta);
  if (4 * eta < 1) return DecayRegime::exponential;
  return 4 * eta > 1 ? DecayRegime::oscillating : DecayRegime::critical;
}

double decay_rate(double eta) {
  return decay_regime(eta) == DecayRegime::exponential ? 4 * eta / (1 + std::sqrt(1 - 4 * eta)) : 1;
}

double DecayFit::operator()(double horizon) const {
  const std::vector<double> basis = decay_basis(regime, frequency, horizon);
  return exp(-rate * horizon) * (a * basis.front() + (basis.size() > 1 ? b * basis.back() : 0));
}

DecayFit fit_decay(double eta, std::span<const double> horizons, std::span<const double> gaps) {
  DecayFit fit{decay_regime(eta), 0, 0, 0, 0, 0};
  if (fit.regime == DecayRegime::oscillating) fit.frequency = std::sqrt(4 * eta - 1);
  if (horizons.size() < 4 || gaps.size() != horizons.size())
    throw Error(
        ErrorKind::usage, "decay.gaps",
        fmt::format("{} gaps at {} horizons: both must be at least 4, and as many", gaps.size(), horizons.size()));

  for (std::size_t i = 1; i < horizons.size(); ++i)
    require(horizons[i] > horizons[i - 1], "decay.horizons", "they must ascend");
  const auto n = static_cast<Eigen::Index>(horizons.size());
  const Eigen::Map<const Eigen::VectorXd> t(horizons.data(), n), y(gaps.data(), n);
  require(y.allFinite() && !y.isZero(0), "decay.gaps", "they must be finite, and not all zero");
  const double mean = t.mean();
  Eigen::MatrixXd basis(n, fit.regime == DecayRegime::exponential ? 1 : 2);
  for (Eigen::Index i = 0; i < n; ++i) {
    const std::vector<double> row = decay_basis(fit.regime, fit.frequency, t[i]);
    for (Eigen::Index k = 0; k < basis.cols(); ++k) basis(i, k) = row[static_cast<std::size_t>(k)];
  }
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(basis);
  // The weights undo the exponential of the form, and leave the same linear problem for every r.
  const auto weighted = [&](double r) {
    Eigen::VectorXd z(n);
    for (Eigen::Index i = 0; i < n; ++i) z[i] = y[i] * exp(r * (t[i] - mean));
    return z;
  };
  const auto residual = [&](double r) {
    const Eigen::VectorXd z = weighted(r);
    return (z - basis * qr.solve(z)).squaredNorm();
  };

  // At 4 eta = 1 there are two minima, b of either sign, and they may be close: each of a grid is followed.
  const double spacing = 0.01;
  const int cells = 400;
  std::vector<double> grid;
  for (int i = 0; i <= cells; ++i) grid.push_back(residual(i * spacing));
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= cells; ++i) {
    const auto here = grid.begin() + i;
    if ((i > 0 && here[-1] < *here) || (i < cells && here[1] < *here)) continue;
    const double r = golden_section(std::max(i - 1, 0) * spacing, std::min(i + 1, cells) * spacing, residual);
    if (const double value = residual(r); value < least) fit.rate = r, least = value;
  }
  const Eigen::VectorXd z = weighted(fit.rate), ab = exp(fit.rate * mean) * qr.solve(z);
  fit.a = ab[0];
  if (ab.size() > 1) fit.b = ab[1];
  fit.misfit = std::sqrt(least) / z.norm();
  return fit;
}

DecayFit fit_decay(const GaussianDenoising& model, std::span<const double> horizons) {
  std::vector<double> gaps;
  GaussianDenoising at = model;
  for (const double horizon : horizons) {
    at.horizon = horizon;
    gaps.push_back(final_gap(at));
  }
  return fit_decay(model.eta, horizons, gaps);
}

std::vector<double> decay_horizons() {
  std::vector<double> out;
  for (int i = 12; i <= 32; ++i) out.push_back(i / 4.0);
  return out;
}

}  // namespace implicit_diffusion
