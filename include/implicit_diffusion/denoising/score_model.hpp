// Score models: s_theta(y, tau), an approximation of grad log p_tau(y), and its vector-Jacobian products.
//
// What a model of one's own needs is at the top of denoising/kernel.hpp. ScoreModel<Real> holds any of them, at the
// noise levels of a grid, and works on blocks of samples. A model that predicts the noise eps or the velocity v becomes
// one by denoising/prediction.hpp.
#pragma once

#include "implicit_diffusion/denoising/kernel.hpp"
#include "implicit_diffusion/denoising/time_grid.hpp"
#include "implicit_diffusion/error.hpp"

#include <cmath>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <typeinfo>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// Whether M can be copied is asked last: of a type that holds a ScoreModel it would be asked on the way to its own
// answer.
template <class M>
concept PointScoreModel = requires(M& m, const M& made, std::span<const double> theta, const double* sums,
                                   double* gradient) {
  { made.dimension() } -> std::convertible_to<std::size_t>;
  { made.parameters() } -> std::convertible_to<std::size_t>;
  m.prepare(theta);
  { made.level(1.0).sums() } -> std::convertible_to<std::size_t>;
  made.level(1.0).add_gradient(sums, gradient);
}
&&std::copy_constructible<M>;

// The kernels of one level of a model, for samples of Real.
template <class Real, class NoiseLevel>
struct ScoreKernels {
  void (*forward)(const NoiseLevel&, const NoiseLevel*, const ForwardStep<Real>&);
  void (*backward)(const NoiseLevel&, const NoiseLevel*, const BackwardStep<Real>&);
};
namespace kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {
template <class N, class NoiseLevel>
constexpr ScoreKernels<Scalar<N>, NoiseLevel> make_score_kernels() {
  return {&forward<N, NoiseLevel>, &backward<N, NoiseLevel>};
}
}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace kernel
// Built-in models have theirs compiled for each level of instructions, and offer them.
template <class Real, class NoiseLevel>
const ScoreKernels<Real, NoiseLevel>& score_kernels() {
  if constexpr (std::is_same_v<Real, float> && requires { NoiseLevel::lane_kernels(); }) {
    return NoiseLevel::lane_kernels();
  } else {
    using N = std::conditional_t<std::is_same_v<Real, float>, Lanes, Real>;
    static constexpr ScoreKernels<Real, NoiseLevel> kernels = kernel::make_score_kernels<N, NoiseLevel>();
    return kernels;
  }
}

template <class Real>
class ScoreModel {
 public:
  template <PointScoreModel M>
  ScoreModel(M model)
      : model_(std::make_unique<Pointwise<M>>(std::move(model))) {  // implicit: such a type is a ScoreModel
    if (dimension() == 0 || dimension() > largest_denoising_dimension)
      throw Error(ErrorKind::usage, "score model", "its dimension must be between 1 and 64");
  }
  ScoreModel(const ScoreModel& other) : model_(other.model_->clone()) {}
  ScoreModel(ScoreModel&&) noexcept = default;
  ScoreModel& operator=(ScoreModel other) noexcept {
    model_ = std::move(other.model_);
    return *this;
  }
  ~ScoreModel() = default;

  std::size_t dimension() const { return model_->dimension(); }
  std::size_t parameters() const { return model_->parameters(); }

  // The model at theta, at the noise levels tau_m of the grid, first <= m < last: by default all of them but 0, at
  // which it is never asked for its score.
  void prepare(std::span<const double> theta, const TimeGrid& grid) { prepare(theta, grid, 0, grid.steps()); }
  void prepare(std::span<const double> theta, const TimeGrid& grid, std::size_t first, std::size_t last) {
    model_->prepare(theta, grid, first, last);
  }

  // A step of one block at noise level m. `base`, or null, is a prepared model of the same type.
  void forward(std::size_t m, const ScoreModel* base, const ForwardStep<Real>& step) const {
    model_->forward(m, base ? base->model_.get() : nullptr, step);
  }
  // Its adjoint; the sums of level m, sums(m) numbers, become a gradient by add_gradient.
  void backward(std::size_t m, const ScoreModel* base, const BackwardStep<Real>& step) const {
    model_->backward(m, base ? base->model_.get() : nullptr, step);
  }
  std::size_t sums(std::size_t m) const { return model_->sums(m); }
  void add_gradient(std::size_t m, const double* sums, double* gradient) const {
    model_->add_gradient(m, sums, gradient);
  }

