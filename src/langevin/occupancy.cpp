#include "implicit_diffusion/langevin/occupancy.hpp"

#include <algorithm>
#include <cmath>

namespace implicit_diffusion {

Occupancy occupancy(const Population<float>& x, const GaussianMixture& law, std::size_t most) {
  const std::size_t components = law.weights.size(), n = std::min(x.size(), most);
  Occupancy o{.shares = std::vector<double>(components)};
  if (n == 0) return o;
  // log(w_i N_i(x)), each from a mixture of one.
  std::vector<std::pair<std::size_t, MixtureLogDensity>> parts;
  for (std::size_t i = 0; i < components; ++i)
    if (law.weights[i] > 0) parts.emplace_back(i, MixtureLogDensity({{law.weights[i]}, {law.components[i]}}));
  std::vector<double> point(x.dimension()), terms(parts.size());
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t sample = k * x.size() / n;
    for (std::size_t j = 0; j < point.size(); ++j) point[j] = static_cast<double>(x(sample, j));
    for (std::size_t i = 0; i < parts.size(); ++i) terms[i] = parts[i].second(point);
    const double top = *std::ranges::max_element(terms);
    double sum = 0;
    for (double& t : terms) sum += t = std::exp(t - top);
    for (std::size_t i = 0; i < parts.size(); ++i) o.shares[parts[i].first] += terms[i] / sum / static_cast<double>(n);
  }
  double largest = 0;
  for (std::size_t i = 0; i < components; ++i) {
    const double w = law.weights[i], off = std::abs(o.shares[i] - w);
    o.total_variation += off / 2;
    if (off > 0) o.deviation = std::max(o.deviation, off / std::sqrt(w * (1 - w) / static_cast<double>(n)));
    if (off > largest) {
      largest = off;
      o.furthest = i;
    }
  }
  return o;
}

}  // namespace implicit_diffusion
