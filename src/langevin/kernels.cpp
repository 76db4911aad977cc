// The kernels of the built-in parts. This file is compiled once for each level, with that level's compiler options; its
// functions are in a namespace of the level, and nothing in it may become a symbol that levels share.
//
// With IMPLICIT_DIFFUSION_PLAIN it is compiled over single floats instead of lanes: the reference that tests compare
// the lanes with.
#include "../random/kernels.hpp"
#include "kernel_table.hpp"

namespace implicit_diffusion::kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {
namespace {

// The component is the number of bounds that a uniform number is not below; means and factors follow it bound by bound,
// without a branch.
template <class Real>
[[gnu::flatten]] void mixture_samples(const MixtureTable& m, const Block<float>& samples, const float* normals,
                                      const float* words) {
  const Block<float> x = samples;
  const std::size_t d = m.dimension, numbers = m.numbers_per_component();
  const auto* bound = m.bounds.of<Real>();
  const auto* component = m.components.of<Real>();
  auto* chosen = static_cast<Real*>(kernel_scratch(numbers * sizeof(Real)));
  for (std::size_t i = 0; i < x.size; i += width<Real>) {
    const std::size_t group = i / noise_lanes, lane = i % noise_lanes;
    const Real u = to_real(shift_right_logical<8>(as_integer(load<Real>(words + i)))) * Real(0x1p-24f);
    for (std::size_t k = 0; k < numbers; ++k) chosen[k] = Real(component[k]);
    for (std::size_t c = 1; c < m.size; ++c) {
      const auto beyond = u >= Real(bound[c - 1]);
      for (std::size_t k = 0; k < numbers; ++k) chosen[k] = select(beyond, Real(component[c * numbers + k]), chosen[k]);
    }
    // x_a = mean_a + sum_b L_ab z_b, b <= a.
    for (std::size_t a = 0, k = d; a < d; ++a) {
      Real sum = chosen[a];
      for (std::size_t b = 0; b <= a; ++b, ++k)
        sum = fma(chosen[k], load<Real>(normals + (group * d + b) * noise_lanes + lane), sum);
      store(sum, x.data + a * x.stride + i);
    }
  }
}

template <class Real>
[[gnu::flatten]] void exponentials(const float* in, std::size_t groups, float* out) {
  for (std::size_t i = 0; i < groups * noise_lanes; i += width<Real>) store(exp2_fixed(load<Real>(in + i)), out + i);
}

template <class N>
constexpr KernelSet make_set() {
  return {std::apply([](auto... part) { return std::tuple(over<N>(part)...); },
                     all_kernels<float>(BuiltinPotentials(), BuiltinRewards())),
          &score_kernels<N>,
          &normals<N>,
          &bits<N>,
          &mixture_samples<N>,
          &exponentials<N>,
          &pass<N, 2, Wanted::step_and_sums, false, RingByHand>,
          &pass<N, 2, Wanted::step_and_sums, false, RingByDuals>};
}

}  // namespace

#ifdef IMPLICIT_DIFFUSION_PLAIN
extern const KernelSet plain_kernels;
const KernelSet plain_kernels = make_set<Chosen>();
#else
extern const KernelSet lane_kernels;
const KernelSet lane_kernels = make_set<Chosen>();
#endif

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace implicit_diffusion::kernel
