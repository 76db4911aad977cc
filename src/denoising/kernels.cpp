// The kernels of the built-in score models, compiled once for each level as those of src/langevin/kernels.cpp are.
#include "kernel_table.hpp"

namespace implicit_diffusion::kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {
namespace {

template <class N>
constexpr ScoreKernelSet make_score_set() {
  return {make_score_kernels<N, MixtureScore<Spread::isotropic>::Level>(),
          make_score_kernels<N, MixtureScore<Spread::diagonal>::Level>(),
          make_score_kernels<N, MixtureScore<Spread::cholesky>::Level>()};
}

}  // namespace

#ifdef IMPLICIT_DIFFUSION_PLAIN
extern const ScoreKernelSet plain_score_kernels;
const ScoreKernelSet plain_score_kernels = make_score_set<float>();
#else
extern const ScoreKernelSet lane_score_kernels;
const ScoreKernelSet lane_score_kernels = make_score_set<Lanes>();
#endif

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace implicit_diffusion::kernel
