// A diffusion small enough for all its numbers: the toy score in the plane, a reward, batches of two, and formulas in
// the place of the noise.
//
// Horizon 2, R(y) = -|y - (1, -1)|^2. The answers are by a program that shares no code with ours; 12 decimals are
// given.
#pragma once

#include "implicit_diffusion/denoising/reconstruction.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "problems/toy_score.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace implicit_diffusion::problems {

struct ToyDiffusion {
  using Vector = std::vector<double>;

  Vector theta{.5, -.3, .2, -.4, .1, .3};
  Vector frozen{.1, .2, -.1, .3, .25, -.2};

  struct Distance {
    static constexpr bool any_number = true;
    template <class N>
    N operator()(const N* y) const {
      return -(y[0] - 1) * (y[0] - 1) - (y[1] + 1) * (y[1] + 1);
    }
  };

  // A number for each moment, sample i and coordinate j where the noise would be, in its layout.
  template <class F>
  static BlockNormals<double> stand_in(F f) {
    return [f](StepKey at, const Block<const double>& block, double* out) {
      for (std::size_t i = 0; i < block.size; ++i)
        for (std::size_t j = 0; j < block.dimension; ++j)
          out[(i / lanes_per_group * block.dimension + j) * lanes_per_group + i % lanes_per_group] =
              f(at, static_cast<double>(block.first + i), static_cast<double>(j));
    };
  }
  BlockNormals<double> fixed_noise = stand_in(
      [](StepKey at, double i, double j) { return std::sin(1 + static_cast<double>(at.index) + 2 * i + 3 * j); });
  BlockNormals<double> queue_noise = stand_in([](StepKey at, double i, double j) {
    return std::sin(1 + .9 * static_cast<double>(at.round) + 1.7 * static_cast<double>(at.index) + 2 * i + 3 * j);
  });

  ReverseChain<double> chain(Dynamics dynamics, std::size_t steps, ReverseChainOptions<double> options = {},
                             bool with_frozen = false) const {
    options.dynamics = dynamics;
    std::optional<std::pair<ScoreModel<double>, Vector>> base;
    if (with_frozen) base.emplace(ToyScore{}, frozen);
    return {ToyScore{}, uniform_grid(2, steps), std::move(options), std::move(base)};
  }

  // Adjoints of one batch in 4 steps, with fixed_noise: the gradient and the objective, lambda = 1 and beta = 0.
  Vector start{.3, -.8, 1.1, .4};  // two samples
  Vector ode_gradient{.586123730179, .916325391667, 1.230031237674, -.279479421802, 2.59567594566, 2.321466227113};
  double ode_objective = 1.585159346088;
  Vector sde_end{1.114382708071, -.461540774392, -1.059814986682, 1.11661795439};
  Vector sde_gradient{-1.734061974421, 2.702942266904, 1.396599849193, -2.872102987144, .782404411895, 2.31834386893};
  double sde_objective = 4.512965542878;
  // The SDE with the path KL to the frozen model.
  DenoisingObjective with_kl{.lambda = 1.3, .beta = .7};
  Vector kl_gradient{-1.925826975985, 3.183042518162, 3.199699321627, -5.238199781841, -.048260335005, 4.258947827913};
  double kl_objective = 7.039276810983, path_kl = 1.674888007488;

