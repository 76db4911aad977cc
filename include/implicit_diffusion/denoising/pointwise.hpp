// Reverse steps of score models that are written point by point: the SIMD engine (denoising/steps.hpp has the
// contract).
#pragma once

#include "implicit_diffusion/denoising/score_model.hpp"
#include "implicit_diffusion/denoising/steps.hpp"
#include "implicit_diffusion/langevin/reward.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// The normals of a block at a moment, as Noise::normals lays them out.
template <class Real>
using BlockNormals = std::function<void(StepKey at, const Block<const Real>& block, Real* out)>;

template <class Real>
BlockNormals<Real> normals_of(Noise noise) {
  return [noise](StepKey at, const Block<const Real>& block, Real* out) {
    if constexpr (std::is_same_v<Real, float>) {
      PointwiseTiles<float>::normals(noise, Stream::sampling, at, block, out);
    } else {
      BlockArray<float> single(block.dimension);
      PointwiseTiles<Real>::normals(noise, Stream::sampling, at, block, single.data());
      std::copy_n(single.data(),
                  (block.size + lanes_per_group - 1) / lanes_per_group * lanes_per_group * block.dimension, out);
    }
  };
}

template <class Real>
class PointwiseSteps : public PointwiseTiles<Real> {
 public:
  using typename PointwiseTiles<Real>::Theta;
  using typename PointwiseTiles<Real>::Samples;
  using typename PointwiseTiles<Real>::Tile;
  using typename PointwiseTiles<Real>::ConstTile;
  using typename PointwiseTiles<Real>::Sum;

  struct Model {
    ScoreModel<Real> score;
    std::optional<Theta> theta = {};  // where it is
  };

  explicit PointwiseSteps(ScoreModel<Real> score, BlockNormals<Real> normals = normals_of<Real>(Noise{}),
                          Workers* workers = nullptr)
      : score_(std::move(score)), normals_(std::move(normals)), workers_(workers) {}

  // The same with other noise and workers.
  PointwiseSteps with(const Noise& noise, Workers* workers) const {
    return PointwiseSteps(score_, normals_of<Real>(noise), workers);
  }
  Samples samples(std::size_t n, Processes* processes = nullptr) const {
    return Samples(n, score_.dimension(), processes);
  }
  std::size_t dimension() const { return score_.dimension(); }

  Model model() const { return {score_.blank()}; }
  static bool prepare(Model& model, const Theta& theta, const TimeGrid& grid, std::size_t first, std::size_t last) {
    if (model.theta == theta) return false;
    model.theta.reset();  // where a model of a user's throws half-way, it is nowhere
    model.score.prepare(theta, grid, first, last);
    model.theta = theta;
    return true;
  }

  // The normals of a step; false where it has none.
  bool normals(const ReverseStep& step, const ConstTile& y, Real* out) const {
    if (!(step.c.noise > 0)) return false;
    normals_(step.key, y, out);
    return true;
  }

  void forward(const Model& model, const Model* frozen, const ReverseStep& step, const ConstTile& from, const Tile& to,
               Real* penalty) const {
    BlockArray<Real> xi(from.dimension);
    const bool noisy = normals(step, from, xi.data());
    model.score.forward(step.n, frozen ? &frozen->score : nullptr,
                        {step.c, from, to, noisy ? xi.data() : nullptr, penalty});
  }
  // a: of a Scratch.
  void backward(const Model& model, const Model* frozen, const ReverseStep& step, double beta, const ConstTile& at,
                const Tile& a, Sum sum) const {
    std::vector<double> sums(model.score.sums(step.n), 0.0);
    model.score.backward(step.n, frozen ? &frozen->score : nullptr, {step.c, beta, at, a.data, sums.data()});
    model.score.add_gradient(step.n, sums.data(), sum.data());
  }

  bool fits(const Theta& theta) const { return theta.size() == score_.parameters(); }
  bool fits(const Samples& x) const { return x.dimension() == score_.dimension(); }
  // Whether a frozen model is one of the same kind.
  bool fits(const Model& other) const {
    return score_.same_type(other.score) && other.score.dimension() == score_.dimension() &&
           other.score.parameters() == score_.parameters();
  }
  std::optional<std::size_t> find_inadmissible(const Theta& theta) const { return score_.find_inadmissible(theta); }
  Workers* workers() const { return workers_; }
  const ScoreModel<Real>& score() const { return score_; }

 private:
  ScoreModel<Real> score_;
  BlockNormals<Real> normals_;
  Workers* workers_;
};

// Compiled in the library, once and at its level of optimisation.
extern template class PointwiseSteps<float>;
extern template class PointwiseSteps<double>;

}  // namespace implicit_diffusion
