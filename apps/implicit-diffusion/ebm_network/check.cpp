// What `check` compares of a neural energy: gradients of autograd against differences of the energy alone, in double
// precision; the gradient of a run, shard by shard in single precision, against one call in double; and the KL
// divergence's gradient against differences of the quadrature.
#include "ebm_network/energy.hpp"
#include "experiment/check_rows.hpp"
#include "implicit_diffusion/differences.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

constexpr std::size_t probes = 24;  // points; whole shards and a part of one where a shard is 8

std::vector<double> to_list(const at::Tensor& t) {
  const at::Tensor flat = t.to(at::kDouble).contiguous().flatten();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}
double largest(const std::vector<double>& v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}

class EbmCheck {
 public:
  explicit EbmCheck(const EbmConfiguration& c) : c_(c), noise_(problem_seed(c.seed, c.experiment)) {
    TensorTiles::fill_normals(x_, noise_, Stream::initial, {});
    x_.x().mul_(c.spread);
    for (std::size_t i = 0; i < probes; ++i)
      weights_.push_back(static_cast<double>(noise_.normal(Stream::initial, {.round = 1}, 1, i, 0)));
    // Some of the weights, spread over all layers.
    const std::size_t p = theta_.size(), count = std::min<std::size_t>(p, 12);
    for (std::size_t k = 0; k < count; ++k) chosen_.push_back(k * p / count);
  }

  std::vector<CheckRow> rows() {
    check_slope();
    check_gradient();
    check_shards();
    check_divergence();
    return std::move(rows_);
  }

 private:
  // sum_i w_i V(x_i, theta) in double precision, in one shard.
  double weighted_energy(const TensorSamples& x, const TensorParameters& theta) {
    exact_.prepare(theta);
    TensorNumbers v = TensorTiles::numbers(x);
    exact_.add_values(TensorTiles::tile(x, 0), 1, v.values.data());
    double sum = 0;
    for (std::size_t i = 0; i < v.size(); ++i) sum += weights_[i] * v.values[i];
    return sum;
  }
  TensorParameters moved(std::size_t k, double t) const {
    TensorParameters other = theta_;
    other.edit().data_ptr<double>()[chosen_[k]] += t;
    return other;
  }
  std::vector<double> chosen(const TensorParameters& gradient) const {
    const std::vector<double> all = to_list(gradient.read());
    std::vector<double> some;
    for (const std::size_t k : chosen_) some.push_back(all[k]);
    return some;
  }
  void add(const std::string& what, const std::string& wrong, const std::vector<double>& expected,
           const std::vector<double>& got, double allowed) {
    rows_.push_back(compare(what, expected, got, allowed));
    std::vector<double> bad = got;
    for (double& v : bad) v *= 1 + 1e-3;
    if (1e-3 * largest(got) > 2 * allowed)
      rows_.push_back(must_be_off(compare(wrong, expected, bad, allowed)));
    else
      rows_.push_back(left_out(wrong, "too small to detect"));
  }

