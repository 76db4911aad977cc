#include "implicit_diffusion/langevin/baselines.hpp"

#include <memory>
#include <utility>

namespace implicit_diffusion {
namespace {

template <class Real>
class GuidedModel final : public Potential<Real>::Model {
 public:
  using Model = typename Potential<Real>::Model;
  GuidedModel(Potential<Real> potential, Reward<Real> reward, double lambda)
      : potential_(std::move(potential)), reward_(std::move(reward)), lambda_(static_cast<Real>(lambda)) {}

  std::unique_ptr<Model> clone() const override { return std::make_unique<GuidedModel>(*this); }
  std::size_t dimension() const override { return potential_.dimension(); }
  std::size_t parameters() const override { return potential_.parameters(); }
  void prepare(std::span<const double> theta) override { potential_.prepare(theta); }

  // What the potential gives by itself, then the reward's part: sums over theta are the potential's alone.
  void pass(const Block<Real>& x, const Pass<Real>& r) const override {
    BlockArray<Real> slope(x.dimension), bonus;
    if (r.noise || r.gradient) reward_.gradient(x, slope.data());
    if (r.values || r.value_share != 0) reward_.values(x, bonus.data());
    if (r.value_share != 0) throw Error(ErrorKind::usage, "method", "a guided potential has no covariance with itself");
    potential_.pass(x, r);
    for (std::size_t j = 0; j < x.dimension; ++j)
      for (std::size_t i = 0; i < x.size; ++i) {
        if (r.noise) x(i, j) += r.step * lambda_ * slope[j * block_size + i];
        if (r.gradient) r.gradient[j * block_size + i] -= lambda_ * slope[j * block_size + i];
      }
    if (r.values)
      for (std::size_t i = 0; i < x.size; ++i) r.values[i] -= lambda_ * bonus[i];
  }
  void add_weighted_mixed(Block<const Real> x, const Real* u, double* sums) const override {
    potential_.add_weighted_mixed(x, u, sums);
  }
  bool has_mixed_derivative() const override { return potential_.has_mixed_derivative(); }
  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const override {
    return potential_.find_inadmissible(theta);
  }

 private:
  Potential<Real> potential_;
  Reward<Real> reward_;
  Real lambda_;
};

}  // namespace

template <class Real>
Potential<Real> guided(Potential<Real> potential, Reward<Real> reward, double lambda) {
  if (!reward.has_gradient()) throw Error(ErrorKind::usage, "method", "guided needs a reward with a gradient");
  return Potential<Real>(std::make_unique<GuidedModel<Real>>(std::move(potential), std::move(reward), lambda));
}
template Potential<float> guided(Potential<float>, Reward<float>, double);
template Potential<double> guided(Potential<double>, Reward<double>, double);

}  // namespace implicit_diffusion
