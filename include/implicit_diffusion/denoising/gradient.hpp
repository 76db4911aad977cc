// Gradients through a reverse chain, of the objective in denoising/objective.hpp.
//
// PathGradient is the exact adjoint of the discrete chain, along the path that each sample took, with the model at the
// present theta:
//
//     a_T = -lambda grad R(y_T);     for n = T-1, ..., 0: one step of the adjoint (denoising/steps.hpp);
//     Gamma = mean over samples of g
//
// At the theta that made the path this is the gradient of the batch's objective; in a queue the path is older than
// theta, by design. States that were not kept are replayed from the last one that was, bit for bit. `last_steps` stops
// after the last few steps. A rival that stores nothing is in denoising/reconstruction.hpp.
#pragma once

#include "implicit_diffusion/denoising/objective.hpp"
#include "implicit_diffusion/denoising/sampler.hpp"

#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace implicit_diffusion {

namespace detail {

// What every gradient through a chain is made of: the chain, the objective, and the adjoint's beginning and steps.
template <class T>
class ChainAdjoint {
 public:
  using Steps = StepsOf<T>;
  using Theta = typename Steps::Theta;
  using Tile = typename Steps::Tile;
  using ConstTile = typename Steps::ConstTile;

  // Throws a usage Error where the reward has no gradient, or where a path KL is asked for without a frozen model.
  ChainAdjoint(ReverseChain<T>& of, typename Steps::Reward reward, DenoisingObjective objective)
      : chain(of), reward_(std::move(reward)), objective_(objective) {
    if (!reward_.has_gradient())
      throw Error(ErrorKind::usage, "reward",
                  "it has no gradient: write it as a template over the number type that says any_number = true");
    if (objective_.beta != 0 && !chain.frozen())
      throw Error(ErrorKind::usage, "beta", "a path KL needs a frozen model, which the chain does not have");
  }

  // a = -lambda grad R(y_T). a: of a Scratch.
  void begin(const ConstTile& end, const Tile& a) const {
    reward_.gradient(end, a);
    Steps::scale(a, -objective_.lambda);
  }
  // One step of a batch born at `birth`: a, and what it adds to the gradient.
  template <class Sum>
  void step(std::size_t n, std::int64_t birth, const ConstTile& y, const Tile& a, Sum&& sum) const {
    chain.engine().backward(chain.model(), objective_.beta != 0 ? chain.frozen() : nullptr, chain.step(n, birth),
                            objective_.beta, y, a, sum);
  }
  // The mean over samples of what `one(k, sum)` adds for each tile, at theta.
  template <class One>
  void mean(const PathBatch<T>& b, const Theta& theta, Theta& gradient, One&& one) {
    if (total_of(b.points) == 0) throw Error(ErrorKind::usage, "batch", "it is empty");
    require_room(gradient);
    chain.prepare(theta);
    Steps::sum(chain.workers(), b.points, gradient, one);
    divide(gradient, total_of(b.points));
  }
  static void divide(Theta& gradient, std::size_t samples) {
    const auto n = static_cast<double>(samples);
    for_each_element([n](auto& g) { set_element(g, static_cast<double>(g) / n); }, gradient);
  }
  void require_room(const Theta& gradient) const {
    if (!chain.engine().fits(gradient))
      throw Error(ErrorKind::usage, "gradient", "it is not of the size of the model's parameters");
  }
  void require_finished(const PathBatch<T>& b) const {
    if (b.step != chain.steps()) throw Error(ErrorKind::usage, "batch", "it has not made all its steps");
  }
  std::optional<std::size_t> find_inadmissible(const Theta& theta) const {
    return chain.engine().find_inadmissible(theta);
  }

  // Counts `steps` steps back, and so many evaluations beside them.
  void count(std::size_t steps, std::size_t evaluations) {
    cost.evaluations += evaluations;
    cost.products += steps;
    if (objective_.beta != 0) cost.frozen_products += steps;
  }

