// The algorithms over the library's own populations.
#include "implicit_diffusion/denoising/gradient.hpp"

namespace implicit_diffusion {

template class PointwiseSteps<float>;
template class PointwiseSteps<double>;
template class ReverseChain<float>;
template class ReverseChain<double>;
template class DenoisingSampler<float>;
template class DenoisingSampler<double>;
template class detail::ChainAdjoint<float>;
template class detail::ChainAdjoint<double>;
template class detail::Replay<float>;
template class detail::Replay<double>;
template class PathGradient<float>;
template class PathGradient<double>;
template class DenoisingEngine<float>;
template class DenoisingEngine<double>;
template const ScoreKernels<float, GaussianScore::NoiseLevel>& score_kernels();

}  // namespace implicit_diffusion
