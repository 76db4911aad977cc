// Gradients through a reverse chain: of the objective
//
//     F(theta) = E[-lambda R(Y_T)] + beta KL(paths of theta || paths of the frozen model)
//
// The KL of two chains with the same noise is the sum over their steps of the expected squared distance of the means over twice the variance
// (Girsanov's formula, exact for the discrete chain); U of a sample is its share: sum_n penalty_n |s_theta - s_0|^2 (y_n). It bounds the KL of
// the laws of Y_T. For steps without noise U is taken as the penalty itself.
//
// PathGradient is the exact adjoint of the discrete chain, along the path that each sample took, with the model at the present theta:
//
//     a_T = -lambda grad R(y_T);     for n = T-1, ..., 0: the step of denoising/kernel.hpp back;     Gamma = mean over samples of g
//
// At the theta that made the path this is the gradient of the batch's objective; in a queue the path is older than theta, by design. States that
// were not kept are replayed from the last one that was, bit for bit.
//
// Rivals in the same interface: `last_steps` stops after the last few steps; ReconstructedGradient stores nothing and follows the ODE backwards
// by a fixed-point iteration.
#pragma once

#include "implicit_diffusion/denoising/sampler.hpp"
#include "implicit_diffusion/langevin/reward.hpp"
#include "implicit_diffusion/simd/dual.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

struct DenoisingObjective {
  double lambda = 1;  // of either sign
  double beta = 0;
};

// The mean of -lambda R + beta U over a finished batch, and its two parts.
struct BatchObjective {
  double value, reward, path_kl;
};
template <class Real>
BatchObjective objective_of(const PathBatch<Real>& b, const Reward<Real>& reward, const DenoisingObjective& o) {
  double rewards = 0, penalties = 0;
  for (std::size_t k = 0; k < b.points.blocks(); ++k) {
    const Block<const Real> y = b.points.block(k);
    BlockArray<Real> r;
    reward.values(y, r.data());
    for (std::size_t i = 0; i < y.size; ++i) rewards += static_cast<double>(r[i]);
    for (std::size_t i = 0; i < y.size && !b.penalty.empty(); ++i)
      penalties += static_cast<double>(b.penalty[k * block_size + i]);
  }
  const auto n = static_cast<double>(b.points.size());
  return {(-o.lambda * rewards + o.beta * penalties) / n, rewards / n, penalties / n};
}

namespace detail {

// a = -lambda grad R(y_T) of a block.
template <class Real>
void start_adjoint(const Reward<Real>& reward, double lambda, const Block<const Real>& y, Real* a) {
  reward.gradient(y, a);
  for (std::size_t j = 0; j < y.dimension; ++j)
    for (std::size_t i = 0; i < y.size; ++i) a[j * block_size + i] *= static_cast<Real>(-lambda);
}

template <class Real>
void copy_points(const Block<const Real>& from, Real* to) {
  for (std::size_t j = 0; j < from.dimension; ++j)
    std::copy_n(from.data + j * from.stride, from.size, to + j * block_size);
}

template <class Real>
void require_gradient(const Reward<Real>& reward) {
  if (!reward.has_gradient())
    throw Error(ErrorKind::usage, "reward",
                "it has no gradient: write it as a template over the number type that says any_number = true");
}
template <class Real>
void require_frozen(const ReverseChain<Real>& chain, const DenoisingObjective& o) {
  if (o.beta != 0 && !chain.frozen())
    throw Error(ErrorKind::usage, "beta", "a path KL needs a frozen model, which the chain does not have");
}
template <class Real>
void require_room(const ReverseChain<Real>& chain, std::span<double> gradient) {
  if (gradient.size() != chain.parameters())
    throw Error(ErrorKind::usage, "gradient", "it is not of the size of the model's parameters");
}
template <class Real>
void require_finished(const ReverseChain<Real>& chain, const PathBatch<Real>& b) {
  if (b.step != chain.steps()) throw Error(ErrorKind::usage, "batch", "it has not made all its steps");
  if (b.points.size() == 0) throw Error(ErrorKind::usage, "batch", "it is empty");
}

// The mean over samples of what `one(block, sums)` adds to the sums of each block, in the order of the blocks.
template <class Real, class OneBlock>
void mean_over_blocks(Workers* workers, const Population<Real>& x, std::span<double> gradient, OneBlock&& one) {
  const std::size_t p = gradient.size();
  std::vector<double> parts(x.blocks() * p, 0.0);
  for_each_block(workers, x, [&](std::size_t b) { one(b, std::span(parts).subspan(b * p, p)); });
  for (std::size_t j = 0; j < p; ++j) {
    double sum = 0;
    for (std::size_t b = 0; b < x.blocks(); ++b) sum += parts[b * p + j];
    gradient[j] = sum / static_cast<double>(x.size());
  }
}

}  // namespace detail

