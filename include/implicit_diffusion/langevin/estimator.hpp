// Gradient estimators for Gibbs laws pi*(theta) ~ exp(-V(., theta)). All of them are the theta-gradient of a signed
// weighting of samples,
//
//     Gamma = sum_i w_i grad_theta V(x_i, theta)    over the population and, where there is one,
//                                                   a batch of reference samples
//
// because d E_pi[f] / dtheta = -Cov_pi[f, grad_theta V]. The objective is a sum of terms (langevin/terms.hpp), each
// with its weights:
//
//     -lambda E_pi[R]                  w_i = (f_i - mean f) / N,  f = lambda R                   RewardTerm
//     beta KL(pi || base)              the same,  f = beta (V - V_base)                       BaseTerm
//     beta KL(reference || pi)         w_i = -beta / n, and +beta / m on m references         ReferenceTerm
//     -beta log integral exp(-V)       w_i = beta / n                                         MarginalLikelihoodTerm
//
// N = n - 1 makes the covariance unbiased; N = n is the authors' choice.
#pragma once

#include "implicit_diffusion/langevin/sampler.hpp"
#include "implicit_diffusion/langevin/terms.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace implicit_diffusion {

enum class Normaliser { n, n_minus_1 };

struct EstimatorOptions {
  Normaliser normaliser = Normaliser::n_minus_1;
  Workers* workers = nullptr;  // null: the calling thread alone
};

// The gradient of a sum of terms. Weights are known only when the mean of the signals is, so in general the signals of
// all samples are made first, then the weighted sum. An engine that offers it does with one pass: with
//
//     F = sum_i f_i,    S = sum_i grad_theta V(x_i),    S_f = sum_i f_i grad_theta V(x_i)
//
// the gradient is (S_f - F S / n) / N - beta S / n, plus the references' part. f counts up to a constant: the mean over
// the first group is subtracted, so that little cancels in single precision.
template <class T>
class GradientEstimator {
 public:
  using E = EnergyOf<T>;
  using Samples = typename E::Samples;
  using Theta = typename E::Theta;
  using Terms = std::vector<std::unique_ptr<Term<T>>>;
  static_assert(Energy<E>);

  GradientEstimator(E energy, Terms terms, EstimatorOptions options = {})
      : energy_(std::move(energy)), terms_(std::move(terms)), options_(options) {
    for (const auto& term : terms_) {
      value_share_ += term->value_share();
      beta_ -= term->mean_weight();
    }
  }

  // -lambda E[R] alone, the most common objective.
  GradientEstimator(E energy, typename E::Reward reward, double lambda = 1.0, EstimatorOptions options = {})
      : energy_(std::move(energy)), options_(options) {
    terms_.push_back(std::make_unique<RewardTerm<T>>(std::move(reward), lambda));
  }

  void estimate(const Samples& x, const Theta& theta, std::int64_t step, Theta& gradient) {
    require_fit(energy_, theta);
    require_fit(energy_, x);
    energy_.prepare(theta);
    estimate_with(energy_, x, step, gradient,
                  [&](std::size_t k, auto&&... request) { energy_.add(E::tile(x, k), request...); });
  }

  // The same for an energy that is prepared already, with the sums of each tile taken by add(k, request...), the
  // arguments of E::add after its first: what a sampler fuses its step with.
  template <class Add>
  void estimate_with(const E& energy, const Samples& x, std::int64_t step, Theta& gradient, Add&& add) {
    require_fit(energy, gradient, "gradient");
    if constexpr (one_pass)
      take_sums(energy, x, gradient, add);
    else
      weigh(energy, x, gradient, add);
    for (const auto& term : terms_)
      if (const Samples* references = term->references(step))
        add_references(energy, *references, -term->mean_weight(), gradient);
  }

  std::optional<std::size_t> find_inadmissible(const Theta& theta) const { return energy_.find_inadmissible(theta); }

 private:
  static constexpr bool one_pass = requires { typename E::Request; };
  using Tile = typename E::ConstTile;

  void add_signals(const Tile& x, typename E::TileNumbers f) const {
    for (const auto& term : terms_) term->add_signal(x, f);
  }
  // One sample alone has no covariance: its sum is zero, whatever it is divided by.
  double normaliser(double n) const { return options_.normaliser == Normaliser::n || n < 2 ? n : n - 1; }

  // Signals, then weights, then their sum.
  template <class Add>
  void weigh(const E& energy, const Samples& x, Theta& gradient, Add&& add) {
    const std::size_t tiles = E::tiles(x);
    typename E::Numbers f = E::numbers(x);
    E::for_each(options_.workers, tiles, [&](std::size_t k) {
      add_signals(E::tile(x, k), E::numbers_of(f, k));
      if (value_share_ != 0) energy.add_values(E::tile(x, k), value_share_, E::numbers_of(f, k));
    });
    const auto n = static_cast<double>(total_of(x));
    double sum = 0;
    in_turn(spread_of(x), {&sum, 1}, [&] {
      for (std::size_t k = 0; k < tiles; ++k) E::add_to(sum, E::numbers_of(f, k), E::tile(x, k));
    });
    const double scale = 1 / normaliser(n), shift = -scale * sum / n - beta_ / n;
    E::sum(options_.workers, x, gradient, [&](std::size_t k, auto&& to) {
      E::affine(E::numbers_of(f, k), E::tile(x, k), scale, shift);
      add(k, E::numbers_of(f, k), to);
    });
  }

