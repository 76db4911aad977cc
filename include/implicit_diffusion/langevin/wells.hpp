// Mixtures of equal wells: centres c_1, ..., c_n, a common width q, and a weight for each well that depends on theta.
//
//     V(x, theta) = -log sum_i w_i(theta) exp(-|x - c_i|^2 / q)
//
// q = 2 is the unit covariance of the authors' program; q = 1 is the paper's formula (covariance I/2).
//
//   SoftmaxWells     w = softmax(theta)                    grad_theta_i = w_i - r_i          Z does not depend on theta
//   LogisticWells    w_i = e + (1 - e) sigmoid(theta_i)    grad_theta_i = -r_i w_i' / w_i    Z is proportional to the
//                                                                                            sum of the w_i
//
// with the responsibilities r_i = w_i exp(-|x - c_i|^2 / q) / sum_j (the same), and for both
//
//     grad_x V = (2 / q) (x - sum_i r_i c_i)
//
// Near the origin it is evaluated as V = |x|^2 / q - log sum_i exp(a_i . x + b_i), a_i = 2 c_i / q, b_i = log w_i -
// |c_i|^2 / q: linear forms instead of distances, in powers of two, with no maximum to subtract. Linear forms lose
// digits where |x|^2 / q is large; there, beyond a radius that update_radius() chooses, it is V = -logsumexp_i(log w_i
// - |x - c_i|^2 / q), twice as slow, right for wells anywhere as long as |x - c_i|^2 / q keeps digits for what tells
// the wells apart.
#pragma once

#include "implicit_diffusion/langevin/constants.hpp"
#include "implicit_diffusion/langevin/kernel.hpp"
#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <cstddef>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

// What the two share: everything but how the weights depend on theta.
class EqualWells {
 public:
  static constexpr bool any_number = true;

  // Throws an Error unless there is a centre, all have the same dimension, and q is positive.
  EqualWells(std::vector<std::vector<double>> centres, double q);

  std::size_t dimension() const { return dimension_; }
  std::size_t parameters() const { return size_; }

