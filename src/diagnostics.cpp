#include "implicit_diffusion/diagnostics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>

namespace implicit_diffusion {

Concentration concentration(std::span<const double> squares) {
  std::vector<double> sorted(squares.begin(), squares.end());
  std::ranges::sort(sorted, std::greater());
  const std::size_t few = std::min(sorted.size(), std::max<std::size_t>(1, sorted.size() / 100));
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  if (!(sum > 0)) return {0, 0};
  const double top = std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(few), 0.0);
  double of_shares = 0;  // of their squares: those of the numbers themselves may be beyond the largest double
  for (const double q : sorted) of_shares += (q / sum) * (q / sum);
  return {top / sum, 1 / of_shares};
}

std::vector<double> squared_deviations(std::span<const std::vector<double>> vectors) {
  std::vector<double> mean(vectors.empty() ? 0 : vectors.front().size()), squares;
  for (const std::vector<double>& v : vectors)
    for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += v[j] / static_cast<double>(vectors.size());
  for (const std::vector<double>& v : vectors) {
    squares.push_back(0);
    for (std::size_t j = 0; j < mean.size(); ++j) squares.back() += (v[j] - mean[j]) * (v[j] - mean[j]);
  }
  return squares;
}

std::optional<Trend> final_trend(std::span<const double> series) {
  constexpr std::size_t parts = 10, fewest = 20;
  std::vector<double> v;
  std::ranges::copy_if(series, std::back_inserter(v), [](double x) { return std::isfinite(x); });
  const std::size_t n = v.size();
  if (n < fewest) return std::nullopt;
  std::array<double, parts> mean{};
  double low = v.front(), high = v.front();
  for (std::size_t k = 0; k < parts; ++k) {
    const std::size_t begin = n * k / parts, end = n * (k + 1) / parts;
    for (std::size_t i = begin; i < end; ++i) mean[k] += v[i] / static_cast<double>(end - begin);
    low = std::min(low, mean[k]);
    high = std::max(high, mean[k]);
  }
  const double change = mean[parts - 1] - mean[parts - 2];
  bool steady = true;
  for (std::size_t k = parts / 2; k + 1 < parts; ++k) steady = steady && (mean[k + 1] - mean[k]) * change > 0;
  // Second differences of noise with variance s^2 have the variance 6 s^2, and a straight line has none.
  double squares = 0;
  for (std::size_t i = n / 2 + 1; i + 1 < n; ++i) squares += std::pow(v[i - 1] - 2 * v[i] + v[i + 1], 2);
  const std::size_t differences = n - 2 - n / 2;
  const double each = static_cast<double>(n) / parts;
  return Trend{change, high - low, std::sqrt(squares / 6 / static_cast<double>(differences) * 2 / each), steady};
}

}  // namespace implicit_diffusion