  template <class Add>
  void take_sums(const E& energy, const Samples& x, Theta& gradient, Add&& add) requires one_pass {
    using Real = typename Samples::value_type;
    const std::size_t p = gradient.size();
    const auto n = static_cast<double>(total_of(x));
    const Real pilot = mean_signal(energy, x);
    const auto sums =
        sums_(options_.workers, x.tiles(), 1 + 2 * p, E::tiles_per_thread, [&](std::size_t k, std::span<double> row) {
          BlockArray<Real> f;
          const Tile tile = E::tile(x, k);
          f.clear(tile.size);
          add_signals(tile, f.data());
          add(k, typename E::Request{.sums = row.data(),
                                     .signal = f.data(),
                                     .shift = -pilot,
                                     .value_share = static_cast<Real>(value_share_)});
        });
    for (std::size_t j = 0; j < p; ++j) {
      const double mean = sums[1 + j] / n;
      gradient[j] = (sums[1 + p + j] - sums[0] * mean) / normaliser(n) - beta_ * mean;
    }
  }

  // Over the first group, which is enough to be near. One process has it.
  auto mean_signal(const E& energy, const Samples& samples) const requires one_pass {
    using Real = typename Samples::value_type;
    Real mean = 0;
    if (samples.first() == 0 && samples.size() > 0) {
      Tile x = E::tile(samples, 0);
      x.size = std::min(x.size, lanes_per_group);
      BlockArray<Real> f;
      for (std::size_t i = 0; i < x.size; ++i) f[i] = 0;
      add_signals(x, f.data());
      if (value_share_ != 0) energy.add_values(x, value_share_, f.data());
      double sum = 0;
      E::add_to(sum, f.data(), x);
      mean = static_cast<Real>(sum / static_cast<double>(x.size));
    }
    if (samples.processes()) samples.processes()->broadcast(0, as_message(std::span(&mean, 1)));
    return mean;
  }

  void add_references(const E& energy, const Samples& y, double beta, Theta& gradient) {
    require_fit(energy, y);
    const auto m = static_cast<double>(total_of(y));
    if constexpr (one_pass) {
      const std::size_t p = gradient.size();
      const auto sums =
          sums_(options_.workers, y.tiles(), 1 + 2 * p, E::tiles_per_thread,
                [&](std::size_t k, std::span<double> row) { energy.add(E::tile(y, k), {.sums = row.data()}); });
      for (std::size_t j = 0; j < p; ++j) gradient[j] += beta * sums[1 + j] / m;
    } else {
      Theta part = zeros_like(gradient);
      typename E::Numbers w = E::numbers(y);
      E::sum(options_.workers, y, part, [&](std::size_t k, auto&& to) {
        E::affine(E::numbers_of(w, k), E::tile(y, k), 0, beta / m);
        energy.add(E::tile(y, k), E::numbers_of(w, k), to);
      });
      for_each_element([](auto& g, const auto& more) { set_element(g, g + more); }, gradient, part);
    }
  }

  E energy_;
  Terms terms_;
  EstimatorOptions options_;
  double value_share_ = 0, beta_ = 0;
  TileSums sums_;  // of one pass
};

// Sampler and estimator of one energy. In the paper's order of the single loop both read p_k and theta_k, and one pass
// over the population does them together.
template <class T>
class LangevinEngine : public Langevin<T>, public GradientEstimator<T> {
 public:
  using E = EnergyOf<T>;
  using Samples = typename E::Samples;
  using Theta = typename E::Theta;

  LangevinEngine(const E& energy, typename GradientEstimator<T>::Terms terms, LangevinOptions options,
                 Normaliser normaliser = Normaliser::n_minus_1)
      : Langevin<T>(energy, options), GradientEstimator<T>(energy, std::move(terms), {normaliser, options.workers}) {}

  void advance_and_estimate(Samples& x, const Theta& theta, StepKey at, Theta& gradient) {
    this->begin(x, theta);
    const LangevinStep step = this->step(at);
    this->estimate_with(this->energy(), x, at.round, gradient, [&](std::size_t k, auto&&... request) {
      this->energy().step_and_add(E::tile(x, k), step, this->nonfinite(k), request...);
    });
  }
};

// Gamma = 0: for sampling alone.
struct NoGradient {
  template <class Population, class Theta>
  void estimate(const Population&, const Theta&, std::int64_t, Theta& gradient) const {
    for_each_element([](auto& g) { g = 0; }, gradient);
  }
};

// Compiled in the library, once and at its level of optimisation: what is left between the kernels of a tile shows.
extern template class RewardTerm<float>;
extern template class Langevin<float>;
extern template class Langevin<double>;
extern template class GradientEstimator<float>;
extern template class GradientEstimator<double>;
extern template class LangevinEngine<float>;
extern template class LangevinEngine<double>;

}  // namespace implicit_diffusion
