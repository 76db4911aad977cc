// Gradient estimators for Gibbs laws pi*(theta) ~ exp(-V(., theta)). All of them are the theta-gradient of a signed weighting of samples,
//
//     Gamma = sum_i w_i grad_theta V(x_i, theta)    over the population and, where there is one, a batch of reference samples
//
// because d E_pi[f] / dtheta = -Cov_pi[f, grad_theta V]. The objective is a sum of terms, each with its weights:
//
//     -lambda E_pi[R]                  w_i = (f_i - mean f) / N,  f = lambda R                   RewardTerm
//     beta KL(pi || base)              the same,  f = beta (V - V_base)                       BaseTerm
//     beta KL(reference || pi)         w_i = -beta / n, and +beta / m on m references         ReferenceTerm
//
// N = n - 1 makes the covariance unbiased; N = n is the authors' choice.
#pragma once

#include "implicit_diffusion/langevin/reward.hpp"
#include "implicit_diffusion/langevin/sampler.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace implicit_diffusion {

enum class Normaliser { n, n_minus_1 };

// One term of the objective. Its part of the signal f whose covariance with grad_theta V is taken, and its reference samples.
template <class Real>
struct Term {
  virtual ~Term() = default;
  // Adds to the signal of the samples of a block.
  virtual void add_signal(Block<const Real> /*x*/, Real* /*f*/) const {}
  // The share of V itself in the signal.
  virtual double value_share() const { return 0; }
  // Reference samples of this step, or null, and beta: their mean of grad_theta V counts beta, that of the population -beta.
  virtual const Population<Real>* references(std::int64_t /*step*/) { return nullptr; }
  virtual double reference_weight() const { return 0; }
};

template <class Real>
class RewardTerm final : public Term<Real> {
 public:
  explicit RewardTerm(Reward<Real> reward, double lambda = 1.0)
      : reward_(std::move(reward)), lambda_(static_cast<Real>(lambda)) {}

  void add_signal(Block<const Real> x, Real* f) const override { reward_.add(x, lambda_, f); }

 private:
  Reward<Real> reward_;
  Real lambda_;
};

// KL(pi || base), base ~ exp(-V_base): the reverse divergence, to a law whose potential is known.
template <class Real>
class BaseTerm final : public Term<Real> {
 public:
  // `base` is prepared at its own parameter.
  explicit BaseTerm(Potential<Real> base, double beta = 1.0) : base_(std::move(base)), beta_(beta) {}

  void add_signal(Block<const Real> x, Real* f) const override {
    BlockArray<Real> v;
    base_.values(x, v.data());
    for (std::size_t i = 0; i < x.size; ++i) f[i] -= static_cast<Real>(beta_) * v[i];
  }
  double value_share() const override { return beta_; }

 private:
  Potential<Real> base_;
  double beta_;
};

// Where reference samples come from: the same ones every step, or a fresh batch for each.
template <class Real>
struct Reference {
  virtual ~Reference() = default;
  virtual const Population<Real>& batch(std::int64_t step) = 0;
};

template <class Real>
class FixedReference final : public Reference<Real> {
 public:
  explicit FixedReference(Population<Real> samples) : samples_(std::move(samples)) {}
  const Population<Real>& batch(std::int64_t) override { return samples_; }

 private:
  Population<Real> samples_;
};

// `size` samples of a data set, drawn with replacement anew each step.
template <class Real>
class MinibatchReference final : public Reference<Real> {
 public:
  MinibatchReference(Population<Real> data, std::size_t size, Noise noise)
      : data_(std::move(data)), batch_(size, data_.dimension()), noise_(noise) {}

  const Population<Real>& batch(std::int64_t step) override {
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      // 32 random bits scaled to the number of rows: their bias is below rows / 2^32.
      const std::uint64_t bits = noise_.bits(Stream::minibatch, {.round = step}, 1, i, 0);
      const auto row = static_cast<std::size_t>(bits * data_.size() >> 32);
      for (std::size_t j = 0; j < data_.dimension(); ++j) batch_(i, j) = data_(row, j);
    }
    return batch_;
  }

 private:
  Population<Real> data_, batch_;
  Noise noise_;
};

