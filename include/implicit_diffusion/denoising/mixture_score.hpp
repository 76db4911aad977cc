// The score of a Gaussian mixture on its way through the noise: data sum_i w_i N(m_i, S_i) has, at noise time tau, the
// law
//
//     sum_i w_i N(a m_i, C_i),     C_i = a^2 S_i + (1 - a^2) I,     a = e^-tau
//
// so that with P_i = C_i^-1, g_i = -P_i (y - a m_i) and responsibilities r_i
//
//     s = sum_i r_i g_i
//     s_y' c = sum_i r_i (d_i g_i - P_i c),                         d_i = g_i . c - s . c
//
// and c . s has the derivatives
//
//     by the logit of w_i     r_i d_i
//     by a m_i                r_i (P_i c - d_i g_i)
//     by C_i                  r_i (d_i (g_i g_i' - P_i) / 2 - sym(P_i c g_i'))
//
// Where P_i = p_i I there is less to do. With u_i = a m_i - y, w_i = r_i d_i and q_i = r_i c - w_i u_i
//
//     s_y' c = -sum_i p_i q_i,     by a m_i: p_i q_i,
//     by C_i = v I: p_i (w_i p_i |u_i|^2 - 2 r_i s . c) / 2 - p_i (d / 2 + 1) w_i
//
// and what is constant is multiplied after summing over samples. d_i is small where one component is nearly all, far
// from it too: there it is the difference of two roundings of the same number, and exactly 0 where e_i = 1.
//
// theta = (logits, means, spreads). A spread is
//
//     isotropic     log of the standard deviation                                 S_i = e^(2 rho_i) I
//     diagonal      the same for each coordinate
//     cholesky      the lower triangle of L_i, row by row, with the logarithm of its diagonal: S_i = L_i L_i'
//
// all positive definite at every theta.
#pragma once

#include "implicit_diffusion/denoising/score_model.hpp"
#include "implicit_diffusion/langevin/constants.hpp"
#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

enum class Spread { isotropic, diagonal, cholesky };

template <Spread form>
class MixtureScore {
 public:
  static constexpr std::size_t most_components = 64, largest_dimension = 16;

  // Throws a usage Error beyond these.
  MixtureScore(std::size_t components, std::size_t dimension);

  std::size_t components() const { return n_; }
  std::size_t dimension() const { return d_; }
  std::size_t parameters() const { return n_ * (1 + d_ + spread_size()); }
  std::size_t spread_size() const {
    return form == Spread::isotropic ? 1 : form == Spread::diagonal ? d_ : d_ * (d_ + 1) / 2;
  }
  // Where in theta mean and spread of component i begin.
  std::size_t mean_at(std::size_t i) const { return n_ + i * d_; }
  std::size_t spread_at(std::size_t i) const { return n_ * (1 + d_) + i * spread_size(); }

  void prepare(std::span<const double> theta) { theta_.assign(theta.begin(), theta.end()); }

  // The first parameter that single precision has no room for: a mean beyond 1e15, a standard deviation beyond 1e15 or
  // below 1e-15, a factor's entry beyond 1e15. An optimizer that comes there has diverged.
  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const;

  // The law of the data at a theta, and the theta of a law. The latter throws a usage Error where it is not of this
  // form.
  GaussianMixture law(std::span<const double> theta) const;
  std::vector<double> parameters_of(const GaussianMixture& law) const;

  class NoiseLevel;
  NoiseLevel level(double tau) const;

 private:
  std::size_t n_, d_;
  std::vector<double> theta_;
};

template <Spread form>
class MixtureScore<form>::NoiseLevel {
 public:
  // The score, in one way over the components.
  template <class N, std::size_t D>
  [[gnu::always_inline]] void score(const N* y, N* s) const {
    sweep<D>(y, s, static_cast<N*>(nullptr));
  }

  // Noted for the products: the terms e_i, with r_i = e_i inverse, inverse = 1 / sum_i e_i, and the score.
  std::size_t work_size() const { return n_ + 1 + d_; }
  template <class N, std::size_t D>
  [[gnu::always_inline]] void keep_work(const N* y, N* work) const {
    work[n_] = sweep<D>(y, work + n_ + 1, work);
  }

  template <class N, std::size_t D>
  struct Point {
    const NoiseLevel* level;
    const N* y;
    const N* e;
    N inverse;

    [[gnu::always_inline]] void score(N* s) const {
      const std::size_t d = D ? D : level->d_;
      for (std::size_t j = 0; j < d; ++j) s[j] = e[level->n_ + 1 + j];
    }

    // All that is made of a component has its r_i as a factor. So c takes the inverse along, and e_i is left.
    [[gnu::always_inline]] void pull_back(const N* s, const N* c, N* back, N* sums) const {
      using Real = Scalar<N>;
      const std::size_t d = D ? D : level->d_;
      N share[D ? D : largest_dimension], projection(Real(0));
      for (std::size_t j = 0; j < d; ++j) {
        share[j] = inverse * c[j];
        projection = fma(s[j], share[j], projection);
        back[j] = N(Real(0));
      }
      const N twice = projection + projection;
      for (std::size_t i = 0; i < level->n_; ++i) {
        N* own = sums ? sums + i * level->sums_each(d) : nullptr;
        if constexpr (form == Spread::isotropic)
          pull_back_round(i, projection, twice, share, back, own);
        else
          pull_back_of(i, projection, share, back, own);
      }
      for (std::size_t j = 0; j < d; ++j) back[j] = -back[j];
    }

