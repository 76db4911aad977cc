// The reverse chain as a sampling operator, and the noise it starts from.
//
// A chain makes T steps through the noise levels of a grid (denoising/time_grid.hpp). In a queue of M slots, M dividing T, one sampling step of
// a slot is T / M steps of the chain; M = 1 is the nested loop, M = T the single loop. The noise of step n of a batch is keyed by (birth of the
// batch, n): the same seed gives the same noise at any theta, in any slot, for any number of threads.
#pragma once

#include "implicit_diffusion/denoising/batch.hpp"
#include "implicit_diffusion/denoising/cost.hpp"
#include "implicit_diffusion/denoising/score_model.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/langevin/sampler.hpp"
#include "implicit_diffusion/parallel.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// The normals of a block at a moment, as Noise::normals lays them out.
template <class Real>
using BlockNormals = std::function<void(Moment at, const Block<const Real>& block, Real* out)>;

template <class Real>
BlockNormals<Real> normals_of(Noise noise) {
  return [noise](Moment at, const Block<const Real>& block, Real* out) {
    const std::size_t groups = (block.size + lanes_per_group - 1) / lanes_per_group;
    if constexpr (std::is_same_v<Real, float>) {
      noise.normals(Stream::sampling, at, block.dimension, block.first / lanes_per_group, groups, out);
    } else {
      std::vector<float> single(groups * lanes_per_group * block.dimension);
      noise.normals(Stream::sampling, at, block.dimension, block.first / lanes_per_group, groups, single.data());
      std::copy(single.begin(), single.end(), out);
    }
  };
}

template <class Real>
struct ReverseChainOptions {
  Dynamics dynamics = Dynamics::euler_sde;
  std::size_t slots = 1;       // M
  std::size_t keep_every = 1;  // of the path: 1 keeps all of it, T nothing but its beginning
  BlockNormals<Real> normals = normals_of<Real>(Noise{});
  Workers* workers = nullptr;  // null: the calling thread alone
};

// The chain of a model: what sampler and gradient share. Both hold a reference to it, so that the model is prepared once for each theta.
template <class Real>
class ReverseChain {
 public:
  // `frozen`, with its theta, is the model that paths are to stay close to; it must be of the same type. Throws a usage Error unless M divides
  // T, or where the path KL has no meaning: DDPM's last step has no noise.
  ReverseChain(ScoreModel<Real> model, TimeGrid grid, ReverseChainOptions<Real> options,
               std::optional<std::pair<ScoreModel<Real>, std::vector<double>>> frozen = {})
      : model_(std::move(model)), grid_(std::move(grid)), options_(std::move(options)) {
    if (options_.slots == 0 || grid_.steps() % options_.slots != 0)
      throw Error(ErrorKind::usage, "slots", "their number must divide the number of steps");
    if (options_.keep_every == 0) throw Error(ErrorKind::usage, "keep_every", "it must be positive");
    for (std::size_t m = 0; m < grid_.steps(); ++m)
      coefficients_.push_back(step_coefficients(options_.dynamics, grid_.tau[m], grid_.step(m)));
    if (!frozen) return;
    if (options_.dynamics == Dynamics::ddpm)
      throw Error(ErrorKind::usage, "dynamics", "ddpm has no path KL: its last step has no noise");
    if (!model_.same_type(frozen->first) || frozen->first.dimension() != model_.dimension() ||
        frozen->first.parameters() != model_.parameters() || frozen->second.size() != model_.parameters())
      throw Error(ErrorKind::usage, "frozen model", "it must be of the type and size of the model");
    frozen_ = std::move(frozen->first);
    frozen_->prepare(frozen->second, grid_);
  }

  std::size_t steps() const { return grid_.steps(); }
  std::size_t slots() const { return options_.slots; }
  std::size_t keep_every() const { return options_.keep_every; }
  bool keeps_all() const { return options_.keep_every == 1; }
  const TimeGrid& grid() const { return grid_; }
  const StepCoefficients& coefficients(std::size_t n) const { return coefficients_[n]; }
  std::size_t dimension() const { return model_.dimension(); }
  std::size_t parameters() const { return model_.parameters(); }
  const ScoreModel<Real>& model() const { return model_; }
  const ScoreModel<Real>* frozen() const { return frozen_ ? &*frozen_ : nullptr; }
  Workers* workers() const { return options_.workers; }

  void prepare(std::span<const double> theta) {
    if (prepared_ && std::equal(theta.begin(), theta.end(), theta_.begin(), theta_.end())) return;
    if (theta.size() != parameters()) throw Error(ErrorKind::usage, "theta", "it is not of the size of the model");
    prepared_ = true;
    theta_.assign(theta.begin(), theta.end());
    model_.prepare(theta, grid_);
  }

