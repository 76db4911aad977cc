#include "implicit_diffusion/denoising/discrete_schedule.hpp"

#include "../require.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace implicit_diffusion {
namespace {

using BetaSchedule = SchedulerConfig::BetaSchedule;
using Prediction = SchedulerConfig::Prediction;

constexpr std::int64_t most_timesteps = 1'000'000;
constexpr double longest_horizon = 4;

// As torch.linspace makes them in single precision: from either end to the middle.
std::vector<float> evenly_spaced(double from, double to, std::size_t count) {
  const auto first = static_cast<float>(from), last = static_cast<float>(to);
  if (count == 1) return {first};
  const float step = (last - first) / static_cast<float>(count - 1);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = i < count / 2 ? first + step * static_cast<float>(i) : last - step * static_cast<float>(count - 1 - i);
  return values;
}

template <class AlphaBar>
std::vector<float> betas_of(std::size_t count, AlphaBar alpha_bar) {
  constexpr double largest_beta = 0.999;
  std::vector<float> betas;
  for (std::size_t i = 0; i < count; ++i) {
    const double now = static_cast<double>(i) / static_cast<double>(count);
    const double next = static_cast<double>(i + 1) / static_cast<double>(count);
    betas.push_back(static_cast<float>(std::min(1 - alpha_bar(next) / alpha_bar(now), largest_beta)));
  }
  return betas;
}

double cosine(double u) { return std::pow(std::cos((u + 0.008) / 1.008 * std::numbers::pi / 2), 2); }
double laplace(double u) {
  const double lambda = -0.5 * std::copysign(1.0, 0.5 - u) * std::log(1 - 2 * std::abs(0.5 - u) + 1e-6);
  const double snr = std::exp(lambda);
  return std::sqrt(snr / (1 + snr));
}

std::vector<float> scheduled_betas(const SchedulerConfig& config) {
  const auto count = static_cast<std::size_t>(config.num_train_timesteps);
  const double from = config.beta_start, to = config.beta_end;
  switch (config.beta_schedule) {
    case BetaSchedule::linear:
      return evenly_spaced(from, to, count);
    case BetaSchedule::scaled_linear: {
      std::vector<float> betas = evenly_spaced(std::sqrt(from), std::sqrt(to), count);
      for (float& b : betas) b *= b;
      return betas;
    }
    case BetaSchedule::squaredcos_cap_v2:
      return betas_of(count, cosine);
    case BetaSchedule::laplace:
      return betas_of(count, laplace);
    case BetaSchedule::sigmoid: {
      std::vector<float> betas = evenly_spaced(-6, 6, count);
      for (float& b : betas) b = 1 / (1 + std::exp(-b)) * static_cast<float>(to - from) + static_cast<float>(from);
      return betas;
    }
  }
  return {};
}

// Products are taken in double and rounded one by one.
std::vector<float> products(const std::vector<float>& betas) {
  std::vector<float> abar;
  double product = 1;
  for (const float b : betas) {
    product *= double{1.0F - b};
    abar.push_back(static_cast<float>(product));
  }
  return abar;
}

std::vector<float> with_zero_end(const std::vector<float>& betas) {
  std::vector<float> root = products(betas);
  for (float& a : root) a = std::sqrt(a);
  const float first = root.front(), last = root.back(), scale = first / (first - last);
  std::vector<float> abar = root, out;
  for (std::size_t i = 0; i < root.size(); ++i) {
    const float moved = (root[i] - last) * scale;
    abar[i] = moved * moved;
    out.push_back(1.0F - (i == 0 ? abar[i] : abar[i] / abar[i - 1]));
  }
  return out;
}

// Exact halves go to the even neighbour, as NumPy rounds.
std::int64_t round_to_even(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

}  // namespace

SchedulerConfig cosine_scheduler_config() {
  constexpr int count = 988;
  SchedulerConfig config;
  config.num_train_timesteps = count;
  config.prediction_type = Prediction::v_prediction;
  double before = 1;
  for (int i = 0; i < count; ++i) {
    const double abar = std::pow(std::cos(std::numbers::pi * (i + 1) / 2000), 2);
    config.trained_betas.push_back(1 - abar / before);
    before = abar;
  }
  return config;
}

DiscreteSchedule::DiscreteSchedule(const SchedulerConfig& config) : config_(config) {
  require(config.num_train_timesteps >= 1 && config.num_train_timesteps <= most_timesteps, "num_train_timesteps",
          "{} is not between 1 and {}", config.num_train_timesteps, most_timesteps);
  const auto count = static_cast<std::size_t>(config.num_train_timesteps);
  require(config.trained_betas.empty() || config.trained_betas.size() == count, "trained_betas",
          "{} numbers for {} num_train_timesteps", config.trained_betas.size(), count);
  require(config.clip_sample_range > 0, "clip_sample_range", "{} must be positive", config.clip_sample_range);
  if (config.trained_betas.empty())
    betas_ = scheduled_betas(config);
  else
    betas_.assign(config.trained_betas.begin(), config.trained_betas.end());
  const char* field = config.trained_betas.empty() ? "beta_schedule" : "trained_betas";
  if (config.rescale_betas_zero_snr) {
    require(count > 1, "rescale_betas_zero_snr", "needs more than one of num_train_timesteps");
    betas_ = with_zero_end(betas_);
  }

  for (std::size_t i = 0; i < count; ++i)
    require(betas_[i] > 0 && (betas_[i] < 1 || (i + 1 == count && betas_[i] <= 1)), field,
            "beta {} is {}, which is not between 0 and 1", i, betas_[i]);
  abar_ = products(betas_);
  for (const float a : abar_) {
    // In the last step of a schedule without signal at the end, rounding may leave a little.
    const double tau = -0.5 * std::log(double{a});
    require(tau_.empty() || tau > tau_.back(), field, "noise does not grow at index {}", tau_.size());
    tau_.push_back(tau);
  }
}

double DiscreteSchedule::horizon() const { return std::min(longest_horizon, tau_.back()); }

double DiscreteSchedule::network_time(double tau) const {
  if (!(tau > tau_.front())) return 0;
  if (tau >= tau_.back()) return static_cast<double>(size() - 1);
  const auto above = std::upper_bound(tau_.begin(), tau_.end(), tau);
  const double high = *above, low = *(above - 1);
  const auto index = static_cast<double>(above - tau_.begin() - 1);
  // Towards an infinite end nothing is linear.
  return std::isinf(high) ? index : index + std::log(tau / low) / std::log(high / low);
}

std::vector<std::int64_t> DiscreteSchedule::timesteps(std::size_t count) const {
  const std::size_t n = size();
  require(count >= 1 && count <= n, "steps", "{} is not between 1 and {}, the steps of the schedule", count, n);
  const auto refuse_unless = [&](bool within) {
    require(within, "steps_offset", "{} leads beyond the {} steps of the schedule", config_.steps_offset, n);
  };
  refuse_unless(config_.steps_offset >= 0 && config_.steps_offset < config_.num_train_timesteps);
  std::vector<std::int64_t> all;
  const auto real = [](std::size_t i) { return static_cast<double>(i); };
  // The increment of numpy.arange(n, 0, -n / count), with its rounding; a last entry of -1, which that may have, is no
  // step.
  const double back = (real(n) - real(n) / real(count)) - real(n);
  for (std::size_t k = count; k-- > 0;) switch (config_.timestep_spacing) {
      case SchedulerConfig::Spacing::leading:
        all.push_back(static_cast<std::int64_t>(k * (n / count)) + config_.steps_offset);
        break;
      case SchedulerConfig::Spacing::linspace:
        all.push_back(count == 1 ? 0 : round_to_even(real(k) * (real(n - 1) / real(count - 1))));
        break;
      case SchedulerConfig::Spacing::trailing:
        all.push_back(round_to_even(real(n) + real(count - 1 - k) * back) - 1);
        break;
    }
  refuse_unless(all.front() < config_.num_train_timesteps && all.back() >= 0);
  return all;
}

TimeGrid DiscreteSchedule::grid(const std::vector<std::int64_t>& timesteps) const {
  TimeGrid grid;
  for (const std::int64_t t : timesteps) {
    require_index(t);
    grid.tau.push_back(tau_[static_cast<std::size_t>(t)]);
  }
  grid.tau.push_back(0);
  return grid;
}

void DiscreteSchedule::require_index(std::int64_t t) const {
  require(t >= 0 && t < config_.num_train_timesteps, "timestep", "{} is not between 0 and {}", t, size() - 1);
}

void DiscreteSchedule::require_step(std::int64_t t, std::int64_t previous) const {
  require_index(t);
  require(previous < t, "timestep", "a step from {} to {} leads to more noise", t, previous);
}

double DiscreteSchedule::abar_at(std::int64_t t, double beyond) const {
  return t < 0 ? beyond : double{abar_[static_cast<std::size_t>(t)]};
}

DiscreteStep DiscreteSchedule::denoise(std::int64_t t) const {
  require(!config_.thresholding, "thresholding", "is not supported");
  const double a = abar_at(t, 1), data = std::sqrt(a), noise = std::sqrt(1 - a);
  DiscreteStep step{};
  switch (config_.prediction_type) {
    case Prediction::epsilon:
      require(a > 0, "prediction_type", "epsilon says nothing at index {}, where no signal is left", t);
      step.sample = 1 / data;
      step.output = -noise / data;
      break;
    case Prediction::sample:
      step.output = 1;
      break;
    case Prediction::v_prediction:
      step.sample = data;
      step.output = -noise;
      break;
  }
  step.clip = config_.clip_sample ? config_.clip_sample_range : std::numeric_limits<double>::infinity();
  return step;
}

DiscreteStep DiscreteSchedule::ddpm_step(std::int64_t t, std::int64_t previous) const {
  using Variance = SchedulerConfig::Variance;
  constexpr double smallest_variance = 1e-20;
  const Variance type = config_.variance_type;
  require(type != Variance::learned && type != Variance::learned_range, "variance_type", "learned is not supported");
  require_step(t, previous);
  const double now = abar_at(t, 1), next = abar_at(previous, 1), ratio = now / next;
  DiscreteStep step = denoise(t);
  step.from_x0 = std::sqrt(next) * (1 - ratio) / (1 - now);
  step.from_sample = std::sqrt(ratio) * (1 - next) / (1 - now);
  const bool small = type == Variance::fixed_small || type == Variance::fixed_small_log;
  const double variance = small ? std::max((1 - next) / (1 - now) * (1 - ratio), smallest_variance) : 1 - ratio;
  step.noise = t > 0 ? std::sqrt(variance) : 0;
  return step;
}

DiscreteStep DiscreteSchedule::ddim_step(std::int64_t t, std::int64_t previous, double eta) const {
  require(eta >= 0 && eta <= 1, "eta", "{} is not between 0 and 1", eta);
  require_step(t, previous);
  const double now = abar_at(t, 1), next = abar_at(previous, config_.set_alpha_to_one ? 1 : double{abar_.front()});
  DiscreteStep step = denoise(t);
  const double variance = eta * eta * (1 - next) / (1 - now) * (1 - now / next);
  const double direction = std::sqrt(std::max(1 - next - variance, 0.0));  // of eps, made of x and m
  const double data = std::sqrt(now), noise = std::sqrt(1 - now);
  step.from_x0 = std::sqrt(next);
  step.noise = std::sqrt(variance);
  switch (config_.prediction_type) {
    case Prediction::epsilon:
      step.from_output = direction;
      break;
    case Prediction::sample:
      step.from_sample = direction / noise;
      step.from_output = -direction * data / noise;
      break;
    case Prediction::v_prediction:
      step.from_sample = direction * noise;
      step.from_output = direction * data;
      break;
  }
  return step;
}

DiscreteSchedule::Amplitudes DiscreteSchedule::amplitudes(std::int64_t t) const {
  const float a = abar_.at(static_cast<std::size_t>(t));
  return {std::sqrt(a), std::sqrt(1 - a)};
}

}  // namespace implicit_diffusion
