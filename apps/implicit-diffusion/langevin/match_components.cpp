#include "langevin/match_components.hpp"

#include <limits>

namespace program {

using implicit_diffusion::GaussianMixture;

// The Hungarian method: components are matched one by one, each along the path of exchanges that costs least. `price`
// keeps all costs that are left, cost(i, j) - price_one(i) - price_other(j), from being negative. Row and column 0
// stand for "not matched".
std::vector<std::size_t> match_components(const GaussianMixture& one, const GaussianMixture& other) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::size_t n = one.components.size();
  const auto cost = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t a = 0; a < one.dimension(); ++a) {
      const double gap = one.components[i - 1].mean[a] - other.components[j - 1].mean[a];
      sum += gap * gap;
    }
    constexpr double most = 1e200;  // one that is not finite is never below another, and the search would not end
    return sum < most ? sum : most;
  };
  std::vector<double> price_one(n + 1), price_other(n + 1);
  std::vector<std::size_t> matched(n + 1);  // of one, for each of the other
  for (std::size_t i = 1; i <= n; ++i) {
    std::vector<double> least(n + 1, infinity);
    std::vector<std::size_t> before(n + 1);  // on the path
    std::vector<bool> used(n + 1);
    std::size_t at = 0;
    matched[0] = i;
    do {
      used[at] = true;
      double step = infinity;
      std::size_t next = 0;
      for (std::size_t j = 1; j <= n; ++j) {
        if (used[j]) continue;
        const double rest = cost(matched[at], j) - price_one[matched[at]] - price_other[j];
        if (rest < least[j]) {
          least[j] = rest;
          before[j] = at;
        }
        if (least[j] < step) {
          step = least[j];
          next = j;
        }
      }
      for (std::size_t j = 0; j <= n; ++j)
        if (used[j]) {
          price_one[matched[j]] += step;
          price_other[j] -= step;
        } else {
          least[j] -= step;
        }
      at = next;
    } while (matched[at] != 0);
    for (; at != 0; at = before[at]) matched[at] = matched[before[at]];
  }
  std::vector<std::size_t> order(n);
  for (std::size_t j = 1; j <= n; ++j) order[matched[j] - 1] = j - 1;
  return order;
}

}  // namespace program
