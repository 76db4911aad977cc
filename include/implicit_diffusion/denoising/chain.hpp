// The reverse chain of a model: T steps through the noise levels of a grid (denoising/time_grid.hpp), which sampler and
// gradient share.
//
// A queue holds M batches ("slots", where M divides T), each at another stage of the chain. For every step of theta,
// each slot advances by T / M steps of the chain. With M = T that is one step of the chain for one step of theta, as in
// the single loop of Langevin sampling. With M = 1 a batch takes all T steps before theta moves: the nested loop.
//
// The noise of step n of a batch is keyed by (birth of the batch, n): the same seed gives the same noise at any theta,
// in any slot, for any number of threads.
#pragma once

#include "implicit_diffusion/denoising/batch.hpp"
#include "implicit_diffusion/error.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace implicit_diffusion {

struct ChainSettings {
  Dynamics dynamics = Dynamics::euler_sde;
  std::size_t slots = 1;       // M
  std::size_t keep_every = 1;  // of the path: 1 keeps all of it, T or more nothing but its beginning
  LastStep last_step = LastStep::noise;
};

// The same for models that are written point by point, with their noise and workers.
template <class Real>
struct ReverseChainOptions {
  Dynamics dynamics = Dynamics::euler_sde;
  std::size_t slots = 1;
  std::size_t keep_every = 1;
  BlockNormals<Real> normals = normals_of<Real>(Noise{});
  Workers* workers = nullptr;  // null: the calling thread alone
  LastStep last_step = LastStep::noise;
};

// T: float or double, or an engine. Samplers and gradients hold a reference to the chain, so that the model is prepared
// once for each theta.
template <class T>
class ReverseChain {
 public:
  using Steps = StepsOf<T>;
  using Model = typename Steps::Model;
  using Theta = typename Steps::Theta;
  static_assert(ReverseSteps<Steps>);

  // `frozen`, with its theta, is the model that paths are to stay close to. Throws a usage Error unless M divides T, or
  // where the path KL has no meaning: DDPM's last step has no noise.
  ReverseChain(Steps steps, TimeGrid grid, ChainSettings settings, std::optional<std::pair<Model, Theta>> frozen = {})
      : steps_(std::move(steps)), grid_(std::move(grid)), settings_(settings), model_(steps_.model()) {
    bool descends = grid_.tau.size() > 1 && std::isfinite(grid_.tau[0]) && grid_.tau.back() == 0;
    for (std::size_t m = 0; descends && m < grid_.steps(); ++m) descends = grid_.step(m) > 0;
    if (!descends) throw Error(ErrorKind::usage, "grid", "its noise levels must descend to 0");
    if (settings_.slots == 0 || grid_.steps() % settings_.slots != 0)
      throw Error(ErrorKind::usage, "slots", "their number must divide the number of steps");
    if (settings_.keep_every == 0) throw Error(ErrorKind::usage, "keep_every", "it must be positive");
    settings_.keep_every = std::min(settings_.keep_every, grid_.steps());
    for (std::size_t m = 0; m < grid_.steps(); ++m)
      coefficients_.push_back(step_coefficients(settings_.dynamics, grid_.tau[m], grid_.step(m)));
    if (settings_.last_step == LastStep::mean) coefficients_.back().noise = 0;
    if (!frozen) return;
    if (settings_.dynamics == Dynamics::ddpm)
      throw Error(ErrorKind::usage, "dynamics", "ddpm has no path KL: its last step has no noise");
    if (!steps_.fits(frozen->first) || !steps_.fits(frozen->second))
      throw Error(ErrorKind::usage, "frozen model", "it must be of the type and size of the model");
    frozen_ = std::move(frozen->first);
    steps_.prepare(*frozen_, frozen->second, grid_, 0, grid_.steps());
  }
  ReverseChain(ScoreModel<T> model, TimeGrid grid, ReverseChainOptions<T> options,
               std::optional<std::pair<ScoreModel<T>, std::vector<double>>> frozen = {}) requires std::floating_point<T>
      : ReverseChain(Steps(std::move(model), std::move(options.normals), options.workers), std::move(grid),
                     {options.dynamics, options.slots, options.keep_every, options.last_step},
                     frozen ? std::optional(std::pair{Model{std::move(frozen->first)}, std::move(frozen->second)})
                            : std::nullopt) {}

  std::size_t steps() const { return grid_.steps(); }
  std::size_t slots() const { return settings_.slots; }
  std::size_t keep_every() const { return settings_.keep_every; }
  bool keeps_all() const { return settings_.keep_every == 1; }
  const TimeGrid& grid() const { return grid_; }
  const StepCoefficients& coefficients(std::size_t n) const { return coefficients_[n]; }
  const Steps& engine() const { return steps_; }
  const Model& model() const { return model_; }  // at the theta of the last prepare()
  const Model* frozen() const { return frozen_ ? &*frozen_ : nullptr; }
  Workers* workers() const { return steps_.workers(); }

  void prepare(const Theta& theta) {
    if (!steps_.fits(theta)) throw Error(ErrorKind::usage, "theta", "it is not of the size of the model");
    if (steps_.prepare(model_, theta, grid_, 0, grid_.steps())) shared_.reset();
  }
  // A copy of the theta of the last prepare(), one for all who ask for it.
  std::shared_ptr<const Theta> share(const Theta& prepared) {
    if (!shared_) shared_ = std::make_shared<const Theta>(prepared);
    return shared_;
  }

  // Step n of a batch born at `birth`.
  ReverseStep step(std::size_t n, std::int64_t birth = 0) const {
    return {n, grid_.tau[n], coefficients_[n], {.round = birth, .index = static_cast<std::int64_t>(n)}};
  }
  // That step for tile k of the batch, with what it adds to the path KL.
  void forward(PathBatch<T>& b, std::size_t k, std::size_t n, const typename Steps::ConstTile& from,
               const typename Steps::Tile& to) const {
    if (frozen_)
      steps_.forward(model_, &*frozen_, step(n, b.birth), from, to, Steps::numbers_of(b.penalty, k));
    else
      steps_.forward(model_, nullptr, step(n, b.birth), from, to, nullptr);
  }

 private:
  Steps steps_;
  TimeGrid grid_;
  ChainSettings settings_;
  std::vector<StepCoefficients> coefficients_;
  Model model_;
  std::optional<Model> frozen_;
  std::shared_ptr<const Theta> shared_;
};

// Compiled in the library, once and at its level of optimisation.
extern template class ReverseChain<float>;
extern template class ReverseChain<double>;

}  // namespace implicit_diffusion
