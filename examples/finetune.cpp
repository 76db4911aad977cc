// A diffusion finetuned to a reward, close to where it began: two Gaussians in the plane, the reward x_1, and the KL of paths to those of the
// frozen model. The best law is known, the base times exp(lambda R / beta), and the nested loop finds it.
//
// The model may be any of one's own (own_score.cpp), or one that predicts the noise: FromEpsilon(Mine{}) of denoising/prediction.hpp.
#include <implicit_diffusion/denoising/gradient.hpp>
#include <implicit_diffusion/denoising/mixture_score.hpp>
#include <implicit_diffusion/loop/nested.hpp>
#include <implicit_diffusion/optimizer/adam.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace imd = implicit_diffusion;

// A template that says any_number: then it has a gradient, by dual numbers.
struct FirstCoordinate {
  static constexpr bool any_number = true;
  template <class N>
  N operator()(const N* x) const {
    return x[0];
  }
};

int main() {
  using Model = imd::MixtureScore<imd::Spread::isotropic>;
  const imd::GaussianMixture base{{0.6, 0.4}, {{{-1, 0}, {0.3, 0, 0, 0.3}}, {{1.5, 1}, {0.4, 0, 0, 0.4}}}};
  const Model model(2, 2);
  const std::vector<double> start = model.parameters_of(base);
  const imd::DenoisingObjective objective{.lambda = 0.8, .beta = 1};

  imd::ReverseChain<float> chain(model, imd::uniform_grid(3, 128), {.normals = imd::normals_of<float>(imd::Noise(1))},
                                 std::pair{imd::ScoreModel<float>(model), start});  // the frozen model, and its theta
  // Sampler and gradient in one: a few samples at a time go all the way and back, and no path is kept.
  imd::DenoisingEngine<float> engine(chain, FirstCoordinate{}, objective);
  imd::DenoisingStart<float> fresh{imd::Noise(1)};
  imd::State<imd::PathBatch<float>, imd::Adam> state{
      .theta = start, .population = {}, .optimizer = imd::Adam{{.rate = {.scale = 0.01}}}};
  state.population.points = imd::Population<float>(1000, 2);
  const auto watch = [&](const auto& s) {
    if (s.step == 0 || s.step % 200 != 0) return;
    const imd::BatchObjective seen = imd::objective_of(s.population, imd::Reward<float>(FirstCoordinate{}), objective);
    std::printf("step %4d: reward %.3f, path KL %.3f\n", static_cast<int>(s.step), seen.reward, seen.path_kl);
  };
  imd::nested_loop(engine, engine, fresh, state, {.steps = 800, .inner_steps = 1, .warm_start = false}, watch);

  const imd::GaussianMixture best = imd::tilted_law(base, std::vector<double>{objective.lambda / objective.beta, 0});
  const imd::GaussianMixture found = model.law(state.theta);
  double off = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    off = std::max(off, std::abs(found.weights[i] - best.weights[i]));
    for (std::size_t j = 0; j < 2; ++j)
      off = std::max(off, std::abs(found.components[i].mean[j] - best.components[i].mean[j]));
  }
  std::printf("weights and means within %.3f of the best\n", off);
  return off < 0.1 ? 0 : 1;
}
