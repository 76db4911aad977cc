// Potentials: V(x, theta), whose Gibbs law exp(-V(., theta)) / Z is what Langevin dynamics sample.
//
// A potential is written for one sample, as a small type:
//
//     std::size_t dimension() const, parameters() const;
//     void prepare(std::span<const double> theta);     what depends on theta alone, once a step
//     Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const;
//         returns V(x, theta); writes dV/dx (dimension numbers) and dV/dtheta (parameters numbers),
//         each unless the pointer is null
//
// evaluate is best written as a template over the number type, with the functions of simd/elementary.hpp; a type that says
// `static constexpr bool any_number = true` promises that it is, and gets derivatives of its derivatives from dual numbers. More that a
// potential may know about itself, each optional:
//
//     std::optional<std::size_t> find_inadmissible(theta) const;    a parameter outside its domain
//     std::optional<double> largest_stable_step() const;            of the Langevin chain, at the prepared theta
//     GaussianMixture law(theta) const;                             pi*(theta), where it is a mixture of Gaussians
//
// Potential<Real> holds any of them and works on blocks of samples: one virtual call a block, so nothing is lost to it.
#pragma once

#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/population.hpp"
#include "implicit_diffusion/simd/dual.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// Whether P can be copied is asked last: of a type that holds a Potential it would be asked on the way to its own answer.
template <class P>
concept PointPotential = requires(P& v, const P& c, std::span<const double> theta, const float* x, float* gradient) {
  { c.dimension() } -> std::convertible_to<std::size_t>;
  { c.parameters() } -> std::convertible_to<std::size_t>;
  v.prepare(theta);
  { c.evaluate(x, gradient, gradient) } -> std::convertible_to<float>;
} && std::copy_constructible<P>;

// True for a potential or reward that accepts every number type of the library.
template <class T>
concept AnyNumber = requires {
  requires T::any_number;
};

namespace detail {

// A small array on the stack, on the heap only when it must be larger.
template <class T, std::size_t N = 32>
class Scratch {
 public:
  explicit Scratch(std::size_t n) {
    if (n > N) large_.resize(n);
    data_ = n > N ? large_.data() : small_.data();
  }
  T* data() { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }

 private:
  std::array<T, N> small_;
  std::vector<T> large_;
  T* data_;
};

// Sums over the samples of a block run lane by lane (sample 16 g + l belongs to lane l), then over the lanes as a tree, in double: the
// order that 16 SIMD lanes keep by themselves.
inline double sum_lanes(std::array<double, lanes_per_group> lane) {
  for (std::size_t half = lanes_per_group / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

template <class Real>
double sum_block(const Real* values, std::size_t size) {
  std::array<double, lanes_per_group> lane{};
  for (std::size_t l = 0; l < lanes_per_group; ++l) {
    Real sum = 0;
    for (std::size_t i = l; i < size; i += lanes_per_group) sum += values[i];
    lane[l] = sum;
  }
  return sum_lanes(lane);
}

// Adds, for each j, the sum over the block of term(i)[j], j < count.
template <class Real, class Term>
void add_block_sums(std::size_t size, std::size_t count, Term&& term, double* sums) {
  Scratch<std::array<double, lanes_per_group>, 64> lane(count);
  Scratch<Real, 64> sum(count);
  for (std::size_t l = 0; l < lanes_per_group; ++l) {
    for (std::size_t j = 0; j < count; ++j) sum[j] = 0;
    for (std::size_t i = l; i < size; i += lanes_per_group) term(i, sum.data());
    for (std::size_t j = 0; j < count; ++j) lane[j][l] = sum[j];
  }
  for (std::size_t j = 0; j < count; ++j) sums[j] += sum_lanes(lane[j]);
}

}  // namespace detail

// Numbers that belong to a block, by coordinate: coordinate j of sample i at [j * block_size + i].
template <class Real>
class Potential {
 public:
  template <PointPotential P>
  Potential(P potential) : model_(std::make_unique<Pointwise<P>>(std::move(potential))) {}  // implicit: a potential is a Potential

  Potential(const Potential& other) : model_(other.model_->clone()) {}
  Potential(Potential&&) noexcept = default;
  Potential& operator=(Potential other) noexcept {
    model_ = std::move(other.model_);
    return *this;
  }
  ~Potential() = default;

  std::size_t dimension() const { return model_->dimension(); }
  std::size_t parameters() const { return model_->parameters(); }

  // All that follows is at this theta.
  void prepare(std::span<const double> theta) { model_->prepare(theta); }

  // V(x_i).
  void values(Block<const Real> x, Real* out) const { model_->values(x, out); }
  // dV/dx_j (x_i), by coordinate.
  void gradient(Block<const Real> x, Real* out) const { model_->gradient(x, out); }
  // Adds sum_i w_i dV/dtheta (x_i): the routine behind every gradient estimator.
  void add_weighted_gradient(Block<const Real> x, const Real* w, double* sums) const {
    model_->add_weighted_gradient(x, w, sums);
  }
  // Adds sum_i (d/dx dV/dtheta)(x_i) . u_i, with the directions u by coordinate. Only for potentials of any number type.
  void add_weighted_mixed(Block<const Real> x, const Real* u, double* sums) const {
    model_->add_weighted_mixed(x, u, sums);
  }
  bool has_mixed() const { return model_->has_mixed(); }

  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return model_->find_inadmissible(theta);
  }
  std::optional<double> largest_stable_step() const { return model_->largest_stable_step(); }
  std::optional<GaussianMixture> law(std::span<const double> theta) const { return model_->law(theta); }

  // What a potential on blocks is. Derive from it for one that is not written sample by sample.
  struct Model {
    virtual ~Model() = default;
    virtual std::unique_ptr<Model> clone() const = 0;
    virtual std::size_t dimension() const = 0;
    virtual std::size_t parameters() const = 0;
    virtual void prepare(std::span<const double> theta) = 0;
    virtual void values(Block<const Real> x, Real* out) const = 0;
    virtual void gradient(Block<const Real> x, Real* out) const = 0;
    virtual void add_weighted_gradient(Block<const Real> x, const Real* w, double* sums) const = 0;
    virtual void add_weighted_mixed(Block<const Real> x, const Real* u, double* sums) const = 0;
    virtual bool has_mixed() const = 0;
    virtual std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const = 0;
    virtual std::optional<double> largest_stable_step() const = 0;
    virtual std::optional<GaussianMixture> law(std::span<const double> theta) const = 0;
  };
  explicit Potential(std::unique_ptr<Model> model) : model_(std::move(model)) {}

 private:
  template <class P>
  class Pointwise;

  std::unique_ptr<Model> model_;
};

template <class Real>
template <class P>
class Potential<Real>::Pointwise final : public Potential<Real>::Model {
 public:
  explicit Pointwise(P potential) : v_(std::move(potential)) {}