   private:
    // The share of component i. back is that of -s_y' c.
    [[gnu::always_inline]] void pull_back_round(std::size_t i, const N& projection, const N& twice, const N* c, N* back,
                                                N* own) const {
      using Real = Scalar<N>;
      const std::size_t d = D ? D : level->d_;
      const auto* mean = level->template mean<N>(i);
      const N p(*level->template precision<N, D>(i));
      N u[D ? D : largest_dimension], along(Real(0)), square(Real(0));
      for (std::size_t j = 0; j < d; ++j) {
        u[j] = N(mean[j]) - y[j];
        const N g = p * u[j];
        along = fma(g, c[j], along);
        square = fma(g, u[j], square);
      }
      const N w = e[i] * (along - projection);
      for (std::size_t j = 0; j < d; ++j) {
        const N q = fma(e[i], c[j], -(w * u[j]));
        back[j] = fma(p, q, back[j]);
        if (own) own[1 + j] = own[1 + j] + q;
      }
      if (!own) return;
      own[0] = own[0] + w;
      own[1 + d] = fma(w, square, fma(-e[i], twice, own[1 + d]));
    }

    [[gnu::always_inline]] void pull_back_of(std::size_t i, const N& projection, const N* c, N* back, N* own) const {
      using Real = Scalar<N>;
      const std::size_t d = D ? D : level->d_;
      const N half(Real(0.5));
      N g[largest_dimension], q[largest_dimension];  // q = P_i c
      level->template pull<D>(i, y, g);
      level->template precision_times<D>(i, c, q);
      N along(Real(0));
      for (std::size_t j = 0; j < d; ++j) along = fma(g[j], c[j], along);
      const N weight = e[i] * (along - projection);
      for (std::size_t j = 0; j < d; ++j) {
        const N move = fma(e[i], q[j], -(weight * g[j]));
        back[j] = back[j] + move;
        if (own) own[1 + j] = own[1 + j] + move;
      }
      if (!own) return;
      own[0] = own[0] + weight;
      const auto* p = level->template precision<N, D>(i);
      if constexpr (form == Spread::diagonal) {
        for (std::size_t j = 0; j < d; ++j)
          own[1 + d + j] = own[1 + d + j] + fma(half * weight, fma(g[j], g[j], N(-p[j])), -(e[i] * q[j] * g[j]));
      } else {
        for (std::size_t a = 0; a < d; ++a)
          for (std::size_t b = 0; b <= a; ++b) {
            const std::size_t k = 1 + d + a * (a + 1) / 2 + b;
            const N both = fma(q[a], g[b], q[b] * g[a]);
            own[k] = own[k] + half * fma(weight, fma(g[a], g[b], N(-p[a * d + b])), -(e[i] * both));
          }
      }
    }
  };

  template <class N, std::size_t D>
  [[gnu::always_inline]] Point<N, D> from_work(const N* y, const N* work) const {
    return {this, y, work, work[n_]};
  }

  // Both stages for one sample.
  template <class N, std::size_t D>
  struct NotedPoint {
    const NoiseLevel* level;
    const N* y;
    N work[most_components + 1 + largest_dimension];

    void score(N* s) const { level->template from_work<N, D>(y, work).score(s); }
    void pull_back(const N* s, const N* c, N* back, N* sums) const {
      level->template from_work<N, D>(y, work).pull_back(s, c, back, sums);
    }
  };
  template <class N, std::size_t D>
  NotedPoint<N, D> at(const N* y) const {
    NotedPoint<N, D> point;
    point.level = this;
    point.y = y;
    keep_work<N, D>(y, point.work);
    return point;
  }

  std::size_t sums() const { return n_ * sums_each(d_); }
  void add_gradient(const double* sums, double* gradient) const;

  // Those of the level of instructions in use.
  static const ScoreKernels<float, NoiseLevel>& lane_kernels();

 private:
  friend class MixtureScore<form>;
  static constexpr double half_unit =
      0.5 * 1.4426950408889634 * exp2_unit;  // log2(e) / 2, in the units of exp2_fixed()

  static constexpr std::size_t spread_size(std::size_t d) {
    return form == Spread::isotropic ? 1 : form == Spread::diagonal ? d : d * (d + 1) / 2;
  }
  static constexpr std::size_t sums_each(std::size_t d) { return 1 + d + spread_size(d); }

