// How populations are spread over the modes of a law.
#include "implicit_diffusion/langevin/occupancy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace implicit_diffusion {
namespace {

GaussianMixture two(double weight, double distance) {
  return {{weight, 1 - weight}, {{{-distance}, {1.0}}, {{distance}, {1.0}}}};
}

// Responsibilities of N(-m, 1) and N(m, 1) with the weights w and 1 - w: r_2 / r_1 = (1 - w) / w exp(2 m x).
TEST(Occupancy, IsTheMeanOfResponsibilities) {
  Population<float> x(2, 1);
  x(0, 0) = 0.0F;
  x(1, 0) = 0.5F;
  const Occupancy o = occupancy(x, two(0.8, 1.5));
  const double at_half = 1 / (1 + 0.25 * std::exp(1.5));
  EXPECT_NEAR(o.shares[0], (0.8 + at_half) / 2, 1e-12);
  EXPECT_NEAR(o.shares[0] + o.shares[1], 1, 1e-12);
  const double off = 0.8 - o.shares[0];
  EXPECT_NEAR(o.total_variation, off, 1e-12);
  EXPECT_NEAR(o.deviation, off / std::sqrt(0.8 * 0.2 / 2), 1e-12);
}

// 40,000 exact samples: the shares are off by some 0.002. 4.5 standard errors are exceeded for one seed in 150,000.
TEST(Occupancy, OfSamplesOfTheLawIsItsWeights) {
  for (const double distance : {0.3, 2.0, 20.0}) {
    const GaussianMixture law = two(0.7, distance);
    Population<float> x(40'000, 1);
    MixtureSampler(law, Noise(3)).draw(x, 0);
    const Occupancy o = occupancy(x, law, x.size());
    EXPECT_LT(o.total_variation, 4.5 * std::sqrt(0.7 * 0.3 / 40'000)) << distance;
    EXPECT_LT(o.deviation, 4.5) << distance;
  }
}

TEST(Occupancy, SeesAPopulationThatIsStuck) {
  Population<float> x(400, 1);
  for (std::size_t i = 0; i < x.size(); ++i) x(i, 0) = i % 4 == 0 ? 6.0F : -6.0F;
  const Occupancy o = occupancy(x, two(0.5, 6));
  EXPECT_NEAR(o.total_variation, 0.25, 1e-12);
  EXPECT_NEAR(o.deviation, 0.25 / std::sqrt(0.25 / 400), 1e-9);
  // All that the law has is elsewhere.
  const Occupancy all = occupancy(x, {{0.0, 1.0}, {{{-6.0}, {1.0}}, {{6.0}, {1.0}}}});
  EXPECT_NEAR(all.shares[1], 1, 1e-12);
  // A part of the samples, taken evenly, tells the same.
  EXPECT_NEAR(occupancy(x, two(0.5, 6), 100).total_variation, 0.5, 1e-12);
  EXPECT_EQ(occupancy(Population<float>(0, 1), two(0.5, 6)).total_variation, 0);
}

}  // namespace
}  // namespace implicit_diffusion