  // V in two parts. First the terms e_i of the sum, one for each well; D is the dimension, 0 where it is not a
  // constant.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] void terms(const Real* x, Real* e) const {
    const Reach<Real> reach = find_reach<D>(x);
    if (reach.some_far) [[unlikely]] {
      for (std::size_t i = 0; i < size_; ++i) e[i] = term<D>(x, i, reach);
    } else {
      kernel::in_pieces<pieces<Real, 6, D ? 1 : 3>>(
          size_, [&]<std::size_t N>(std::size_t i, std::integral_constant<std::size_t, N>)
                     __attribute__((always_inline)) {
                       const std::size_t d = D ? D : dimension_;
                       Real sum[N];
                       for (std::size_t k = 0; k < N; ++k) sum[k] = Real(offset_.of<Real>()[i + k]);
                       const auto* slope = slope_.of<Real>() + i * d;
                       for (std::size_t j = 0; j < d; ++j)
                         for (std::size_t k = 0; k < N; ++k) sum[k] = fma(x[j], Real(slope[k * d + j]), sum[k]);
                       for (std::size_t k = 0; k < N; ++k) e[i + k] = exp2_fixed(sum[k]);
                     });
    }
  }
  // The terms of full groups, well by well, so that the constants of the well and of the exponential stay in 16
  // registers. Where a sample is far, none.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] bool near_terms(const Block<Scalar<Real>>& x, std::size_t first, std::size_t groups,
                                         Real* e) const {
    Real point[D], slope[D];
    Real distance = Real(0);
    for (std::size_t k = 0; k < groups; ++k) {
      kernel::load_point<Real, false>(x, first + k * lanes_per_group, D, point);
      distance = max(distance_of<D>(point), distance);
    }
    if (any_above(distance, Real(scale_.of<Real>()[2]))) return false;
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j < D; ++j) slope[j] = Real(slope_.of<Real>()[i * D + j]);
      const Real offset = Real(offset_.of<Real>()[i]);
      for (std::size_t k = 0; k < groups; ++k) {
        kernel::load_point<Real, false>(x, first + k * lanes_per_group, D, point);
        Real sum = offset;
        for (std::size_t j = 0; j < D; ++j) sum = fma(point[j], slope[j], sum);
        e[k * size_ + i] = exp2_fixed(sum);
      }
    }
    return true;
  }
  // From them V, which is returned, dV/dx unless it is null, and s: e_i s is the responsibility of a well.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real from_terms(const Real* x, const Real* e, Real* grad_x, Real& s) const {
    if constexpr (D == 0)
      return sum_up_in_pieces(x, e, grad_x, s);
    else
      return sum_up<D>(
          x, grad_x, s, [&](std::size_t i) __attribute__((always_inline))->const Real& { return e[i]; });
  }
  // Both parts in one go.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real terms_and_rest(const Real* x, Real* e, Real* grad_x, Real& s) const {
    const Reach<Real> reach = find_reach<D>(x);
    if (!reach.some_far) [[likely]]
      return near_in_one_go<D>(x, e, grad_x, s);
    for (std::size_t i = 0; i < size_; ++i) e[i] = term<D>(x, i, reach);
    return from_terms<D>(x, static_cast<const Real*>(e), grad_x, s);
  }

  // The sum of the terms, and from it V.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real sum_of_terms(const Real* x) const {
    const Reach<Real> reach = find_reach<D>(x);
    Real total = Real(0);
    if (!reach.some_far) [[likely]]
      sum_near_terms<D>(x, static_cast<Real*>(nullptr), total, static_cast<Real*>(nullptr));
    else
      for (std::size_t i = 0; i < size_; ++i) total += term<D>(x, i, reach);
    return total;
  }
  // Which is a normal number: near the wells every term is (update_radius), far from them the largest term is 1.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real value_of(const Real* x, const Real& total) const {
    const auto* scale = scale_.of<Real>();
    Real square = Real(0);
    for (std::size_t j = 0; j < (D ? D : dimension_); ++j) square = fma(x[j], x[j], square);
    const Real log_total = log_positive(total);
    const Real near_value = fma(Real(scale[1]), square, -log_total);
    const Reach<Real> reach = find_reach<D>(x);
    if (!reach.some_far) return near_value;
    return select(reach.far(), -fma(reach.top, Real(scale[3]), log_total), near_value);
  }

  // Far from all wells V is a parabola of curvature 2/q.
  std::optional<double> largest_stable_step() const { return q_; }

 protected:
  // log w_i = log_weight(i).
  template <class F>
  void set_log_weights(F&& log_weight) {
    log_weight_.fill(size_, [&](std::size_t i) { return log_weight(i) * unit; });
    offset_.fill(size_, [&](std::size_t i) { return log_weight_.exact()[i] - squares_[i] / q_ * unit; });
    update_radius();
  }
  // Both parts at once; dV/dtheta_i = slope(i, e_i, s).
  template <std::size_t D, class Real, class Slope>
  [[gnu::always_inline]] Real evaluate_with(const Real* x, Real* grad_x, Real* grad_theta, const Slope& slope) const {
    Real s;
    if (!grad_theta) {  // there is no place for the terms
      const Reach<Real> reach = find_reach<D>(x);
      if constexpr (kernel::in_one_go<Real, D>)
        if (!reach.some_far) [[likely]]
          return near_in_one_go<D>(x, static_cast<Real*>(nullptr), grad_x, s);
      return sum_up<D>(
          x, grad_x, s, [&](std::size_t i) __attribute__((always_inline)) { return term<D>(x, i, reach); });
    }
    terms<D>(x, grad_theta);
    const Real value = from_terms<D>(x, static_cast<const Real*>(grad_theta), grad_x, s);
    for (std::size_t i = 0; i < size_; ++i) grad_theta[i] = slope(i, grad_theta[i], s);
    return value;
  }
  // With these weights, normalised.
  GaussianMixture law_of(std::span<const double> weights) const;

 private:
  // From natural logarithms to the units of exp2_fixed().
  static constexpr double unit = std::numbers::log2e * exp2_unit;
  // Sums to take at a time, where lanes are one register or two.
  template <class Real, std::size_t one, std::size_t two>
  static constexpr std::size_t pieces = !std::is_same_v<Real, Lanes> || native_parts > 2 ? 1
                                        : native_parts == 1                              ? one
                                                                                         : two;
  void update_radius();

  // a_i . x + b_i, in the units of exp2_fixed().
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real line(const Real* x, std::size_t i) const {
    const std::size_t d = D ? D : dimension_;
    Real sum = Real(offset_.of<Real>()[i]);
    for (std::size_t j = 0; j < d; ++j) sum = fma(x[j], Real(slope_.of<Real>()[i * d + j]), sum);
    return sum;
  }
  // log w_i - |x - c_i|^2 / q, in the same units.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real parabola(const Real* x, std::size_t i) const {
    const std::size_t d = D ? D : dimension_;
    const auto* c = centre_.of<Real>() + i * d;
    Real square = Real(0);
    for (std::size_t j = 0; j < d; ++j) square = fma(x[j] - c[j], x[j] - c[j], square);
    return fma(square, Real(scale_.of<Real>()[4]), Real(log_weight_.of<Real>()[i]));
  }

  // Which samples are beyond the radius, and the highest of their parabolas. Each sample goes its own way, whatever its
  // neighbours do.
  template <class Real>
  struct Reach {
    Real distance, radius;
    bool some_far;
    Real top;

    [[gnu::always_inline]] auto far() const { return distance > radius; }
  };
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real distance_of(const Real* x) const {
    Real distance = abs(x[0]);
    for (std::size_t j = 1; j < (D ? D : dimension_); ++j) distance = max(distance, abs(x[j]));
    return distance;
  }
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Reach<Real> find_reach(const Real* x) const {
    const Real distance = distance_of<D>(x);
    const Real radius = Real(scale_.of<Real>()[2]);
    const bool some_far = any_above(distance, radius);
    Real top = Real(0);
    if (some_far) [[unlikely]] {
      top = parabola<D>(x, 0);
      for (std::size_t i = 1; i < size_; ++i) top = max(top, parabola<D>(x, i));
    }
    return {distance, radius, some_far, top};
  }
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real term(const Real* x, std::size_t i, const Reach<Real>& reach) const {
    return exp2_fixed(select(reach.far(), max(parabola<D>(x, i) - reach.top, Real(exp2_lowest<Real>)), line<D>(x, i)));
  }

  template <std::size_t D, class Real, class Term>
  [[gnu::always_inline]] Real sum_up(const Real* x, Real* grad_x, Real& s, const Term& term_of) const {
    const std::size_t d = D ? D : dimension_;
    const auto* slope = slope_.of<Real>();
    Real total = Real(0);
    Real fixed_pull[D ? D : 1];  // sum_i e_i a_i
    Real* pull = D ? fixed_pull : grad_x;
    if (grad_x)
      for (std::size_t j = 0; j < d; ++j) pull[j] = Real(0);
#pragma GCC unroll 2
    for (std::size_t i = 0; i < size_; ++i) {
      const Real& e = term_of(i);
      total += e;
      if (grad_x)
        for (std::size_t j = 0; j < d; ++j) pull[j] = fma(e, Real(slope[i * d + j]), pull[j]);
    }
    return finish<D>(x, total, pull, grad_x, s);
  }
  // s, dV/dx and V from sum_i e_i and sum_i e_i a_i.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real finish(const Real* x, const Real& total, const Real* pull, Real* grad_x, Real& s) const {
    const auto* scale = scale_.of<Real>();
    s = Real(1) / total;
    if (grad_x) {
      const Real inverse_slope = s * scale[3];
      for (std::size_t j = 0; j < (D ? D : dimension_); ++j)
        grad_x[j] = fma(Real(scale[0]), x[j], -(pull[j] * inverse_slope));
    }
    return value_of<D>(x, total);
  }
  // The same where no sample is far.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real near_in_one_go(const Real* x, Real* e, Real* grad_x, Real& s) const {
    Real total, pull[D];
    sum_near_terms<D>(x, e, total, grad_x ? pull : nullptr);
    return finish<D>(x, total, pull, grad_x, s);
  }
  // The sums of e_i and, unless pull is null, of e_i a_i, some terms at a time; they are written unless e is null.
  template <std::size_t D, class Real>
  [[gnu::always_inline]] void sum_near_terms(const Real* x, Real* e, Real& total, Real* pull) const {
    const auto* slope = slope_.of<Real>();
    total = Real(0);
    for (std::size_t j = 0; pull && j < D; ++j) pull[j] = Real(0);
    const auto some = [&]<std::size_t N>(std::size_t i, std::integral_constant<std::size_t, N>)
        __attribute__((always_inline)) {
      Real term[N];
      for (std::size_t k = 0; k < N; ++k) term[k] = Real(offset_.of<Real>()[i + k]);
      for (std::size_t j = 0; j < D; ++j)
        for (std::size_t k = 0; k < N; ++k) term[k] = fma(x[j], Real(slope[(i + k) * D + j]), term[k]);
      for (std::size_t k = 0; k < N; ++k) term[k] = exp2_fixed(term[k]);
      for (std::size_t k = 0; k < N; ++k) {
        if (e) e[i + k] = term[k];
        total += term[k];
        for (std::size_t j = 0; pull && j < D; ++j) pull[j] = fma(term[k], Real(slope[(i + k) * D + j]), pull[j]);
      }
    };
    kernel::in_pieces<pieces<Real, 6, 1>>(size_, some);
  }
  // The same from terms in memory, for a dimension that is not a constant: a few coordinates at a time.
  template <class Real>
  [[gnu::always_inline]] Real sum_up_in_pieces(const Real* x, const Real* e, Real* grad_x, Real& s) const {
    const auto* slope = slope_.of<Real>();
    const auto* scale = scale_.of<Real>();
    Real total = Real(0);
    for (std::size_t i = 0; i < size_; ++i) total += e[i];
    s = Real(1) / total;
    const Real inverse_slope = s * scale[3];
    const auto some = [&]<std::size_t N>(std::size_t j, std::integral_constant<std::size_t, N>)
        __attribute__((always_inline)) {
      Real pull[N];
      for (std::size_t k = 0; k < N; ++k) pull[k] = Real(0);
      for (std::size_t i = 0; i < size_; ++i)
        for (std::size_t k = 0; k < N; ++k) pull[k] = fma(e[i], Real(slope[i * dimension_ + j + k]), pull[k]);
      for (std::size_t k = 0; k < N; ++k) grad_x[j + k] = fma(Real(scale[0]), x[j + k], -(pull[k] * inverse_slope));
    };
    if (grad_x) kernel::in_pieces<pieces<Real, 4, 4>>(dimension_, some);
    return value_of<0>(x, total);
  }
  std::size_t dimension_, size_;
  double q_;
  std::vector<std::vector<double>> centres_;
  std::vector<double> squares_;    // |c_i|^2
  std::vector<double> steepness_;  // |a_i|_1, in powers of two
  double highest_ = 0;             // for a term, as a power of two
  Constants centre_;               // c_i, n x d
  Constants slope_;                // a_i, n x d, in the units of exp2_fixed()
  Constants log_weight_;           // log w_i, likewise
  Constants offset_;               // b_i, likewise
  Constants scale_;  // 2/q, 1/q, the radius, what turns those units into logarithms, and -1/q in those units
};

