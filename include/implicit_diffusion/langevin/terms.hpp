// Terms of the objective for Gibbs laws pi ~ exp(-V), whose sum a gradient estimator (langevin/estimator.hpp)
// differentiates:
//
//     -lambda E_pi[R]                 RewardTerm
//     beta KL(pi || base)             BaseTerm
//     beta KL(reference || pi)        ReferenceTerm; references are fixed, minibatches of data, or drawn from a mixture
//     -beta log integral exp(-V)      MarginalLikelihoodTerm
#pragma once

#include "implicit_diffusion/langevin/reward.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace implicit_diffusion {

// One term of the objective. Its part of the signal f whose covariance with grad_theta V is taken, and its reference
// samples. Here as below, T is float or double, or an engine (langevin/energy.hpp).
template <class T>
struct Term {
  using E = EnergyOf<T>;

  virtual ~Term() = default;
  // Adds to the signal of the samples of a tile.
  virtual void add_signal(const typename E::ConstTile& /*x*/, typename E::TileNumbers /*f*/) const {}
  // The share of V itself in the signal.
  virtual double value_share() const { return 0; }
  // The weight of the population's mean of grad_theta V in the gradient.
  virtual double mean_weight() const { return 0; }
  // Reference samples of this step, or null: their mean of grad_theta V has the weight -mean_weight().
  virtual const typename E::Samples* references(std::int64_t /*step*/) { return nullptr; }
};

template <class T>
class RewardTerm final : public Term<T> {
 public:
  using E = EnergyOf<T>;
  explicit RewardTerm(typename E::Reward reward, double lambda = 1.0) : reward_(std::move(reward)), lambda_(lambda) {}

  void add_signal(const typename E::ConstTile& x, typename E::TileNumbers f) const override {
    reward_.add(x, lambda_, f);
  }

 private:
  typename E::Reward reward_;
  double lambda_;
};

// KL(pi || base), base ~ exp(-V_base): the reverse divergence, to a law whose potential is known.
template <class T>
class BaseTerm final : public Term<T> {
 public:
  using E = EnergyOf<T>;
  // `base` is prepared at its own parameter.
  explicit BaseTerm(E base, double beta = 1.0) : base_(std::move(base)), beta_(beta) {}

  void add_signal(const typename E::ConstTile& x, typename E::TileNumbers f) const override {
    base_.add_values(x, -beta_, f);
  }
  double value_share() const override { return beta_; }

 private:
  E base_;
  double beta_;
};

// Where reference samples come from: the same ones every step, or a fresh batch for each.
template <class T>
struct Reference {
  virtual ~Reference() = default;
  virtual const typename EnergyOf<T>::Samples& batch(std::int64_t step) = 0;
};

template <class T>
class FixedReference final : public Reference<T> {
 public:
  using Samples = typename EnergyOf<T>::Samples;
  explicit FixedReference(Samples samples) : samples_(std::move(samples)) {}
  const Samples& batch(std::int64_t) override { return samples_; }

 private:
  Samples samples_;
};

// `size` samples of a data set, drawn with replacement anew each step.
template <class Real>
class MinibatchReference final : public Reference<Real> {
 public:
  // Processes, if given, have a part of the batch each.
  MinibatchReference(Population<Real> data, std::size_t size, Noise noise, Processes* processes = nullptr)
      : data_(std::move(data)), batch_(size, data_.dimension(), processes), noise_(noise) {}

  const Population<Real>& batch(std::int64_t step) override {
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      // 32 random bits scaled to the number of rows: their bias is below rows / 2^32.
      const std::uint64_t bits = noise_.bits(Stream::minibatch, {.round = step}, 1, batch_.first() + i, 0);
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
  MixtureReference(const GaussianMixture& law, std::size_t size, Noise noise, Processes* processes = nullptr)
      : sampler_(law, noise), batch_(size, law.dimension(), processes) {}

  const Population<Real>& batch(std::int64_t step) override {
    sampler_.draw(batch_, step);
    return batch_;
  }

 private:
  MixtureSampler sampler_;
  Population<Real> batch_;
};

// KL(reference || pi): the forward divergence, from samples. This is how energy-based models are trained.
template <class T>
class ReferenceTerm final : public Term<T> {
 public:
  explicit ReferenceTerm(std::unique_ptr<Reference<T>> reference, double beta = 1.0)
      : reference_(std::move(reference)), beta_(beta) {}

  const typename EnergyOf<T>::Samples* references(std::int64_t step) override { return &reference_->batch(step); }
  double mean_weight() const override { return -beta_; }

 private:
  std::unique_ptr<Reference<T>> reference_;
  double beta_;
};

// The negative log-likelihood of a latent-variable model: where V(x, theta) = -log p(x, y | theta), with the data y
// inside, pi is the posterior of the latent variables x, and -log p(y | theta) = -log of the integral of exp(-V) has
// the gradient E_pi[grad_theta V].
template <class T>
class MarginalLikelihoodTerm final : public Term<T> {
 public:
  explicit MarginalLikelihoodTerm(double beta = 1.0) : beta_(beta) {}
  double mean_weight() const override { return beta_; }

 private:
  double beta_;
};

}  // namespace implicit_diffusion
