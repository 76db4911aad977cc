#include "adaptive_divergence.hpp"

#include "implicit_diffusion/simd/elementary.hpp"
#include "matrices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace implicit_diffusion::detail {
namespace {

constexpr double cube_half = 8;     // deviations: beyond lies 1e-15 of a component
constexpr double bends_within = 5;  // deviations within which a component bends log q
constexpr double widest = 1;        // half of a cell near a component, in its deviations

// Nodes along an axis: the more axes, the fewer.
constexpr std::array<std::size_t, MixtureDivergence::largest_dimension> nodes_along_axis{8, 6, 4};

// The Legendre polynomial of degree n.
double legendre(std::size_t n, double x) {
  double before = 0, now = 1;
  for (std::size_t k = 0; k < n; ++k) {
    const auto degree = static_cast<double>(k);
    const double next = ((2 * degree + 1) * x * now - degree * before) / (degree + 1);
    before = now;
    now = next;
  }
  return now;
}

}  // namespace

AdaptiveDivergence::AdaptiveDivergence(const GaussianMixture& p, const GaussianMixture& q)
    : dimension_(p.dimension()), log_p_(p), log_q_(q), rule_(gauss_legendre(nodes_along_axis.at(p.dimension() - 1))) {
  const std::size_t d = dimension_;
  for (std::size_t a = 0; a < d; ++a) points_ *= rule_.nodes.size();
  for (const double x : rule_.nodes) top_.push_back(legendre(rule_.nodes.size() - 1, x));

  struct Seen {
    std::vector<double> mean, factor, inverse;
    double weight;
    bool of_p;
  };
  std::vector<Seen> all;
  for (const GaussianMixture* law : {&p, &q})
    for (std::size_t i = 0; i < law->weights.size(); ++i) {
      if (law->weights[i] == 0) continue;
      const Gaussian& g = law->components[i];
      Seen s{g.mean, std::vector<double>(d * d), std::vector<double>(d * d), law->weights[i], law == &p};
      cholesky(g.covariance.data(), d, s.factor.data());
      invert_lower(s.factor.data(), d, s.inverse.data());
      all.push_back(std::move(s));
    }
  for (const Seen& from : all) {
    if (!from.of_p) continue;
    Component c{.weight = from.weight};
    for (std::size_t a = 0; a < d; ++a) {
      c.mean[a] = from.mean[a];
      for (std::size_t b = 0; b <= a; ++b) c.factor[a][b] = from.factor[a * d + b];
    }
    for (const Seen& to : all) {
      View v;
      for (std::size_t a = 0; a < d; ++a)
        for (std::size_t k = 0; k <= a; ++k) {
          v.offset[a] += to.inverse[a * d + k] * (from.mean[k] - to.mean[k]);
          for (std::size_t b = 0; b <= k; ++b) v.matrix[a][b] += to.inverse[a * d + k] * from.factor[k * d + b];
        }
      for (std::size_t b = 0; b < d; ++b) {
        for (std::size_t a = b; a < d; ++a) v.slope[b] += v.matrix[a][b] * v.matrix[a][b];
        v.slope[b] = std::sqrt(v.slope[b]);
      }
      c.views.push_back(v);
    }
    components_.push_back(std::move(c));
  }
}

double AdaptiveDivergence::narrowest() const {
  double steepest = 0;
  for (const Component& c : components_)
    for (const View& v : c.views) steepest = std::max(steepest, *std::ranges::max_element(v.slope));
  return 1 / steepest;
}

AdaptiveDivergence::Halves AdaptiveDivergence::halves(const Cell& c, std::size_t axis) {
  Halves h{c, c};
  const double quarter = c.half[axis] / 2;
  h.low.half[axis] = h.high.half[axis] = quarter;
  h.low.middle[axis] -= quarter;
  h.high.middle[axis] += quarter;
  return h;
}

std::size_t AdaptiveDivergence::too_wide(const Cell& c) const {
  for (const View& v : c.component->views) {
    double square = 0, extent = 0, most = widest;  // in deviations of the component
    std::size_t axis = dimension_;
    for (std::size_t a = 0; a < dimension_; ++a) {
      double u = v.offset[a];
      for (std::size_t b = 0; b <= a; ++b) u += v.matrix[a][b] * c.middle[b];
      square += u * u;
      const double half = v.slope[a] * c.half[a];
      extent += half;
      if (half > most) {
        most = half;
        axis = a;
      }
    }
    if (axis < dimension_ && std::sqrt(square) - extent < bends_within) return axis;
  }
  return dimension_;
}