template <class Real>
class PathGradient {
 public:
  // The chain must live as long. `last_steps`: differentiates the last so many steps only. Throws a usage Error where the reward has no
  // gradient.
  PathGradient(ReverseChain<Real>& chain, Reward<Real> reward, DenoisingObjective objective = {},
               std::size_t last_steps = std::numeric_limits<std::size_t>::max())
      : chain_(chain), reward_(std::move(reward)), objective_(objective), last_steps_(last_steps) {
    detail::require_gradient(reward_);
    detail::require_frozen(chain_, objective_);
  }

  void estimate(const PathBatch<Real>& b, std::span<const double> theta, std::int64_t, std::span<double> gradient) {
    detail::require_finished(chain_, b);
    detail::require_room(chain_, gradient);
    if (b.path.empty())
      throw Error(ErrorKind::usage, "batch", "it has no path: sample_and_estimate() keeps none, advance() does");
    const std::size_t kept = (chain_.steps() + chain_.keep_every() - 1) / chain_.keep_every();
    if (b.path.size() < kept || (!chain_.keeps_all() && (b.thetas.empty() || b.thetas.back().until != b.step)))
      throw Error(ErrorKind::usage, "batch", "its path was kept by a chain with another keep_every");
    chain_.prepare(theta);
    const std::vector<ScoreModel<Real>> replayers = models_of(b);
    const std::size_t first = last_steps_ < chain_.steps() ? chain_.steps() - last_steps_ : 0;
    detail::mean_over_blocks(chain_.workers(), b.points, gradient, [&](std::size_t block, std::span<double> sums) {
      const Block<const Real> end = b.points.block(block);
      BlockArray<Real> a(end.dimension);
      detail::start_adjoint(reward_, objective_.lambda, end, a.data());
      Replay replay(chain_, b, replayers, block);
      for (std::size_t n = chain_.steps(); n-- > first;) back(n, replay.state(n), a.data(), sums);
      if (block == 0) cost_.evaluations += replay.steps();  // as many in every block
    });
    cost_.products += chain_.steps() - first;
    if (objective_.beta != 0) cost_.frozen_products += chain_.steps() - first;
  }

