#include "finite_state/timing.hpp"

#include "implicit_diffusion/finite/ring.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace program {
namespace {

using namespace implicit_diffusion;

GradientTiming time_gradient(std::size_t n, const GradientTimingOptions& options) {
  constexpr std::size_t harmonics = 2;  // parameters: two for each
  const RingPotential potential(n, harmonics);
  const std::size_t p = potential.parameters();
  std::vector<double> coefficients(p), theta(p), gradient(p), exact(p), seconds;
  for (std::size_t j = 0; j < p; ++j) coefficients[j] = 1 / static_cast<double>(j + 1);
  const RewardObjective objective(ring_reward(n, coefficients), 1.0, 0.5);
  GibbsChain chain(potential, options.dense ? Graph::complete(n) : Graph::ring(n, options.width));
  const bool dense = chain.matrix().is_dense();
  ChainGradient by_system(std::move(chain), objective, options.route);
  GibbsGradient by_covariance(potential, objective);

  double error = 0;
  for (std::size_t r = 0; r <= options.repeats; ++r) {
    for (std::size_t j = 0; j < p; ++j)
      theta[j] = 0.1 * static_cast<double>(r) + 0.5 * (j % 2 == 0 ? 1 : -1) / static_cast<double>(j + 1);
    const auto start = std::chrono::steady_clock::now();
    by_system.exact(theta, gradient);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (r > 0 || options.repeats == 0) seconds.push_back(time.count());

    by_covariance.exact(theta, exact);
    double size = 0, difference = 0;
    for (std::size_t j = 0; j < p; ++j) {
      size = std::max(size, std::abs(exact[j]));
      difference = std::max(difference, std::abs(gradient[j] - exact[j]));
    }
    error = std::max(error, difference / size);
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return {n, dense, *middle, error};
}

}  // namespace

std::vector<GradientTiming> time_gradients(std::span<const std::int64_t> states, const GradientTimingOptions& options) {
  std::vector<GradientTiming> rows;
  for (const std::int64_t n : states) rows.push_back(time_gradient(static_cast<std::size_t>(n), options));
  return rows;
}

}  // namespace program
