// Kernels: one pass over a block of samples, written once for every number type.
//
// A pass evaluates a potential once for each sample and takes from that all that is asked for: values, gradients, the
// Langevin step, and the sums that every gradient estimator is made of,
//
//     sum_i f_i,     sum_i grad_theta V(x_i),     sum_i f_i grad_theta V(x_i)
//
// with a signal f that is given sample by sample and may include a share of V itself. All inputs are read before the
// sample moves, so in the paper's order of the single loop one pass does both of its lines.
//
// One pass asks for a step, for sums, for both, or for values or gradients alone.
//
// The kernels run on 16 lanes. The same text on a plain float takes the lanes one after the other and gives the same
// bits; on double it is the reference. Built-in potentials and rewards have their kernels compiled for each level
// (src/langevin/kernels.cpp); those of a user are compiled with the user's file, at the level of its compiler options.
//
// The file is long because the stages of one pass share what they leave in the cache: apart they could not be read.
#pragma once

#include "implicit_diffusion/groups.hpp"
#include "implicit_diffusion/simd/dual.hpp"

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace implicit_diffusion {

// True for a potential or reward that accepts every number type of the library.
template <class T>
concept AnyNumber = requires {
  requires T::any_number;
};

// What a pass is asked for; what is null is not asked for. Arrays of samples have room for whole groups of 16.
template <class Real>
struct Pass {
  // The step x <- x + scale z - step grad_x V, with z as Noise::normals lays it out.
  const float* noise = nullptr;
  Real step = 0, scale = 0;
  bool* nonfinite = nullptr;  // set where a sample is no longer finite; must be given with the noise
  // The sums: 1 + 2p numbers are added to. f_i = signal[i] + shift + value_share V(x_i); a pass that does
  // not move may go without a signal, then only the middle p are.
  double* sums = nullptr;
  const Real* signal = nullptr;
  Real shift = 0, value_share = 0;
  // V(x_i) and dV/dx_j (x_i), the latter by coordinate: [j * block_size + i].
  Real* values = nullptr;
  Real* gradient = nullptr;
};

// The kernels of one potential or reward, for a population of Real (float or double).
template <class Real, class P>
struct PotentialKernels {
  using Part = P;
  using Number = Real;
  void (*pass)(const P&, const Block<Real>&, const Pass<Real>&);
  void (*mixed)(const P&, const Block<const Real>&, const Real*, double*);  // null where there is none
};
template <class Real, class R>
struct RewardKernels {
  using Part = R;
  using Number = Real;
  void (*add)(const R&, const Block<const Real>&, Real lambda, Real*);  // adds lambda R(x_i)
  void (*gradient)(const R&, const Block<const Real>&, Real*);          // null where there is none
};

namespace kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {

// Calls the potential with its dimension as a constant where it offers that.
template <std::size_t D, class P, class Real>
[[gnu::always_inline]] inline Real evaluate(const P& v, const Real* x, Real* grad_x, Real* grad_theta) {
  if constexpr (D > 0 && requires { v.template evaluate_in<D>(x, grad_x, grad_theta); })
    return v.template evaluate_in<D>(x, grad_x, grad_theta);
  else
    return v.evaluate(x, grad_x, grad_theta);
}

// Whether a potential can be evaluated in two parts: its terms t_j(x), one for each parameter, and all the rest from
// these; and has dV/dtheta_j = shift(j) + factor(j) s t_j with a common factor s. Then the kernel sums s t_j; shift and
// factor are applied to the sums. It may offer near_terms<D>(x, first, groups, out) as well: the terms of full groups,
// term by term, where that takes fewer registers (v3 has 16); it returns false where it does not do them.
template <class P, class Real, std::size_t D>
concept OffersTerms = requires(const P& v, const Real* x, Real* out, Real& s) {
  v.template terms<D>(x, out);
  { v.template from_terms<D>(x, x, out, s) } -> std::convertible_to<Real>;  // V, from x and t; writes dV/dx and s
  v.shift(std::size_t{});
  v.factor(std::size_t{});
};

// The terms of the next groups of a block, p for each, and their points where D is 0. A function of its own: every pass
// has the same.
template <Number Real, std::size_t D, class P>
[[gnu::flatten, gnu::noinline]] void write_terms(const P& v, const Block<Scalar<Real>>& samples, std::size_t first,
                                                 std::size_t at_once, Real* points, Real* terms) {
  const Block<Scalar<Real>> x = samples;
  const std::size_t d = D ? D : x.dimension, p = v.parameters();
  const auto group = [&]<bool last>(std::size_t i, std::size_t place, std::bool_constant<last>)
      __attribute__((always_inline)) {
    Real fixed_point[D ? D : 1];
    Real* point = D ? fixed_point : points + place * d;
    load_point<Real, last>(x, i, d, point);
    v.template terms<D>(static_cast<const Real*>(point), terms + place * p);
  };
  if constexpr (D > 0 && native_parts == 2 && width<Real> == lanes_per_group &&
                requires { v.template near_terms<D>(x, first, at_once, terms); }) {
    const std::size_t left = (x.size - first) / lanes_per_group, full = left < at_once ? left : at_once;
    std::size_t place = v.template near_terms<D>(x, first, full, terms) ? full : 0;
    // What is left is seldom much: the form for a last group serves for full ones too, and is the only one to compile.
    for (std::size_t i = first + place * lanes_per_group; place < at_once && i < x.size; ++place, i += lanes_per_group)
      group(i, place, std::true_type{});
  } else {
    in_turn<Real>(first, x.size, at_once, group);
  }
}

// Which of its results a pass is asked for.
enum class Wanted { step, sums, step_and_sums, values, gradient };

// Where lanes are one register of 32 (v4), a potential is evaluated in one go: what is made of some terms is added up
// while others are on their way. For sums it offers terms_and_rest<D>(x, t, dV/dx, s), both parts at once.
template <Number Real, std::size_t D>
inline constexpr bool in_one_go = D > 0 && native_parts == 1 && width<Real> == lanes_per_group;
// For values it offers sum_of_terms<D>(x) and value_of<D>(x, sum): a logarithm takes long, and none waits for another.
template <class P, class Real, std::size_t D>
concept OffersSumOfTerms = in_one_go<Real, D> && requires(const P& v, const Real* x) {
  { v.template value_of<D>(x, v.template sum_of_terms<D>(x)) } -> std::convertible_to<Real>;
};
template <class P, class Real, std::size_t D>
concept OffersBothParts = in_one_go<Real, D> && requires(const P& v, const Real* x, Real* out, Real& s) {
  v.template terms_and_rest<D>(x, out, out, s);
};

// Fixed are the dimension D, where it is not 0, and which of the results are asked for: others cost nothing.
template <Number Real, std::size_t D, Wanted wanted, bool value_share, class P>
[[gnu::flatten, gnu::noinline]] void pass(const P& v, const Block<Scalar<Real>>& samples,
                                          const Pass<Scalar<Real>>& request) {
  using S = Scalar<Real>;
  constexpr std::size_t w = width<Real>;
  constexpr bool move = wanted == Wanted::step || wanted == Wanted::step_and_sums;
  constexpr bool sums = wanted == Wanted::sums || wanted == Wanted::step_and_sums;
  constexpr bool terms = OffersTerms<P, Real, D> && (sums || !in_one_go<Real, D>);
  constexpr bool both_parts = terms && OffersBothParts<P, Real, D>;
  constexpr bool sum_first = wanted == Wanted::values && OffersSumOfTerms<P, Real, D>;
  // Copies: nothing that is stored can change them.
  const Block<S> x = samples;
  const Pass<S> r = request;
  const std::size_t d = D ? D : x.dimension;
  const std::size_t p = sums || terms ? v.parameters() : 0;
  const std::size_t at_once = sums || terms ? groups_at_once(p + (D ? 0 : d), sizeof(Real)) : groups_per_block;

  // A dimension that is not a constant has its points in memory: that of one group or, where there are two parts to
  // share them, those of the groups at once.
  const std::size_t points = terms && D == 0 ? at_once : 1;
  Real* memory =
      D && p == 0
          ? nullptr
          : static_cast<Real*>(kernel_scratch(((points + 1) * d + 2 * p + (2 + p) * at_once) * sizeof(Real) +
                                              2 * p * sizeof(double) + (1 + 2 * p) * lanes_per_group * sizeof(S)));
  Real* slope_memory = memory + points * d;
  Real* sum_theta = slope_memory + d;
  Real* sum_signal_theta = sum_theta + p;
  Real* signal = sum_signal_theta + p;                                  // of the groups at once
  Real* factor = signal + at_once;                                      // s, likewise
  Real* slope_theta = factor + at_once;                                 // p for each
  auto* totals = reinterpret_cast<double*>(slope_theta + at_once * p);  // 2p
  auto* lane_memory = reinterpret_cast<S*>(totals + 2 * p);

  const Real step = Real(-r.step), scale = Real(r.scale), shift = Real(r.shift), share = Real(r.value_share);
  [[maybe_unused]] Real sum_of_terms[sum_first ? groups_per_block : 1];
  Real doubt = Real(S(0));  // 0 x is 0 for finite x and NaN otherwise
  for (std::size_t lane = 0; lane < lanes_per_group; lane += w) {
    Real sum_signal = Real(S(0)), stretch_signal;  // the latter in a register: of the groups at once
    if (lane >= x.size)                            // nothing will be added
      for (std::size_t j = 0; j < 2 * p; ++j) sum_theta[j] = Real(S(0));

    // The samples from i on, one for each lane. `last`: some are missing.
    const auto group = [&]<bool last>(std::size_t i, std::size_t place, std::bool_constant<last>)
        __attribute__((always_inline)) {
      Real fixed_point[D ? D : 1], fixed_slope[D ? D : 1];
      Real* point = D ? fixed_point : terms ? memory + place * d : memory;
      Real* slope = D ? fixed_slope : slope_memory;
      if constexpr (D > 0 || !terms) load_point<Real, last>(x, i, d, point);
      Real* theta = slope_theta + place * p;
      const Real* at = point;
      Real* to = move || wanted == Wanted::gradient ? slope : nullptr;
      Real value, s;
      if constexpr (both_parts)
        value = v.template terms_and_rest<D>(at, theta, to, s);
      else if constexpr (sum_first)
        value = v.template value_of<D>(at, sum_of_terms[place]);
      else if constexpr (terms)
        value = v.template from_terms<D>(at, static_cast<const Real*>(theta), to, s);
      else
        value = evaluate<D>(v, at, to, sums ? theta : nullptr);
      if constexpr (wanted == Wanted::values) store_some<last>(value, r.values + i, x.size - i);
      if constexpr (wanted == Wanted::gradient)
        for (std::size_t j = 0; j < d; ++j) store(slope[j], r.gradient + j * block_size + i);
      if constexpr (sums) {
        Real f = r.signal ? load<Real>(r.signal + i) + shift : Real(S(0));
        if constexpr (value_share)
          if (r.value_share != 0) f = fma(share, value, f);  // 0 times an infinite V would be no number
        if constexpr (last) {
          const auto present = first_lanes(x.size - i, static_cast<Real*>(nullptr));
          f = select(present, f, Real(S(0)));
          if constexpr (terms)
            s = select(present, s, Real(S(0)));
          else
            for (std::size_t j = 0; j < p; ++j) theta[j] = select(present, theta[j], Real(S(0)));
        }
        stretch_signal += f;
        if constexpr (terms) {
          factor[place] = s;
          f = f * s;
        }
        signal[place] = f;
      }
      if constexpr (move)
        for (std::size_t j = 0; j < d; ++j) {
          // Vectors of 16 normals, all coordinates of one group before the next group.
          const float* z = r.noise + (i - lane) * d + j * lanes_per_group + lane;
          Real normal;
          if constexpr (std::is_same_v<S, float>)
            normal = load<Real>(z);
          else
            normal = Real(static_cast<S>(*z));
          const Real moved = fma(step, slope[j], fma(scale, normal, point[j]));
          store(moved, x.data + j * x.stride + i);
          doubt = fma(moved, Real(S(0)), doubt);
        }
    };
    for (std::size_t first = lane; first < x.size; first += at_once * lanes_per_group) {
      if constexpr (terms && !both_parts) write_terms<Real, D>(v, x, first, at_once, memory, slope_theta);
      if constexpr (sum_first)
        in_turn<Real>(
            first, x.size, at_once,
            [&]<bool last>(std::size_t i, std::size_t place, std::bool_constant<last>) __attribute__((always_inline)) {
              Real point[D];
              load_point<Real, last>(x, i, D, point);
              sum_of_terms[place] = v.template sum_of_terms<D>(static_cast<const Real*>(point));
            });
      stretch_signal = sum_signal;
      [[maybe_unused]] const std::size_t count = in_turn<Real>(first, x.size, at_once, group);
      sum_signal = stretch_signal;
      if constexpr (sums) {
        // J sums of each kind at a time, in registers: 12 vectors of 32 (v4), 12 of 16.
        const auto add = [&]<std::size_t J>(std::size_t j, std::integral_constant<std::size_t, J>)
            __attribute__((always_inline)) {
          Real plain[J], with_signal[J];
          if (first == lane)
            for (std::size_t m = 0; m < J; ++m) plain[m] = Real(S(0)), with_signal[m] = Real(S(0));
          else
            for (std::size_t m = 0; m < J; ++m) plain[m] = sum_theta[j + m], with_signal[m] = sum_signal_theta[j + m];
          for (std::size_t k = 0; k < count; ++k) {
            const Real f = signal[k];
            for (std::size_t m = 0; m < J; ++m) {
              const Real t = slope_theta[k * p + j + m];
              if constexpr (terms)
                plain[m] = fma(factor[k], t, plain[m]);
              else
                plain[m] += t;
              with_signal[m] = fma(f, t, with_signal[m]);
            }
          }
          for (std::size_t m = 0; m < J; ++m) sum_theta[j + m] = plain[m], sum_signal_theta[j + m] = with_signal[m];
        };
        in_pieces<native_parts == 1 ? 6 : native_parts == 2 ? 3 : 1>(p, add);
      }
    }

    if constexpr (sums) {
      LaneSums<Real> out(lane_memory, lane);
      const double signal_before = r.sums[0];
      const Real all_signals = sum_signal;  // the copy has an address, so that the sum itself can be in a register
      out.put(0, &all_signals, 1, [&](std::size_t, double total) { r.sums[0] += total; });
      [[maybe_unused]] const double n = static_cast<double>(x.size), f = r.sums[0] - signal_before;
      bool complete = false;
      out.put(
          1, sum_theta, 2 * p, [&](std::size_t k, double total) __attribute__((always_inline)) {
            totals[k] = total;
            complete = true;
          });
      if (complete)
        for (std::size_t j = 0; j < p; ++j) {
          double plain = totals[j], with_signal = totals[p + j];
          if constexpr (terms) {
            plain = v.factor(j) * plain + n * v.shift(j);
            with_signal = v.factor(j) * with_signal + f * v.shift(j);
          }
          r.sums[1 + j] += plain;
          r.sums[1 + p + j] += with_signal;
        }
    }
  }
  if constexpr (move)
    if (any(doubt != doubt)) *r.nonfinite = true;
}

// The mixed derivative: adds sum_i (d/dx grad_theta V)(x_i) . u_i, u by coordinate.
template <Number Real, class P>
[[gnu::flatten, gnu::noinline]] void mixed(const P& v, const Block<const Scalar<Real>>& x, const Scalar<Real>* u,
                                           double* sums) {
  using S = Scalar<Real>;
  constexpr std::size_t w = width<Real>;
  const std::size_t d = x.dimension, p = v.parameters();
  auto* point = static_cast<Dual<Real>*>(
      kernel_scratch((d + p) * sizeof(Dual<Real>) + (d + p) * sizeof(Real) + p * lanes_per_group * sizeof(S)));
  Dual<Real>* slope = point + d;
  Real* plain = reinterpret_cast<Real*>(slope + p);
  Real* sum_theta = plain + d;
  auto* lane_memory = reinterpret_cast<S*>(sum_theta + p);

  for (std::size_t lane = 0; lane < lanes_per_group; lane += w) {
    for (std::size_t j = 0; j < p; ++j) sum_theta[j] = Real(S(0));
    const auto group = [&]<bool last>(std::size_t i, std::bool_constant<last>) __attribute__((always_inline)) {
      load_point<Real, last>(x, i, d, plain);
      for (std::size_t j = 0; j < d; ++j) point[j] = {plain[j], load<Real>(u + j * block_size + i)};
      v.evaluate(static_cast<const Dual<Real>*>(point), static_cast<Dual<Real>*>(nullptr), slope);
      for (std::size_t j = 0; j < p; ++j) {
        Real part = slope[j].along(0);
        if constexpr (last) part = select(first_lanes(x.size - i, static_cast<Real*>(nullptr)), part, Real(S(0)));
        sum_theta[j] += part;
      }
    };
    std::size_t i = lane;
    for (; i + w <= x.size; i += lanes_per_group) group(i, std::false_type{});
    if constexpr (w > 1)
      if (i < x.size) group(i, std::true_type{});
    LaneSums<Real> out(lane_memory, lane);
    out.put(0, sum_theta, p, [&](std::size_t j, double total) { sums[j] += total; });
  }
}

// f_i + lambda R(x_i), in place. D is the dimension where it is a constant and the reward offers to take it as one,
// else 0.
template <Number Real, std::size_t D, class R>
[[gnu::flatten, gnu::noinline]] void add_rewards(const R& reward, const Block<const Scalar<Real>>& samples,
                                                 Scalar<Real> lambda, Scalar<Real>* f) {
  if constexpr (D == 0 && in_full && requires(const Real* p) { reward.template operator()<2>(p); }) {
    if (samples.dimension == 2) return add_rewards<Real, 2>(reward, samples, lambda, f);
  }
  const Block<const Scalar<Real>> x = samples;
  Real fixed[D ? D : 1];
  Real* point = D ? fixed : static_cast<Real*>(kernel_scratch(x.dimension * sizeof(Real)));
  const Real scale = Real(lambda);
  for_each_group<Real>(
      x.size, [&]<bool last>(std::size_t i, std::bool_constant<last>) __attribute__((always_inline)) {
        load_point<Real, last>(x, i, D ? D : x.dimension, point);
        Real before;
        if constexpr (last) {
          alignas(64) Scalar<Real> lane[width<Real>] = {};
          for (std::size_t l = 0; l < x.size - i; ++l) lane[l] = f[i + l];
          before = load<Real>(lane);
        } else {
          before = load<Real>(f + i);
        }
        const Real* at = point;
        Real value;
        if constexpr (D > 0)
          value = reward.template operator()<D>(at);
        else
          value = reward(at);
        store_some<last>(fma(scale, value, before), f + i, x.size - i);
      });
}

// dR/dx_k (x_i), by coordinate: one evaluation for each.
template <Number Real, class R>
[[gnu::flatten, gnu::noinline]] void reward_gradient(const R& reward, const Block<const Scalar<Real>>& x,
                                                     Scalar<Real>* out) {
  using S = Scalar<Real>;
  const std::size_t d = x.dimension;
  auto* plain = static_cast<Real*>(kernel_scratch(d * (sizeof(Real) + sizeof(Dual<Real>))));
  auto* point = reinterpret_cast<Dual<Real>*>(plain + d);
  for_each_group<Real>(
      x.size, [&]<bool last>(std::size_t i, std::bool_constant<last>) __attribute__((always_inline)) {
        load_point<Real, last>(x, i, d, plain);
        for (std::size_t k = 0; k < d; ++k) {
          for (std::size_t j = 0; j < d; ++j) point[j] = {plain[j], Real(S(j == k ? 1 : 0))};
          store(reward(static_cast<const Dual<Real>*>(point)).along(0), out + k * block_size + i);
        }
      });
}

// Kernels over the number type Real, chosen by what a pass asks for.
template <Number Real, std::size_t D, class P>
void run_pass(const P& v, const Block<Scalar<Real>>& x, const Pass<Scalar<Real>>& r) {
  if constexpr (D == 0 && requires { P::fixed_dimension; }) {
    return run_pass<Real, P::fixed_dimension>(v, x, r);
  } else if constexpr (D == 0 && in_full && requires(Real * p) { v.template evaluate_in<2>(p, p, p); }) {
    if (x.dimension == 2) return run_pass<Real, 2>(v, x, r);
    const auto joint_in = [&]<std::size_t... Ds>(std::index_sequence<Ds...>) {
      return ((x.dimension == Ds && (pass<Real, Ds, Wanted::step_and_sums, false>(v, x, r), true)) || ...);
    };
    if (r.noise && r.sums && r.value_share == 0 && joint_in(std::index_sequence<1, 3, 4>())) return;
  }
  if (r.noise && r.sums) {
    if (r.value_share == 0) return pass<Real, D, Wanted::step_and_sums, false>(v, x, r);
    return pass<Real, D, Wanted::step_and_sums, true>(v, x, r);
  }
  if (r.noise) return pass<Real, D, Wanted::step, false>(v, x, r);
  if (r.sums) return pass<Real, D, Wanted::sums, true>(v, x, r);
  if (r.values) return pass<Real, D, Wanted::values, false>(v, x, r);
  if (r.gradient) return pass<Real, D, Wanted::gradient, false>(v, x, r);
}

// Fills in the kernels of a part, over the number type N.
template <Number N, class P>
constexpr PotentialKernels<Scalar<N>, P> over(PotentialKernels<Scalar<N>, P> k) {
  k.pass = &run_pass<N, 0, P>;
  if constexpr (AnyNumber<P>) k.mixed = &mixed<std::conditional_t<in_full, N, Scalar<N>>, P>;
  return k;
}
template <Number N, class R>
constexpr RewardKernels<Scalar<N>, R> over(RewardKernels<Scalar<N>, R> k) {
  k.add = &add_rewards<N, 0, R>;
  if constexpr (AnyNumber<R>) k.gradient = &reward_gradient<std::conditional_t<in_full, N, Scalar<N>>, R>;
  return k;
}

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace kernel

// True for a potential or reward that comes with the library (src/langevin/builtin.hpp): its kernels are there, for
// each level. A type that derives from one is the user's own, as what it overrides is not in them.
template <class T>
concept IsBuiltIn = std::same_as<typename T::BuiltIn, T>;
template <class Kernels>
const Kernels& builtin_kernels();

inline namespace IMPLICIT_DIFFUSION_LEVEL {

// What keeps the kernels of a user's type from the speed of the built-in ones; null where nothing does.
template <class Real, class T>
constexpr const char* speed_note_of() {
  constexpr bool is_users = !IsBuiltIn<T> && std::is_same_v<Real, float>;
  if (is_users && !AnyNumber<T>)
    return "runs one sample at a time; a template over the number type that says any_number = true runs on 16";
  if (is_users && !kernel::in_full)
    return "was compiled without AVX2; -march=native or -march=x86-64-v3 makes it several times as fast";
  return nullptr;
}

// The kernels of a part: PotentialKernels<Real, P> or RewardKernels<Real, R>. Those of a user's are compiled here.
template <class Kernels>
const Kernels& kernels_of_part() {
  using Part = typename Kernels::Part;
  using Real = typename Kernels::Number;
  if constexpr (IsBuiltIn<Part>) {
    return builtin_kernels<Kernels>();
  } else {
    using N = std::conditional_t<std::is_same_v<Real, float> && AnyNumber<Part>, Lanes, Real>;
    static constexpr Kernels kernels = kernel::over<N>(Kernels{});
    return kernels;
  }
}

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace implicit_diffusion
