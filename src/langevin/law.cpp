#include "implicit_diffusion/langevin/law.hpp"

#include "cholesky.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace implicit_diffusion {
namespace {

std::vector<double> factor_of(const Gaussian& g) {
  const std::size_t d = g.mean.size();
  std::vector<double> l(d * d);
  if (detail::cholesky(g.covariance.data(), d, l.data()))
    throw Error(ErrorKind::usage, "mixture", "a covariance is not positive definite");
  return l;
}

}  // namespace

MixtureLogDensity::MixtureLogDensity(const GaussianMixture& mixture) : dimension_(mixture.dimension()) {
  const std::size_t d = dimension_;
  for (std::size_t i = 0; i < mixture.weights.size(); ++i) {
    const Gaussian& g = mixture.components[i];
    const std::vector<double> l = factor_of(g);
    Component c{g.mean, std::vector<double>(d * d), 0.0};
    detail::invert_lower(l.data(), d, c.inverse_factor.data());
    c.offset = log(mixture.weights[i]) - 0.5 * static_cast<double>(d) * log(2 * std::numbers::pi);
    for (std::size_t a = 0; a < d; ++a) c.offset -= log(l[a * d + a]);
    components_.push_back(std::move(c));
  }
}

double MixtureLogDensity::operator()(std::span<const double> x) const {
  // One pass: the sum is kept relative to the largest term so far.
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const Component& c : components_) {
    double square = 0;
    for (std::size_t a = 0; a < dimension_; ++a) {
      double u = 0;
      for (std::size_t b = 0; b <= a; ++b) u += c.inverse_factor[a * dimension_ + b] * (x[b] - c.mean[b]);
      square += u * u;
    }
    const double term = c.offset - 0.5 * square;
    if (term > top) {
      sum = sum * exp(top - term) + 1.0;
      top = term;
    } else if (term > top - 746) {  // smaller terms vanish
      sum += exp(term - top);
    }
  }
  return top + log(sum);
}

MixtureSampler::MixtureSampler(const GaussianMixture& mixture, Noise noise) : dimension_(mixture.dimension()), noise_(noise) {
  double sum = 0;
  for (std::size_t i = 0; i < mixture.weights.size(); ++i) {
    cumulative_.push_back(sum += mixture.weights[i]);
    mean_.push_back(mixture.components[i].mean);
    factor_.push_back(factor_of(mixture.components[i]));
  }
}

template <class Real>
void MixtureSampler::draw(Population<Real>& x, std::int64_t round) const {
  const std::size_t d = dimension_;
  std::vector<float> z(block_size * d);
  for (std::size_t b = 0; b < x.blocks(); ++b) {
    const Block<Real> block = x.block(b);
    const std::size_t groups = (block.size + lanes_per_group - 1) / lanes_per_group;
    noise_.normals(Stream::reference, {.round = round}, d, block.first / lanes_per_group, groups, z.data());
    for (std::size_t i = 0; i < block.size; ++i) {
      const double u = noise_.uniform(Stream::component, {.round = round}, 1, block.first + i, 0) * cumulative_.back();
      const auto place = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u);
      const auto component = static_cast<std::size_t>(place - cumulative_.begin());
      const float* normal = z.data() + i / lanes_per_group * d * lanes_per_group + i % lanes_per_group;
      for (std::size_t a = 0; a < d; ++a) {
        double sum = mean_[component][a];
        for (std::size_t k = 0; k <= a; ++k)
          sum += factor_[component][a * d + k] * static_cast<double>(normal[k * lanes_per_group]);
        block(i, a) = static_cast<Real>(sum);
      }
    }
  }
}
template void MixtureSampler::draw(Population<float>&, std::int64_t) const;
template void MixtureSampler::draw(Population<double>&, std::int64_t) const;

MixtureDivergence::MixtureDivergence(const GaussianMixture& reference, std::size_t nodes) : dimension_(reference.dimension()) {
  const std::size_t d = dimension_;
  if (d > largest_dimension)
    throw Error(ErrorKind::usage, "dimension", fmt::format("{}: the divergence is computed up to {}", d, largest_dimension));
  const Quadrature q = gauss_hermite(nodes);
  const MixtureLogDensity log_density(reference);
  std::size_t points = 1;
  for (std::size_t a = 0; a < d; ++a) points *= nodes;
  for (std::size_t i = 0; i < reference.weights.size(); ++i) {
    const Gaussian& g = reference.components[i];
    const std::vector<double> l = factor_of(g);
    for (std::size_t k = 0; k < points; ++k) {
      std::vector<double> z(d), x = g.mean;
      double weight = reference.weights[i];
      for (std::size_t a = 0, rest = k; a < d; ++a, rest /= nodes) {
        z[a] = q.nodes[rest % nodes];
        weight *= q.weights[rest % nodes];
      }
      if (weight < 1e-20) continue;  // the corners of the grid: together below 1e-16
      for (std::size_t a = 0; a < d; ++a)
        for (std::size_t b = 0; b <= a; ++b) x[a] += l[a * d + b] * z[b];
      node_.insert(node_.end(), x.begin(), x.end());
      weight_.push_back(weight);
      log_reference_.push_back(log_density(x));
    }
  }
}

double MixtureDivergence::operator()(const GaussianMixture& model) const { return with(MixtureLogDensity(model)); }

}  // namespace implicit_diffusion