  // s and, where wanted, the e_i; returns 1 / sum_i e_i. Exponents are at most 0; where all of them are so low that
  // little is left of the sum, the highest is subtracted, and the highest term made 1. A sample takes this way by
  // itself, whatever its neighbours do.
  template <std::size_t D, class N>
  [[gnu::always_inline]] N sweep(const N* y, N* s, N* e) const {
    using Real = Scalar<N>;
    const std::size_t d = D ? D : d_;
    const N zero(Real(0)), one(Real(1));
    N total = add_up<D>(y, zero, one, s, e);
    const auto low = total < N(Real(0x1p-40));
    if (any(low)) [[unlikely]] {
      N v[D ? D : largest_dimension], highest = approach<D>(0, y, v);
      for (std::size_t i = 1; i < n_; ++i) highest = max(approach<D>(i, y, v), highest);
      total = add_up<D>(y, select(low, highest, zero), select(low, one / exp2_fixed(zero), one), s, e);
    }
    const N inverse = one / total;
    for (std::size_t j = 0; j < d; ++j) s[j] = inverse * s[j];
    return inverse;
  }
  // s = sum_i e_i g_i; returns sum_i e_i.
  template <std::size_t D, class N>
  [[gnu::always_inline]] N add_up(const N* y, const N& shift, const N& scale, N* s, N* e) const {
    using Real = Scalar<N>;
    const std::size_t d = D ? D : d_;
    N total(Real(0)), sum[D ? D : largest_dimension];
    for (std::size_t j = 0; j < d; ++j) sum[j] = N(Real(0));
    for (std::size_t i = 0; i < n_; ++i) {
      N v[D ? D : largest_dimension];
      const N term = scale * exp2_or_zero(approach<D>(i, y, v) - shift);
      const N weight = form == Spread::isotropic ? term * N(*precision<N, D>(i)) : term;
      total = total + term;
      for (std::size_t j = 0; j < d; ++j) sum[j] = fma(weight, v[j], sum[j]);
      if (e) e[i] = term;
    }
    for (std::size_t j = 0; j < d; ++j) s[j] = sum[j];
    return total;
  }
  // v = g_i, or u_i where g_i = p_i u_i; returns the exponent log(w_i det(C_i)^(-1/2)) - (y - a m_i)' P_i (y - a m_i) /
  // 2, less a constant, in the units of exp2_fixed().
  template <std::size_t D, class N>
  [[gnu::always_inline]] N approach(std::size_t i, const N* y, N* v) const {
    using Real = Scalar<N>;
    const std::size_t d = D ? D : d_;
    const auto* mean = this->mean<N>(i);
    const N offset(mean[-2]), steepness(mean[-1]);
    N u[D ? D : largest_dimension], square(Real(0));
    for (std::size_t j = 0; j < d; ++j) v[j] = u[j] = N(mean[j]) - y[j];
    if constexpr (form != Spread::isotropic) precision_times<D>(i, u, v);
    for (std::size_t j = 0; j < d; ++j) square = fma(u[j], v[j], square);
    return fma(steepness, square, offset);
  }
  template <class N>
  [[gnu::always_inline]] const Scalar<N>* mean(std::size_t i) const {
    return components_.template of<N>() + i * each_ + 2;
  }
  template <class N, std::size_t D = 0>
  [[gnu::always_inline]] const Scalar<N>* precision(std::size_t i) const {
    return mean<N>(i) + (D ? D : d_);
  }
  // g_i.
  template <std::size_t D, class N>
  [[gnu::always_inline]] void pull(std::size_t i, const N* y, N* g) const {
    const std::size_t d = D ? D : d_;
    const auto* mean = this->mean<N>(i);
    N u[largest_dimension];
    for (std::size_t j = 0; j < d; ++j) u[j] = N(mean[j]) - y[j];
    precision_times<D>(i, u, g);
  }
  // P_i c.
  template <std::size_t D, class N>
  [[gnu::always_inline]] void precision_times(std::size_t i, const N* c, N* out) const {
    const std::size_t d = D ? D : d_;
    const auto* p = precision<N, D>(i);
    if constexpr (form == Spread::diagonal) {
      for (std::size_t j = 0; j < d; ++j) out[j] = N(p[j]) * c[j];
    } else {
      for (std::size_t a = 0; a < d; ++a) {
        out[a] = N(p[a * d]) * c[0];
        for (std::size_t b = 1; b < d; ++b) out[a] = fma(N(p[a * d + b]), c[b], out[a]);
      }
    }
  }

  std::size_t n_ = 0, d_ = 0;
  double decay_ = 1;  // a
  // Of each component, one after the other, so that a step finds them in few lines of the cache:
  //     log of w_i det(C_i)^(-1/2), less the highest of them, in the units of exp2_fixed()
  //     -1/2 in these units, times p_i where P_i = p_i I
  //     a m_i
  //     P_i, or p_i
  Constants components_;
  std::size_t each_ = 0;        // so many numbers
  std::vector<double> spread_;  // dC_i / d(spread), or L_i row by row
};

// The law proportional to p(x) exp(t . x), p a mixture: the same covariances, means m_i + S_i t, weights w_i exp(t .
// m_i + t' S_i t / 2). With t = lambda r / beta it is the law that finetuning with the reward r . x and the path KL to
// p leads to.
GaussianMixture tilted_law(const GaussianMixture& p, std::span<const double> t);

extern template class MixtureScore<Spread::isotropic>;
extern template class MixtureScore<Spread::diagonal>;
extern template class MixtureScore<Spread::cholesky>;

}  // namespace implicit_diffusion
