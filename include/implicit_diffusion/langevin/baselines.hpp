// What the single loop is compared with in section 5.1 of the paper, beside the nested loop and Langevin dynamics at a
// fixed theta.
//
// Guided Langevin: no parameter is learnt; the reward itself bends the dynamics,
//
//     dX = -(grad V - lambda grad R) dt + sqrt(2) dB,      a sampler of exp(-V + lambda R) / Z.
//
// Unrolling through the last step: x' = x - g grad_x V(x, theta) + sqrt(2 g) z is differentiated with x held fixed,
//
//     grad_theta of -lambda mean R(x'_i)  =  lambda g mean_i [ (d/dx grad_theta V)(x_i, theta) . grad R(x'_i) ].
//
// For V = (x - theta)^2 / 2 that is g times the true gradient, so its rate is eta / g there; inside a well of a mixture
// the mixed derivative vanishes and little is learnt. Both need a reward with a gradient.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/estimator.hpp"

namespace implicit_diffusion {

// Sampler and estimator in one: it remembers where the samples were before their last step. T: float or double, or an
// engine that offers add_mixed_derivative(x, u, sum), sum += sum_i (d/dx grad_theta V)(x_i) . u_i, and
// has_mixed_derivative().
template <class T>
class Unrolled {
 public:
  using E = EnergyOf<T>;
  using Samples = typename E::Samples;
  using Theta = typename E::Theta;

  // lambda is the weight of the reward. One that grows as the step of the sampler decays leaves theta a gradient of
  // constant size: the decay of theta's own steps is then the optimizer's alone.
  Unrolled(E energy, typename E::Reward reward, LangevinOptions options, Schedule lambda = 1)
      : sampler_(energy, options), energy_(std::move(energy)), reward_(std::move(reward)), lambda_(lambda) {
    if (!reward_.has_gradient() || !energy_.has_mixed_derivative())
      throw Error(ErrorKind::usage, "method", "unrolled needs a reward and a potential with derivatives");
  }

  void advance(Samples& x, const Theta& theta, StepKey at) {
    before_ = x;
    sampler_.advance(x, theta, at);
  }

  // After advance(), at the same theta: in a single loop this is the authors' order. Throws an Error where no step came
  // before.
  void estimate(const Samples& x, const Theta& theta, std::int64_t step, Theta& gradient) {
    if (total_of(before_) != total_of(x))
      throw Error(ErrorKind::usage, "method", "unrolled has no step to differentiate yet: it needs the authors' order");
    require_fit(energy_, theta);
    require_fit(energy_, gradient, "gradient");
    energy_.prepare(theta);
    const Samples& before = before_;
    E::sum(sampler_.options().workers, x, gradient, [&](std::size_t k, auto&& sum) {
      const auto at = E::tile(x, k);
      typename E::Scratch slope(at, 1);
      reward_.gradient(at, slope[0]);
      energy_.add_mixed_derivative(E::tile(before, k), slope[0], sum);
    });
    const double scale = lambda_(step) * sampler_.options().step_size(step) / static_cast<double>(total_of(x));
    for_each_element([scale](auto& g) { set_element(g, scale * static_cast<double>(g)); }, gradient);
  }

  std::optional<std::size_t> find_inadmissible(const Theta& theta) const { return energy_.find_inadmissible(theta); }

 private:
  Langevin<T> sampler_;
  E energy_;
  typename E::Reward reward_;
  Schedule lambda_;
  Samples before_;
};

// V - lambda R. Throws an Error for a reward without gradient.
template <class Real>
Potential<Real> guided(Potential<Real> potential, Reward<Real> reward, double lambda);

}  // namespace implicit_diffusion
