#include "implicit_diffusion/langevin/law.hpp"

#include "../require.hpp"
#include "adaptive_divergence.hpp"
#include "implicit_diffusion/simd/elementary.hpp"
#include "kernel_table.hpp"
#include "matrices.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace implicit_diffusion {
namespace {

std::vector<double> factor_of(const Gaussian& g) {
  const std::size_t d = g.mean.size();
  std::vector<double> l(d * d);
  require(!detail::cholesky(g.covariance.data(), d, l.data()), "mixture", "a covariance is not positive definite");
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

GaussianMixture counted(const GaussianMixture& mixture, const Population<float>& samples) {
  const std::size_t n = mixture.weights.size(), d = mixture.dimension();
  require(samples.dimension() == d, "samples", "their dimension is not that of the mixture");
  std::vector<MixtureLogDensity> components;
  for (std::size_t k = 0; k < n; ++k)
    components.emplace_back(GaussianMixture{{mixture.weights[k]}, {mixture.components[k]}});
  std::vector<double> counts(n), sums(n * d), x(d);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t j = 0; j < d; ++j) x[j] = static_cast<double>(samples(i, j));
    std::size_t best = 0;
    double most = components[0](x);
    for (std::size_t k = 1; k < n; ++k)
      if (const double v = components[k](x); v > most) most = v, best = k;
    counts[best] += 1;
    for (std::size_t j = 0; j < d; ++j) sums[best * d + j] += x[j];
  }
  GaussianMixture law = mixture;
  for (std::size_t k = 0; k < n; ++k) {
    law.weights[k] = counts[k] / static_cast<double>(std::max<std::size_t>(1, samples.size()));
    for (std::size_t j = 0; j < d && counts[k] > 0; ++j) law.components[k].mean[j] = sums[k * d + j] / counts[k];
  }
  return law;
}

MixtureSampler::MixtureSampler(const GaussianMixture& mixture, Noise noise) : noise_(noise) {
  const std::size_t d = mixture.dimension();
  std::vector<double> bounds, components;
  double sum = 0;
  for (std::size_t i = 0; i < mixture.weights.size(); ++i) {
    bounds.push_back(sum += mixture.weights[i]);
    const std::vector<double> factor = factor_of(mixture.components[i]);
    components.insert(components.end(), mixture.components[i].mean.begin(), mixture.components[i].mean.end());
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = 0; b <= a; ++b) components.push_back(factor[a * d + b]);
  }
  table_ = {mixture.weights.size(), d, bounds, components};
}

void MixtureSampler::draw(Population<float>& x, std::int64_t round) const {
  const std::size_t d = table_.dimension;
  const NoiseKey normal_key = noise_.at(Stream::reference, {.round = round});
  const NoiseKey component_key = noise_.at(Stream::component, {.round = round});
  BlockArray<float> z(d);
  alignas(64) float words[block_size];
  for (std::size_t b = 0; b < x.blocks(); ++b) {
    const Block<float> block = x.block(b);
    const std::size_t first = block.first / lanes_per_group,
                      groups = (block.size + lanes_per_group - 1) / lanes_per_group;
    active_kernels().normals(normal_key, d, first, groups, z.data());
    active_kernels().bits(component_key, 1, first, groups, words);
    active_kernels().mixture_samples(table_, block, z.data(), words);
  }
}

void MixtureSampler::draw(Population<double>& x, std::int64_t round) const {
  Population<float> single(x.total(), table_.dimension, x.processes());
  draw(single, round);
  for (std::size_t j = 0; j < x.dimension(); ++j)
    std::copy_n(single.coordinate(j).begin(), x.size(), x.coordinate(j).begin());
}

MixtureDivergence::MixtureDivergence(GaussianMixture reference, std::size_t nodes, DivergenceEffort effort)
    : reference_(std::move(reference)), effort_(effort) {
  require(reference_.dimension() <= largest_dimension, "dimension", "{}: the divergence is computed up to {}",
          reference_.dimension(), largest_dimension);
  rule_ = make_rule(nodes);
  coarse_ = make_rule(nodes - nodes / 5);
}

MixtureDivergence::Rule MixtureDivergence::make_rule(std::size_t nodes) const {
  const std::size_t d = reference_.dimension();
  const Quadrature q = gauss_hermite(nodes);
  const MixtureLogDensity log_density(reference_);
  std::size_t points = 1;
  for (std::size_t a = 0; a < d; ++a) points *= nodes;
  Rule rule;
  for (std::size_t i = 0; i < reference_.weights.size(); ++i) {
    const Gaussian& g = reference_.components[i];
    const std::vector<double> l = factor_of(g);
    for (std::size_t k = 0; k < points; ++k) {
      std::vector<double> z(d), x = g.mean;
      double weight = reference_.weights[i];
      for (std::size_t a = 0, rest = k; a < d; ++a, rest /= nodes) {
        z[a] = q.nodes[rest % nodes];
        weight *= q.weights[rest % nodes];
      }
      if (weight < 1e-20) continue;  // the corners of the grid: together below 1e-16
      for (std::size_t a = 0; a < d; ++a)
        for (std::size_t b = 0; b <= a; ++b) x[a] += l[a * d + b] * z[b];
      rule.nodes.insert(rule.nodes.end(), x.begin(), x.end());
      rule.weights.push_back(weight);
      rule.log_reference.push_back(log_density(x));
    }
  }
  return rule;
}

double MixtureDivergence::integrate(const Rule& rule, const MixtureLogDensity& model) const {
  const std::size_t d = reference_.dimension();
  double sum = 0;
  for (std::size_t i = 0; i < rule.weights.size(); ++i)
    sum += rule.weights[i] * (rule.log_reference[i] - model(std::span(rule.nodes).subspan(i * d, d)));
  return sum;
}

std::optional<double> MixtureDivergence::operator()(const GaussianMixture& model) const {
  const detail::AdaptiveDivergence adaptive(reference_, model);
  const bool polynomial = reference_.weights.size() == 1 && model.weights.size() == 1;
  if (polynomial || adaptive.narrowest() >= 0.5) {
    const MixtureLogDensity log_density(model);
    const double fine = integrate(rule_, log_density), coarse = integrate(coarse_, log_density);
    if (polynomial || std::abs(fine - coarse) <= 1e-3) return fine;
  }
  const auto [value, error] = adaptive(effort_);
  if (error > 100 * effort_.tolerance && error > 1000 * effort_.tolerance * std::abs(value)) return std::nullopt;
  return value;
}

}  // namespace implicit_diffusion
