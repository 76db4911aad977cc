// Gradients through chains without noise that store no path: states are found again from the last one, by following the
// chain backwards.
//
// A step back solves z_n + h mu(t_n, z_n) = z_{n+1} by the iteration z <- z_{n+1} - h mu(t_n, z), 1 + `refinements`
// times from z_{n+1}. The gradient is wrong by O(h^(1 + refinements)), and the iteration converges where h times the
// Lipschitz constant is below 1.
//
// ReconstructedGradient goes all the way back at once. DenoisingBackward takes a batch back one step at a time, for the
// double queue (loop/double_queue.hpp).
#pragma once

#include "implicit_diffusion/denoising/gradient.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace implicit_diffusion {
namespace detail {

// Step n of a batch followed backwards: z_n from z_{n+1}, then the adjoint there. a: of a Scratch or of Adjoints.
template <class T, class Sum>
void follow_back(const ChainAdjoint<T>& adjoint, std::size_t n, std::int64_t birth, std::size_t refinements,
                 const typename StepsOf<T>::Tile& z, const typename StepsOf<T>::Tile& a, Sum&& sum) {
  using Steps = StepsOf<T>;
  typename Steps::Scratch memory(z, 2);
  const auto image = memory[0], guess = memory[1];
  Steps::copy(z, guess);
  for (std::size_t r = 0; r <= refinements; ++r) {
    adjoint.chain.engine().forward(adjoint.chain.model(), nullptr, adjoint.chain.step(n, birth), guess, image, nullptr);
    Steps::step_back(z, image, guess);  // the image is guess + h mu
  }
  Steps::copy(guess, z);
  adjoint.step(n, birth, z, a, sum);
}

template <class T>
void require_no_noise(const ReverseChain<T>& chain) {
  for (std::size_t n = 0; n < chain.steps(); ++n)
    if (chain.coefficients(n).noise > 0)
      throw Error(ErrorKind::usage, "dynamics", "a chain with noise cannot be followed backwards without it");
}

}  // namespace detail

template <class T>
class ReconstructedGradient {
 public:
  using Steps = StepsOf<T>;
  using Theta = typename Steps::Theta;

  ReconstructedGradient(ReverseChain<T>& chain, typename Steps::Reward reward, DenoisingObjective objective = {},
                        std::size_t refinements = 0)
      : adjoint_(chain, std::move(reward), objective), refinements_(refinements) {
    detail::require_no_noise(chain);
  }

  void estimate(const PathBatch<T>& b, const Theta& theta, std::int64_t, Theta& gradient) {
    const std::size_t steps = adjoint_.chain.steps();
    adjoint_.require_finished(b);
    std::vector<double> errors(Steps::tiles(b.points), 0.0);
    adjoint_.mean(b, theta, gradient, [&](std::size_t k, auto&& sum) {
      const auto end = Steps::tile(b.points, k);
      typename Steps::Scratch memory(end, 2);
      const auto a = memory[0], z = memory[1];
      adjoint_.begin(end, a);
      Steps::copy(end, z);
      for (std::size_t n = steps; n-- > 0;) detail::follow_back(adjoint_, n, b.birth, refinements_, z, a, sum);
      if (!b.path.empty()) errors[k] = Steps::largest_difference(z, Steps::tile(b.path.front(), k));
    });
    error_ = errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end());
    adjoint_.count(steps, steps * (1 + refinements_));
  }

  std::optional<std::size_t> find_inadmissible(const Theta& theta) const { return adjoint_.find_inadmissible(theta); }

  // The largest distance of a reconstructed beginning from the true one in the last estimate, of the samples here.
  double reconstruction_error() const { return error_; }
  // So far.
  const DenoisingCost& cost() const { return adjoint_.cost; }

 private:
  detail::ChainAdjoint<T> adjoint_;
  std::size_t refinements_;
  double error_ = 0;
};

// A batch on its way back through a double queue.
template <class T>
struct BackwardBatch {
  typename StepsOf<T>::Samples points;    // Z
  typename StepsOf<T>::Adjoints adjoint;  // A
  typename StepsOf<T>::Rows gradients;    // G, of each tile
  std::size_t step = 0;                   // steps made
  std::int64_t birth = 0;                 // of the batch
};

template <class T>
class DenoisingBackward {
 public:
  using Steps = StepsOf<T>;
  using Theta = typename Steps::Theta;

  DenoisingBackward(ReverseChain<T>& chain, typename Steps::Reward reward, DenoisingObjective objective = {})
      : adjoint_(chain, std::move(reward), objective) {
    detail::require_no_noise(chain);
  }

  // `theta` gives the gradient its shape.
  BackwardBatch<T> begin(const PathBatch<T>& finished, const Theta& theta) const {
    adjoint_.require_finished(finished);
    BackwardBatch<T> b{finished.points, Steps::adjoints(finished.points), Steps::rows(finished.points, theta), 0,
                       finished.birth};
    for (std::size_t k = 0; k < Steps::tiles(b.points); ++k)
      adjoint_.begin(Steps::tile(finished.points, k), Steps::tile_of(b.adjoint, b.points, k));
    return b;
  }

  // Through step T - 1 - s of the chain.
  void step(BackwardBatch<T>& b, std::size_t s, const Theta& theta) {
    adjoint_.chain.prepare(theta);
    const std::size_t steps = adjoint_.chain.steps();
    if (s != b.step || s >= steps) throw Error(ErrorKind::usage, "batch", "this is not its next step back");
    ++b.step;
    Steps::for_each(adjoint_.chain.workers(), Steps::tiles(b.points), [&](std::size_t k) {
      detail::follow_back(adjoint_, steps - 1 - s, b.birth, 0, Steps::tile(b.points, k),
                          Steps::tile_of(b.adjoint, b.points, k), Steps::row(b.gradients, theta, k));
    });
    adjoint_.count(1, 1);
  }

  // What a batch that is back came to.
  void gradient(const BackwardBatch<T>& b, Theta& gradient) const {
    if (b.step != adjoint_.chain.steps())
      throw Error(ErrorKind::usage, "slots", "a double queue has one for each step of the chain");
    adjoint_.require_room(gradient);
    Steps::add_up(b.gradients, b.points, gradient);
    adjoint_.divide(gradient, total_of(b.points));
  }

  std::optional<std::size_t> find_inadmissible(const Theta& theta) const { return adjoint_.find_inadmissible(theta); }

  // So far: an evaluation and a product for each step back.
  const DenoisingCost& cost() const { return adjoint_.cost; }

 private:
  detail::ChainAdjoint<T> adjoint_;
};

}  // namespace implicit_diffusion
