// Kernels: 16 lanes against single floats bit for bit, at every level this machine has, odd sizes and far samples
// included; and both against double precision with the standard library's functions.
#include "implicit_diffusion/langevin/kernel.hpp"

#include "problems/hexagon.hpp"
#include "src/langevin/kernel_table.hpp"

#include <gtest/gtest.h>

#include <array>
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

const KernelSet& plain_of(Isa level) {
  return level == Isa::baseline ? kernel::baseline::plain_kernels : kernel::v3::plain_kernels;
}

std::vector<Isa> levels() {
  std::vector<Isa> all;
  for (const Isa l : {Isa::baseline, Isa::v3, Isa::v4})
    if (l <= machine_isa()) all.push_back(l);
  return all;
}

// All that the passes of one block give.
struct Results {
  std::vector<float> values, gradient, moved;
  std::vector<double> sums, mixed;
  bool nonfinite = false;

  friend bool operator==(const Results&, const Results&) = default;
};

// Samples near and far from the wells; every 37th is at a distance where exponentials overflow and vanish.
Population<float> samples(std::size_t n, std::size_t d) {
  Population<float> x(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) {
      const double t = static_cast<double>(i * d + j);
      x(i, j) = static_cast<float>((i % 37 == 5 ? 60.0 : 4.0) * std::sin(1.0 + 1.3 * t));
    }
  return x;
}

template <class P>
Results results(const KernelSet& set, const P& v, std::size_t n) {
  const PotentialKernels<float, P>& kernels = std::get<PotentialKernels<float, P>>(set.parts);
  const std::size_t d = v.dimension(), p = v.parameters();
  Population<float> x = samples(n, d);
  Results r{std::vector<float>(n),
            std::vector<float>(d * block_size),
            {},
            std::vector<double>(1 + 2 * p),
            std::vector<double>(p)};
  std::vector<float> signal(block_size), direction(d * block_size, 0.3f), noise(d * block_size);
  for (std::size_t i = 0; i < block_size; ++i) signal[i] = static_cast<float>(std::cos(static_cast<double>(i)));
  set.normals(Noise{3}.at(Stream::sampling, {}), d, 0, groups_per_block, noise.data());

  const Block<float> block = x.block(0);
  kernels.pass(v, block, {.values = r.values.data()});
  kernels.pass(v, block, {.gradient = r.gradient.data()});
  for (std::size_t j = 0; j < d; ++j)  // beyond the samples there is nothing to compare
    std::fill(r.gradient.begin() + static_cast<std::ptrdiff_t>(j * block_size + n),
              r.gradient.begin() + static_cast<std::ptrdiff_t>((j + 1) * block_size), 0.0f);
  kernels.mixed(v, block, direction.data(), r.mixed.data());
  kernels.pass(v, block,
               {.noise = noise.data(),
                .step = 0.2f,
                .scale = 0.6f,
                .nonfinite = &r.nonfinite,
                .sums = r.sums.data(),
                .signal = signal.data(),
                .value_share = 0.5f});
  for (std::size_t j = 0; j < d; ++j)
    for (const float v_j : x.coordinate(j)) r.moved.push_back(v_j);
  return r;
}

template <class P>
void expect_lanes_equal_floats(P potential, const std::vector<double>& theta) {
  potential.prepare(theta);
  for (const Isa level : levels())
    for (const std::size_t n : {1, 2, 15, 16, 17, 100, 255, 256}) {
      const Results lanes = results(kernels_of(level), potential, n);
      const Results plain = results(plain_of(level), potential, n);
      EXPECT_TRUE(lanes == plain) << to_string(level) << ", " << n << " samples";
      EXPECT_FALSE(lanes.nonfinite);
      if (level == Isa::v4) {
        const Results v3 = results(kernels_of(Isa::v3), potential, n);
        EXPECT_TRUE(lanes == v3) << "v4 and v3, " << n << " samples";
      }
    }
}

const std::vector<double> theta6{1.5, 0, 1.5, -8, 1.5, 0};

TEST(Kernels, LanesEqualFloatsBitForBit) {
  const auto hexagon = problems::hexagon();
  expect_lanes_equal_floats(SoftmaxWells(hexagon, 2.0), theta6);
  expect_lanes_equal_floats(SoftmaxWells(hexagon, 1.0), theta6);
  expect_lanes_equal_floats(SoftmaxWells({{1, 2, 3}, {-1, 0, 2}}, 2.0), {0.3, -0.2});
  expect_lanes_equal_floats(LogisticWells(hexagon, 1.0, 0.1), theta6);
  expect_lanes_equal_floats(Quadratic({{2, 0.5}, {0.5, 1}}), {0.4, -0.3});
  expect_lanes_equal_floats(DoubleWell(3, 2.0, 1.5), {0.7});
  for (const auto form : {CovarianceForm::direct, CovarianceForm::cholesky}) {
    const Mixture mixture(2, 2, {form});
    const std::vector<Gaussian> parts{{{-4, 0}, {.75, -.5, -.5, 1.5}}, {{2, -3}, {.75, .5, .5, 1.25}}};
    expect_lanes_equal_floats(mixture, mixture.parameters_of(std::vector<double>{1.5, 0}, parts));
  }
}

