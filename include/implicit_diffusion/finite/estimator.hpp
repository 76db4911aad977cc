// Gradient estimators on finite sets: Gamma(p, theta), which at p = pi*(theta) is the gradient of F(pi*(theta)).
//
//     chain P(theta)       gamma_j' (I - P) = p' dP_j,  sum gamma_j = 0,   Gamma_j = F'(p) . gamma_j     route: forward
//                          (I - P) u = F'(p) - c 1,                        Gamma_j = p' dP_j u           route: adjoint
//     Gibbs law            Gamma = -Cov_p[F'(p), dV/dtheta]
//
// The two routes are the same number. p is a Distribution or the empirical law of a StatePopulation. F' of samples: of
// a chain it is taken at the stationary law, which the linear system gives along with u; of a Gibbs law by slope()
// where the objective has it, with log p = -V, else at the shares of the samples.
//
// A chain that falls apart at the first theta is refused with an Error; one that does so later, where probabilities
// underflow, has diverged: its gradient is not a number, and the loop says so.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/finite/chain.hpp"
#include "implicit_diffusion/finite/gibbs.hpp"
#include "implicit_diffusion/finite/objective.hpp"
#include "implicit_diffusion/finite/population.hpp"
#include "implicit_diffusion/finite/stationary.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

enum class Route { forward, adjoint };

template <FiniteChain C, FiniteObjective F>
class ChainGradient {
 public:
  ChainGradient(C chain, F objective, Route route = Route::adjoint)
      : chain_(std::move(chain)), objective_(std::move(objective)), route_(route) {}

  void estimate(const Distribution& d, std::span<const double> theta, std::int64_t, std::span<double> gradient) {
    if (!factorise_on_the_way(theta, gradient)) return;
    contract(d.p, d.p, gradient);
  }

  void estimate(const StatePopulation& x, std::span<const double> theta, std::int64_t, std::span<double> gradient) {
    if (!factorise_on_the_way(theta, gradient)) return;
    shares_.resize(chain_.states());
    empirical(x, shares_);
    contract(system_.law(), shares_, gradient);
  }

  // The gradient of F(pi*(theta)), and the value.
  double exact(std::span<const double> theta, std::span<double> gradient) {
    factorise(theta);
    contract(system_.law(), system_.law(), gradient);
    return objective_.value(system_.law());
  }
  // pi*(theta) of the last call.
  std::span<const double> law() const { return system_.law(); }

 private:
  void factorise(std::span<const double> theta) {
    chain_.prepare(theta);
    system_.factorise(chain_.matrix());
    f_.resize(chain_.states());
    solution_.resize(chain_.states());
    under_way_ = true;
  }

  bool factorise_on_the_way(std::span<const double> theta, std::span<double> gradient) {
    try {
      factorise(theta);
    } catch (const Error&) {
      if (!under_way_) throw;
      for (double& g : gradient) g = std::numeric_limits<double>::quiet_NaN();
      return false;
    }
    return true;
  }

  // Gamma(p, theta) with F' at `law`.
  void contract(std::span<const double> law, std::span<const double> p, std::span<double> gradient) {
    objective_.gradient(law, f_);
    if (route_ == Route::adjoint) {
      system_.adjoint(f_, solution_);
      pull_back(chain_, p, solution_, gradient);
      return;
    }
    flow_.resize(chain_.states());
    for (std::size_t j = 0; j < gradient.size(); ++j) {
      push_forward(chain_, p, j, flow_);
      system_.forward(flow_, solution_);
      long double sum = 0;
      for (std::size_t i = 0; i < f_.size(); ++i) sum += static_cast<long double>(f_[i]) * solution_[i];
      gradient[j] = static_cast<double>(sum);
    }
  }

  C chain_;
  F objective_;
  Route route_;
  StationarySystem system_;
  bool under_way_ = false;
  std::vector<double> f_, solution_, flow_, shares_;
};

template <FinitePotential V, FiniteObjective F>
class GibbsGradient {
 public:
  GibbsGradient(V potential, F objective) : potential_(std::move(potential)), objective_(std::move(objective)) {}

  void estimate(const Distribution& d, std::span<const double> theta, std::int64_t, std::span<double> gradient) {
    potential_.prepare(theta);
    contract(d.p, 1, gradient);
  }

  // Unbiased for samples of pi, as far as slope() is: the covariance is divided by n - 1.
  void estimate(const StatePopulation& x, std::span<const double> theta, std::int64_t, std::span<double> gradient) {
    potential_.prepare(theta);
    const auto n = static_cast<double>(x.total());
    if constexpr (requires { objective_.slope(std::size_t{}, 0.0); }) {
      double mean = 0;
      f_.resize(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) f_[i] = objective_.slope(x.states[i], -potential_.value(x.states[i]));
      in_turn(x.blocks, {&mean, 1}, [&] {
        for (const double f : f_) mean += f;
      });
      mean /= n;
      for (double& g : gradient) g = 0;
      in_turn(x.blocks, gradient, [&] {
        for (std::size_t i = 0; i < x.size(); ++i)
          potential_.add_gradient(x.states[i], (mean - f_[i]) / (n - 1), gradient);
      });
    } else {
      shares_.resize(potential_.states());
      empirical(x, shares_);
      contract(shares_, n / (n - 1), gradient);
    }
  }

  // The gradient of F(pi*(theta)), and the value.
  double exact(std::span<const double> theta, std::span<double> gradient) {
    potential_.prepare(theta);
    shares_.resize(potential_.states());
    gibbs_law(potential_, shares_);
    contract(shares_, 1, gradient);
    return objective_.value(shares_);
  }

 private:
  // -scale Cov_p[F'(p), dV/dtheta].
  void contract(std::span<const double> p, double scale, std::span<double> gradient) {
    f_.resize(p.size());
    objective_.gradient(p, f_);
    double mean = 0;
    for (std::size_t i = 0; i < p.size(); ++i) mean += p[i] * f_[i];
    for (double& g : gradient) g = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      if (p[i] != 0) potential_.add_gradient(i, scale * p[i] * (mean - f_[i]), gradient);
  }

  V potential_;
  F objective_;
  std::vector<double> f_, shares_;
};

}  // namespace implicit_diffusion
