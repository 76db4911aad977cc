// Kernels: one pass over a block of samples, written once for every number type.
//
// A pass evaluates a potential once for each sample and takes from that all that is asked for: values, gradients, the Langevin step, and the
// sums that every gradient estimator is made of,
//
//     sum_i f_i,     sum_i grad_theta V(x_i),     sum_i f_i grad_theta V(x_i)
//
// with a signal f that is given sample by sample and may include a share of V itself. All inputs are read before the sample moves, so in
// the paper's order of the single loop one pass does both of its lines.
//
// One pass asks for a step, for sums, for both, or for values or gradients alone.
//
// The kernels run on 16 lanes. The same text on a plain float takes the lanes one after the other and gives the same bits; on double it is
// the reference. Built-in potentials and rewards have their kernels compiled for each level (src/langevin/kernels.cpp); those of a user are
// compiled with the user's file, at the level of its compiler options.
#pragma once

#include "implicit_diffusion/population.hpp"
#include "implicit_diffusion/simd/dual.hpp"
#include "implicit_diffusion/simd/lanes.hpp"

#include <array>
#include <cstddef>
#include <type_traits>

namespace implicit_diffusion {

// True for a potential or reward that accepts every number type of the library.
template <class T>
concept AnyNumber = requires {
  requires T::any_number;
};

// What a pass is asked for; what is null is not asked for.
template <class Real>
struct Pass {
  // The step x <- x + scale z - step grad_x V, with z as Noise::normals lays it out.
  const float* noise = nullptr;
  Real step = 0, scale = 0;
  bool* nonfinite = nullptr;  // set where a sample is no longer finite; must be given with the noise
  // The sums: 1 + 2p numbers are added to. f_i = signal[i] + value_share V(x_i); without a signal only the middle p are.
  double* sums = nullptr;
  const Real* signal = nullptr;
  Real value_share = 0;
  // V(x_i) and dV/dx_j (x_i), the latter by coordinate: [j * block_size + i].
  Real* values = nullptr;
  Real* gradient = nullptr;
};

// Memory for a kernel's arrays, aligned for lanes; the calling thread's own, valid until its next call.
void* kernel_scratch(std::size_t bytes);

// The kernels of one potential, for a population of Real (float or double).
template <class Real, class P>
struct PotentialKernels {
  void (*pass)(const P&, const Block<Real>&, const Pass<Real>&);
  void (*mixed)(const P&, const Block<const Real>&, const Real*, double*);  // null where there is none
};

template <class Real, class R>
struct RewardKernels {
  void (*values)(const R&, const Block<const Real>&, Real*);
  void (*gradient)(const R&, const Block<const Real>&, Real*);  // null where there is none
};

// Code of different levels has different names. (Not in the namespace of Lanes itself: there its functions would hide those of float.)
namespace kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {

// The sum of 16 lanes as a tree, the order of sum(Lanes).
template <class Real>
Real sum_tree(std::array<Real, lanes_per_group> lane) {
  for (std::size_t half = lanes_per_group / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

// Adds sum accumulators of a block to `sums`: at once for 16 lanes, lane by lane for one.
template <Number Real>
class LaneSums {
 public:
  // `memory` holds 16 Scalars for each sum, unused by lanes.
  LaneSums(Scalar<Real>* memory, std::size_t lane) : memory_(memory), lane_(lane) {}
  [[gnu::always_inline]] void put(std::size_t j, const Real& value, double& sum_of_all) {
    if constexpr (width<Real> == lanes_per_group) {
      sum_of_all += static_cast<double>(sum(value));
    } else {
      memory_[j * lanes_per_group + lane_] = value;
      if (lane_ + 1 < lanes_per_group) return;
      std::array<Scalar<Real>, lanes_per_group> lane;
      for (std::size_t l = 0; l < lanes_per_group; ++l) lane[l] = memory_[j * lanes_per_group + l];
      sum_of_all += static_cast<double>(sum_tree(lane));
    }
  }

 private:
  Scalar<Real>* memory_;
  std::size_t lane_;
};

// Coordinates of the samples of a group that starts at i; where the group is not full, its missing samples repeat its first.
template <Number Real, class T>
[[gnu::always_inline]] inline void load_point(const Block<T>& x, std::size_t i, std::size_t d, Real* point) {
  for (std::size_t j = 0; j < d; ++j) {
    const auto* column = x.data + j * x.stride + i;
    point[j] = load<Real>(column);
    if constexpr (width<Real> > 1)
      if (x.size - i < width<Real>) point[j] = select(first_lanes(x.size - i, static_cast<Real*>(nullptr)), point[j], Real(*column));
  }
}

// Calls the potential with its dimension as a constant where it offers that.
template <std::size_t D, class P, class Real>
[[gnu::always_inline]] inline Real evaluate(const P& v, const Real* x, Real* grad_x, Real* grad_theta) {
  if constexpr (D > 0 && requires { v.template evaluate_in<D>(x, grad_x, grad_theta); })
    return v.template evaluate_in<D>(x, grad_x, grad_theta);
  else
    return v.evaluate(x, grad_x, grad_theta);
}

// Fixed: which of the results are asked for, so that the others cost nothing.
template <Number Real, std::size_t D, bool move, bool sums, bool values, bool gradient, class P>
[[gnu::flatten, gnu::noinline]] void pass(const P& v, const Block<Scalar<Real>>& x, const Pass<Scalar<Real>>& r) {
  using S = Scalar<Real>;
  constexpr std::size_t w = width<Real>;
  const std::size_t d = D ? D : x.dimension;
  const std::size_t p = sums ? v.parameters() : 0;

  // Small arrays of the compiler's own where the dimension is known; p of them, and d where it is not, are in memory.
  Real fixed_point[D ? D : 1], fixed_slope[D ? D : 1];
  Real* memory = static_cast<Real*>(kernel_scratch((2 * d + 3 * p) * sizeof(Real) + (1 + 2 * p) * lanes_per_group * sizeof(S)));
  Real* point = D ? fixed_point : memory;
  Real* slope = D ? fixed_slope : memory + d;
  Real* slope_theta = memory + 2 * d;
  Real* sum_theta = slope_theta + p;
  Real* sum_signal_theta = sum_theta + p;
  auto* lane_memory = reinterpret_cast<S*>(sum_signal_theta + p);

  Real doubt = Real(S(0));  // x - x is 0 for finite x and NaN otherwise
  for (std::size_t lane = 0; lane < lanes_per_group; lane += w) {
    Real sum_signal = Real(S(0));
    for (std::size_t j = 0; j < p; ++j) sum_theta[j] = sum_signal_theta[j] = Real(S(0));

    for (std::size_t i = lane; i < x.size; i += lanes_per_group) {
      load_point<Real>(x, i, d, point);
      const Real value = evaluate<D>(v, static_cast<const Real*>(point), move || gradient ? slope : nullptr, sums ? slope_theta : nullptr);

      if constexpr (values) {
        if (w > 1 && x.size - i < w) {
          alignas(64) S tail[w];
          store(value, tail);
          for (std::size_t l = 0; l < x.size - i; ++l) r.values[i + l] = tail[l];
        } else {
          store(value, r.values + i);
        }
      }
      if constexpr (gradient)
        for (std::size_t j = 0; j < d; ++j) store(slope[j], r.gradient + j * block_size + i);
      if constexpr (sums) {
        Real present = Real(S(1));  // 0 for the missing samples of the last group
        Real f = r.signal ? load<Real>(r.signal + i) : Real(S(0));
        if (r.value_share != 0) f = fma(Real(r.value_share), value, f);  // where it is 0, V itself is never computed
        if constexpr (w > 1)
          if (x.size - i < w) {
            const auto mask = first_lanes(x.size - i, static_cast<Real*>(nullptr));
            present = select(mask, present, Real(S(0)));
            f = select(mask, f, Real(S(0)));
          }
        sum_signal += f;
        for (std::size_t j = 0; j < p; ++j) sum_theta[j] = fma(present, slope_theta[j], sum_theta[j]);
        if (r.signal)
          for (std::size_t j = 0; j < p; ++j) sum_signal_theta[j] = fma(f, slope_theta[j], sum_signal_theta[j]);
      }
      if constexpr (move)
        for (std::size_t j = 0; j < d; ++j) {
          // Vectors of 16 normals, all coordinates of one group before the next group.
          const float* z = r.noise + (i / lanes_per_group * d + j) * lanes_per_group + lane;
          Real normal;
          if constexpr (std::is_same_v<S, float>)
            normal = load<Real>(z);
          else
            normal = Real(static_cast<S>(*z));
          const Real moved = fma(Real(-r.step), slope[j], fma(Real(r.scale), normal, point[j]));
          store(moved, x.data + j * x.stride + i);
          doubt += moved - moved;
        }
    }

    if constexpr (sums) {
      LaneSums<Real> out(lane_memory, lane);
      out.put(0, sum_signal, r.sums[0]);
      for (std::size_t j = 0; j < p; ++j) out.put(1 + j, sum_theta[j], r.sums[1 + j]);
      if (r.signal)
        for (std::size_t j = 0; j < p; ++j) out.put(1 + p + j, sum_signal_theta[j], r.sums[1 + p + j]);
    }
  }
  if constexpr (move)
    if (any(doubt != doubt)) *r.nonfinite = true;
}

// The mixed derivative: adds sum_i (d/dx grad_theta V)(x_i) . u_i, u by coordinate.
template <Number Real, class P>
[[gnu::flatten, gnu::noinline]] void mixed(const P& v, const Block<const Scalar<Real>>& x, const Scalar<Real>* u, double* sums) {
  using S = Scalar<Real>;
  constexpr std::size_t w = width<Real>;
  const std::size_t d = x.dimension, p = v.parameters();
  auto* point = static_cast<Dual<Real>*>(kernel_scratch((d + p) * sizeof(Dual<Real>) + p * (sizeof(Real) + lanes_per_group * sizeof(S))));
  Dual<Real>* slope = point + d;
  Real* sum_theta = reinterpret_cast<Real*>(slope + p);
  auto* lane_memory = reinterpret_cast<S*>(sum_theta + p);

  for (std::size_t lane = 0; lane < lanes_per_group; lane += w) {
    for (std::size_t j = 0; j < p; ++j) sum_theta[j] = Real(S(0));
    for (std::size_t i = lane; i < x.size; i += lanes_per_group) {
      Real present = Real(S(1));
      if constexpr (w > 1)
        if (x.size - i < w) present = select(first_lanes(x.size - i, static_cast<Real*>(nullptr)), present, Real(S(0)));
      for (std::size_t j = 0; j < d; ++j) {
        Real at;
        load_point<Real>(Block<const S>{x.data + j * x.stride, x.stride, x.size, 1, 0}, i, 1, &at);
        point[j] = {at, load<Real>(u + j * block_size + i)};
      }
      v.evaluate(static_cast<const Dual<Real>*>(point), static_cast<Dual<Real>*>(nullptr), slope);
      for (std::size_t j = 0; j < p; ++j) sum_theta[j] += select(present > Real(S(0)), slope[j].derivative, Real(S(0)));
    }
    LaneSums<Real> out(lane_memory, lane);
    for (std::size_t j = 0; j < p; ++j) out.put(j, sum_theta[j], sums[j]);
  }
}

// R(x_i).
template <Number Real, class R>
[[gnu::flatten, gnu::noinline]] void reward_values(const R& reward, const Block<const Scalar<Real>>& x, Scalar<Real>* out) {
  constexpr std::size_t w = width<Real>;
  auto* point = static_cast<Real*>(kernel_scratch(x.dimension * sizeof(Real)));
  for (std::size_t i = 0; i < x.size; i += w) {
    load_point<Real>(x, i, x.dimension, point);
    const Real value = reward(static_cast<const Real*>(point));
    if (w > 1 && x.size - i < w) {
      alignas(64) Scalar<Real> tail[w];
      store(value, tail);
      for (std::size_t l = 0; l < x.size - i; ++l) out[i + l] = tail[l];
    } else {
      store(value, out + i);
    }
  }
}

// dR/dx_k (x_i), by coordinate: one evaluation for each.
template <Number Real, class R>
[[gnu::flatten, gnu::noinline]] void reward_gradient(const R& reward, const Block<const Scalar<Real>>& x, Scalar<Real>* out) {
  using S = Scalar<Real>;
  const std::size_t d = x.dimension;
  auto* plain = static_cast<Real*>(kernel_scratch(d * (sizeof(Real) + sizeof(Dual<Real>))));
  auto* point = reinterpret_cast<Dual<Real>*>(plain + d);
  for (std::size_t i = 0; i < x.size; i += width<Real>) {
    load_point<Real>(x, i, d, plain);
    for (std::size_t k = 0; k < d; ++k) {
      for (std::size_t j = 0; j < d; ++j) point[j] = {plain[j], Real(S(j == k ? 1 : 0))};
      store(reward(static_cast<const Dual<Real>*>(point)).derivative, out + k * block_size + i);
    }
  }
}

// Kernels over the number type N, chosen by what a pass asks for.
template <Number N, std::size_t D, class P>
void run_pass(const P& v, const Block<Scalar<N>>& x, const Pass<Scalar<N>>& r) {
  if constexpr (D == 0 && requires { v.template evaluate_in<2>(static_cast<const N*>(nullptr), static_cast<N*>(nullptr), static_cast<N*>(nullptr)); }) {
    if (x.dimension == 2) return run_pass<N, 2>(v, x, r);
  }
  if (r.noise && r.sums) return pass<N, D, true, true, false, false>(v, x, r);
  if (r.noise) return pass<N, D, true, false, false, false>(v, x, r);
  if (r.sums) return pass<N, D, false, true, false, false>(v, x, r);
  if (r.values) return pass<N, D, false, false, true, false>(v, x, r);
  if (r.gradient) return pass<N, D, false, false, false, true>(v, x, r);
}

template <Number N, class P>
constexpr PotentialKernels<Scalar<N>, P> make_potential_kernels() {
  PotentialKernels<Scalar<N>, P> k{&run_pass<N, 0, P>, nullptr};
  if constexpr (AnyNumber<P>) k.mixed = &mixed<N, P>;
  return k;
}

template <Number N, class R>
constexpr RewardKernels<Scalar<N>, R> make_reward_kernels() {
  RewardKernels<Scalar<N>, R> k{&reward_values<N, R>, nullptr};
  if constexpr (AnyNumber<R>) k.gradient = &reward_gradient<N, R>;
  return k;
}

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace kernel

inline namespace IMPLICIT_DIFFUSION_LEVEL {

// The number type of the kernels of T on populations of Real.
template <class Real, class T>
using KernelNumber = std::conditional_t<std::is_same_v<Real, float> && AnyNumber<T>, Lanes, Real>;

// The kernels of a potential or reward of a user's: compiled here. The built-in ones have overloads, declared with them, that choose
// among the levels.
template <class Real, class P>
const PotentialKernels<Real, P>& potential_kernels(const P&) {
  static constexpr PotentialKernels<Real, P> kernels = kernel::make_potential_kernels<KernelNumber<Real, P>, P>();
  return kernels;
}
template <class Real, class R>
const RewardKernels<Real, R>& reward_kernels(const R&) {
  static constexpr RewardKernels<Real, R> kernels = kernel::make_reward_kernels<KernelNumber<Real, R>, R>();
  return kernels;
}

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace implicit_diffusion