template <class R>
void expect_reward_lanes_equal_floats(const R& reward) {
  for (const Isa level : levels())
    for (const std::size_t n : {1, 15, 17, 256}) {
      const Population<float> x = samples(n, 2);
      std::vector<float> value(n), slope(2 * block_size), plain_value(n), plain_slope(2 * block_size);
      std::fill(value.begin(), value.end(), 0.25f);
      std::fill(plain_value.begin(), plain_value.end(), 0.25f);
      std::get<RewardKernels<float, R>>(kernels_of(level).parts).add(reward, x.block(0), 1.5f, value.data());
      std::get<RewardKernels<float, R>>(plain_of(level).parts).add(reward, x.block(0), 1.5f, plain_value.data());
      std::get<RewardKernels<float, R>>(kernels_of(level).parts).gradient(reward, x.block(0), slope.data());
      std::get<RewardKernels<float, R>>(plain_of(level).parts).gradient(reward, x.block(0), plain_slope.data());
      EXPECT_EQ(value, plain_value) << to_string(level) << ", " << n;
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_EQ(slope[i], plain_slope[i]) << to_string(level) << ", " << n;
        EXPECT_EQ(slope[block_size + i], plain_slope[block_size + i]) << to_string(level) << ", " << n;
      }
    }
}

TEST(Kernels, RewardsOnLanesEqualFloatsBitForBit) {
  expect_reward_lanes_equal_floats(HardReward({4, 3.8}, 20, 2.5));
  expect_reward_lanes_equal_floats(SmoothReward({4, 3.8}, 20, 0.7, 0.5));
  expect_reward_lanes_equal_floats(BumpReward({4, 3.8}, 2));
  expect_reward_lanes_equal_floats(QuadraticReward({4, 3.8}));
  expect_reward_lanes_equal_floats(RadiusReward({0.5, -1}, 3, 2));
}

TEST(Kernels, NormalsOnLanesEqualFloatsBitForBit) {
  for (const Isa level : levels())
    for (const std::size_t d : {1, 2, 3, 5})
      for (const std::size_t first : {0, 3, 4}) {
        std::vector<float> lanes(7 * d * 16), plain(7 * d * 16);
        const NoiseKey key = Noise{9}.at(Stream::sampling, {.round = 4, .index = 2});
        kernels_of(level).normals(key, d, first, 7, lanes.data());
        plain_of(level).normals(key, d, first, 7, plain.data());
        EXPECT_EQ(lanes, plain) << to_string(level) << ", dimension " << d;
      }
}

// The truth: V, its gradients and the step in double precision, with the standard library's functions and distances
// instead of linear forms.
//
// A float has 24 bits. The linear forms a . x + b reach 60 in powers of two near the wells and 400 for the far samples,
// so an exponential is good to 60 x 6e-8 x ln 2 = 2.5e-6 relative there and 2e-5 far out (where the largest term is
// subtracted first); V of a far sample, about 2000, to 2000 x 6e-8 x 4 = 5e-4. Tolerances are these, rounded up.
TEST(Kernels, LanesAgreeWithDoublePrecision) {
  const auto centres = problems::hexagon();
  SoftmaxWells wells(centres, 2.0);
  wells.prepare(theta6);
  double norm = 0;
  for (const double t : theta6) norm += std::exp(t);
  const std::size_t n = 256;
  const Population<float> x = samples(n, 2);
  std::array<float, block_size> value;
  std::array<float, 2 * block_size> slope;
  for (const Isa level : levels()) {
    Population<float> y = x;
    std::get<PotentialKernels<float, SoftmaxWells>>(kernels_of(level).parts)
        .pass(wells, y.block(0), {.values = value.data()});
    std::get<PotentialKernels<float, SoftmaxWells>>(kernels_of(level).parts)
        .pass(wells, y.block(0), {.gradient = slope.data()});
    for (std::size_t i = 0; i < n; ++i) {
      const double x0 = x(i, 0), x1 = x(i, 1);
      const bool far = std::max(std::abs(x0), std::abs(x1)) > 10;
      double top = -1e300, total = 0, g0 = 0, g1 = 0;
      std::array<double, 6> term;
      for (std::size_t k = 0; k < 6; ++k) {
        const double u = x0 - centres[k][0], w = x1 - centres[k][1];
        term[k] = theta6[k] - std::log(norm) - (u * u + w * w) / 2;
        top = std::max(top, term[k]);
      }
      for (std::size_t k = 0; k < 6; ++k) {
        const double e = std::exp(term[k] - top);
        total += e;
        g0 += e * (x0 - centres[k][0]);
        g1 += e * (x1 - centres[k][1]);
      }
      EXPECT_NEAR(value[i], -(top + std::log(total)), far ? 1e-3 : 1e-5) << to_string(level) << ", sample " << i;
      EXPECT_NEAR(slope[i], g0 / total, far ? 1e-3 : 3e-5) << to_string(level) << ", sample " << i;
      EXPECT_NEAR(slope[block_size + i], g1 / total, far ? 1e-3 : 3e-5) << to_string(level) << ", sample " << i;
    }
  }
}

TEST(Kernels, NoticeASampleThatIsNotFinite) {
  SoftmaxWells wells(problems::hexagon(), 2.0);
  wells.prepare(theta6);
  for (const Isa level : levels())
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Population<float> x = samples(100, 2);
      x(77, 1) = bad;
      std::vector<float> noise(2 * block_size, 0.1f);
      bool nonfinite = false;
      std::get<PotentialKernels<float, SoftmaxWells>>(kernels_of(level).parts)
          .pass(wells, x.block(0), {.noise = noise.data(), .step = 0.1f, .scale = 0.1f, .nonfinite = &nonfinite});
      EXPECT_TRUE(nonfinite) << to_string(level) << ", " << bad;
      for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(std::isfinite(x(i, 0)) && std::isfinite(x(i, 1)), i != 77);
    }
}

}  // namespace
}  // namespace implicit_diffusion