  std::unique_ptr<Model> clone() const override { return std::make_unique<Pointwise>(v_); }
  std::size_t dimension() const override { return v_.dimension(); }
  std::size_t parameters() const override { return v_.parameters(); }
  void prepare(std::span<const double> theta) override { v_.prepare(theta); }

  void values(Block<const Real> x, Real* out) const override {
    detail::Scratch<Real> point(x.dimension);
    for (std::size_t i = 0; i < x.size; ++i) {
      for (std::size_t j = 0; j < x.dimension; ++j) point[j] = x(i, j);
      out[i] = v_.evaluate(point.data(), static_cast<Real*>(nullptr), static_cast<Real*>(nullptr));
    }
  }

  void gradient(Block<const Real> x, Real* out) const override {
    detail::Scratch<Real> point(x.dimension), slope(x.dimension);
    for (std::size_t i = 0; i < x.size; ++i) {
      for (std::size_t j = 0; j < x.dimension; ++j) point[j] = x(i, j);
      v_.evaluate(point.data(), slope.data(), static_cast<Real*>(nullptr));
      for (std::size_t j = 0; j < x.dimension; ++j) out[j * block_size + i] = slope[j];
    }
  }

  void add_weighted_gradient(Block<const Real> x, const Real* w, double* sums) const override {
    const std::size_t p = parameters();
    detail::Scratch<Real> point(x.dimension);
    detail::Scratch<Real, 64> slope(p);
    detail::add_block_sums<Real>(
        x.size, p,
        [&](std::size_t i, Real* sum) {
          for (std::size_t j = 0; j < x.dimension; ++j) point[j] = x(i, j);
          v_.evaluate(point.data(), static_cast<Real*>(nullptr), slope.data());
          for (std::size_t j = 0; j < p; ++j) sum[j] += w[i] * slope[j];
        },
        sums);
  }

  void add_weighted_mixed(Block<const Real> x, const Real* u, double* sums) const override {
    if constexpr (AnyNumber<P>) {
      const std::size_t p = parameters();
      detail::Scratch<Dual<Real>> point(x.dimension);
      detail::Scratch<Dual<Real>, 64> slope(p);
      detail::add_block_sums<Real>(
          x.size, p,
          [&](std::size_t i, Real* sum) {
            for (std::size_t j = 0; j < x.dimension; ++j) point[j] = {x(i, j), u[j * block_size + i]};
            v_.evaluate(point.data(), static_cast<Dual<Real>*>(nullptr), slope.data());
            for (std::size_t j = 0; j < p; ++j) sum[j] += slope[j].derivative;
          },
          sums);
    }
  }
  bool has_mixed() const override { return AnyNumber<P>; }

  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const override {
    if constexpr (requires { v_.find_inadmissible(theta); }) return v_.find_inadmissible(theta);
    return std::nullopt;
  }
  std::optional<double> largest_stable_step() const override {
    if constexpr (requires { v_.largest_stable_step(); }) return v_.largest_stable_step();
    return std::nullopt;
  }
  std::optional<GaussianMixture> law(std::span<const double> theta) const override {
    if constexpr (requires { v_.law(theta); }) return v_.law(theta);
    return std::nullopt;
  }

 private:
  P v_;
};

}  // namespace implicit_diffusion