  ReverseChain<T>& chain;
  DenoisingCost cost;

 private:
  typename Steps::Reward reward_;
  DenoisingObjective objective_;
};

// The states of one tile's path from the last to the first.
template <class T>
class Replay {
 public:
  using Steps = StepsOf<T>;
  using Model = typename Steps::Model;

  // `models` made the steps of the batch, stretch by stretch.
  Replay(const ReverseChain<T>& chain, const PathBatch<T>& b, const std::vector<Model>& models, std::size_t k)
      : chain_(chain), batch_(b), models_(models), k_(k) {}

  typename Steps::ConstTile state(std::size_t n) {
    const std::size_t keep = chain_.keep_every(), kept = n / keep;
    if (n % keep == 0) return Steps::tile(batch_.path[kept], k_);
    if (kept != at_) replay(kept, n);
    return (*states_)[n % keep - 1];
  }
  // That were made again.
  std::size_t steps() const { return steps_; }

 private:
  // All states from the kept one up to n, at most keep_every - 1 of them.
  void replay(std::size_t kept, std::size_t n) {
    at_ = kept;
    const std::size_t count = n % chain_.keep_every();
    const auto beginning = Steps::tile(batch_.path[kept], k_);
    if (!states_) states_.emplace(beginning, chain_.keep_every() - 1);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t step = kept * chain_.keep_every() + i;
      typename Steps::ConstTile from = i == 0 ? beginning : typename Steps::ConstTile((*states_)[i - 1]);
      chain_.engine().forward(model_at(step), nullptr, chain_.step(step, batch_.birth), from, (*states_)[i], nullptr);
    }
    steps_ += count;
  }
  const Model& model_at(std::size_t step) const {
    std::size_t i = 0;
    while (batch_.thetas[i].until <= step) ++i;
    return models_[i];
  }

  const ReverseChain<T>& chain_;
  const PathBatch<T>& batch_;
  const std::vector<Model>& models_;
  std::size_t k_, at_ = std::numeric_limits<std::size_t>::max(), steps_ = 0;
  std::optional<typename Steps::Scratch> states_;
};

}  // namespace detail

template <class T>
class PathGradient {
 public:
  using Steps = StepsOf<T>;
  using Theta = typename Steps::Theta;

  // The chain must live as long. `last_steps`: differentiates the last so many steps only. Throws a usage Error where
  // the reward has no gradient.
  PathGradient(ReverseChain<T>& chain, typename Steps::Reward reward, DenoisingObjective objective = {},
               std::size_t last_steps = std::numeric_limits<std::size_t>::max())
      : adjoint_(chain, std::move(reward), objective),
        first_(last_steps < chain.steps() ? chain.steps() - last_steps : 0) {}

  void estimate(const PathBatch<T>& b, const Theta& theta, std::int64_t, Theta& gradient) {
    const ReverseChain<T>& chain = adjoint_.chain;
    adjoint_.require_finished(b);
    if (b.path.empty() && total_of(b.points) > 0)
      throw Error(ErrorKind::usage, "batch", "it has no path: sample_and_estimate() keeps none, advance() does");
    const std::size_t kept = (chain.steps() + chain.keep_every() - 1) / chain.keep_every();
    if (b.path.size() < kept || (!chain.keeps_all() && (b.thetas.empty() || b.thetas.back().until != b.step)))
      throw Error(ErrorKind::usage, "batch", "its path was kept by a chain with another keep_every");
    const std::vector<typename Steps::Model> models = models_of(b);
    std::size_t replayed = 0;
    adjoint_.mean(b, theta, gradient, [&](std::size_t k, auto&& sum) {
      const auto end = Steps::tile(b.points, k);
      typename Steps::Scratch a(end, 1);
      adjoint_.begin(end, a[0]);
      detail::Replay<T> replay(chain, b, models, k);
      for (std::size_t n = chain.steps(); n-- > first_;) adjoint_.step(n, b.birth, replay.state(n), a[0], sum);
      if (k == 0) replayed = replay.steps();  // as many in every tile
    });
    adjoint_.count(chain.steps() - first_, replayed);
  }

