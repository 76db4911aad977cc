// The engine over the library's own populations.
#include "implicit_diffusion/langevin/estimator.hpp"

namespace implicit_diffusion {

template class RewardTerm<float>;
template class Langevin<float>;
template class Langevin<double>;
template class GradientEstimator<float>;
template class GradientEstimator<double>;
template class LangevinEngine<float>;
template class LangevinEngine<double>;

}  // namespace implicit_diffusion