  // theta after 5 steps of the queue with gradient descent at 0.05, 4 steps a sample, with queue_noise, whole paths
  // kept.
  struct Queue {
    Dynamics dynamics;
    std::size_t slots;
    Vector theta;
  };
  std::vector<Queue> queues{
      {Dynamics::euler_ode,
       4,
       {.692724703768, -.607143187306, -.495014492608, .008888728196, .475676117079, -.290105379686}},
      {Dynamics::euler_ode,
       2,
       {.714391671885, -.613780263274, -.374916697354, -.030279015752, .323074757795, -.189522939961}},
      {Dynamics::euler_ode,
       1,
       {.642867210646, -.577848217635, -.371493565596, .010619985252, .377226470156, -.286044657142}},
      {Dynamics::euler_sde,
       4,
       {.680673048559, -.755305379771, .251495398518, -.475845711837, -.066425925201, .362974639768}},
      {Dynamics::euler_sde,
       2,
       {.658890911847, -.652451912927, .185461841148, -.386369683304, -.073885863455, .252703133199}},
      {Dynamics::euler_sde,
       1,
       {.709377467688, -.68755786252, .074164129206, -.260265315388, .056676203267, .136138762221}}};
  // The same of the ODE with nothing kept and states found again, by 1 + refinements iterations.
  struct Reconstructed {
    std::size_t slots, refinements;
    Vector theta;
  };
  std::vector<Reconstructed> reconstructed{
      {4, 0, {.699119335955, -.605756496721, -.56131019318, .091415305806, .58121995498, -.318730532395}},
      {4, 60, {.69860690078, -.606757601352, -.548437383453, .094897150666, .599380484665, -.317760930907}},
      {2, 0, {.714519236215, -.610731360957, -.372201386433, -.037993880652, .353846191113, -.185845906184}},
      {1, 0, {.645543655931, -.576747520677, -.421211623755, .03747915898, .458258252318, -.325067915491}}};
  // After 9 steps of the double queue.
  Vector double_queue{.769747010622, -.611732098588, -.437958661483, .078548544138, .535855318516, -.404641734117};

  // Fresh batches: cos(1.3 k + .7 i + 2.1 j) for birth k.
  struct Fresh {
    void draw(PathBatch<double>& b, std::int64_t round) const {
      b = PathBatch<double>{};
      b.birth = round;
      b.points = Population<double>(2, 2);
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 2; ++j)
          b.points(i, j) =
              std::cos(1.3 * static_cast<double>(round) + .7 * static_cast<double>(i) + 2.1 * static_cast<double>(j));
    }
  };

  // One batch from `start` to its end, and its gradient.
  struct Estimate {
    Vector gradient;
    BatchObjective objective;
    PathBatch<double> batch;
  };
  Estimate estimate(ReverseChain<double>& c, const DenoisingObjective& o, const Vector& at) const {
    Estimate e{Vector(6), {}, {}};
    e.batch.points = Population<double>(2, 2);
    for (std::size_t i = 0; i < 4; ++i) e.batch.points(i / 2, i % 2) = start[i];
    DenoisingSampler<double>(c).advance(e.batch, at, {});
    PathGradient<double>(c, Distance{}, o).estimate(e.batch, at, 0, e.gradient);
    e.objective = objective_of<double>(e.batch, Distance{}, o);
    return e;
  }

  using QueueStateOf = QueueState<PathBatch<double>, GradientDescent>;
  template <class Estimator>
  Vector run_queue(ReverseChain<double>& c, Estimator& estimator, std::int64_t steps) const {
    DenoisingSampler<double> sampler(c);
    Fresh fresh;
    QueueStateOf s{0, theta, {}, GradientDescent{{.05}}};
    const QueueOptions options{.steps = steps, .slots = static_cast<std::int64_t>(c.slots())};
    start_queue(sampler, fresh, s, options, PathBatch<double>{});
    (void)queue_loop(sampler, estimator, fresh, s, options);
    return s.theta;
  }

  // theta after 0, 1, ... steps.
  std::vector<Vector> run_double_queue(std::int64_t steps) const {
    auto c = chain(Dynamics::euler_ode, 4, {.slots = 4});
    DenoisingSampler<double> sampler(c);
    DenoisingBackward<double> backward(c, Distance{});
    Fresh fresh;
    QueueStateOf warm{0, theta, {}, GradientDescent{}};
    start_queue(sampler, fresh, warm, {.slots = 4}, PathBatch<double>{});
    DoubleQueueState<PathBatch<double>, BackwardBatch<double>, GradientDescent> s{
        0, theta, warm.slots, {}, GradientDescent{{.05}}};
    std::vector<Vector> thetas;
    (void)double_queue_loop(sampler, backward, fresh, s, steps, [&](const auto& now) { thetas.push_back(now.theta); });
    return thetas;
  }
};

}  // namespace implicit_diffusion::problems