  // Sampling and gradient of a fresh batch in one go, with the bits of advance() and estimate(): the samples of a block go all the way and back
  // before those of the next begin, so that their path is in the cache, and nowhere else. For chains with one slot.
  void sample_and_estimate(PathBatch<Real>& b, std::span<const double> theta, Moment, std::span<double> gradient) {
    if (chain_.slots() != 1) throw Error(ErrorKind::usage, "slots", "a batch goes all the way at once only with one");
    if (b.step != 0) throw Error(ErrorKind::usage, "batch", "it has begun");
    if (b.points.size() == 0) throw Error(ErrorKind::usage, "batch", "it is empty");
    detail::require_room(chain_, gradient);
    if (b.points.dimension() != chain_.dimension())
      throw Error(ErrorKind::usage, "batch", "its dimension is not that of the model");
    chain_.prepare(theta);
    const std::size_t steps = chain_.steps(), first = last_steps_ < steps ? steps - last_steps_ : 0;
    if (chain_.frozen() && b.penalty.empty()) b.penalty.assign(b.points.blocks() * block_size, Real(0));
    detail::mean_over_blocks(chain_.workers(), b.points, gradient, [&](std::size_t block, std::span<double> sums) {
      const Block<Real> end = b.points.block(block);
      const std::size_t d = end.dimension;
      BlockArray<Real> path(steps * d), normals(d), a(d);
      const auto state = [&](std::size_t n) {
        return n == steps ? end : Block<Real>{path.data() + n * d * block_size, block_size, end.size, d, end.first};
      };
      const auto seen = [&](std::size_t n) {
        const Block<Real> y = state(n);
        return Block<const Real>{y.data, y.stride, y.size, y.dimension, y.first};
      };
      detail::copy_points(seen(steps), path.data());
      for (std::size_t n = 0; n < steps; ++n)
        chain_.forward(chain_.model(), b.birth, n, seen(n), state(n + 1),
                       chain_.frozen() ? b.penalty.data() + block * block_size : nullptr, normals.data());
      detail::start_adjoint(reward_, objective_.lambda, seen(steps), a.data());
      for (std::size_t n = steps; n-- > first;) back(n, seen(n), a.data(), sums);
    });
    b.path.clear();  // one of an earlier round would be taken for that of these samples
    b.step = steps;
    cost_.evaluations += steps;
    if (chain_.frozen()) cost_.frozen_evaluations += steps;
    cost_.products += steps - first;
    if (objective_.beta != 0) cost_.frozen_products += steps - first;
  }

  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return chain_.model().find_inadmissible(theta);
  }

  // So far; evaluations are those of replays, and of samples that went all the way at once.
  const DenoisingCost& cost() const { return cost_; }

 private:
  void back(std::size_t n, const Block<const Real>& y, Real* a, std::span<double> gradient) const {
    std::vector<double> sums(chain_.model().sums(n), 0.0);
    chain_.model().backward(n, objective_.beta != 0 ? chain_.frozen() : nullptr,
                            {chain_.coefficients(n), objective_.beta, y, a, sums.data()});
    chain_.model().add_gradient(n, sums.data(), gradient.data());
  }

  // The models that made the path, where it must be replayed.
  std::vector<ScoreModel<Real>> models_of(const PathBatch<Real>& b) const {
    std::vector<ScoreModel<Real>> models;
    std::size_t first = 0;
    for (const auto& stretch : b.thetas) {
      models.push_back(chain_.model().blank());
      models.back().prepare(stretch.theta, chain_.grid(), first, stretch.until);
      first = stretch.until;
    }
    return models;
  }

  // The states of one block's path from the last to the first.
  class Replay {
   public:
    Replay(const ReverseChain<Real>& chain, const PathBatch<Real>& b, const std::vector<ScoreModel<Real>>& models,
           std::size_t block)
        : chain_(chain), batch_(b), models_(models), block_(block) {}

    Block<const Real> state(std::size_t n) {
      const std::size_t keep = chain_.keep_every(), kept = n / keep;
      const Block<const Real> beginning = batch_.path[kept].block(block_);
      if (n % keep == 0) return beginning;
      if (kept != at_) replay(kept, n, beginning);
      return const_block(n % keep - 1);
    }
    // That were made again.
    std::size_t steps() const { return steps_; }

   private:
    // All states from the kept one up to n, at most keep_every - 1 of them.
    void replay(std::size_t kept, std::size_t n, const Block<const Real>& beginning) {
      at_ = kept;
      const std::size_t count = n % chain_.keep_every();
      steps_ += count;
      stride_ = beginning.dimension * block_size;
      memory_.resize(count * stride_);
      dimension_ = beginning.dimension;
      size_ = beginning.size;
      first_ = beginning.first;
      BlockArray<Real> normals(dimension_);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t step = kept * chain_.keep_every() + i;
        const Block<Real> to{memory_.data() + i * stride_, block_size, size_, dimension_, first_};
        chain_.forward(model_at(step), batch_.birth, step, i == 0 ? beginning : const_block(i - 1), to, nullptr,
                       normals.data());
      }
    }
    const ScoreModel<Real>& model_at(std::size_t step) const {
      std::size_t k = 0;
      while (batch_.thetas[k].until <= step) ++k;
      return models_[k];
    }
    Block<const Real> const_block(std::size_t i) const {
      return {memory_.data() + i * stride_, block_size, size_, dimension_, first_};
    }

    const ReverseChain<Real>& chain_;
    const PathBatch<Real>& batch_;
    const std::vector<ScoreModel<Real>>& models_;
    std::size_t block_, at_ = std::numeric_limits<std::size_t>::max(), stride_ = 0, dimension_ = 0, size_ = 0,
                        first_ = 0, steps_ = 0;
    std::vector<Real, LineAllocator<Real>> memory_;
  };

  ReverseChain<Real>& chain_;
  Reward<Real> reward_;
  DenoisingObjective objective_;
  std::size_t last_steps_;
  DenoisingCost cost_;
};