// A fresh batch of exact samples each step.
template <class Real>
class MixtureReference final : public Reference<Real> {
 public:
  MixtureReference(const GaussianMixture& law, std::size_t size, Noise noise)
      : sampler_(law, noise), batch_(size, law.dimension()) {}

  const Population<Real>& batch(std::int64_t step) override {
    sampler_.draw(batch_, step);
    return batch_;
  }

 private:
  MixtureSampler sampler_;
  Population<Real> batch_;
};

// KL(reference || pi): the forward divergence, from samples. This is how energy-based models are trained.
template <class Real>
class ReferenceTerm final : public Term<Real> {
 public:
  explicit ReferenceTerm(std::unique_ptr<Reference<Real>> reference, double beta = 1.0)
      : reference_(std::move(reference)), beta_(beta) {}

  const Population<Real>* references(std::int64_t step) override { return &reference_->batch(step); }
  double reference_weight() const override { return beta_; }

 private:
  std::unique_ptr<Reference<Real>> reference_;
  double beta_;
};

struct EstimatorOptions {
  Normaliser normaliser = Normaliser::n_minus_1;
  Workers* workers = nullptr;  // null: the calling thread alone
};

// The gradient of a sum of terms. The weights of all samples are known only when the mean of f is; so one pass takes sums, and with
//
//     F = sum_i f_i,    S = sum_i grad_theta V(x_i),    S_f = sum_i f_i grad_theta V(x_i)
//
// the gradient is (S_f - F S / n) / N - beta S / n, plus the references' part. f counts up to a constant: the mean over the first group is
// subtracted, so that little cancels in single precision.
template <class Real>
class GradientEstimator {
 public:
  using Terms = std::vector<std::unique_ptr<Term<Real>>>;

  GradientEstimator(Potential<Real> potential, Terms terms, EstimatorOptions options = {})
      : potential_(std::move(potential)), terms_(std::move(terms)), options_(options) {
    for (const auto& term : terms_) value_share_ += term->value_share();
  }

  // -lambda E[R] alone, the most common objective.
  GradientEstimator(Potential<Real> potential, Reward<Real> reward, double lambda = 1.0, EstimatorOptions options = {})
      : potential_(std::move(potential)), options_(options) {
    terms_.push_back(std::make_unique<RewardTerm<Real>>(std::move(reward), lambda));
  }

  void estimate(const Population<Real>& x, std::span<const double> theta, std::int64_t step,
                std::span<double> gradient) {
    potential_.prepare(theta);
    estimate_with(potential_, x, step, gradient,
                  [&](std::size_t b, const Pass<Real>& request) { potential_.look(x.block(b), request); });
  }

