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
                 fmt::format("step_size ({:.6g} at the end) is {:.0f} % of the largest stable step at the last theta "
                             "({:.6g}): {}; with a step_size of {:.3g} it would be {:.3g} times",
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

// The objective at each row, -lambda E[R] + beta KL(reference || pi) + beta KL(pi || base), of exact figures; NaN where
// one of them is not known.
std::vector<double> exact_objective(const LangevinConfiguration& c, const RowRecorder& rows) {
  std::vector<double> sum(rows.column("step").size());
  const auto add = [&](double weight, const char* key) {
    const std::vector<double> values = rows.column(key);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * values[i];
  };
  if (c.reward) add(-c.reward->lambda, "exact_reward");
  if (c.reference)
    add(c.reference->data ? -c.reference->beta : c.reference->beta,
        c.reference->data ? "data_log_likelihood" : "exact_kl");
  if (c.base) add(c.base->beta, "base_kl");
  return sum;
}

// The median of the objective over the last tenth is worse than the start. A run that starts at the optimum and moves
// about it is not told so: a tenth of the reward and 0.05 nats of a divergence are allowed.
std::optional<Warning> warn_if_worse(const LangevinConfiguration& c, const RowRecorder& rows) {
  constexpr double of_reward = 0.1, nats = 0.05;
  if (c.method == Method::unrolled) return std::nullopt;  // whose objective is another
  const std::vector<double> f = exact_objective(c, rows);
  double allowed = 0;
  if (c.reward) allowed += of_reward * std::abs(c.reward->lambda * rows.column("exact_reward").front());
  if (c.reference) allowed += nats * c.reference->beta;
  if (c.base) allowed += nats * c.base->beta;
  std::vector<double> last(f.end() - static_cast<std::ptrdiff_t>((f.size() + 9) / 10), f.end());
  if (std::ranges::any_of(last, [](double v) { return std::isnan(v); })) return std::nullopt;
  const auto middle = last.begin() + static_cast<std::ptrdiff_t>(last.size() / 2);
  std::ranges::nth_element(last, middle);
  if (f.size() < 2 || !(*middle - f.front() > allowed)) return std::nullopt;
  return Warning{warning_kind::worse,
                 fmt::format("the objective got worse: it was {:.4g} at the start and is {:.4g} at "
                             "the end; a smaller learning_rate or more samples may help",
                             f.front(), *middle)};
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
          "the samples have not kept up with theta: mode {} holds {:.1f} % of the samples but {:.1f} % of the "
          "distribution at the last theta (total variation {:.2f}). Samples rarely cross between modes that are far "
          "apart; more steps, a smaller learning_rate or a start that covers all modes may help",
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
  if (moves_theta(c.method)) add(warn_if_worse(c, rows));
  if (shortened) return all;
  if (moves_theta(c.method)) add(warn_of_figures(c, rows));
  add(warn_of_mixing(c, state, potential));
  return all;
}

}  // namespace program