  // The first parameter outside the model's domain, where it knows one.
  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return model_->find_inadmissible(theta);
  }

  // The same model, prepared for nothing.
  ScoreModel blank() const { return ScoreModel(model_->blank()); }

  bool same_type(const ScoreModel& other) const { return typeid(*model_) == typeid(*other.model_); }

 private:
  struct Model {
    virtual ~Model() = default;
    virtual std::unique_ptr<Model> clone() const = 0;
    virtual std::unique_ptr<Model> blank() const = 0;
    virtual std::size_t dimension() const = 0;
    virtual std::size_t parameters() const = 0;
    virtual void prepare(std::span<const double> theta, const TimeGrid& grid, std::size_t first, std::size_t last) = 0;
    virtual void forward(std::size_t m, const Model* base, const ForwardStep<Real>& step) const = 0;
    virtual void backward(std::size_t m, const Model* base, const BackwardStep<Real>& step) const = 0;
    virtual std::size_t sums(std::size_t m) const = 0;
    virtual std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const = 0;
    virtual void add_gradient(std::size_t m, const double* sums, double* gradient) const = 0;
  };

  template <class M>
  struct Pointwise final : Model {
    using NoiseLevel = decltype(std::declval<const M&>().level(1.0));

    explicit Pointwise(M given) : model(std::move(given)) {}

    std::unique_ptr<Model> clone() const override { return std::make_unique<Pointwise>(*this); }
    std::unique_ptr<Model> blank() const override { return std::make_unique<Pointwise>(model); }
    std::size_t dimension() const override { return model.dimension(); }
    std::size_t parameters() const override { return model.parameters(); }
    void prepare(std::span<const double> theta, const TimeGrid& grid, std::size_t from, std::size_t to) override {
      model.prepare(theta);
      first = from;
      levels.clear();
      for (std::size_t m = from; m < to; ++m) levels.push_back(model.level(grid.tau[m]));
    }
    const NoiseLevel& at(std::size_t m) const { return levels[m - first]; }
    const NoiseLevel* level_of(const Model* base, std::size_t m) const {
      return base ? &static_cast<const Pointwise*>(base)->at(m) : nullptr;
    }
    void forward(std::size_t m, const Model* base, const ForwardStep<Real>& step) const override {
      score_kernels<Real, NoiseLevel>().forward(at(m), level_of(base, m), step);
    }
    void backward(std::size_t m, const Model* base, const BackwardStep<Real>& step) const override {
      score_kernels<Real, NoiseLevel>().backward(at(m), level_of(base, m), step);
    }
    std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const override {
      if constexpr (requires { model.find_inadmissible(theta); }) return model.find_inadmissible(theta);
      return std::nullopt;
    }
    std::size_t sums(std::size_t m) const override { return at(m).sums(); }
    void add_gradient(std::size_t m, const double* sums, double* gradient) const override {
      at(m).add_gradient(sums, gradient);
    }

    M model;
    std::size_t first = 0;  // the level of the first
    std::vector<NoiseLevel> levels;
  };

  explicit ScoreModel(std::unique_ptr<Model> model) : model_(std::move(model)) {}

  std::unique_ptr<Model> model_;
};

// The model of the paper's section 4.3 in one dimension: s_theta(y, tau) = -(y - theta e^-tau), the score of N(theta,
// 1) along the way.
class GaussianScore {
 public:
  std::size_t dimension() const { return 1; }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> theta) { theta_ = theta[0]; }

  class NoiseLevel {
   public:
    NoiseLevel(double mean, double slope) : mean_(mean), slope_(slope) {}

    template <class N>
    [[gnu::always_inline]] void score(const N* y, N* s) const {
      s[0] = N(static_cast<Scalar<N>>(mean_)) - y[0];
    }
    template <class N>
    [[gnu::always_inline]] void pull_back(const N*, const N*, const N* c, N* back, N* sums) const {
      back[0] = -c[0];
      if (sums) sums[0] = sums[0] + c[0];
    }
    std::size_t sums() const { return 1; }
    void add_gradient(const double* sums, double* gradient) const { gradient[0] += slope_ * sums[0]; }

   private:
    double mean_, slope_;  // theta e^-tau, e^-tau
  };
  NoiseLevel level(double tau) const { return {theta_ * std::exp(-tau), std::exp(-tau)}; }

 private:
  double theta_ = 0;
};
// Compiled in the library, once and at its level of optimisation.
extern template const ScoreKernels<float, GaussianScore::NoiseLevel>& score_kernels();

}  // namespace implicit_diffusion
