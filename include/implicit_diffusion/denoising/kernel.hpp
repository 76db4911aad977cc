// Kernels of reverse chains: one step of a block of samples, forward and back, written once for every number type.
//
// A score model is any type with
//
//     dimension(), parameters()
//     prepare(theta)
//     level(tau) -> NoiseLevel                     all that it needs at one noise level
//
// and a NoiseLevel any type with
//
//     score(y, s)                        s = s_theta(y, tau)                                   y, s: dimension numbers
//     pull_back(y, s, c, back, sums)     back = s_y' c,                                        s is the score at y;
//                                        sums += numbers that make up s_theta' c               sums null: back alone
//     sums()                             how many numbers these are
//     add_gradient(sums, gradient)       gradient += s_theta' c, from sums over all samples    in double
//
// score and pull_back are templates over the number type; the rest runs once for each noise level. A model whose
// gradient is simple lets sums() be parameters() and add_gradient add. Vector-Jacobian products are easy to get wrong:
// check_score_model() (denoising/check.hpp) compares them with finite differences. A NoiseLevel that has work in common
// for the two may offer at<N, D>(y) instead, which returns an object with score(s) and pull_back(s, c, back, sums); D
// is the dimension where it is a constant, else 0; and, where it has a shorter way to the score alone,
// score<N, D>(y, s). Work that is long can be a stage of its own, of many samples before the rest of any:
// keep_work<N, D>(y, work) does it and writes work_size() numbers, from_work<N, D>(y, work) returns the object. A model
// that predicts the noise or the velocity is made one by denoising/prediction.hpp.
//
// With the coefficients of denoising/time_grid.hpp, the score of a frozen model s_0, and D = s - s_0:
//
//     forward     y <- growth y + pull s + noise xi                   U <- U + penalty |D|^2
//     back        c = pull a + 2 beta penalty D                       gradient of  a'y(next) + beta U(next)
//                 g <- g + s_theta' c
//                 a <- growth a + s_y' c - 2 beta penalty s_0,y' D
#pragma once

#include "implicit_diffusion/denoising/time_grid.hpp"
#include "implicit_diffusion/groups.hpp"

#include <cstddef>

