#include "langevin/warnings.hpp"

#include "experiment/warnings.hpp"
#include "implicit_diffusion/langevin/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

// Along a direction in which V has the curvature k the chain has the variance 1 / (k (1 - g k / 2)) instead of 1 / k.
// largest_stable_step() is 2 / k for the largest k there is: the variance is 1 / (1 - g / limit) times the law's.
std::optional<Warning> warn_of_step(const LangevinConfiguration& c, const RunState& state,
                                    const Potential<float>& potential) {
  constexpr double much = 0.5, fine = 0.1;
  const std::optional<double> limit = potential.largest_stable_step();
  const double exponent = c.schedule == ScheduleKind::cube_root ? 1.0 / 3.0 : 0;
  const double g = Schedule(c.step_size, exponent)(std::max<std::int64_t>(state.step, 1) - 1);
  if (!limit || !(g >= much * *limit)) return std::nullopt;
  const std::string bias =
      g < *limit ? fmt::format("around the narrowest mode the samples have up to {:.3g} times the variance of the law",
                               1 / (1 - g / *limit))
                 : std::string("the chain is not stable, and its samples do not follow the law");
  return Warning{warning_kind::step_size,
                 fmt::format("step_size, {:.6g} at the end, is {:.0f} % of the largest stable step, {:.6g} at the last "
                             "theta: {}; with a step_size of {:.3g} it would be {:.3g} times",
                             g, 100 * g / *limit, *limit, bias, fine * *limit, 1 / (1 - fine))};
}

// The figure that a run is judged by, if one of them still moves.
std::optional<Warning> warn_of_figures(const LangevinConfiguration& c, const RowRecorder& rows) {
  for (const FigureName& f : figure_names) {
    if (f.value == &Figures::log_likelihood) continue;  // of theta_opt, which is no goal of the run
    const std::vector<double> values = rows.column(f.key);
    // A mean over the samples is the last resort: it is noisy.
    const bool sampled = f.value == &Figures::reward;
    if (sampled && (!c.reward || std::isfinite(rows.column("exact_reward").back()))) continue;
    if (auto warning = warn_if_moving(f.label, values)) return warning;
  }
  return std::nullopt;
}

// The modes of the law: the components of a mixture. A double well has none, but two halves that mirror each other.
std::optional<GaussianMixture> modes(const LangevinConfiguration& c, std::span<const double> theta,
                                     const Potential<float>& potential) {
  const auto* well = std::get_if<DoubleWellSpec>(&c.potential.part);
  if (!well) return potential.law(theta);
  const std::size_t d = well->dimension;
  Gaussian left{std::vector<double>(d), std::vector<double>(d * d)};
  for (std::size_t j = 0; j < d; ++j) left.covariance[j * d + j] = well->variance;
  left.covariance[0] = well->half_distance * well->half_distance / (8 * theta[0]);
  Gaussian right = left;
  left.mean[0] = -well->half_distance;
  right.mean[0] = well->half_distance;
  return GaussianMixture{{0.5, 0.5}, {std::move(left), std::move(right)}};
}

std::optional<Warning> warn_of_mixing(const LangevinConfiguration& c, const RunState& state,
                                      const Potential<float>& potential) {
  if (c.method == Method::guided) return std::nullopt;  // which samples another law
  const std::optional<GaussianMixture> law = modes(c, state.theta, potential);
  if (!law || law->weights.size() < 2) return std::nullopt;
  constexpr double much = 0.1, standard_errors = 5, most_work = 1e7;
  constexpr std::size_t fewest = 100;
  const auto work = static_cast<double>(law->weights.size() * law->dimension() * law->dimension());
  const auto most = static_cast<std::size_t>(std::clamp(most_work / work, 1.0, 1e4));
  if (most < fewest) return std::nullopt;
  const Occupancy o = occupancy(state.population, *law, most);
  if (o.total_variation <= much || o.deviation <= standard_errors) return std::nullopt;
  return Warning{
      warning_kind::mixing,
      fmt::format(
          "the samples are not spread over the modes as the law at the last theta is: mode {} has {:.1f} % of "
          "them and the weight {:.1f} % (total variation {:.2f}); they cross between modes too rarely for theta's "
          "pace, if they do at all: more steps, a smaller learning_rate or modes closer together may help",
          o.furthest + 1, 100 * o.shares[o.furthest], 100 * law->weights[o.furthest], o.total_variation)};
}

}  // namespace

std::vector<Warning> langevin_warnings(const LangevinConfiguration& c, const RunState& state, const RowRecorder& rows,
                                       bool shortened) {
  std::vector<Warning> all;
  if (state.step == 0) return all;
  const Potential<float> potential = prepared(c.potential.make(), state.theta);
  const auto add = [&](std::optional<Warning> w) {
    if (w) all.push_back(std::move(*w));
  };
  add(warn_of_step(c, state, potential));
  if (shortened) return all;
  if (moves_theta(c.method)) add(warn_of_figures(c, rows));
  add(warn_of_mixing(c, state, potential));
  return all;
}

}  // namespace program
