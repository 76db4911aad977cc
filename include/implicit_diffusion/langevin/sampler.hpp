// Overdamped Langevin dynamics: the sampling operator of the Gibbs law of V.
//
//     dX = -grad_x V(X, theta) dt + sqrt(2) dB,       law -> exp(-V(., theta)) / Z
//
// advance() is one Euler-Maruyama step of size g for every sample (the unadjusted Langevin algorithm):
//
//     x <- x - g grad_x V(x, theta) + sqrt(2 g) z,    z ~ N(0, I)
//
// The chain is biased by O(g). For V(x) = a x^2 / 2 it is stable for g < 2 / a and its variance is 1 / (a (1 - a g /
// 2)), not 1 / a.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/potential.hpp"
#include "implicit_diffusion/optimizer/schedule.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace implicit_diffusion {

struct LangevinOptions {
  Schedule step_size = 1e-2;  // g, as a function of the outer step
  Noise noise{};
  Workers* workers = nullptr;  // null: the calling thread alone
};

// T: float or double, or an engine (langevin/energy.hpp).
template <class T>
class Langevin {
 public:
  using E = EnergyOf<T>;
  using Samples = typename E::Samples;
  using Theta = typename E::Theta;
  static_assert(Energy<E>);

  explicit Langevin(E energy, LangevinOptions options = {}) : energy_(std::move(energy)), options_(options) {}

  void advance(Samples& x, const Theta& theta, StepKey at) {
    begin(x, theta);
    const LangevinStep s = step(at);
    E::for_each(options_.workers, E::tiles(x), [&](std::size_t k) { energy_.step(E::tile(x, k), s, nonfinite(k)); });
  }

  // Whether the last step left finite numbers only, on all processes; then nobody needs to search.
  bool all_finite() const {
    return !any(processes_, std::any_of(nonfinite_.begin(), nonfinite_.end(), [](const Flag& f) { return f.up; }));
  }

  // The parts of a step, for those who make it together with something else: begin(), then for every tile k one that
  // sets nonfinite(k).
  void begin(const Samples& x, const Theta& theta) {
    require_fit(energy_, theta);
    require_fit(energy_, x);
    energy_.prepare(theta);
    nonfinite_.assign(E::tiles(x), {});
    processes_ = spread_of(x).processes;
  }
  LangevinStep step(StepKey at) const { return {options_.noise, at, options_.step_size(at.round)}; }
  bool& nonfinite(std::size_t k) { return nonfinite_[k].up; }

  const E& energy() const { return energy_; }
  const LangevinOptions& options() const { return options_; }

 private:
  struct Flag {
    bool up = false;
  };
  E energy_;
  LangevinOptions options_;
  std::vector<Flag> nonfinite_;  // one for each tile
  Processes* processes_ = nullptr;
};

// Chains start from N(0, I).
template <class T>
struct StandardNormalStart {
  Noise noise{};

  void draw(typename EnergyOf<T>::Samples& x, std::int64_t round) const {
    EnergyOf<T>::fill_normals(x, noise, Stream::initial, {.round = round});
  }
};

}  // namespace implicit_diffusion
