#include "langevin/recorder.hpp"

#include "implicit_diffusion/population_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace program {
namespace {

using namespace implicit_diffusion;

std::vector<std::string> header(const std::vector<FigureName>& columns) {
  std::vector<std::string> names{"step", "gradient_evaluations", "seconds"};
  for (const FigureName& f : columns) names.emplace_back(f.key);
  return names;
}

constexpr std::size_t window = 20;  // a single batch is too noisy: crossings are of a mean over this many steps

// Every row of metrics evaluates all components at 24^d nodes of each (and 20^d, to check): beyond 10^7 evaluations,
// about 0.2 s, there is no divergence.
bool quadrature_is_cheap(const GaussianMixture& law) {
  if (law.dimension() > MixtureDivergence::largest_dimension) return false;
  const auto n = static_cast<double>(law.weights.size());
  return n * n * std::pow(24.0, static_cast<double>(law.dimension())) <= 1e7;
}

}  // namespace

double mean_log_density(const Population<float>& x, const GaussianMixture& law) {
  const MixtureLogDensity log_density(law);
  std::vector<double> point(x.dimension());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < point.size(); ++j) point[j] = static_cast<double>(x(i, j));
    sum += log_density(point);
  }
  return sum / static_cast<double>(x.size());
}

std::optional<double> ExactReward::operator()(const Reward<float>& reward, const GaussianMixture& law) {
  const auto same = [](const Gaussian& a, const Gaussian& b) {
    return a.mean == b.mean && a.covariance == b.covariance;
  };
  if (!std::ranges::equal(components_, law.components, same)) {
    components_.clear();
    worth_.clear();
    for (const Gaussian& g : law.components) {
      const std::optional<double> worth = reward.expectation(GaussianMixture{{1.0}, {g}});
      if (!worth) return std::nullopt;
      worth_.push_back(*worth);
    }
    components_ = law.components;
  }
  double sum = 0;
  for (std::size_t i = 0; i < worth_.size(); ++i) sum += law.weights[i] * worth_[i];
  return sum;
}

Measures::Measures(const LangevinConfiguration& c, Workers* workers)
    : potential_(c.potential.make()),
      samples_its_law_(c.method != Method::guided),
      has_base_(c.base.has_value()),
      means_(workers) {
  if (!c.theta_opt.empty()) optimal_ = prepared(potential_, c.theta_opt);
  if (c.reward) reward_ = c.reward->make();
  if (c.reference && c.reference->data) data_ = &reference_data(c, potential_);
  if (c.reference && !c.reference->data)
    if (const GaussianMixture law = *potential_.law(c.reference->theta); quadrature_is_cheap(law))
      divergence_.emplace(law);
  if (c.base) base_ = potential_.law(c.base->theta);
}

std::vector<FigureName> Measures::columns() const {
  std::vector<FigureName> all;
  for (const FigureName& f : figure_names)
    if (!f.of_a_part || (f.value == &Figures::base_kl ? has_base_ : data_ != nullptr)) all.push_back(f);
  return all;
}

double Measures::log_likelihood(const Population<float>& x) {
  if (!optimal_) return Figures::none;
  return -means_.value(*optimal_, x);
}

Figures Measures::figures(const Population<float>* x, std::span<const double> theta,
                          std::optional<double> log_likelihood_of_x) {
  Figures f;
  if (x) f.log_likelihood = log_likelihood_of_x ? *log_likelihood_of_x : log_likelihood(*x);
  const std::optional<GaussianMixture> law = samples_its_law_ ? potential_.law(theta) : std::nullopt;
  if (reward_) {
    if (x) f.reward = means_.reward(*reward_, *x);
    if (law) f.exact_reward = exact_reward_(*reward_, *law).value_or(Figures::none);
  }
  if (divergence_ && law) {
    f.exact_kl = (*divergence_)(*law).value_or(Figures::none);
    if (!reward_) f.reward = -f.exact_kl;
  }
  if (base_ && law && quadrature_is_cheap(*law)) f.base_kl = MixtureDivergence(*law)(*base_).value_or(Figures::none);
  if (data_ && law) f.data_log_likelihood = mean_log_density(*data_, *law);
  return f;
}