  // The same for a potential that is prepared already, with each block's pass made by pass(b, request): what a sampler fuses its step with.
  template <class MakePass>
  void estimate_with(const Potential<Real>& potential, const Population<Real>& x, std::int64_t step,
                     std::span<double> gradient, MakePass&& make_pass) {
    const std::size_t p = gradient.size();
    const auto n = static_cast<double>(x.size());
    const Real pilot = mean_signal(potential, x.block(0));
    sums_.assign(x.blocks() * (1 + 2 * p), 0.0);
    for_each_block(options_.workers, x, [&](std::size_t b) {
      BlockArray<Real> f;
      const Block<const Real> block = x.block(b);
      std::memset(f.data(), 0, block.size * sizeof(Real));  // as -O2 does not make of a fill
      for (const auto& term : terms_) term->add_signal(block, f.data());
      make_pass(b, Pass<Real>{.sums = sums_.data() + b * (1 + 2 * p),
                              .signal = f.data(),
                              .shift = -pilot,
                              .value_share = static_cast<Real>(value_share_)});
    });
    total(x.blocks(), p);

    double beta = 0;
    for (const auto& term : terms_) beta += term->reference_weight();
    const double normaliser = options_.normaliser == Normaliser::n ? n : n - 1;
    for (std::size_t j = 0; j < p; ++j) {
      const double mean = sums_[1 + j] / n;
      gradient[j] = (sums_[1 + p + j] - sums_[0] * mean) / normaliser - beta * mean;
    }
    for (const auto& term : terms_)
      if (const Population<Real>* references = term->references(step))
        add_references(potential, *references, term->reference_weight(), gradient);
  }

  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return potential_.find_inadmissible(theta);
  }

 private:
  // Over the first group, which is enough to be near.
  Real mean_signal(const Potential<Real>& potential, Block<const Real> block) const {
    block.size = std::min(block.size, lanes_per_group);
    BlockArray<Real> f, v;
    for (std::size_t i = 0; i < block.size; ++i) f[i] = 0;
    for (const auto& term : terms_) term->add_signal(block, f.data());
    if (value_share_ != 0) {
      potential.values(block, v.data());
      for (std::size_t i = 0; i < block.size; ++i) f[i] += static_cast<Real>(value_share_) * v[i];
    }
    double sum = 0;
    for (std::size_t i = 0; i < block.size; ++i) sum += static_cast<double>(f[i]);
    return static_cast<Real>(sum / static_cast<double>(block.size));
  }

  void add_references(const Potential<Real>& potential, const Population<Real>& y, double beta,
                      std::span<double> gradient) {
    const std::size_t p = gradient.size();
    sums_.assign(y.blocks() * (1 + 2 * p), 0.0);
    for_each_block(options_.workers, y,
                   [&](std::size_t b) { potential.look(y.block(b), {.sums = sums_.data() + b * (1 + 2 * p)}); });
    total(y.blocks(), p);
    for (std::size_t j = 0; j < p; ++j) gradient[j] += beta * sums_[1 + j] / static_cast<double>(y.size());
  }

  // Adds the rows of all blocks to the first, in order.
  void total(std::size_t blocks, std::size_t p) {
    for (std::size_t b = 1; b < blocks; ++b)
      for (std::size_t j = 0; j < 1 + 2 * p; ++j) sums_[j] += sums_[b * (1 + 2 * p) + j];
  }

  Potential<Real> potential_;
  Terms terms_;
  EstimatorOptions options_;
  double value_share_ = 0;
  std::vector<double> sums_;  // a row of 1 + 2p for each block
};

// Sampler and estimator of one potential. In the paper's order of the single loop both read p_k and theta_k, and one pass over the
// population does them together.
template <class Real>
class LangevinEngine {
 public:
  LangevinEngine(const Potential<Real>& potential, typename GradientEstimator<Real>::Terms terms,
                 LangevinOptions options, Normaliser normaliser = Normaliser::n_minus_1)
      : sampler_(potential, options), estimator_(potential, std::move(terms), {normaliser, options.workers}) {}

  void advance(Population<Real>& x, std::span<const double> theta, Moment at) { sampler_.advance(x, theta, at); }
  void estimate(const Population<Real>& x, std::span<const double> theta, std::int64_t step,
                std::span<double> gradient) {
    estimator_.estimate(x, theta, step, gradient);
  }
  void advance_and_estimate(Population<Real>& x, std::span<const double> theta, Moment at, std::span<double> gradient) {
    sampler_.begin(x, theta);
    estimator_.estimate_with(sampler_.potential(), x, at.round, gradient,
                             [&](std::size_t b, const Pass<Real>& request) { sampler_.pass(x.block(b), at, request); });
  }

  bool all_finite() const { return sampler_.all_finite(); }
  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return estimator_.find_inadmissible(theta);
  }

 private:
  Langevin<Real> sampler_;
  GradientEstimator<Real> estimator_;
};

// Gamma = 0: for sampling alone.
struct NoGradient {
  template <class Population>
  void estimate(const Population&, std::span<const double>, std::int64_t, std::span<double> gradient) const {
    for (double& g : gradient) g = 0;
  }
};

}  // namespace implicit_diffusion
