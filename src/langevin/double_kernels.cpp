// The kernels of the built-in parts on double: the reference, one number at a time.
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/langevin/wells.hpp"

namespace implicit_diffusion {

#define IMPLICIT_DIFFUSION_POTENTIAL(Type)                                                                    \
  template <>                                                                                                 \
  const PotentialKernels<double, Type>& potential_kernels<double>(const Type&) {                              \
    static constexpr PotentialKernels<double, Type> kernels = kernel::make_potential_kernels<double, Type>(); \
    return kernels;                                                                                           \
  }
#define IMPLICIT_DIFFUSION_REWARD(Type)                                                                 \
  template <>                                                                                           \
  const RewardKernels<double, Type>& reward_kernels<double>(const Type&) {                              \
    static constexpr RewardKernels<double, Type> kernels = kernel::make_reward_kernels<double, Type>(); \
    return kernels;                                                                                     \
  }
IMPLICIT_DIFFUSION_POTENTIAL(Quadratic)
IMPLICIT_DIFFUSION_POTENTIAL(SoftmaxWells)
IMPLICIT_DIFFUSION_POTENTIAL(LogisticWells)
IMPLICIT_DIFFUSION_POTENTIAL(Mixture)
IMPLICIT_DIFFUSION_REWARD(HardReward)
IMPLICIT_DIFFUSION_REWARD(SmoothReward)
IMPLICIT_DIFFUSION_REWARD(BumpReward)
IMPLICIT_DIFFUSION_REWARD(QuadraticReward)

#undef IMPLICIT_DIFFUSION_POTENTIAL
#undef IMPLICIT_DIFFUSION_REWARD

}  // namespace implicit_diffusion
