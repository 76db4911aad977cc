// The kernels of the built-in score models, compiled once for each level as those of src/langevin/kernels.cpp are.
#include "../random/kernels.hpp"
#include "kernel_table.hpp"

namespace implicit_diffusion::kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {

template <class N>
const ScoreKernelSet& score_kernels() {
  static constexpr ScoreKernelSet kernels{{make_score_kernels<N, MixtureScore<Spread::isotropic>::NoiseLevel>(),
                                           make_score_kernels<N, MixtureScore<Spread::diagonal>::NoiseLevel>(),
                                           make_score_kernels<N, MixtureScore<Spread::cholesky>::NoiseLevel>()}};
  return kernels;
}
template const ScoreKernelSet& score_kernels<Chosen>();

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace implicit_diffusion::kernel