// Sampler and gradient of a chain as one, for nested loops with a fresh batch each step: those take sampling and gradient in one go.
template <class Real>
class DenoisingEngine {
 public:
  // As PathGradient's. The chain must live as long.
  DenoisingEngine(ReverseChain<Real>& chain, Reward<Real> reward, DenoisingObjective objective = {})
      : sampler_(chain), gradient_(chain, std::move(reward), objective) {}

  void advance(PathBatch<Real>& b, std::span<const double> theta, Moment at) { sampler_.advance(b, theta, at); }
  void estimate(const PathBatch<Real>& b, std::span<const double> theta, std::int64_t step,
                std::span<double> gradient) {
    gradient_.estimate(b, theta, step, gradient);
  }
  void sample_and_estimate(PathBatch<Real>& b, std::span<const double> theta, Moment at, std::span<double> gradient) {
    gradient_.sample_and_estimate(b, theta, at, gradient);
  }
  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return gradient_.find_inadmissible(theta);
  }

 private:
  DenoisingSampler<Real> sampler_;
  PathGradient<Real> gradient_;
};

namespace detail {

// One step of a chain without noise followed backwards: z_n from z_{n+1} by z = z_{n+1} - h mu(t_n, z), 1 + `refinements` iterations from
// z_{n+1}, then the adjoint there. z and a by coordinate: [j block_size + i]; adds to the gradient.
template <class Real>
void follow_back(const ReverseChain<Real>& chain, double beta, std::size_t n, std::size_t refinements,
                 const Block<const Real>& shape, Real* z, Real* a, double* gradient) {
  const std::size_t d = shape.dimension;
  BlockArray<Real> image(d), next(d);
  std::copy_n(z, d * block_size, next.data());
  for (std::size_t r = 0; r <= refinements; ++r) {
    chain.model().forward(n, nullptr,
                          {chain.coefficients(n),
                           {next.data(), block_size, shape.size, d, shape.first},
                           {image.data(), block_size, shape.size, d, shape.first},
                           nullptr,
                           nullptr});
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t i = j * block_size; i < j * block_size + shape.size; ++i)
        next[i] = z[i] - (image[i] - next[i]);  // the image is next + h mu
  }
  std::copy_n(next.data(), d * block_size, z);
  std::vector<double> sums(chain.model().sums(n), 0.0);
  chain.model().backward(n, beta != 0 ? chain.frozen() : nullptr,
                         {chain.coefficients(n), beta, {z, block_size, shape.size, d, shape.first}, a, sums.data()});
  chain.model().add_gradient(n, sums.data(), gradient);
}

template <class Real>
void require_no_noise(const ReverseChain<Real>& chain) {
  for (std::size_t n = 0; n < chain.steps(); ++n)
    if (chain.coefficients(n).noise > 0)
      throw Error(ErrorKind::usage, "dynamics", "a chain with noise cannot be followed backwards without it");
}

}  // namespace detail

// For chains without noise: nothing is stored, states are found again from the last one. The gradient is wrong by O(h^(1 + refinements)), and
// the iteration converges where h times the Lipschitz constant is below 1.
template <class Real>
class ReconstructedGradient {
 public:
  ReconstructedGradient(ReverseChain<Real>& chain, Reward<Real> reward, DenoisingObjective objective = {},
                        std::size_t refinements = 0)
      : chain_(chain), reward_(std::move(reward)), objective_(objective), refinements_(refinements) {
    detail::require_gradient(reward_);
    detail::require_frozen(chain_, objective_);
    detail::require_no_noise(chain_);
  }

  void estimate(const PathBatch<Real>& b, std::span<const double> theta, std::int64_t, std::span<double> gradient) {
    detail::require_finished(chain_, b);
    detail::require_room(chain_, gradient);
    chain_.prepare(theta);
    std::vector<double> errors(b.points.blocks(), 0.0);
    detail::mean_over_blocks(chain_.workers(), b.points, gradient, [&](std::size_t block, std::span<double> sums) {
      const Block<const Real> end = b.points.block(block);
      BlockArray<Real> a(end.dimension), z(end.dimension);
      detail::start_adjoint(reward_, objective_.lambda, end, a.data());
      detail::copy_points(end, z.data());
      for (std::size_t n = chain_.steps(); n-- > 0;)
        detail::follow_back(chain_, objective_.beta, n, refinements_, end, z.data(), a.data(), sums.data());
      if (b.path.empty()) return;
      const Block<const Real> begin = b.path.front().block(block);
      for (std::size_t j = 0; j < end.dimension; ++j)
        for (std::size_t i = 0; i < end.size; ++i)
          errors[block] = std::max(errors[block], std::abs(static_cast<double>(z[j * block_size + i]) -
                                                           static_cast<double>(begin.data[j * begin.stride + i])));
    });
    error_ = *std::max_element(errors.begin(), errors.end());
    cost_.evaluations += chain_.steps() * (1 + refinements_);
    cost_.products += chain_.steps();
    if (objective_.beta != 0) cost_.frozen_products += chain_.steps();
  }

