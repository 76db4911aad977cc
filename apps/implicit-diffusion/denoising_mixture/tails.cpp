#include "denoising_mixture/tails.hpp"

#include "implicit_diffusion/denoising/contributions.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"

namespace program {

using namespace implicit_diffusion;

Concentration gradient_concentration(const DenoisingConfiguration& c, const std::vector<double>& theta,
                                     std::size_t steps, std::size_t groups) {
  const Noise noise(~c.seed);  // seeds of runs are below 2^63
  const MixtureModel model = c.model();
  ReverseChain<float> chain(model.score<float>(), c.grid(steps),
                            {.dynamics = c.dynamics, .normals = normals_of<float>(noise)},
                            std::pair{model.score<float>(), model.parameters_of(c.base)});
  return concentration(squared_deviations(group_gradients<float>(chain, LinearReward{c.direction}, {c.lambda, c.beta},
                                                                 DenoisingStart<float>{noise}, theta, groups)));
}

}  // namespace program