namespace implicit_diffusion {

inline constexpr std::size_t largest_denoising_dimension = 64;

// What a step of one block is asked for. `base` is the frozen model's level, or null.
template <class Real>
struct ForwardStep {
  StepCoefficients c;
  Block<const Real> from;
  Block<Real> to;
  const Real* noise;  // as Noise::normals lays it out; null where the step has none
  Real* penalty;      // U of each sample is added to; null where it is not wanted
};
template <class Real>
struct BackwardStep {
  StepCoefficients c;
  double beta;
  Block<const Real> at;
  Real* adjoint;  // a, by coordinate: [j block_size + i]
  double* sums;   // of the level are added to
};

// Only the coordinates of a point are set and read; GCC cannot know that a model's dimension is what it says.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
namespace kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {

// A level at one point; where the level is of a prediction (denoising/prediction.hpp), predict() takes the place of
// score().
template <class N, class NoiseLevel>
struct PlainPoint {
  const NoiseLevel& level;
  const N* y;
  [[gnu::always_inline]] void score(N* s) const { level.score(y, s); }
  [[gnu::always_inline]] void predict(N* out) const { level.predict(y, out); }
  [[gnu::always_inline]] void pull_back(const N* s, const N* c, N* back, N* sums) const {
    level.pull_back(y, s, c, back, sums);
  }
};
template <class N, std::size_t D = 0, class NoiseLevel>
[[gnu::always_inline]] inline auto point_of(const NoiseLevel& level, const N* y) {
  if constexpr (requires { level.template at<N, D>(y); })
    return level.template at<N, D>(y);
  else
    return PlainPoint<N, NoiseLevel>{level, y};
}

// The score alone.
template <class N, std::size_t D = 0, class NoiseLevel>
[[gnu::always_inline]] inline void score_at(const NoiseLevel& level, const N* y, N* s) {
  if constexpr (requires { level.template score<N, D>(y, s); })
    level.template score<N, D>(y, s);
  else
    point_of<N, D>(level, y).score(s);
}

// Points in two stages: the work that a NoiseLevel kept of them, and the points again.
template <class N, std::size_t D, class NoiseLevel>
concept KeepsWork = requires(const NoiseLevel& level, const N* y, N* work) {
  level.template keep_work<N, D>(y, work);
  level.template from_work<N, D>(y, work);
};
template <class N, std::size_t D, class NoiseLevel>
std::size_t work_size(const NoiseLevel* level) {
  if constexpr (KeepsWork<N, D, NoiseLevel>) return level ? level->work_size() : 0;
  return 0;
}
template <class N, std::size_t D, class NoiseLevel>
[[gnu::always_inline]] inline void keep_work(const NoiseLevel& level, const N* y, N* work) {
  if constexpr (KeepsWork<N, D, NoiseLevel>) level.template keep_work<N, D>(y, work);
}
template <class N, std::size_t D, class NoiseLevel>
[[gnu::always_inline]] inline auto from_work(const NoiseLevel& level, const N* y, const N* work) {
  if constexpr (KeepsWork<N, D, NoiseLevel>)
    return level.template from_work<N, D>(y, work);
  else
    return point_of<N, D>(level, y);
}

template <Number N, std::size_t D, class NoiseLevel>
[[gnu::flatten, gnu::noinline]] void forward_in(const NoiseLevel& level, const NoiseLevel* base,
                                                const ForwardStep<Scalar<N>>& step) {
  using Real = Scalar<N>;
  constexpr std::size_t most = D ? D : largest_denoising_dimension;
  const std::size_t d = D ? D : step.from.dimension, size = step.from.size;
  const N growth(static_cast<Real>(step.c.growth)), pull(static_cast<Real>(step.c.pull)),
      scale(static_cast<Real>(step.c.noise)), weight(static_cast<Real>(step.c.penalty));
  if (!step.penalty) base = nullptr;
  const auto move = [&](std::size_t i, auto last) __attribute__((always_inline)) {
    N y[most], s[most], other[most];
    const std::size_t group = i / lanes_per_group, lane = i % lanes_per_group;
    load_point<N, last>(step.from, i, d, y);
    const N* at = y;
    score_at<N, D>(level, at, s);
    if (base) {
      score_at<N, D>(*base, at, other);
      N square(Real(0));
      for (std::size_t j = 0; j < d; ++j) square = fma(s[j] - other[j], s[j] - other[j], square);
      store_some<last>(fma(weight, square, load<N>(step.penalty + i)), step.penalty + i, size - i);
    }
    for (std::size_t j = 0; j < d; ++j) {
      N next = fma(pull, s[j], growth * y[j]);
      if (step.noise) next = fma(scale, load<N>(step.noise + (group * d + j) * lanes_per_group + lane), next);
      store_some<last>(next, step.to.data + j * step.to.stride + i, size - i);
    }
  };
  for_each_group<N>(size, move);
}

template <Number N, std::size_t D, class NoiseLevel>
[[gnu::flatten, gnu::noinline]] void backward_in(const NoiseLevel& level, const NoiseLevel* base,
                                                 const BackwardStep<Scalar<N>>& step) {
  using Real = Scalar<N>;
  constexpr std::size_t most = D ? D : largest_denoising_dimension;
  const std::size_t d = D ? D : step.at.dimension, size = step.at.size, count = level.sums();
  const N growth(static_cast<Real>(step.c.growth)), pull(static_cast<Real>(step.c.pull)),
      pressure(static_cast<Real>(2 * step.beta * step.c.penalty));
  const std::size_t own = work_size<N, D>(&level), each = own + work_size<N, D>(base),
                    at_once = groups_at_once(each, sizeof(N));
  auto* sums =
      static_cast<N*>(kernel_scratch((count + at_once * each) * sizeof(N) + count * lanes_per_group * sizeof(Real)));
  N* work = sums + count;
  auto* memory = reinterpret_cast<Real*>(work + at_once * each);
  const auto keep_all = [&](std::size_t i, std::size_t place, auto last) __attribute__((always_inline)) {
    N y[most];
    load_point<N, last>(step.at, i, d, y);
    keep_work<N, D>(level, static_cast<const N*>(y), work + place * each);
    if (base) keep_work<N, D>(*base, static_cast<const N*>(y), work + place * each + own);
  };
  const auto one = [&](std::size_t i, std::size_t place, auto last) __attribute__((always_inline)) {
    N y[most], s[most], c[most], back[most];
    load_point<N, last>(step.at, i, d, y);
    const N* at = y;
    const auto here = from_work<N, D>(level, at, static_cast<const N*>(work + place * each));
    here.score(s);
    N a[most];
    for (std::size_t j = 0; j < d; ++j) {
      a[j] = load<N>(step.adjoint + j * block_size + i);
      c[j] = pull * a[j];
    }
    if (base) {
      N other[most], gap[most];
      const auto there = from_work<N, D>(*base, at, static_cast<const N*>(work + place * each + own));
      there.score(other);
      for (std::size_t j = 0; j < d; ++j) {
        gap[j] = pressure * (s[j] - other[j]);
        c[j] = c[j] + gap[j];
      }
      there.pull_back(other, gap, back, static_cast<N*>(nullptr));
      for (std::size_t j = 0; j < d; ++j) a[j] = fma(growth, a[j], -back[j]);
    } else {
      for (std::size_t j = 0; j < d; ++j) a[j] = growth * a[j];
    }
    if constexpr (last)  // samples that are not there count for nothing
      for (std::size_t j = 0; j < d; ++j)
        c[j] = select(first_lanes(size - i, static_cast<N*>(nullptr)), c[j], N(Real(0)));
    here.pull_back(s, c, back, sums);
    for (std::size_t j = 0; j < d; ++j) store_some<last>(a[j] + back[j], step.adjoint + j * block_size + i, size - i);
  };
  // 16 lanes at once, or one lane after the other: the sums are the same.
  for (std::size_t lane = 0; lane < lanes_per_group; lane += width<N>) {
    for (std::size_t j = 0; j < count; ++j) sums[j] = N(Real(0));
    for (std::size_t first = lane; first < size; first += at_once * lanes_per_group) {
      if constexpr (KeepsWork<N, D, NoiseLevel>) in_turn<N>(first, size, at_once, keep_all);
      in_turn<N>(first, size, at_once, one);
    }
    LaneSums<N> all(memory, lane);
    all.put(0, sums, count, [&](std::size_t j, double total) { step.sums[j] += total; });
  }
}

// In the plane the dimension is a constant.
template <Number N, class NoiseLevel>
void forward(const NoiseLevel& level, const NoiseLevel* base, const ForwardStep<Scalar<N>>& step) {
  if constexpr (in_full)
    if (step.from.dimension == 2) return forward_in<N, 2>(level, base, step);
  forward_in<N, 0>(level, base, step);
}
template <Number N, class NoiseLevel>
void backward(const NoiseLevel& level, const NoiseLevel* base, const BackwardStep<Scalar<N>>& step) {
  if constexpr (in_full)
    if (step.at.dimension == 2) return backward_in<N, 2>(level, base, step);
  backward_in<N, 0>(level, base, step);
}

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace kernel
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}  // namespace implicit_diffusion