  // The largest distance of a reconstructed beginning from the true one in the last estimate.
  double reconstruction_error() const { return error_; }
  // So far.
  const DenoisingCost& cost() const { return cost_; }

 private:
  ReverseChain<Real>& chain_;
  Reward<Real> reward_;
  DenoisingObjective objective_;
  std::size_t refinements_;
  double error_ = 0;
  DenoisingCost cost_;
};

// A batch on its way back through a double queue (loop/double_queue.hpp).
template <class Real>
struct BackwardBatch {
  Population<Real> points;            // Z
  std::vector<Real> adjoint;          // A, block by block
  std::vector<double> gradients;      // G, a row for each block: sums over its samples
  std::vector<double> gradient = {};  // their mean, once it is back
  std::size_t step = 0;               // steps made
};

template <class Real>
class DenoisingBackward {
 public:
  DenoisingBackward(ReverseChain<Real>& chain, Reward<Real> reward, DenoisingObjective objective = {})
      : chain_(chain), reward_(std::move(reward)), objective_(objective) {
    detail::require_gradient(reward_);
    detail::require_frozen(chain_, objective_);
    detail::require_no_noise(chain_);
  }

  BackwardBatch<Real> begin(const PathBatch<Real>& finished) const {
    const std::size_t d = finished.points.dimension(), blocks = finished.points.blocks();
    BackwardBatch<Real> b{finished.points, std::vector<Real>(blocks * d * block_size),
                          std::vector<double>(blocks * chain_.parameters())};
    for (std::size_t k = 0; k < blocks; ++k)
      detail::start_adjoint<Real>(reward_, objective_.lambda, finished.points.block(k),
                                  b.adjoint.data() + k * d * block_size);
    return b;
  }

  std::optional<std::size_t> find_inadmissible(std::span<const double> theta) const {
    return chain_.model().find_inadmissible(theta);
  }

  // Through step T - 1 - s of the chain.
  void step(BackwardBatch<Real>& b, std::size_t s, std::span<const double> theta) {
    chain_.prepare(theta);
    if (s != b.step || s >= chain_.steps()) throw Error(ErrorKind::usage, "batch", "this is not its next step back");
    ++b.step;
    const std::size_t d = b.points.dimension(), p = chain_.parameters();
    for_each_block(chain_.workers(), b.points, [&](std::size_t k) {
      const Block<Real> y = b.points.block(k);
      BlockArray<Real> z(d);
      const Block<const Real> shape{y.data, y.stride, y.size, d, y.first};
      detail::copy_points(shape, z.data());
      detail::follow_back(chain_, objective_.beta, chain_.steps() - 1 - s, 0, shape, z.data(),
                          b.adjoint.data() + k * d * block_size, b.gradients.data() + k * p);
      for (std::size_t j = 0; j < d; ++j) std::copy_n(z.data() + j * block_size, y.size, y.data + j * y.stride);
    });
    ++cost_.evaluations;
    ++cost_.products;
    if (objective_.beta != 0) ++cost_.frozen_products;
  }

  std::span<const double> gradient(BackwardBatch<Real>& b) const {
    if (b.step != chain_.steps())
      throw Error(ErrorKind::usage, "slots", "a double queue has one for each step of the chain");
    const std::size_t p = chain_.parameters();
    b.gradient.assign(p, 0.0);
    for (std::size_t i = 0; i < b.gradients.size(); ++i) b.gradient[i % p] += b.gradients[i];
    for (double& g : b.gradient) g /= static_cast<double>(b.points.size());
    return b.gradient;
  }

  // So far: an evaluation and a product for each step back.
  const DenoisingCost& cost() const { return cost_; }

 private:
  ReverseChain<Real>& chain_;
  Reward<Real> reward_;
  DenoisingObjective objective_;
  DenoisingCost cost_;
};

}  // namespace implicit_diffusion
