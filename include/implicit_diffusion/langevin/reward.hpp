// Rewards: R(x), what the law is judged by. It need not be differentiable.
//
// A reward is any callable on one sample: Real operator()(const Real* x) const, x pointing at its coordinates. A type
// that says `static constexpr bool any_number = true` promises a template over the number type and gets its gradient
// from dual numbers. It may also know its expectation under a Gaussian, exactly:
//
//     double expectation(const Gaussian&) const;
//
// and the number of coordinates that it reads: samples of another dimension are refused.
//
//     std::size_t dimension() const;
//
// Reward<Real> holds any of them and works on blocks of samples.
#pragma once

#include "implicit_diffusion/langevin/potential.hpp"

#include <concepts>
#include <memory>
#include <optional>
#include <utility>

namespace implicit_diffusion {

// Whether R can be copied is asked last: of a type that holds a Reward it would be asked on the way to its own answer.
template <class R, class Real>
concept PointReward = requires(const R& r, const Real* x) {
  { r(x) } -> std::convertible_to<Real>;
}
&&std::copy_constructible<R>;

// Throws a usage Error that says both.
[[noreturn]] void refuse_reward(std::size_t its_dimension, std::size_t dimension);

template <class Real>
class Reward {
 public:
  template <PointReward<Real> R>
  Reward(R reward) {  // implicit: a callable is a Reward
    if constexpr (requires { reward.dimension(); }) dimension_ = reward.dimension();
    model_ = std::make_shared<const Pointwise<R>>(std::move(reward));
  }

  // Throws a usage Error where the reward is of another dimension. All below do too.
  void require_dimension(std::size_t d) const {
    if (dimension_ && *dimension_ != d) refuse_reward(*dimension_, d);
  }

  // Adds lambda R(x_i) to f_i.
  void add(const Block<const Real>& x, double lambda, Real* f) const {
    require_dimension(x.dimension);
    model_->add(x, static_cast<Real>(lambda), f);
  }
  // R(x_i).
  void values(const Block<const Real>& x, Real* out) const {
    for (std::size_t i = 0; i < x.size; ++i) out[i] = 0;
    add(x, 1, out);
  }
  // dR/dx_j (x_i), by coordinate. Only for rewards of any number type; where R jumps, the jump counts for nothing.
  void gradient(Block<const Real> x, Real* out) const {
    require_dimension(x.dimension);
    model_->gradient(x, out);
  }
  // The same into a tile of a Scratch.
  void gradient(Block<const Real> x, const Block<Real>& out) const { gradient(x, out.data); }
  bool has_gradient() const { return model_->has_gradient(); }
  // What keeps its kernels from running on 16 lanes at the level of the machine: null where nothing does.
  const char* speed_note() const { return model_->speed_note(); }
  // E R(X), X ~ mixture, where each component's is known.
  std::optional<double> expectation(const GaussianMixture& mixture) const {
    double sum = 0;
    for (std::size_t i = 0; i < mixture.weights.size(); ++i) {
      require_dimension(mixture.components[i].mean.size());
      const std::optional<double> part = model_->expectation(mixture.components[i]);
      if (!part) return std::nullopt;
      sum += mixture.weights[i] * *part;
    }
    return sum;
  }

 private:
  struct Model {
    virtual ~Model() = default;
    virtual void add(const Block<const Real>& x, Real lambda, Real* f) const = 0;
    virtual void gradient(Block<const Real> x, Real* out) const = 0;
    virtual bool has_gradient() const = 0;
    virtual std::optional<double> expectation(const Gaussian&) const = 0;
    virtual const char* speed_note() const = 0;
  };

  template <class R>
  struct Pointwise final : Model {
    explicit Pointwise(R reward) : r(std::move(reward)) {}

    void add(const Block<const Real>& x, Real lambda, Real* f) const override {
      kernels_of_part<RewardKernels<Real, R>>().add(r, x, lambda, f);
    }
    void gradient(Block<const Real> x, Real* out) const override {
      if (has_gradient()) kernels_of_part<RewardKernels<Real, R>>().gradient(r, x, out);
    }
    bool has_gradient() const override { return AnyNumber<R>; }

    std::optional<double> expectation(const Gaussian& g) const override {
      if constexpr (requires { r.expectation(g); }) return r.expectation(g);
      return std::nullopt;
    }

    const char* speed_note() const override { return speed_note_of<Real, R>(); }

    R r;
  };

  std::shared_ptr<const Model> model_;
  std::optional<std::size_t> dimension_;  // none: it does not say
};

}  // namespace implicit_diffusion