  // The normals of step n, as Noise::normals lays them out; false where the step has none.
  bool normals(std::int64_t birth, std::size_t n, const Block<const Real>& block, Real* out) const {
    if (!(coefficients_[n].noise > 0)) return false;
    options_.normals({.round = birth, .index = static_cast<std::int64_t>(n)}, block, out);
    return true;
  }

  // Step n of a block of a batch born at `birth`, from -> to, with the prepared model or another one. What a replay does again.
  void forward(const ScoreModel<Real>& model, std::int64_t birth, std::size_t n, Block<const Real> from, Block<Real> to,
               Real* penalty, Real* normals) const {
    const bool noisy = this->normals(birth, n, from, normals);
    model.forward(n, frozen(), {coefficients_[n], from, to, noisy ? normals : nullptr, penalty});
  }

 private:
  ScoreModel<Real> model_;
  TimeGrid grid_;
  ReverseChainOptions<Real> options_;
  std::optional<ScoreModel<Real>> frozen_;
  std::vector<StepCoefficients> coefficients_;
  std::vector<double> theta_;
  bool prepared_ = false;
};

template <class Real>
class DenoisingSampler {
 public:
  // The chain must live as long.
  explicit DenoisingSampler(ReverseChain<Real>& chain) : chain_(chain) {}

  // T / M steps of every sample.
  void advance(PathBatch<Real>& b, std::span<const double> theta, Moment) {
    chain_.prepare(theta);
    const std::size_t first = b.step, last = first + chain_.steps() / chain_.slots();
    if (b.points.dimension() != chain_.dimension())
      throw Error(ErrorKind::usage, "batch", "its dimension is not that of the model");
    if (last > chain_.steps()) throw Error(ErrorKind::usage, "batch", "it has made all its steps");
    const std::size_t keep = chain_.keep_every();
    while (b.path.size() * keep < last) b.path.emplace_back(b.points.size(), b.points.dimension());
    if (chain_.frozen() && b.penalty.empty()) b.penalty.assign(b.points.blocks() * block_size, Real(0));
    for_each_block(chain_.workers(), b.points, [&](std::size_t block) {
      // A state that is kept is made where it is kept; the first and the last are in b.points.
      const Block<Real> y = b.points.block(block);
      const auto place = [&](std::size_t n) { return n % keep == 0 && n < last ? b.path[n / keep].block(block) : y; };
      BlockArray<Real> normals(y.dimension);
      if (first % keep == 0) copy(y, place(first));
      for (std::size_t n = first; n < last; ++n)
        chain_.forward(chain_.model(), b.birth, n, as_const(n == first ? y : place(n)), place(n + 1),
                       chain_.frozen() ? b.penalty.data() + block * block_size : nullptr, normals.data());
    });
    b.step = last;
    if (!chain_.keeps_all()) b.thetas.push_back({last, {theta.begin(), theta.end()}});
    cost_.evaluations += last - first;
    if (chain_.frozen()) cost_.frozen_evaluations += last - first;
  }

  // So far.
  const DenoisingCost& cost() const { return cost_; }

 private:
  static Block<const Real> as_const(const Block<Real>& y) { return {y.data, y.stride, y.size, y.dimension, y.first}; }
  static void copy(const Block<Real>& from, const Block<Real>& to) {
    for (std::size_t j = 0; j < from.dimension; ++j)
      std::copy_n(from.data + j * from.stride, from.size, to.data + j * to.stride);
  }

  ReverseChain<Real>& chain_;
  DenoisingCost cost_;
};

// Fresh batches: N(0, I), keyed by their birth.
template <class Real>
struct DenoisingStart {
  Noise noise{};

  void draw(PathBatch<Real>& b, std::int64_t round) const {
    b.birth = round;
    b.step = 0;
    b.thetas.clear();
    std::fill(b.penalty.begin(), b.penalty.end(), Real(0));
    for (std::size_t k = 0; k < b.points.blocks(); ++k) {
      const Block<Real> y = b.points.block(k);
      BlockArray<float> z(y.dimension);
      block_noise(noise, Stream::initial, {.round = round}, y, z.data());
      for (std::size_t j = 0; j < y.dimension; ++j)
        for (std::size_t i = 0; i < y.size; ++i)
          y.data[j * y.stride + i] =
              static_cast<Real>(z[((i / lanes_per_group) * y.dimension + j) * lanes_per_group + i % lanes_per_group]);
    }
  }
};

}  // namespace implicit_diffusion
