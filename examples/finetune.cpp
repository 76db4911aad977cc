// A diffusion finetuned to a reward, close to where it began: two Gaussians in the plane, the reward x_1, and the KL of
// paths to those of the frozen model. The best law is known, the base times exp(lambda R / beta), and the nested loop
// finds it.
//
// The model may be any of your own (own_score.cpp), or one that predicts the noise: FromEpsilon(Mine{}) of
// denoising/prediction.hpp.
#include <implicit_diffusion/denoising.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

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
  const imd::GaussianMixture base{{0.6, 0.4}, {{{-1, 0}, {0.3, 0, 0, 0.3}}, {{1.5, 1}, {0.4, 0, 0, 0.4}}}};
  const imd::MixtureScore<imd::Spread::isotropic> model(2, 2);
  const std::vector<double> start = model.parameters_of(base);
  constexpr double lambda = 0.8, beta = 1;

  const auto watch = [](const auto& seen) {
    if (seen.step % 200 == 0)
      std::printf("step %4d: logit of the second weight %.3f\n", static_cast<int>(seen.step),
                  seen.theta[1] - seen.theta[0]);
  };
  const auto result = imd::optimise(imd::DenoisingProblem(model, FirstCoordinate{}, lambda).stay_close(start, beta),
                                    start, imd::Adam(0.01), {.batch = 1000, .steps = 800, .seed = 1}, watch);
  std::puts(imd::describe(result).c_str());

  const imd::GaussianMixture best = imd::tilted_law(base, std::vector<double>{lambda / beta, 0});
  const imd::GaussianMixture found = model.law(result.theta);
  double off = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    off = std::max(off, std::abs(found.weights[i] - best.weights[i]));
    for (std::size_t j = 0; j < 2; ++j)
      off = std::max(off, std::abs(found.components[i].mean[j] - best.components[i].mean[j]));
  }
  std::printf("weights and means within %.3f of the best\n", off);
  return result.completed() && off < 0.1 ? 0 : 1;
}
