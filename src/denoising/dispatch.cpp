// Which level's kernels of the score models run.
#include "kernel_table.hpp"

#include "implicit_diffusion/simd/level.hpp"

namespace implicit_diffusion {

// Defined by kernels.cpp, once for each level.
namespace kernel {
inline namespace baseline {
extern const ScoreKernelSet lane_score_kernels;
}
namespace v3 {
extern const ScoreKernelSet lane_score_kernels;
}
namespace v4 {
extern const ScoreKernelSet lane_score_kernels;
}
}  // namespace kernel

namespace {
const ScoreKernelSet& active_score_kernels() {
  switch (active_level()) {
    case Level::v4:
      return kernel::v4::lane_score_kernels;
    case Level::v3:
      return kernel::v3::lane_score_kernels;
    case Level::baseline:
      break;
  }
  return kernel::baseline::lane_score_kernels;
}
}  // namespace

#define IMPLICIT_DIFFUSION_SCORE_KERNELS(form)                                                        \
  template <>                                                                                         \
  const ScoreKernels<float, MixtureScore<Spread::form>::Level>&                                       \
  score_kernels<float, MixtureScore<Spread::form>::Level>(const MixtureScore<Spread::form>::Level&) { \
    return active_score_kernels().form;                                                               \
  }
IMPLICIT_DIFFUSION_SCORE_KERNELS(isotropic)
IMPLICIT_DIFFUSION_SCORE_KERNELS(diagonal)
IMPLICIT_DIFFUSION_SCORE_KERNELS(cholesky)

}  // namespace implicit_diffusion
