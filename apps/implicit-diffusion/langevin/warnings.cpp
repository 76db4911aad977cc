#include "langevin/warnings.hpp"

#include "experiment/warnings.hpp"
#include "implicit_diffusion/langevin/occupancy.hpp"
#include "implicit_diffusion/population_arrays.hpp"
#include "langevin/probe_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

// The largest eigenvalue of the Hessian of a potential among some samples, by power iteration on differences of its
// gradient: first for the eigenvalue that is largest without its sign, then, shifted by that, for the largest.
double largest_curvature(const Potential<double>& potential, const Population<float>& samples) {
  constexpr std::size_t most = 256;
  constexpr int iterations = 30;
  const Population<float> some = some_of(samples, most);
  const std::size_t n = some.size(), d = some.dimension();
  Population<double> x(n, d);
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t i = 0; i < n; ++i) x(i, j) = static_cast<double>(some(i, j));
  std::vector<double> v(n * d), shift(n), curvature(n);  // by coordinate
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t i = 0; i < n; ++i) v[j * n + i] = std::cos(static_cast<double>(j + 1));
  const auto normalise = [&] {
    for (std::size_t i = 0; i < n; ++i) {
      double square = 0;
      for (std::size_t j = 0; j < d; ++j) square += v[j * n + i] * v[j * n + i];
      for (std::size_t j = 0; j < d && square > 0; ++j) v[j * n + i] /= std::sqrt(square);
    }
  };
  const auto moved = [&](double h) {
    Population<double> there = x;
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t i = 0; i < n; ++i) there(i, j) += h * v[j * n + i];
    return gradients_x(potential, there);
  };
  for (int k = 0; k < 2 * iterations; ++k) {
    normalise();
    constexpr double h = 1e-5;
    const std::vector<double> up = moved(h), down = moved(-h);
    std::ranges::fill(curvature, 0.0);
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t i = 0; i < n; ++i) {
        const double product = (up[j * n + i] - down[j * n + i]) / (2 * h);
        curvature[i] += v[j * n + i] * product;
        v[j * n + i] = product + shift[i] * v[j * n + i];
      }
    if (k + 1 == iterations)
      for (std::size_t i = 0; i < n; ++i) shift[i] = std::abs(curvature[i]);
  }
  return *std::ranges::max_element(curvature);
}

// At the last theta. Guidance samples exp(-V + lambda R), whose curvature has no bound that is of use: what it is at
// the samples counts.
std::optional<double> stable_step(const LangevinConfiguration& c, const RunState& state,
                                  const Potential<float>& potential) {
  if (c.method != Method::guided) return potential.largest_stable_step();
  const RewardSpec& r = *c.smooth_reward;
  const double k = largest_curvature(
      prepared(guided<double>(c.potential.make<double>(), r.make<double>(), r.lambda), state.theta), state.population);
  return k > 0 ? std::optional(2 / k) : std::nullopt;
}

double last_step_size(const LangevinConfiguration& c, const RunState& state) {
  const double exponent = c.schedule == ScheduleKind::cube_root ? 1.0 / 3.0 : 0;
  return Schedule(c.step_size, exponent)(std::max<std::int64_t>(state.step, 1) - 1);
}

// Along a direction in which V has the curvature k the chain has the variance 1 / (k (1 - g k / 2)) instead of 1 / k.
// The largest stable step is 2 / k for the largest k there is: the variance is 1 / (1 - g / limit) times the law's.
std::optional<Warning> warn_of_step(const LangevinConfiguration& c, const RunState& state,
                                    std::optional<double> limit) {
  constexpr double much = 0.5, fine = 0.1;
  const double g = last_step_size(c, state);
  if (!limit || !(g >= much * *limit)) return std::nullopt;
  const std::string bias =
      g < *limit ? fmt::format("around the narrowest mode the samples have up to {:.3g} times the variance of the law",
                               1 / (1 - g / *limit))
                 : std::string(
                       "the chain is not stable, and its samples do not follow the law. If theta should not be "
                       "where it is, a smaller learning_rate may help");
  return Warning{warning_kind::step_size,
                 fmt::format("step_size ({:.6g} at the end) is {:.0f} % of the largest stable step at the last theta "
                             "({:.6g}): {}; with a step_size of {:.3g} their variance would be up to {:.3g} times "
                             "that of the law",
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
    if (auto warning = warn_if_moving(f.label, values, in_nats(f.key))) return warning;
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
                                      const Potential<float>& potential, std::optional<double> limit) {
  if (c.method == Method::guided) return std::nullopt;  // which samples another law
  const std::optional<GaussianMixture> law = modes(c, state.theta, potential);
  if (!law || law->weights.size() < 2) return std::nullopt;
  constexpr double much = 0.1, of_weight = 0.1, standard_errors = 5, most_work = 1e7;
  constexpr std::size_t fewest = 100;
  const auto work = static_cast<double>(law->weights.size() * law->dimension() * law->dimension());
  const auto most = static_cast<std::size_t>(std::clamp(most_work / work, 1.0, 1e4));
  if (most < fewest) return std::nullopt;
  const Occupancy o = occupancy(some_of(state.population, most), *law, most);
  if (o.deviation <= standard_errors) return std::nullopt;
  // A mode that hardly any sample is in, however light: it is missing from every estimate.
  std::optional<std::size_t> missed;
  for (std::size_t i = 0; i < o.shares.size(); ++i) {
    const double w = law->weights[i], expected = w * static_cast<double>(std::min(state.population.total(), most));
    if (o.shares[i] < of_weight * w && expected > standard_errors * standard_errors)
      if (!missed || w > law->weights[*missed]) missed = i;
  }
  if (o.total_variation <= much && !missed) return std::nullopt;
  const std::size_t mode = o.total_variation > much ? o.furthest : *missed;
  const double g = last_step_size(c, state);
  const std::string bias =
      limit && g > *limit / 10
          ? fmt::format(" Part of it may be the bias of step_size, {:.0f} % of the largest stable step.",
                        100 * g / *limit)
          : std::string();
  return Warning{
      warning_kind::mixing,
      fmt::format(
          "the samples have not kept up with theta: mode {} holds {:.1f} % of the samples but {:.1f} % of the "
          "distribution at the last theta (total variation {:.2f}). Samples rarely cross between modes that are far "
          "apart; more steps, a smaller learning_rate or a start that covers all modes may help.{}",
          mode + 1, 100 * o.shares[mode], 100 * law->weights[mode], o.total_variation, bias)};
}

}  // namespace

std::vector<Warning> langevin_warnings(const LangevinConfiguration& c, const RunState& state, const RowRecorder& rows) {
  std::vector<Warning> all;
  if (state.step == 0) return all;
  const Potential<float> potential = prepared(c.potential.make(), state.theta);
  const auto add = [&](std::optional<Warning> w) {
    if (w) all.push_back(std::move(*w));
  };
  const std::optional<double> limit = stable_step(c, state, potential);
  const std::optional<Warning> biased = warn_of_step(c, state, limit);
  add(biased);
  if (moves_theta(c.method)) add(warn_if_worse(c, rows));
  if (c.shortened) return all;
  if (moves_theta(c.method)) add(warn_of_figures(c, rows));
  // Samples of a law that the step has made wider say nothing of crossings.
  if (!biased) add(warn_of_mixing(c, state, potential, limit));
  return all;
}

}  // namespace program
