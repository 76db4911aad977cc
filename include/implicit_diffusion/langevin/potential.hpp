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
// evaluate is best written as a template over the number type, with the functions of simd/elementary.hpp, select()
// instead of if, and [[gnu::always_inline]]; a type that says `static constexpr bool any_number = true` promises that
// it is. Then it runs on 16 lanes at a time, and gets derivatives of its derivatives from dual numbers.
// differentiated.hpp takes the value alone and does the rest. More that a potential may know about itself, each
// optional:
//
//     static constexpr std::size_t fixed_dimension;                 where it has but one:
//                                                                   then a point is kept in registers
//     evaluate_in<D>(x, grad_x, grad_theta) const;                  evaluate with the dimension as a constant
//     terms<D>, from_terms<D>, shift, factor                        evaluation in two parts,
//                                                                   theta-gradients cheap to sum: see kernel.hpp,
//                                                                   also for more forms of it
//     std::optional<std::size_t> find_inadmissible(theta) const;    a parameter outside its domain
//     std::optional<double> largest_stable_step() const;            of the Langevin chain, at the prepared theta
//     GaussianMixture law(theta) const;                             pi*(theta), where it is a mixture of Gaussians
//
// Potential<Real> holds any of them and works on blocks of samples: one virtual call a block, so nothing is lost to it.
// It is the SIMD engine of Langevin dynamics (langevin/energy.hpp).
#pragma once

#include "implicit_diffusion/langevin/energy.hpp"
#include "implicit_diffusion/langevin/kernel.hpp"
#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/population.hpp"
#include "implicit_diffusion/simd/dual.hpp"

#include <cmath>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// Whether P can be copied is asked last: of a type that holds a Potential it would be asked on the way to its own
// answer.
template <class P>
concept PointPotential = requires(P& v, const P& c, std::span<const double> theta, const float* x, float* gradient) {
  { c.dimension() } -> std::convertible_to<std::size_t>;
  { c.parameters() } -> std::convertible_to<std::size_t>;
  v.prepare(theta);
  { c.evaluate(x, gradient, gradient) } -> std::convertible_to<float>;
}
&&std::copy_constructible<P>;

// Numbers that belong to a block, by coordinate: coordinate j of sample i at [j * block_size + i].
template <class Real>
class Potential : public PointwiseTiles<Real> {
 public:
  using typename PointwiseTiles<Real>::Tile;
  using typename PointwiseTiles<Real>::ConstTile;
  using typename PointwiseTiles<Real>::Sum;
  using Request = Pass<Real>;

  template <PointPotential P>
  Potential(P potential)
      : model_(std::make_unique<Pointwise<P>>(std::move(potential))) {}  // implicit: a potential is a Potential

  Potential(const Potential& other) : model_(other.model_->clone()) {}
  Potential(Potential&&) noexcept = default;
  Potential& operator=(Potential other) noexcept {
    model_ = std::move(other.model_);
    return *this;
  }
  ~Potential() = default;

  std::size_t dimension() const { return model_->dimension(); }
  std::size_t parameters() const { return model_->parameters(); }

  Population<Real> samples(std::size_t n, Processes* processes = nullptr) const { return {n, dimension(), processes}; }
  bool fits(const std::vector<double>& theta) const { return theta.size() == parameters(); }
  bool fits(const Population<Real>& x) const { return x.dimension() == dimension(); }
  // What keeps its kernels from running on 16 lanes at the level of the machine: null where nothing does.
  const char* speed_note() const { return model_->speed_note(); }

  // All that follows is at this theta.
  void prepare(std::span<const double> theta) { model_->prepare(theta); }

  // One pass over a block: see langevin/kernel.hpp.
  void pass(const Block<Real>& x, const Pass<Real>& request) const { model_->pass(x, request); }
  // A pass that moves nothing.
  void evaluate(const Block<const Real>& x, const Pass<Real>& request) const {
    model_->pass({const_cast<Real*>(x.data), x.stride, x.size, x.dimension, x.first}, request);
  }

  // The engine's operations.
  void add_values(const ConstTile& x, double c, Real* f) const {
    BlockArray<Real> v;
    values(x, v.data());
    for (std::size_t i = 0; i < x.size; ++i) f[i] += static_cast<Real>(c) * v[i];
  }
  void add(const ConstTile& x, const Request& request) const { evaluate(x, request); }
  void step_and_add(const Tile& x, const LangevinStep& step, bool& nonfinite, Request request) const {
    BlockArray<float> z(x.dimension);
    this->normals(step.noise, Stream::sampling, step.key, x, z.data());
    request.noise = z.data();
    request.step = static_cast<Real>(step.size);
    request.scale = static_cast<Real>(std::sqrt(2.0 * step.size));
    request.nonfinite = &nonfinite;
    pass(x, request);
  }
  void step(Tile x, const LangevinStep& step, bool& nonfinite) const { step_and_add(x, step, nonfinite, Request{}); }
  // With known weights: the sums of a pass whose signals they are.
  void add(ConstTile x, const Real* w, Sum sum) const {
    std::vector<double> sums(1 + 2 * parameters(), 0.0);
    evaluate(x, {.sums = sums.data(), .signal = w});
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += sums[1 + parameters() + j];
  }
  void step_and_add(Tile x, const LangevinStep& step, bool& nonfinite, const Real* w, Sum sum) const {
    std::vector<double> sums(1 + 2 * parameters(), 0.0);
    step_and_add(x, step, nonfinite, Request{.sums = sums.data(), .signal = w});
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += sums[1 + parameters() + j];
  }

  // V(x_i).
  void values(const Block<const Real>& x, Real* out) const { evaluate(x, {.values = out}); }
  // dV/dx_j (x_i), by coordinate; room for a whole block.
  void gradient(Block<const Real> x, Real* out) const { evaluate(x, {.gradient = out}); }
  // Adds sum_i (d/dx dV/dtheta)(x_i) . u_i, with the directions u by coordinate. Only for potentials of any number
  // type.
  void add_weighted_mixed(ConstTile x, const Real* u, double* sums) const { model_->add_weighted_mixed(x, u, sums); }
  // The same for a u of a Scratch.
  void add_mixed_derivative(ConstTile x, ConstTile u, Sum sum) const { add_weighted_mixed(x, u.data, sum.data()); }
  bool has_mixed_derivative() const { return model_->has_mixed_derivative(); }

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
    virtual void pass(const Block<Real>& x, const Pass<Real>& request) const = 0;
    virtual void add_weighted_mixed(Block<const Real> x, const Real* u, double* sums) const = 0;
    virtual bool has_mixed_derivative() const = 0;
    virtual std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const = 0;
    virtual std::optional<double> largest_stable_step() const { return std::nullopt; }
    virtual std::optional<GaussianMixture> law(std::span<const double> /*theta*/) const { return std::nullopt; }
    virtual const char* speed_note() const { return nullptr; }
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

  void pass(const Block<Real>& x, const Pass<Real>& request) const override {
    kernels_of_part<PotentialKernels<Real, P>>().pass(v_, x, request);
  }
  void add_weighted_mixed(Block<const Real> x, const Real* u, double* sums) const override {
    if (has_mixed_derivative()) kernels_of_part<PotentialKernels<Real, P>>().mixed(v_, x, u, sums);
  }
  bool has_mixed_derivative() const override { return AnyNumber<P>; }

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
  const char* speed_note() const override { return speed_note_of<Real, P>(); }

 private:
  P v_;
};

}  // namespace implicit_diffusion