class SoftmaxWells : public EqualWells {
 public:
  using BuiltIn = SoftmaxWells;
  using EqualWells::EqualWells;

  void prepare(std::span<const double> theta);

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    return evaluate_in<0>(x, grad_x, grad_theta);
  }
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real evaluate_in(const Real* x, Real* grad_x, Real* grad_theta) const {
    return evaluate_with<D>(
        x, grad_x, grad_theta, [&](std::size_t i, const Real& e, const Real& s) __attribute__((always_inline)) {
          return fma(-e, s, Real(weight_.of<Real>()[i]));
        });
  }
  // dV/dtheta_i = w_i - s e_i.
  double shift(std::size_t i) const { return weight_.exact()[i]; }
  double factor(std::size_t /*i*/) const { return -1; }

  GaussianMixture law(std::span<const double> theta) const;

 private:
  Constants weight_;  // softmax(theta)
};

class LogisticWells : public EqualWells {
 public:
  using BuiltIn = LogisticWells;

  // e = floor, the smallest weight, in (0, 1).
  LogisticWells(std::vector<std::vector<double>> centres, double q, double floor);

  void prepare(std::span<const double> theta);

  template <class Real>
  [[gnu::always_inline]] Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    return evaluate_in<0>(x, grad_x, grad_theta);
  }
  template <std::size_t D, class Real>
  [[gnu::always_inline]] Real evaluate_in(const Real* x, Real* grad_x, Real* grad_theta) const {
    return evaluate_with<D>(
        x, grad_x, grad_theta, [&](std::size_t i, const Real& e, const Real& s) __attribute__((always_inline)) {
          return -(log_slope_.of<Real>()[i] * (e * s));
        });
  }
  // dV/dtheta_i = -(w_i' / w_i) s e_i.
  double shift(std::size_t /*i*/) const { return 0; }
  double factor(std::size_t i) const { return -log_slope_.exact()[i]; }

  GaussianMixture law(std::span<const double> theta) const;

 private:
  double floor_;
  Constants log_slope_;  // w_i' / w_i
};

// log sum_i e^t_i and softmax(t), in double precision, the same bits on every machine.
double log_sum_exp(std::span<const double> t);
std::vector<double> softmax(std::span<const double> t);

}  // namespace implicit_diffusion