Recorder::Recorder(const LangevinConfiguration& c, Workers* workers)
    : measures_(c, workers),
      evaluations_per_step_(gradient_evaluations_per_step(c)),
      columns_(measures_.columns()),
      rows_(header(columns_), c.log_every),
      snapshot_steps_(c.snapshots) {
  for (const double t : c.thresholds) crossings_.push_back({t, std::nullopt});
}

void Recorder::operator()(const RunState& state) {
  rows_.start_clock();
  if (state.step == seen_) return;
  seen_ = state.step;
  const std::optional<double> log_likelihood = watch_thresholds(state);
  if (rows_.is_due(state.step)) {
    rows_.add(state.step, measure(state, false, log_likelihood), state.theta);
    last_logged_ = last_;
  }
  if (std::binary_search(snapshot_steps_.begin(), snapshot_steps_.end(), state.step))
    give_rows(state.population, [this](std::string_view piece) {
      const std::size_t before = snapshots_.size();
      snapshots_.resize(before + piece.size() / sizeof(float));
      std::memcpy(snapshots_.data() + before, piece.data(), piece.size());
    });
}

void Recorder::finish(const RunState& state, bool diverged) {
  if (rows_.needs_last(state.step)) rows_.add_last(measure(state, diverged), state.theta);
}

std::vector<double> Recorder::measure(const RunState& state, bool diverged, std::optional<double> log_likelihood) {
  last_ = measures_.figures(diverged ? nullptr : &state.population, state.theta, log_likelihood);
  std::vector<double> row{static_cast<double>(state.step), static_cast<double>(state.step * evaluations_per_step_),
                          rows_.seconds()};
  for (const FigureName& f : columns_) row.push_back(last_.*f.value);
  return row;
}

void Recorder::save(io::CheckpointWriter& c) const {
  rows_.save(c, "last_step");
  std::vector<std::int64_t> crossings;
  for (const Crossing& crossing : crossings_) crossings.push_back(crossing.step.value_or(-1));
  std::vector<double> last;
  for (const FigureName& f : figure_names) last.push_back(last_logged_.*f.value);
  io::save(c, "snapshots", snapshots_);
  io::save(c, "crossings", std::move(crossings));
  io::save(c, "recent", recent_);
  io::save(c, "last", std::move(last));
  io::save(c, "seen", seen_);
}

void Recorder::restore(const io::CheckpointReader& c, std::int64_t step, std::size_t parameters) {
  const std::vector<double> last = c.numbers<double>("last");
  const std::vector<std::int64_t> crossings = c.numbers<std::int64_t>("crossings");
  if (crossings.size() != crossings_.size()) c.refuse("crossings", "has another size");
  if (last.size() != std::size(figure_names)) c.refuse("last", "has another size");
  rows_.restore(c, parameters, "last_step");
  snapshots_ = c.numbers<float>("snapshots");
  for (std::size_t i = 0; i < crossings.size(); ++i)
    crossings_[i].step = crossings[i] < 0 ? std::nullopt : std::optional(crossings[i]);
  if (std::ranges::any_of(crossings, [&](std::int64_t at) { return at > step; }))
    c.refuse("crossings", "has a step that the run has not come to");
  recent_ = c.numbers<double>("recent");
  if (recent_.size() > window) c.refuse("recent", "has another size");
  for (std::size_t i = 0; i < last.size(); ++i) last_logged_.*figure_names[i].value = last[i];
  last_ = last_logged_;
  seen_ = c.number<std::int64_t>("seen");
}

std::optional<double> Recorder::watch_thresholds(const RunState& state) {
  if (std::ranges::all_of(crossings_, [](const Crossing& c) { return c.step.has_value(); })) return std::nullopt;
  const double now = measures_.log_likelihood(state.population);
  if (recent_.size() < window)
    recent_.push_back(now);
  else
    recent_[static_cast<std::size_t>(state.step) % window] = now;
  if (recent_.size() < window) return now;
  const double level = std::accumulate(recent_.begin(), recent_.end(), 0.0) / window;
  for (Crossing& c : crossings_)
    if (!c.step && level >= c.threshold) c.step = state.step;
  return now;
}

}  // namespace program
