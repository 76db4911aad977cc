// Gradient estimators for Gibbs laws pi*(theta) ~ exp(-V(., theta)). All of them are the theta-gradient of a signed weighting of samples,
//
//     Gamma = sum_i w_i grad_theta V(x_i, theta)    over the population and, where there is one, a batch of reference samples
//
// because d E_pi[f] / dtheta = -Cov_pi[f, grad_theta V]. The objective is a sum of terms, each with its weights:
//
//     -lambda E_pi[R]                  w_i = lambda (R_i - mean R) / N                      RewardTerm
//     beta KL(reference || pi)         w_i = -beta / n, and +beta / m on m references       ReferenceTerm
//     beta KL(pi || base)              w_i = beta (f_i - mean f) / N,  f = V - V_base        BaseTerm
//
// N = n - 1 makes the covariance unbiased; N = n is the authors' choice.
#pragma once

#include "implicit_diffusion/langevin/reward.hpp"
#include "implicit_diffusion/langevin/sampler.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace implicit_diffusion {

enum class Normaliser { n, n_minus_1 };

// One term of the objective: what it adds to the weights, and its reference samples.
template <class Real>
struct Term {
  virtual ~Term() = default;
  // Adds to the weights of the samples of x. `potential` is prepared at theta.
  virtual void add_weights(const Population<Real>& x, const Potential<Real>& potential, Workers* workers,
                           std::span<Real> weights) = 0;
  // Reference samples of this step and the weight of each; null where there are none.
  virtual const Population<Real>* references(std::int64_t /*step*/) { return nullptr; }
  virtual double reference_weight() const { return 0; }
};

namespace detail {

// Adds scale (f_i - mean f) / N, with f_i = f(block) given block by block. Sums run over blocks in order.
template <class Real, class Values>
void add_covariance_weights(const Population<Real>& x, Workers* workers, double scale, Normaliser normaliser,
                            std::vector<Real>& f, std::vector<double>& sums, Values&& values, std::span<Real> weights) {
  const std::size_t n = x.size();
  f.resize(n);
  sums.resize(x.blocks());
  for_each_block(workers, x, [&](std::size_t b) {
    const Block<const Real> block = x.block(b);
    values(block, f.data() + block.first);
    sums[b] = sum_block(f.data() + block.first, block.size);
  });
  double mean = 0;
  for (const double s : sums) mean += s;
  mean /= static_cast<double>(n);
  const double factor = scale / static_cast<double>(normaliser == Normaliser::n ? n : n - 1);
  for (std::size_t i = 0; i < n; ++i) weights[i] += static_cast<Real>(factor * (static_cast<double>(f[i]) - mean));
}

}  // namespace detail

template <class Real>
class RewardTerm final : public Term<Real> {
 public:
  explicit RewardTerm(Reward<Real> reward, double lambda = 1.0, Normaliser normaliser = Normaliser::n_minus_1)
      : reward_(std::move(reward)), lambda_(lambda), normaliser_(normaliser) {}

  void add_weights(const Population<Real>& x, const Potential<Real>&, Workers* workers, std::span<Real> weights) override {
    detail::add_covariance_weights(
        x, workers, lambda_, normaliser_, f_, sums_,
        [this](Block<const Real> block, Real* out) { reward_.values(block, out); }, weights);
  }

 private:
  Reward<Real> reward_;
  double lambda_;
  Normaliser normaliser_;
  std::vector<Real> f_;
  std::vector<double> sums_;
};

// KL(pi || base), base ~ exp(-V_base): the reverse divergence, to a law whose potential is known.
template <class Real>
class BaseTerm final : public Term<Real> {
 public:
  // `base` is prepared at its own parameter.
  explicit BaseTerm(Potential<Real> base, double beta = 1.0, Normaliser normaliser = Normaliser::n_minus_1)
      : base_(std::move(base)), beta_(beta), normaliser_(normaliser) {}

  void add_weights(const Population<Real>& x, const Potential<Real>& potential, Workers* workers,
                   std::span<Real> weights) override {
    detail::add_covariance_weights(
        x, workers, beta_, normaliser_, f_, sums_,
        [&](Block<const Real> block, Real* out) {
          std::array<Real, block_size> other;
          potential.values(block, out);
          base_.values(block, other.data());
          for (std::size_t i = 0; i < block.size; ++i) out[i] -= other[i];
        },
        weights);
  }

 private:
  Potential<Real> base_;
  double beta_;
  Normaliser normaliser_;
  std::vector<Real> f_;
  std::vector<double> sums_;
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

  void add_weights(const Population<Real>& x, const Potential<Real>&, Workers*, std::span<Real> weights) override {
    const auto share = static_cast<Real>(beta_ / static_cast<double>(x.size()));
    for (Real& w : weights) w -= share;
  }
  const Population<Real>* references(std::int64_t step) override { return &reference_->batch(step); }
  double reference_weight() const override { return beta_; }

 private:
  std::unique_ptr<Reference<Real>> reference_;
  double beta_;
};

// The gradient of a sum of terms.
template <class Real>
class GradientEstimator {
 public:
  using Terms = std::vector<std::unique_ptr<Term<Real>>>;

  GradientEstimator(Potential<Real> potential, Terms terms, Workers* workers = nullptr)
      : potential_(std::move(potential)), terms_(std::move(terms)), workers_(workers) {}

  // -lambda E[R] alone, the most common objective.
  GradientEstimator(Potential<Real> potential, Reward<Real> reward, double lambda = 1.0, Workers* workers = nullptr)
      : potential_(std::move(potential)), workers_(workers) {
    terms_.push_back(std::make_unique<RewardTerm<Real>>(std::move(reward), lambda));
  }

  void estimate(const Population<Real>& x, std::span<const double> theta, std::int64_t step, std::span<double> gradient) {
    potential_.prepare(theta);
    for (double& g : gradient) g = 0;

    weights_.assign(x.size(), Real(0));
    for (const auto& term : terms_) term->add_weights(x, potential_, workers_, weights_);
    add_weighted_gradient(x, [this](Block<const Real> block) { return weights_.data() + block.first; }, gradient);

    for (const auto& term : terms_) {
      const Population<Real>* references = term->references(step);
      if (!references) continue;
      std::array<Real, block_size> equal;
      equal.fill(static_cast<Real>(term->reference_weight() / static_cast<double>(references->size())));
      add_weighted_gradient(*references, [&equal](Block<const Real>) { return equal.data(); }, gradient);
    }
  }

  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return potential_.find_inadmissible(theta);
  }

 private:
  template <class Weights>
  void add_weighted_gradient(const Population<Real>& x, Weights&& weights, std::span<double> gradient) {
    const std::size_t p = gradient.size();
    sums_.assign(x.blocks() * p, 0.0);
    for_each_block(workers_, x, [&](std::size_t b) {
      const Block<const Real> block = x.block(b);
      potential_.add_weighted_gradient(block, weights(block), sums_.data() + b * p);
    });
    for (std::size_t b = 0; b < x.blocks(); ++b)
      for (std::size_t j = 0; j < p; ++j) gradient[j] += sums_[b * p + j];
  }

  Potential<Real> potential_;
  Terms terms_;
  Workers* workers_;
  std::vector<Real> weights_;
  std::vector<double> sums_;  // a row for each block
};

// Gamma = 0: for sampling alone.
struct NoGradient {
  template <class Population>
  void estimate(const Population&, std::span<const double>, std::int64_t, std::span<double> gradient) const {
    for (double& g : gradient) g = 0;
  }
};

}  // namespace implicit_diffusion
