// The seam between algorithms and engines, second half for reverse chains: one step of a tile of samples, and its
// adjoint.
//
// With the coefficients of denoising/time_grid.hpp, the score s of the model, the score s_0 of a frozen model, and D =
// s - s_0:
//
//     forward     y <- growth y + pull s + noise xi                   U <- U + penalty |D|^2
//     backward    c = pull a + 2 beta penalty D                       gradient of  a'y(next) + beta U(next)
//                 g <- g + s_theta' c
//                 a <- growth a + s_y' c - 2 beta penalty s_0,y' D
//
// An engine is Tiles (tiles.hpp) and
//
//     Model                                                the model at some theta: a value
//     model()                                              one that is at no theta yet
//     prepare(model, theta, grid, first, last) -> bool     puts it at theta, for the steps first <= n < last of a grid;
//                                                          false where it was there
//     forward(model, frozen, step, from, to, u)            from and to may be the same tile;
//                                                          frozen, u: null where there is no penalty
//     backward(model, frozen, step, beta, at, a, sum)      frozen: null where beta is 0
//     fits(theta), fits(samples)                           whether they have the model's shape
//     find_inadmissible(theta)                             the first parameter outside the model's domain
//     workers()                                            what tiles are spread over, or null
//
// Samplers, path gradients, path KL, queues and loops are written over this, once for all engines. StepsOf<T> is the
// engine that T names: the pointwise one (denoising/pointwise.hpp) for float and double, else T itself.
#pragma once

#include "implicit_diffusion/denoising/time_grid.hpp"
#include "implicit_diffusion/tiles.hpp"

#include <concepts>
#include <cstddef>
#include <optional>

namespace implicit_diffusion {

// A step of a chain: all that there is to know of it but its samples. The noise is that of Stream::sampling at `key`.
struct ReverseStep {
  std::size_t n;       // from noise level n to n + 1
  double tau;          // the noise level that it starts from
  StepCoefficients c;  // c.noise == 0: a step without noise
  StepKey key;
};

template <class E>
concept ReverseSteps = Tiles<E> &&
    requires(const E& e, typename E::Model& model, const typename E::Model* frozen, const typename E::Theta& theta,
             const typename E::Samples& samples, typename E::ConstTile from, typename E::Tile to,
             typename E::Scratch& scratch, const TimeGrid& grid, const ReverseStep& step, std::size_t n) {
  { e.model() } -> std::convertible_to<typename E::Model>;
  { e.prepare(model, theta, grid, n, n) } -> std::same_as<bool>;
  e.forward(model, frozen, step, from, to, nullptr);
  { e.fits(theta) } -> std::same_as<bool>;
  { e.fits(samples) } -> std::same_as<bool>;
  { e.find_inadmissible(theta) } -> std::same_as<std::optional<std::size_t>>;
  { e.workers() } -> std::same_as<Workers*>;
};

template <class Real>
class PointwiseSteps;

template <class T>
using StepsOf = EngineOf<T, PointwiseSteps>;

}  // namespace implicit_diffusion
