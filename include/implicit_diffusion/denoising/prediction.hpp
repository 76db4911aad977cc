// Score models from models that predict something else: the noise eps, or the velocity v. With the forward process of
// denoising/time_grid.hpp, y = a x_0 + s eps,
//
//     a = e^-tau,      s^2 = 1 - e^-2tau,      v = a eps - s x_0
//
// a prediction of either, made from y and tau, is the score
//
//     score = -eps / s                         FromEpsilon(model)
//     score = -y - (a / s) v                   FromV(model)                 since eps = s y + a v
//
// `model` is a score model (denoising/kernel.hpp) but for its NoiseLevel, which has
//
//     predict(y, out)                          in place of score(y, s)
//     pull_back(y, out, c, back, sums)         of the prediction: back = out_y' c,
//                                              sums += numbers that make up out_theta' c
//
// or at<N, D>(y), which returns an object with predict(out) and pull_back(out, c, back, sums). So a model that was not
// wrapped does not compile where a score is needed. Its clock is tau, the one of all schedules: a model trained with
// alpha(t) is asked at the t with -log alpha(t) = tau. It must be variance preserving.
//
// At the data end s -> 0 as sqrt(2 tau), and an error of the prediction is one of the score times 1 / s. There is no
// score at tau = 0, and chains ask for none: their last step is made at tau = h, where Euler's step of the SDE takes 2
// h / s = sqrt(2 h) of the prediction, DDIM s e^h: neither makes an error larger. At the noise end s -> 1 and a -> 0:
// the score is -eps, and of v as much as e^-tau is left. What tells samples apart there is of that size, in the score
// and in eps beside y; v has it in full.
#pragma once

#include "implicit_diffusion/denoising/kernel.hpp"
#include "implicit_diffusion/denoising/score_model.hpp"
#include "implicit_diffusion/error.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace implicit_diffusion {

// Only the coordinates of a point are set and read, as in denoising/kernel.hpp.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
namespace detail {

// score = factor out, or factor out - y.
template <class Inner, bool minus_y>
class PredictionLevel {
 public:
  PredictionLevel(Inner inner, std::size_t dimension, double factor)
      : inner_(std::move(inner)), d_(dimension), factor_(factor) {}

  // The prediction is kept: at the noise end the score, which is -y up to little, would not give it back.
  template <class N, std::size_t D>
  class Here {
   public:
    [[gnu::always_inline]] Here(const PredictionLevel& level, const N* y)
        : point_(kernel::point_of<N, D>(level.inner_, y)),
          y_(y),
          d_(D ? D : level.d_),
          factor_(static_cast<Scalar<N>>(level.factor_)) {
      point_.predict(out_);
    }
    [[gnu::always_inline]] void score(N* s) const {
      for (std::size_t j = 0; j < d_; ++j)
        if constexpr (minus_y)
          s[j] = fma(factor_, out_[j], -y_[j]);
        else
          s[j] = factor_ * out_[j];
    }
    [[gnu::always_inline]] void pull_back(const N*, const N* c, N* back, N* sums) const {
      N scaled[most];
      for (std::size_t j = 0; j < d_; ++j) scaled[j] = factor_ * c[j];
      point_.pull_back(out_, scaled, back, sums);
      if constexpr (minus_y)
        for (std::size_t j = 0; j < d_; ++j) back[j] = back[j] - c[j];
    }

   private:
    static constexpr std::size_t most = D ? D : largest_denoising_dimension;
    decltype(kernel::point_of<N, D>(std::declval<const Inner&>(), std::declval<const N*>())) point_;
    const N* y_;
    std::size_t d_;
    N factor_, out_[most];
  };

  template <class N, std::size_t D>
  [[gnu::always_inline]] Here<N, D> at(const N* y) const {
    return Here<N, D>(*this, y);
  }

  std::size_t sums() const { return inner_.sums(); }
  void add_gradient(const double* sums, double* gradient) const { inner_.add_gradient(sums, gradient); }

 private:
  Inner inner_;
  std::size_t d_;
  double factor_;
};

template <class M, bool minus_y>
class FromPrediction {
 public:
  std::size_t dimension() const { return model_.dimension(); }
  std::size_t parameters() const { return model_.parameters(); }
  void prepare(std::span<const double> theta) { model_.prepare(theta); }

  // Throws a usage Error unless tau is positive.
  auto level(double tau) const {
    if (!(tau > 0))
      throw Error(ErrorKind::usage, "tau", std::to_string(tau) + ": without noise a prediction is no score");
    // 1 / s = (1 - e^-2tau)^(-1/2), a / s = (e^2tau - 1)^(-1/2).
    const double factor = -1 / std::sqrt(minus_y ? std::expm1(2 * tau) : -std::expm1(-2 * tau));
    return PredictionLevel<decltype(model_.level(tau)), minus_y>(model_.level(tau), model_.dimension(), factor);
  }

  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    if constexpr (requires { model_.find_inadmissible(theta); }) return model_.find_inadmissible(theta);
    return std::nullopt;
  }

 protected:
  explicit FromPrediction(M model) : model_(std::move(model)) {}

 private:
  M model_;
};

}  // namespace detail
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

template <PointScoreModel M>
class FromEpsilon : public detail::FromPrediction<M, false> {
 public:
  explicit FromEpsilon(M model) : detail::FromPrediction<M, false>(std::move(model)) {}
};

template <PointScoreModel M>
class FromV : public detail::FromPrediction<M, true> {
 public:
  explicit FromV(M model) : detail::FromPrediction<M, true>(std::move(model)) {}
};

}  // namespace implicit_diffusion