  // grad_x V, out of a Langevin step: x - g grad_x V + sqrt(2 g) z.
  void check_slope() {
    constexpr double g = 0.5;
    TensorSamples with = x_, without = x_;
    bool bad = false;
    exact_.prepare(theta_);
    exact_.step(TensorTiles::tile(with, 0), {noise_, {}, g}, bad);
    TensorTiles::fill_normals(without, noise_, Stream::sampling, {});
    const at::Tensor slope = (x_.x() + std::sqrt(2 * g) * without.x() - with.x()) / g;
    std::vector<double> quotients;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(probes); ++i)
      for (std::int64_t j = 0; j < 2; ++j)
        quotients.push_back(difference(
            [&](double t) {
              TensorSamples at = x_;
              at.x()[i][j] += t;
              TensorNumbers v = TensorTiles::numbers(at);
              exact_.add_values(TensorTiles::tile(at, 0), 1, v.values.data());
              return v.values[static_cast<std::size_t>(i)];
            },
            1.0));
    add("grad_x V in a step", "  a thousandth too long", quotients, to_list(slope),
        1e-8 * std::max(1.0, largest(quotients)));
  }

  // The weighted theta-gradient against differences.
  void check_gradient() {
    exact_.prepare(theta_);
    TensorParameters gradient = zeros_like(theta_);
    exact_.add(TensorTiles::tile(x_, 0), weights_.data(), gradient);
    std::vector<double> quotients;
    for (std::size_t k = 0; k < chosen_.size(); ++k)
      quotients.push_back(difference([&](double t) { return weighted_energy(x_, moved(k, t)); }, 1.0));
    add("grad_theta of sum w V", "  a thousandth too long", quotients, chosen(gradient),
        1e-8 * std::max(1.0, largest(quotients)));
  }

  // Shard by shard, in single precision, as a run has it. A weight is a sum over the points, each rounded: a few units
  // in the last place of the largest.
  void check_shards() {
    NetworkEnergy energy(exact_.network(), 8);
    TensorSamples x = energy.samples(probes - 3);
    x.x().copy_(x_.x().narrow(0, 0, static_cast<std::int64_t>(probes - 3)));
    energy.prepare(TensorParameters(theta_.read().to(at::kFloat)));
    TensorParameters sum(static_cast<std::int64_t>(theta_.size()), at::kFloat);
    Workers workers(2);
    TensorTiles::sum(&workers, x, sum, [&](std::size_t k, TensorParameters& to) {
      energy.add(TensorTiles::tile(x, k), weights_.data() + 8 * k, to);
    });
    std::vector<double> some(weights_.begin(), weights_.end() - 3);
    exact_.prepare(theta_);
    TensorSamples fewer(x_.x().narrow(0, 0, static_cast<std::int64_t>(probes - 3)), {}, probes);
    TensorParameters whole = zeros_like(theta_);
    exact_.add(TensorTiles::tile(fewer, 0), some.data(), whole);
    const std::vector<double> expected = to_list(whole.read());
    add("  in shards of 8, single precision", "  the same, a thousandth too long", expected, to_list(sum.read()),
        1e-5 * largest(expected));
  }

  // d KL(target || pi*(theta)), by quadrature of the energy, against the estimator's formula with both means by the
  // same quadrature: E_target grad_theta V - E_pi grad_theta V. With data instead of a law, of the mean of -log pi*
  // over them.
  void check_divergence() {
    const char* const what = "grad KL(target || pi)";
    const auto log_density = c_.target.log_density();
    if (!log_density) return rows_.push_back(left_out(what, "the density of the data is not known"));
    EbmConfiguration narrow = c_;
    narrow.confinement = std::max(c_.confinement, 1.0);  // fewer cells; it is no part of theta
    NetworkEnergy energy = make_energy(narrow, at::kDouble);
    const auto law = integrate(energy, theta_, nullptr);
    if (!law) return rows_.push_back(left_out(what, "the law is too wide for the quadrature"));
    const PlaneCells& cells = law->cells;
    TensorSamples points = energy.samples(cells.count());
    std::vector<double> w(cells.count());
    for (std::size_t i = 0; i < cells.side(); ++i)
      for (std::size_t j = 0; j < cells.side(); ++j) {
        const std::size_t at = i * cells.side() + j;
        const double x[] = {cells.coordinate(j), cells.coordinate(i)};
        std::copy(x, x + 2, points.x().data_ptr<double>() + 2 * at);
        w[at] = cells.area() * (std::exp(log_density(x)) - std::exp(-law->values[at] - law->log_normaliser));
      }
    energy.prepare(theta_);
    TensorParameters gradient = zeros_like(theta_);
    TensorTiles::sum(nullptr, points, gradient, [&](std::size_t k, TensorParameters& to) {
      energy.add(TensorTiles::tile(points, k), w.data() + k * points.shard(), to);
    });
    const std::size_t most = std::min<std::size_t>(chosen_.size(), 3);  // each takes six quadratures
    std::vector<double> quotients, got = chosen(gradient);
    got.resize(most);
    for (std::size_t k = 0; k < most; ++k)
      quotients.push_back(difference(
          [&](double t) {
            const auto other = integrate(energy, moved(k, t), nullptr);
            return other ? divergence_from(*other, log_density).kl : std::nan("");
          },
          1.0));
    // The quadrature leaves out 1e-8 of the mass.
    add(what, "  a thousandth too long", quotients, got, 1e-6);
  }

  const EbmConfiguration& c_;
  Noise noise_;
  NetworkEnergy exact_{make_energy(c_).network(), probes, at::kDouble};
  TensorParameters theta_ = initial_parameters(exact_.network().layout, Noise(c_.seed), at::kDouble);
  TensorSamples x_ = exact_.samples(probes);
  std::vector<double> weights_;
  std::vector<std::size_t> chosen_;
  std::vector<CheckRow> rows_;
};

}  // namespace

std::vector<Problem> EbmNetworkExperiment::checks() const {
  return {{configuration().experiment, [c = configuration()] { return EbmCheck(c).rows(); }}};
}

}  // namespace program