std::vector<AdaptiveDivergence::Cell> AdaptiveDivergence::first_cells(std::size_t most) const {
  std::vector<Cell> cells, done;
  for (const Component& component : components_) {
    Cell cube{.component = &component};
    std::fill_n(cube.half.begin(), dimension_, cube_half);
    cells.push_back(cube);
  }
  while (!cells.empty() && done.size() < most) {
    const Cell c = cells.back();
    cells.pop_back();
    const std::size_t axis = too_wide(c);
    if (axis == dimension_) {
      done.push_back(c);
    } else {
      const Halves h = halves(c, axis);
      cells.insert(cells.end(), {h.low, h.high});
    }
  }
  return done;
}

void AdaptiveDivergence::evaluate(Cell& c) const {
  const std::size_t d = dimension_, n = rule_.nodes.size();
  const double log_scale = 0.5 * static_cast<double>(d) * log(2 * std::numbers::pi);
  std::array<double, 64> values{};  // points_ at most
  Point x;
  for (std::size_t k = 0; k < points_; ++k) {
    Point z{};
    double weight = c.component->weight, square = 0;
    for (std::size_t a = 0, rest = k; a < d; ++a, rest /= n) {
      z[a] = c.middle[a] + c.half[a] * rule_.nodes[rest % n];
      weight *= c.half[a] * rule_.weights[rest % n];
      square += z[a] * z[a];
    }
    x = c.component->mean;
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = 0; b <= a; ++b) x[a] += c.component->factor[a][b] * z[b];
    const std::span<const double> at(x.data(), d);
    values[k] = weight * exp(-0.5 * square - log_scale) * (log_p_(at) - log_q_(at));
  }
  c.value = 0;
  for (std::size_t k = 0; k < points_; ++k) c.value += values[k];

  // The axis along which the polynomial through the nodes has the largest last coefficients.
  double most = -1;
  for (std::size_t a = 0, stride = 1; a < d; ++a, stride *= n) {
    double sum = 0;
    for (std::size_t k = 0; k < points_; ++k) {
      if (k / stride % n != 0) continue;
      double last = 0;
      for (std::size_t j = 0; j < n; ++j) last += top_[j] * values[k + j * stride];
      sum += std::abs(last);
    }
    if (sum > most) {
      most = sum;
      c.axis = a;
    }
  }
}

AdaptiveDivergence::Halves AdaptiveDivergence::halve(const Cell& c) const {
  Halves h = halves(c, c.axis);
  evaluate(h.low);
  evaluate(h.high);
  h.low.error = h.high.error = std::abs(c.value - h.low.value - h.high.value) / 2;
  return h;
}

AdaptiveDivergence::Estimate AdaptiveDivergence::operator()(const DivergenceEffort& effort) const {
  const auto of_a_cell = static_cast<double>(points_ * components_.front().views.size());
  const double affordable = effort.most_evaluations / of_a_cell;  // cells
  double evaluated = 0, error = 0;
  const auto by_error = [](const Cell& a, const Cell& b) { return a.error < b.error; };
  std::vector<Cell> cells;  // a heap, the largest error first
  const auto add_halves = [&](const Cell& whole) {
    const Halves h = halve(whole);
    error += h.low.error + h.high.error;
    evaluated += 2;
    for (const Cell& c : {h.low, h.high}) {
      cells.push_back(c);
      std::ranges::push_heap(cells, by_error);
    }
  };
  const auto most = static_cast<std::size_t>(affordable / 3);  // each of the first ones with its halves
  std::vector<Cell> first = first_cells(most);
  if (first.size() >= most) return {0, std::numeric_limits<double>::infinity()};
  for (Cell& c : first) {
    evaluate(c);
    ++evaluated;
    add_halves(c);
  }
  while (error > effort.tolerance && evaluated + 2 <= affordable) {
    std::ranges::pop_heap(cells, by_error);
    const Cell worst = cells.back();
    cells.pop_back();
    error -= worst.error;
    add_halves(worst);
  }
  Estimate sum{0, 0};
  for (const Cell& c : cells) {
    sum.value += c.value;
    sum.error += c.error;
  }
  return sum;
}

}  // namespace implicit_diffusion::detail
