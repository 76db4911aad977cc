// Kernels of score models: 16 lanes against single floats bit for bit, at every level this machine has, for all forms
// of spreads, in the plane and outside of it, odd numbers of samples and samples far from all components included.
#include "implicit_diffusion/simd/isa.hpp"
#include "src/denoising/kernel_table.hpp"
#include "src/langevin/kernel_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace implicit_diffusion {

// Compiled for the tests alone, with and without fma.
namespace kernel {
inline namespace baseline {
extern const KernelSet plain_kernels;
}
namespace v3 {
extern const KernelSet plain_kernels;
}
}  // namespace kernel

namespace {

struct Sets {
  Isa level;
  const ScoreKernelSet &lanes, &plain;
};
std::vector<Sets> sets() {
  std::vector<Sets> all{{Isa::baseline, kernels_of(Isa::baseline).scores(), kernel::baseline::plain_kernels.scores()}};
  if (machine_isa() >= Isa::v3)
    all.push_back({Isa::v3, kernels_of(Isa::v3).scores(), kernel::v3::plain_kernels.scores()});
  if (machine_isa() >= Isa::v4)
    all.push_back({Isa::v4, kernels_of(Isa::v4).scores(), kernel::v3::plain_kernels.scores()});
  return all;
}

// What kernels compute, for n samples.
struct Results {
  std::vector<float> moved, penalty, adjoint;
  std::vector<double> sums;
  friend bool operator==(const Results&, const Results&) = default;
};

// One sample in 37 is far out, where the highest exponent is subtracted.
float coordinate(std::size_t i, std::size_t k) {
  return static_cast<float>((i % 37 == 5 ? 60.0 : 2.0) * std::sin(1.0 + 1.3 * static_cast<double>(k)));
}

enum class Base { none, given };
enum class StepNoise { none, given };

template <class L>
Results results(const ScoreKernels<float, L>& kernels, const L& level, const L& frozen, std::size_t n, std::size_t d,
                Base base, StepNoise noise) {
  Population<float> from(n, d), to(n, d);
  Results r{{}, std::vector<float>(block_size, 0.5f), std::vector<float>(d * block_size), {}};
  std::vector<float> normals(d * block_size);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) {
      from(i, j) = coordinate(i, i * d + j);
      r.adjoint[j * block_size + i] = coordinate(0, 7 + i * d + j);
    }
  for (std::size_t k = 0; k < normals.size(); ++k) normals[k] = coordinate(0, 3 * k);
  r.sums.resize(level.sums());

  const StepCoefficients c{.growth = 1.02, .pull = 0.1, .noise = 0.3, .penalty = 0.7};
  const L* other = base == Base::given ? &frozen : nullptr;
  kernels.forward(level, other,
                  {.c = c,
                   .from = from.block(0),
                   .to = to.block(0),
                   .noise = noise == StepNoise::given ? normals.data() : nullptr,
                   .penalty = r.penalty.data()});
  kernels.backward(level, other,
                   {.c = c, .beta = 0.4, .at = from.block(0), .adjoint = r.adjoint.data(), .sums = r.sums.data()});
  for (std::size_t j = 0; j < d; ++j)
    for (const float v : to.coordinate(j)) r.moved.push_back(v);
  return r;
}

template <Spread form>
void expect_lanes_equal_floats() {
  const auto kernels = [](const ScoreKernelSet& set) {
    return std::get<ScoreKernels<float, typename MixtureScore<form>::NoiseLevel>>(set.all);
  };
  for (const std::size_t d : {1, 2, 3, 5}) {
    MixtureScore<form> model(3, d);
    std::vector<double> theta(model.parameters());
    for (std::size_t j = 0; j < theta.size(); ++j)
      theta[j] = (j < model.spread_at(0) ? 1.0 : 0.4) * std::sin(1.7 * static_cast<double>(j) + 1);
    model.prepare(theta);
    const auto level = model.level(0.2);
    theta[1] += 0.1;
    model.prepare(theta);
    const auto frozen = model.level(0.2);
    for (const std::size_t n : {1, 15, 16, 17, 100, 255, 256})
      for (const Base base : {Base::none, Base::given})
        for (const StepNoise noise : {StepNoise::none, StepNoise::given}) {
          std::vector<Results> lanes;
          for (const Sets& s : sets()) {
            lanes.push_back(results(kernels(s.lanes), level, frozen, n, d, base, noise));
            EXPECT_TRUE(lanes.back() == results(kernels(s.plain), level, frozen, n, d, base, noise))
                << to_string(s.level) << ", dimension " << d << ", " << n << " samples";
          }
          if (lanes.size() == 3) {
            EXPECT_TRUE(lanes[1] == lanes[2]) << "v3 and v4, dimension " << d << ", " << n;
          }
          // It can fail: another level of noise gives another result.
          const auto later = model.level(0.21);
          EXPECT_FALSE(lanes[0] == results(kernels(sets()[0].lanes), later, frozen, n, d, base, noise));
        }
  }
}

TEST(ScoreKernels, LanesEqualFloatsBitForBit) {
  expect_lanes_equal_floats<Spread::isotropic>();
  expect_lanes_equal_floats<Spread::diagonal>();
  expect_lanes_equal_floats<Spread::cholesky>();
}

}  // namespace
}  // namespace implicit_diffusion
