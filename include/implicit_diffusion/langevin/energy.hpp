// The seam between algorithms and engines, second half for Langevin dynamics: the signals, the step and the gradient of
// a tile.
//
// Every estimator of this library is the theta-gradient of a signed weighting of samples, Gamma = sum_i w_i grad_theta
// V(x_i, theta). So an engine is Tiles (tiles.hpp) and
//
//     prepare(theta)                                all that follows is at this theta
//     add_values(x, c, f)                           f_i += c V(x_i)
//     add(x, w, sum)                                sum += sum_i w_i grad_theta V(x_i)
//     step(x, step, nonfinite)                      x_i <- x_i - g grad_x V(x_i) + sqrt(2 g) z_i;
//                                                   sets nonfinite where a sample no longer is
//     step_and_add(x, step, nonfinite, w, sum)      both, with V evaluated once: the gradient is that before the step
//     find_inadmissible(theta)                      the first parameter outside the domain of V
//     fits(theta), fits(samples)                    whether they have the shape that V asks for
//     samples(n)                                    n samples at the origin
//
// Weights depend on the mean of the signals f_i, so all signals come first, then the sum. An engine for which
// grad_theta V costs little offers the one-pass form as well: a type Request and add(x, Request), step_and_add(x, step,
// nonfinite, Request), which take the sums of f, grad_theta V and f grad_theta V while the signals are made, tile by
// tile (langevin/kernel.hpp).
//
// EnergyOf<T> is the engine that T names: Potential<T> for float and double, else T itself.
#pragma once

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/tiles.hpp"

#include <concepts>
#include <cstddef>
#include <optional>

namespace implicit_diffusion {

struct LangevinStep {
  Noise noise;  // of Stream::sampling
  StepKey key;
  double size;  // g
};

template <class E>
concept Energy = Tiles<E> &&
    requires(E& e, const E& c, const typename E::Theta& theta, typename E::Tile x, typename E::ConstTile at,
             const typename E::Samples& samples, typename E::TileNumbers f, const LangevinStep& step, bool& nonfinite) {
  e.prepare(theta);
  c.add_values(at, 1.0, f);
  c.step(x, step, nonfinite);
  { c.find_inadmissible(theta) } -> std::same_as<std::optional<std::size_t>>;
  { c.fits(theta) } -> std::same_as<bool>;
  { c.fits(samples) } -> std::same_as<bool>;
  { c.samples(std::size_t{}) } -> std::same_as<typename E::Samples>;
};

// Throw a usage Error unless theta (or a gradient) and samples have the shape that an energy asks for.
template <class E>
void require_fit(const E& energy, const typename E::Theta& theta, const char* name = "theta") {
  if (!energy.fits(theta))
    throw Error(ErrorKind::usage, name, "its size is not the number of the potential's parameters");
}
template <class E>
void require_fit(const E& energy, const typename E::Samples& x) {
  if (total_of(x) == 0) throw Error(ErrorKind::usage, "samples", "there are none");
  if (!energy.fits(x)) throw Error(ErrorKind::usage, "samples", "their dimension is not that of the potential");
}

template <class Real>
class Potential;

template <class T>
using EnergyOf = EngineOf<T, Potential>;

}  // namespace implicit_diffusion
