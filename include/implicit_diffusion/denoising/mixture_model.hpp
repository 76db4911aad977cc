// The score of a mixture in whichever form its spreads have, chosen at run time.
#pragma once

#include "implicit_diffusion/denoising/mixture_score.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace implicit_diffusion {

class MixtureModel {
 public:
  MixtureModel(Spread form, std::size_t components, std::size_t dimension)
      : model_(MixtureScore<Spread::isotropic>(components, dimension)) {
    if (form == Spread::diagonal) model_ = MixtureScore<Spread::diagonal>(components, dimension);
    if (form == Spread::cholesky) model_ = MixtureScore<Spread::cholesky>(components, dimension);
  }

  // Calls use with the MixtureScore that it is.
  template <class Use>
  auto with(Use&& use) const {
    return std::visit(std::forward<Use>(use), model_);
  }

  std::size_t dimension() const {
    return with([](const auto& m) { return m.dimension(); });
  }
  std::size_t parameters() const {
    return with([](const auto& m) { return m.parameters(); });
  }
  GaussianMixture law(std::span<const double> theta) const {
    return with([&](const auto& m) { return m.law(theta); });
  }
  std::vector<double> parameters_of(const GaussianMixture& law) const {
    return with([&](const auto& m) { return m.parameters_of(law); });
  }
  template <class Real>
  ScoreModel<Real> score() const {
    return with([](const auto& m) { return ScoreModel<Real>(m); });
  }

 private:
  std::variant<MixtureScore<Spread::isotropic>, MixtureScore<Spread::diagonal>, MixtureScore<Spread::cholesky>> model_;
};

}  // namespace implicit_diffusion