  // Sampling and gradient of a fresh batch in one go, with the bits of advance() and estimate(): the samples of a tile
  // go all the way and back before those of the next begin, so that their path is in the cache, and nowhere else. For
  // chains with one slot.
  void sample_and_estimate(PathBatch<T>& b, const Theta& theta, StepKey, Theta& gradient) {
    const ReverseChain<T>& chain = adjoint_.chain;
    if (chain.slots() != 1) throw Error(ErrorKind::usage, "slots", "a batch goes all the way at once only with one");
    if (b.step != 0) throw Error(ErrorKind::usage, "batch", "it has begun");
    if (!chain.engine().fits(b.points))
      throw Error(ErrorKind::usage, "batch", "its dimension is not that of the model");
    const std::size_t steps = chain.steps();
    if (chain.frozen()) b.penalty = Steps::numbers(b.points);
    adjoint_.mean(b, theta, gradient, [&](std::size_t k, auto&& sum) {
      const auto end = Steps::tile(b.points, k);
      typename Steps::Scratch path(end, steps), a(end, 1);
      Steps::copy(end, path[0]);
      for (std::size_t n = 0; n < steps; ++n) chain.forward(b, k, n, path[n], n + 1 == steps ? end : path[n + 1]);
      adjoint_.begin(end, a[0]);
      for (std::size_t n = steps; n-- > first_;) adjoint_.step(n, b.birth, path[n], a[0], sum);
    });
    b.path.clear();  // one of an earlier round would be taken for that of these samples
    b.step = steps;
    adjoint_.count(steps - first_, steps);
    if (chain.frozen()) adjoint_.cost.frozen_evaluations += steps;
  }

  std::optional<std::size_t> find_inadmissible(const Theta& theta) const { return adjoint_.find_inadmissible(theta); }

  // So far; evaluations are those of replays, and of samples that went all the way at once.
  const DenoisingCost& cost() const { return adjoint_.cost; }

 private:
  // The models that made the path, where it must be replayed.
  std::vector<typename Steps::Model> models_of(const PathBatch<T>& b) const {
    std::vector<typename Steps::Model> models;
    std::size_t first = 0;
    for (const auto& stretch : b.thetas) {
      models.push_back(adjoint_.chain.engine().model());
      adjoint_.chain.engine().prepare(models.back(), *stretch.theta, adjoint_.chain.grid(), first, stretch.until);
      first = stretch.until;
    }
    return models;
  }

  detail::ChainAdjoint<T> adjoint_;
  std::size_t first_;  // the first step that is differentiated
};

// Sampler and gradient of a chain as one, for nested loops with a fresh batch each step: those take sampling and
// gradient in one go.
template <class T>
class DenoisingEngine : public DenoisingSampler<T>, public PathGradient<T> {
 public:
  using Theta = typename StepsOf<T>::Theta;

  // As PathGradient's. The chain must live as long.
  DenoisingEngine(ReverseChain<T>& chain, typename StepsOf<T>::Reward reward, DenoisingObjective objective = {})
      : DenoisingSampler<T>(chain), PathGradient<T>(chain, std::move(reward), objective) {}

  DenoisingCost cost() const { return DenoisingSampler<T>::cost() + PathGradient<T>::cost(); }
};

// Compiled in the library, once and at its level of optimisation.
extern template class detail::ChainAdjoint<float>;
extern template class detail::ChainAdjoint<double>;
extern template class detail::Replay<float>;
extern template class detail::Replay<double>;
extern template class PathGradient<float>;
extern template class PathGradient<double>;
extern template class DenoisingEngine<float>;
extern template class DenoisingEngine<double>;

}  // namespace implicit_diffusion
